#pragma once

#include <string>

#include "commands/command.h"
#include "local_pool/route.h"
#include "settings.h"
#include "w5xde/result.h"

namespace w5xde {

// What w5xde train and w5xde serve are given.
struct CoordinatorCommand {
  std::string run;  // a run folder, or a .toml file; empty: a new folder under runs/
  Given given;
  unsigned nodes = 0;  // of this machine
  unsigned cores = 0;  // that those use; 0: all
  unsigned nodes_awaited = 1;
  std::string listen = "127.0.0.1:0";
  bool insecure = false;
  bool tls = false;  // on this machine too
  CertificateFlags certificates;
  std::string engine;
  std::string device = "auto";
  std::string json;
  std::string log = "normal";
  bool no_summary = false;
};

// The flags that both commands have.
void add_coordinator_flags(CLI::App& command, CoordinatorCommand& options);

// Begins the run or goes on with it, and coordinates it to its end.
Result<ExitCode> run_coordinator(const CoordinatorCommand& options);

}  // namespace w5xde
