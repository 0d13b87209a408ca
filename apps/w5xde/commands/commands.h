#pragma once

#include <filesystem>
#include <string>

#include "base/log.h"
#include "settings.h"
#include "w5xde/result.h"

namespace w5xde {

// What the program exits with; docs/errors.md lists them.
enum ExitCode : int {
  kSuccess = 0,
  kUsage = 2,         // the command line, run.toml or the data makes no sense: change it
  kFailed = 3,        // it made sense and did not work out: the message says what to mend
  kInterrupted = 4,   // stopped by a signal; what was committed is saved, and the run can be resumed
  kIncompatible = 5,  // the other side is sound but does not fit: another version, engine or model
  kDiverged = 6,      // training came to numbers that are none; the last good checkpoint is kept
};

// Writes a file of text, whole or not at all.
Status write_text(const std::filesystem::path& path, const std::string& text);

// Prints the error, and says which code it is.
ExitCode report(const Error& error);

struct TrainOptions {
  std::string run;  // a run folder, or a .toml file; empty: a new folder under runs/
  Given given;
  unsigned nodes = 0;  // local ones; serve has none
  unsigned cores = 0;  // that those have; 0: all
  unsigned nodes_awaited = 1;
  std::string listen = "127.0.0.1:0";
  bool insecure = false;
  std::string engine;
  std::string device = "auto";
  std::string json;
  LogTier log = LogTier::normal;
};
// w5xde train, w5xde serve: a coordinator, with local nodes or without.
ExitCode train(const TrainOptions& options);

struct JoinCommand {
  std::string address;
  unsigned nodes = 1;
  unsigned threads = 1;
  unsigned cores = 0;
  unsigned attempts = 0;  // 0: without end
  std::string name;
  std::string engine;
  std::string device = "auto";
  LogTier log = LogTier::normal;
};
// w5xde join HOST:PORT
ExitCode join_pool(const JoinCommand& options);

// w5xde status HOST:PORT | RUN
ExitCode status(const std::string& target, const std::string& json);

// w5xde inspect FILE | RUN: what a safetensors file, a checkpoint or a run holds.
ExitCode inspect(const std::filesystem::path& target);

struct EvalOptions {
  std::string run;
  std::string data;
  std::string checkpoint;  // empty: the newest
  std::string engine;
  std::string device = "auto";
  std::string json;
};
// w5xde eval RUN --data D
ExitCode eval(const EvalOptions& options);

struct PlanOptions {
  Given given;
  unsigned nodes = 2;
  unsigned cores = 0;  // of all nodes; 0: one a node and thread, or this machine's where all are on it
  std::string link = "loopback";
  double slot_seconds = 0;  // 0: measured
  double seconds = 1;       // that measuring takes
  std::string engine;
  std::string json;
};
// w5xde plan: what a run would come to, before it is started.
ExitCode plan(const PlanOptions& options);

struct BenchOptions {
  Given given;
  unsigned lanes = 2;
  unsigned nodes = 10;
  unsigned rounds = 5;
  double seconds = 4;
  std::string engine;
  std::string json;
};
// w5xde bench compute: the engine alone, on the cores that are asked for, no network.
ExitCode bench_compute(const BenchOptions& options);
// w5xde bench pool: a pool and the engine alone, interleaved.
ExitCode bench_pool(const BenchOptions& options);

struct OriginalBenchOptions {
  double seconds = 30;  // a cell's, all rounds together, after warming up
  unsigned nodes = 10;
  unsigned rounds = 3;
  std::string only;
  std::string out = "bench-report";
  std::string engine;
};
// w5xde bench original: every preset on every workload over every link.
ExitCode bench_original(const OriginalBenchOptions& options);

}  // namespace w5xde
