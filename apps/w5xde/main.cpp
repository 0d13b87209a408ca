// The command line of WIIIIIDE.
#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <new>

#include "base/errors.h"
#include "commands/command.h"
#include "commands/usage_error.h"

namespace {

// Each node needs a descriptor of its coordinator, and programs often start with a limit of 1,024. Not
// without bound: some libraries walk through all descriptors that there may be.
void raise_descriptor_limit() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // without it there is room for fewer nodes
}

}  // namespace

int main(int argc, char** argv) {
  using namespace w5xde;
  raise_descriptor_limit();
  ExitCode code = kSuccess;
  const auto program = make_program(code);
  add_bench(*program, code);
  try {
    program->parse(argc, argv);
  } catch (const CLI::ParseError& refusal) {
    if (refusal.get_exit_code() == 0) return program->exit(refusal);  // help and version
    return report(usage_error(*program, refusal, {argv + 1, argv + argc}));
  } catch (const std::bad_alloc&) {
    return report(Error{ErrorKind::system, "out of memory"});
  } catch (const std::exception& unforeseen) {
    return report(Error{ErrorKind::system, unforeseen.what()});
  }
  return code;
}
