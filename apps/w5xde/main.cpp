// The command line of WIIIIIDE.
#include "w5xde/version.h"

#include <CLI/CLI.hpp>
#include <string>

#include "commands.h"

int main(int argc, char** argv) {
  CLI::App app("WIIIIIDE: trains PyTorch models on a pool of ordinary machines.");
  app.set_version_flag("--version", "w5xde " + std::string(w5xde::kVersion));
  app.require_subcommand(1);

  std::string file;
  auto* inspect = app.add_subcommand("inspect", "Show what a safetensors file holds.");
  inspect->add_option("FILE", file, "The file")->required();
  inspect->footer("Example:\n  w5xde inspect model.safetensors");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? w5xde::kSuccess : w5xde::kUsage;
  }
  return w5xde::inspect(file);
}
