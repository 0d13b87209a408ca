// The command line of WIIIIIDE.
#include <sys/resource.h>

#include <algorithm>

#include "commands/command.h"
#include "w5xde/version.h"

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
  CLI::App app("WIIIIIDE: trains PyTorch models on a pool of ordinary machines.");
  app.set_version_flag("--version", "w5xde " + std::string(kVersion));
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "`w5xde COMMAND --help` explains a command. The first two to try:\n"
      "  w5xde train --model mlp:10,20,10 --data synthetic --nodes 4 --seconds 10\n"
      "  w5xde status RUN");
  app.option_defaults()->always_capture_default();
  // Scripts put their defaults first and append what they are given: the last one wins.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  ExitCode code = kSuccess;
  for (const auto add : {add_train, add_serve, add_join, add_status, add_inspect, add_eval, add_export,
                         add_compare, add_plot, add_plan, add_bench}) {
    add(app, code);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool surprised = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                           dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    const std::string unknown = surprised ? unknown_word(app, argc, argv) : "";
    if (!unknown.empty()) return report(invalid(unknown));
    return app.exit(error) == 0 ? kSuccess : kUsage;
  }
  return code;
}
