// Runs whole pools under simulated faults, one a seed:
//
//   simulate --seeds N [--first S] [--trace] [--jobs J]
//
// Prints a line for each seed whose run went wrong, and exits with 1 if any did.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string_view>

#include "sim/simulation.h"

// Pieces of memory that are held, counted: a run must give back all that it took.
namespace {
std::atomic<std::ptrdiff_t> pieces_held = 0;  // lanes are threads

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  ++pieces_held;
  return memory;
}
void uncounted(void* memory) {
  if (memory != nullptr) --pieces_held;
  std::free(memory);
}
std::size_t rounded(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return (std::max<std::size_t>(size, 1) + unit - 1) / unit * unit;
}
}  // namespace

void* operator new(std::size_t size) {
  return counted(std::malloc(std::max<std::size_t>(size, 1)));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(std::aligned_alloc(static_cast<std::size_t>(alignment), rounded(size, alignment)));
}
void operator delete(void* memory) noexcept {
  uncounted(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  uncounted(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  uncounted(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  uncounted(memory);
}

namespace w5xde {
namespace {

struct Arguments {
  std::uint64_t seeds = 100, first = 1;
  unsigned jobs = 1;
  bool trace = false;
};

std::string run_seed(std::uint64_t seed, bool trace) {
  SimTrace print;
  if (trace) print = [](const std::string& line) { fmt::print("{}\n", line); };
  Simulation simulation(seed, print);
  return simulation.run();
}

// What a job's process tells its parent, in memory that both have.
struct Report {
  std::uint64_t next = 0;  // how many of its seeds are done, or begun
  std::uint64_t failed = 0;
};

std::string check_seed(std::uint64_t seed, bool trace) {
  const std::ptrdiff_t before = pieces_held;
  std::string violation = run_seed(seed, trace);
  const std::ptrdiff_t after = pieces_held;
  if (!violation.empty() || after <= before) return violation;
  // What is made once and stays (data sets) is made by some run. The second time there is none of it.
  violation = run_seed(seed, false);
  if (!violation.empty()) return "the second time: " + violation;
  return pieces_held > after ? fmt::format("{} pieces of memory are left behind", pieces_held.load() - after)
                             : "";
}

void run_job(const Arguments& arguments, unsigned job, Report& report) {
  while (true) {
    const std::uint64_t number = job + report.next * arguments.jobs;
    if (number >= arguments.seeds) return;
    ++report.next;
    const std::uint64_t seed = arguments.first + number;
    const std::string violation = check_seed(seed, arguments.trace);
    if (!violation.empty()) {
      ++report.failed;
      fmt::print("seed {}: {} ({})\n", seed, violation, make_scenario(seed).describe());
    }
    std::fflush(stdout);
  }
}

// One process a job. One that crashes is a failed run, and another goes on with the seeds after it.
std::uint64_t run_jobs(const Arguments& arguments) {
  auto* reports = static_cast<Report*>(mmap(nullptr, arguments.jobs * sizeof(Report), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::map<pid_t, unsigned> running;
  const auto start = [&](unsigned job) {
    const pid_t child = fork();
    if (child == 0) {
      run_job(arguments, job, reports[job]);
      _exit(0);
    }
    running[child] = job;
  };
  for (unsigned job = 0; job < arguments.jobs; ++job) start(job);
  std::uint64_t failed = 0;
  int status = 0;
  for (pid_t child = wait(&status); child > 0; child = wait(&status)) {
    const unsigned job = running.at(child);
    if (WIFSIGNALED(status)) {
      const std::uint64_t number = job + (reports[job].next - 1) * arguments.jobs;
      fmt::print("seed {}: crashed with signal {}\n", arguments.first + number, WTERMSIG(status));
      ++failed;
      start(job);
    }
  }
  for (unsigned job = 0; job < arguments.jobs; ++job) failed += reports[job].failed;
  return failed;
}

bool parse(int count, char** words, Arguments& arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--trace") {
      arguments.trace = true;
      continue;
    }
    if (i + 1 == count) return false;
    const std::string_view digits = words[++i];
    std::uint64_t number = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc()) return false;
    if (word == "--seeds") {
      arguments.seeds = number;
    } else if (word == "--first") {
      arguments.first = number;
    } else if (word == "--jobs" && number > 0) {
      arguments.jobs = static_cast<unsigned>(number);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace w5xde

int main(int count, char** words) {
  w5xde::Arguments arguments;
  if (!w5xde::parse(count, words, arguments)) {
    fmt::print(stderr,
               "usage: simulate [--seeds N] [--first S] [--jobs J] [--trace]\n"
               "  --seeds N   N runs, each decided by its seed (100)\n"
               "  --first S   the first seed (1)\n"
               "  --jobs J    in J processes (1)\n"
               "  --trace     prints everything that happens\n"
               "simulate --first 42 --seeds 1 --trace replays seed 42.\n");
    return 2;
  }
  const std::uint64_t failed = w5xde::run_jobs(arguments);
  fmt::print("{} runs, {} failed\n", arguments.seeds, failed);
  return failed > 0 ? 1 : 0;
}
