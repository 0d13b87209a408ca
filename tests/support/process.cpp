#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace w5xde {

namespace {

// Far more than anything takes, on a machine that is busy with other things too.
constexpr auto kPatience = std::chrono::seconds(100);

// Between fork and exec: nothing that allocates, but the environment is this process's own copy.
[[noreturn]] void become(char* const* arguments, const Process::Options& options, int error_pipe) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(options.with_output ? error_pipe : nowhere, STDOUT_FILENO);
  ::dup2(error_pipe, STDERR_FILENO);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (options.file_bytes_max) {
    const rlimit limit{*options.file_bytes_max, *options.file_bytes_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);  // a full disk is an error, not a signal
  }
  if (options.descriptors_max) {
    const rlimit limit{*options.descriptors_max, *options.descriptors_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (::chdir(options.folder.c_str()) == 0) ::execvp(arguments[0], arguments);
  ::_exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const Options& options) {
  for (const std::string& word : command) name_ += (name_.empty() ? "" : " ") + word;
  // What it leaves behind becomes ours, and is waited for.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  id_ = ::fork();
  if (id_ == 0) become(arguments.data(), options, pipe[1]);
  ::close(pipe[1]);
  output_ = pipe[0];
  ::fcntl(output_, F_SETFL, O_NONBLOCK);
  if (id_ < 0) throw std::runtime_error("no process for " + name_);
  ::setpgid(id_, id_);                                                // both sides say it: whoever is first
  exit_watch_ = static_cast<int>(::syscall(SYS_pidfd_open, id_, 0));  // glibc 2.36 declares it for C only
}

Process::Process(Process&& other) noexcept
    : name_(std::move(other.name_)),
      id_(std::exchange(other.id_, -1)),
      exit_watch_(std::exchange(other.exit_watch_, -1)),
      output_(std::exchange(other.output_, -1)),
      exit_code_(other.exit_code_),
      said_(std::move(other.said_)),
      looked_at_(other.looked_at_) {}

Process::~Process() {
  if (id_ < 0) return;
  signal(SIGKILL);
  while (::waitpid(-id_, nullptr, 0) > 0) {
  }
  ::close(exit_watch_);
  ::close(output_);
}

void Process::signal(int number) {
  ::kill(-id_, number);
}

void Process::signal_alone(int number) {
  ::kill(id_, number);
}

std::string Process::wait_for_line(const std::string& part) {
  const Deadline deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    for (std::size_t end = 0; (end = said_.find('\n', looked_at_)) != std::string::npos;) {
      const std::string line = said_.substr(looked_at_, end - looked_at_);
      looked_at_ = end + 1;
      if (line.find(part) != std::string::npos) return line;
    }
    // Once it has ended it has said everything, and that was read before it was waited for.
    if (exit_code_) give_up("ended without a line with '" + part + "'");
    wait_for_more(deadline, "a line with '" + part + "'");
  }
}

int Process::wait() {
  const Deadline deadline = std::chrono::steady_clock::now() + kPatience;
  while (!exit_code_) wait_for_more(deadline, "its end");
  return *exit_code_;
}

void Process::wait_for_more(Deadline deadline, const std::string& what) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd events[] = {{exit_watch_, POLLIN, 0}, {output_, POLLIN, 0}};
  if (left.count() <= 0 || ::poll(events, 2, static_cast<int>(left.count())) == 0)
    give_up("does not reach " + what);
  if (events[0].revents != 0) {
    while (read_some()) {
    }
    int state = 0;
    ::waitpid(id_, &state, 0);
    exit_code_ = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  } else {
    read_some();
  }
}

bool Process::read_some() {
  char part[4096];
  const ssize_t count = ::read(output_, part, sizeof part);
  if (count <= 0) return false;
  said_.append(part, static_cast<std::size_t>(count));
  return true;
}

void Process::give_up(const std::string& what) const {
  throw std::runtime_error(name_ + "\n" + what + "; it said:\n" + said_);
}

std::vector<pid_t> Process::descendants() const {
  std::vector<pid_t> found = {id_};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string id = std::to_string(found[i]);
    std::ifstream children("/proc/" + id + "/task/" + id + "/children");
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  found.erase(found.begin());
  return found;
}

}  // namespace w5xde
