#include "local_pool/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <utility>

#include "base/clock.h"
#include "base/file.h"

namespace w5xde {

namespace {

// The time a stopped pool has to save and to say goodbye.
constexpr auto kGrace = std::chrono::seconds(10);

// As a shell does.
constexpr int kNotThere = 127;

// Between fork and exec: nothing that allocates.
[[noreturn]] void become(char* const* arguments, int output) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(arguments[0], arguments);
  _exit(kNotThere);
}

std::vector<pollfd> running(std::span<Child> children) {
  std::vector<pollfd> events;
  for (Child& child : children) {
    if (!child.exit_code()) events.push_back({child.descriptor(), POLLIN, 0});
  }
  return events;
}

void stop(std::span<Child> children) {
  for (Child& child : children) {
    if (!child.exit_code()) child.signal(SIGTERM);
  }
  const Instant deadline = SteadyClock().now() + kGrace;
  for (auto events = running(children); !events.empty(); events = running(children)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock().now());
    if (left.count() <= 0) return;  // they end with their Child
    poll(events.data(), events.size(), static_cast<int>(left.count()));
  }
}

}  // namespace

Result<Child> Child::start(const Words& command, const std::filesystem::path& output) {
  Words words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return system_error(fmt::format("writing {}", output.string()), errno);
  const pid_t id = fork();
  if (id == 0) become(arguments.data(), file);
  close(file);
  if (id < 0) return system_error(fmt::format("starting {}", command[0]), errno);
  setpgid(id, id);                                                     // both sides say it: whoever is first
  const int watch = static_cast<int>(syscall(SYS_pidfd_open, id, 0));  // glibc 2.36 declares it for C only
  return Child(fmt::format("{}", fmt::join(command, " ")), output, id, watch);
}

Child::Child(Child&& other) noexcept
    : name_(std::move(other.name_)),
      output_(std::move(other.output_)),
      id_(std::exchange(other.id_, -1)),
      exit_watch_(std::exchange(other.exit_watch_, -1)),
      exit_code_(other.exit_code_) {}

Child::~Child() {
  if (id_ < 0) return;
  if (!exit_code()) {
    kill(-id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  close(exit_watch_);
}

void Child::signal(int number) const {
  kill(id_, number);
}

std::optional<int> Child::exit_code() {
  int state = 0;
  if (!exit_code_ && waitpid(id_, &state, WNOHANG) == id_) {
    exit_code_ = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  }
  return exit_code_;
}

std::string Child::last_words() const {
  std::string before, last;
  std::ifstream file(output_);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) before = std::exchange(last, line);
  }
  if (!before.empty()) last = before + " " + last;
  if (last.empty()) last = exit_code_ == kNotThere ? "there is no such program" : "ended without a word";
  return fmt::format("{}: {}", name_, last);
}

Status wait_for(std::span<Child> children, const Watch& watch) {
  while (true) {
    auto events = running(children);
    const auto failed = std::ranges::find_if(children, [](Child& child) { return child.exit_code() > 0; });
    if (failed != children.end()) {
      stop(children);
      return Error{ErrorKind::system, failed->last_words()};
    }
    if (events.empty()) return {};
    events.push_back({watch.interrupt, POLLIN, 0});
    if (poll(events.data(), events.size(), 1000) == 0) watch.every_second();
    if (events.back().revents != 0) {
      stop(children);
      return Error{ErrorKind::system, "stopped by a signal"};
    }
  }
}

Result<std::string> own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Error{ErrorKind::system, "finding this program: " + error.message()};
  return path.string();
}

}  // namespace w5xde
