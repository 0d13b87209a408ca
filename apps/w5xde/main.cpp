// The command line of WIIIIIDE.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>

#include "base/file.h"
#include "commands/commands.h"
#include "help.h"
#include "w5xde/version.h"

namespace w5xde {

Status write_text(const std::filesystem::path& path, const std::string& text) {
  const Bytes bytes = bytes_of(text);
  return write_file_atomically(path, {&bytes, 1});
}

ExitCode report(const Error& error) {
  std::fprintf(stderr, "w5xde: %s\n", error.message.c_str());
  switch (error.kind) {
    case ErrorKind::invalid:
      return kUsage;
    case ErrorKind::incompatible:
      return kIncompatible;
    case ErrorKind::diverged:
      return kDiverged;
    default:
      return kFailed;
  }
}

namespace {

// Each node takes a descriptor of its coordinator, and the limit that programs are started with is often
// 1,024. Not past a sane number: some libraries walk through all that there may be.
void raise_descriptor_limit() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // without it there is room for fewer nodes
}

struct Line {
  TrainOptions train{.nodes = 2};
  JoinCommand join;
  EvalOptions eval;
  PlanOptions plan;
  BenchOptions bench;
  OriginalBenchOptions original;
  std::string serve_listen = "127.0.0.1:5555";
  std::string target;
  std::string json;
  std::string log = "normal";
};

void add_log(CLI::App& command, Line& line) {
  command.add_option("--log", line.log, "silent, normal or verbose")
      ->capture_default_str()
      ->group(kRecordingGroup);
}

CLI::App* add_train(CLI::App& app, Line& line) {
  auto* train = app.add_subcommand("train", "Train on this machine: a coordinator and nodes.");
  train->add_option("RUN", line.train.run, "A run folder to begin or go on with, or a run.toml");
  add_settings(*train, line.train.given);
  train->add_option("--nodes", line.train.nodes, "Nodes on this machine")->capture_default_str();
  train->add_option("--cores", line.train.cores, "How many cores of this machine they use; by default all")
      ->group(kPoolGroup);
  train->add_option("--listen", line.train.listen, "Where other machines may join")
      ->capture_default_str()
      ->group(kPoolGroup);
  train
      ->add_flag("--insecure", line.train.insecure,
                 "Listen beyond this machine, although anyone who reaches the port can join")
      ->group(kPoolGroup);
  train->add_option("--device", line.train.device, "auto, cpu, cuda or mps")
      ->capture_default_str()
      ->group(kPoolGroup);
  train->add_option("--engine", line.train.engine, "The engine's shared library")->group(kPoolGroup);
  train->add_option("--json", line.train.json, "Write the summary to this file too")->group(kRecordingGroup);
  add_log(*train, line);
  train->footer(
      "Examples:\n"
      "  w5xde train --model mlp:10,20,10 --data synthetic --nodes 10 --seconds 30\n"
      "  w5xde train runs/a --model lenet --data idx:fashion-mnist --epochs 3\n"
      "  w5xde train runs/a                        go on where it stopped");
  return train;
}

CLI::App* add_serve(CLI::App& app, Line& line) {
  auto* serve = app.add_subcommand("serve", "Coordinate a run; machines join with `w5xde join`.");
  serve->add_option("RUN", line.train.run, "A run folder to begin or go on with, or a run.toml");
  add_settings(*serve, line.train.given);
  serve->add_option("--listen", line.serve_listen, "HOST:PORT")->capture_default_str()->group(kPoolGroup);
  serve
      ->add_flag("--insecure", line.train.insecure,
                 "Listen beyond this machine, although anyone who reaches the port can join")
      ->group(kPoolGroup);
  serve->add_option("--wait-for", line.train.nodes_awaited, "Begin when this many nodes have joined")
      ->capture_default_str()
      ->group(kPoolGroup);
  serve->add_option("--engine", line.train.engine, "The engine's shared library")->group(kPoolGroup);
  serve->add_option("--json", line.train.json, "Write the summary to this file too")->group(kRecordingGroup);
  add_log(*serve, line);
  serve->footer(
      "Examples:\n"
      "  w5xde serve runs/a --model lenet --data idx:fashion-mnist --epochs 5\n"
      "  w5xde serve runs/a --listen 0.0.0.0:5555 --insecure    open to the network");
  return serve;
}

CLI::App* add_join(CLI::App& app, Line& line) {
  auto* join = app.add_subcommand("join", "Give this machine to a pool.");
  join->add_option("HOST:PORT", line.join.address, "The coordinator")->required();
  join->add_option("--cores", line.join.cores, "How many cores of this machine to give; by default all");
  join->add_option("--nodes", line.join.nodes, "How many nodes, sharing one engine and the cores")
      ->capture_default_str();
  join->add_option("--threads", line.join.threads, "For one slot's arithmetic; the run's, see its --threads")
      ->capture_default_str();
  join->add_option("--name", line.join.name, "What the nodes are called; by default this machine's name");
  join->add_option(
      "--attempts", line.join.attempts,
      "Give up when this many attempts in a row have failed; by default a coordinator that is away is "
      "waited for, and tried every 30 s at the latest");
  join->add_option("--device", line.join.device, "auto, cpu, cuda or mps")->capture_default_str();
  join->add_option("--engine", line.join.engine, "The engine's shared library");
  add_log(*join, line);
  join->footer("Examples:\n  w5xde join 192.168.1.10:5555\n  w5xde join pool.example.org:5555 --cores 2");
  return join;
}

CLI::App* add_eval(CLI::App& app, Line& line) {
  auto* eval = app.add_subcommand("eval", "Loss and accuracy of a run's checkpoint.");
  eval->add_option("RUN", line.eval.run, "The run folder")->required();
  eval->add_option("--data", line.eval.data, "What to evaluate on; by default what the run does");
  eval->add_option("--checkpoint", line.eval.checkpoint, "A file; by default the newest");
  eval->add_option("--device", line.eval.device, "auto, cpu, cuda or mps")->capture_default_str();
  eval->add_option("--engine", line.eval.engine, "The engine's shared library");
  eval->add_option("--json", line.eval.json, "Write the scores to this file too")->group(kRecordingGroup);
  eval->footer("Example:\n  w5xde eval runs/a --data idx:fashion-mnist");
  return eval;
}

CLI::App* add_plan(CLI::App& app, Line& line) {
  auto* plan = app.add_subcommand("plan", "What a run would need: time, bytes, memory, and what to change.");
  add_settings(*plan, line.plan.given);
  plan->add_option("--nodes", line.plan.nodes, "Nodes of the pool")->capture_default_str();
  plan->add_option("--link", line.plan.link,
                   "The coordinator's link, which all nodes share: RATE[,ROUND TRIP], or loopback")
      ->capture_default_str();
  plan->add_option("--cores", line.plan.cores,
                   "Cores that all nodes have together; by default one a node, on loopback this machine's")
      ->group(kPoolGroup);
  plan->add_option("--slot-seconds", line.plan.slot_seconds,
                   "What a slot takes on the nodes; by default measured on this machine")
      ->group(kPoolGroup);
  plan->add_option("--measure-seconds", line.plan.seconds,
                   "How long the engine is timed; a pool, where one is tried, twice as long")
      ->capture_default_str()
      ->group(kPoolGroup);
  plan->add_option("--engine", line.plan.engine, "The engine's shared library")->group(kPoolGroup);
  plan->add_option("--json", line.plan.json, "Write the figures to this file too")->group(kRecordingGroup);
  plan->footer(
      "Examples:\n"
      "  w5xde plan --model mlp:784,1024,1024,10 --nodes 4 --link 100mbit,40ms\n"
      "  w5xde plan --model mlp:10,20,10 --data synthetic --nodes 10");
  return plan;
}

CLI::App* add_bench(CLI::App& bench, Line& line, const char* name, const char* help, const char* footer) {
  auto* command = bench.add_subcommand(name, help);
  add_settings(*command, line.bench.given);
  command->add_option("--lanes", line.bench.lanes, "Cores for the engine alone")->capture_default_str();
  command->add_option("--nodes", line.bench.nodes, "Nodes of the pool")->capture_default_str();
  command->add_option("--rounds", line.bench.rounds, "How often each is measured; the median counts")
      ->capture_default_str();
  command->add_option("--measure-seconds", line.bench.seconds, "How long each measurement takes")
      ->capture_default_str();
  command->add_option("--engine", line.bench.engine, "The engine's shared library");
  command->add_option("--json", line.bench.json, "Write the figures to this file too")
      ->group(kRecordingGroup);
  command->footer(footer);
  return command;
}

CLI::App* add_original(CLI::App& bench, OriginalBenchOptions& options) {
  auto* original =
      bench.add_subcommand("original", "Every preset on every workload over every link, and two studies.");
  original
      ->add_option("--seconds", options.seconds,
                   "How long each is measured once it is warm, all rounds together")
      ->capture_default_str();
  original->add_option("--nodes", options.nodes, "Nodes of the pool")->capture_default_str();
  original->add_option("--rounds", options.rounds, "In how many turns; the median counts")
      ->capture_default_str();
  original->add_option(
      "--only", options.only,
      "Words with commas between: parts (presets, buffers, logging), presets, workloads (original, "
      "2M), links (loopback, 100mbit)");
  original->add_option("--out", options.out, "The folder for report.html and report.json")
      ->capture_default_str();
  original->add_option("--engine", options.engine, "The engine's shared library");
  original->footer(
      "Examples:\n"
      "  w5xde bench original                   all of it, forty minutes\n"
      "  w5xde bench original --only presets,original,loopback --seconds 6\n"
      "                                         the original's own table, three minutes");
  return original;
}

}  // namespace
}  // namespace w5xde

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
  // Scripts put their defaults first and hand on what they are given: the last one wins.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  Line line;
  const auto* train_command = add_train(app, line);
  const auto* serve_command = add_serve(app, line);
  const auto* join_command = add_join(app, line);
  auto* status_command = app.add_subcommand("status", "Who is in a run, how fast, why someone was dropped.");
  status_command->add_option("HOST:PORT|RUN", line.target, "The coordinator, or the run's folder")
      ->required();
  status_command->add_option("--json", line.json, "Write the status to this file too")
      ->group(kRecordingGroup);
  status_command->footer("Examples:\n  w5xde status 127.0.0.1:5555\n  w5xde status runs/a");
  auto* inspect_command =
      app.add_subcommand("inspect", "What a safetensors file, a checkpoint or a run holds.");
  inspect_command->add_option("FILE|RUN", line.target, "The file, or the run's folder")->required();
  inspect_command->footer("Examples:\n  w5xde inspect model.safetensors\n  w5xde inspect runs/a");
  const auto* eval_command = add_eval(app, line);
  const auto* plan_command = add_plan(app, line);
  auto* bench = app.add_subcommand("bench", "Measured comparisons.");
  bench->require_subcommand(1);
  bench->footer("Example:\n  w5xde bench pool --model mlp:10,20,10 --data synthetic --nodes 10");
  const auto* compute_command =
      add_bench(*bench, line, "compute", "The engine alone: no network, no coordinator.",
                "Example:\n  w5xde bench compute --model mlp:10,20,10 --data synthetic --lanes 2");
  add_bench(*bench, line, "pool", "A pool beside the engine alone, interleaved.",
            "Example:\n  w5xde bench pool --model mlp:10,20,10 --data synthetic --nodes 10");
  const auto* original_command = add_original(*bench, line.original);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kSuccess : kUsage;
  }
  const auto tier = parse_log_tier(line.log);
  if (!tier.ok()) return report(tier.error());
  line.train.log = line.join.log = *tier;
  if (serve_command->parsed()) {
    line.train.nodes = 0;
    line.train.listen = line.serve_listen;
  }
  if (train_command->parsed() || serve_command->parsed()) return train(line.train);
  if (join_command->parsed()) return join_pool(line.join);
  if (status_command->parsed()) return status(line.target, line.json);
  if (inspect_command->parsed()) return inspect(line.target);
  if (eval_command->parsed()) return eval(line.eval);
  if (plan_command->parsed()) return plan(line.plan);
  if (original_command->parsed()) return bench_original(line.original);
  if (const auto batch = line.bench.given.find("batch");
      batch != line.bench.given.end() && batch->second == "auto")
    return report(
        invalid("a bench compares at one batch; say --batch N, as `w5xde train --batch auto` chose it"));
  return compute_command->parsed() ? bench_compute(line.bench) : bench_pool(line.bench);
}
