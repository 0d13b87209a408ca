// What people and machines get wrong: each ends with the code that docs/errors.md has for it, with a message
// that says what is wrong and what to do, and with nothing lost.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "pool.h"

namespace w5xde {
namespace {

namespace fs = std::filesystem;

enum Code { kSuccess = 0, kUsage = 2, kFailed = 3, kInterrupted = 4, kIncompatible = 5, kDiverged = 6 };

const Words kMlp = {"--model", "mlp:10,20,10", "--data", "synthetic"};

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class BadInputTest : public testing::Test {
 protected:
  // The command ends with this code, and its stderr has each of the parts.
  void expect(int code, const Words& arguments, const Words& parts) const {
    expect(code, pool_.start(arguments), parts);
  }
  void expect(int code, Process process, const Words& parts) const {
    EXPECT_EQ(process.wait(), code) << process.said();
    for (const std::string& part : parts) {
      EXPECT_NE(process.said().find(part), std::string::npos) << "no '" << part << "' in:\n"
                                                              << process.said();
    }
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(pool_.folder() / name, std::ios::binary) << text;
  }

  // Makes .npy files: numpy stores this expression.
  void save_npy(const std::string& name, const std::string& expression) const {
    Process python(
        {"/usr/bin/python3", "-c", "import numpy as n; n.save('" + name + "', " + expression + ")"},
        {.folder = pool_.folder()});
    ASSERT_EQ(python.wait(), 0) << python.said();
  }

  Pool pool_{{.name = "mlp_numbers", .flags = kMlp + Words{"--steps", "20"}, .steps = 20}};
};

TEST_F(BadInputTest, an_unknown_model_is_refused_with_those_there_are) {
  expect(kUsage, {"train", "run", "--model", "transformer", "--data", "synthetic"},
         {"'transformer'", "lenet", "mlp:"});
  // The folder is not spoilt by it.
  expect(kSuccess, Words{"train", "run"} + kMlp + Words{"--steps", "3"}, {});
}

TEST_F(BadInputTest, a_model_that_does_not_fit_the_data_is_refused_with_one_that_does) {
  expect(kUsage, {"train", "run", "--model", "mlp:784,20,10", "--data", "synthetic"}, {"type mlp:10,20,10"});
}

TEST_F(BadInputTest, a_model_file_that_is_missing_or_none_is_refused) {
  expect(kUsage, {"train", "run", "--model", "gone.pt", "--data", "synthetic"},
         {"gone.pt", "torch.jit.script"});
  write("text.pt", "not a model\n");
  expect(kUsage, {"train", "run", "--model", "text.pt", "--data", "synthetic"},
         {"no TorchScript", "torch.jit.script"});
}

TEST_F(BadInputTest, unknown_data_is_refused_with_the_kinds_there_are) {
  expect(kUsage, {"train", "run", "--model", "mlp:10,20,10", "--data", "parquet:a"},
         {"'parquet:a'", "npy:", "idx:"});
}

TEST_F(BadInputTest, labels_that_do_not_count_are_shown_once_they_are_said_to_be_such) {
  save_npy("x.npy", "n.zeros((4, 3), 'f4')");
  save_npy("y.npy", "n.array([0, -100, 1, 1])");
  expect(kUsage, {"data", "npy:x.npy,y.npy"}, {"--ignore-index"});
  Process shown = pool_.start({"data", "npy:x.npy,y.npy", "--ignore-index", "-100"}, {.with_output = true});
  EXPECT_EQ(shown.wait(), kSuccess);
  EXPECT_NE(shown.said().find("samples of each class  0: 1, 1: 2; ignored: 1"), std::string::npos)
      << shown.said();
}

TEST_F(BadInputTest, a_name_that_is_too_long_for_a_file_is_refused_like_any_other) {
  const std::string name(300, 'x');
  expect(kUsage, {"train", "run", "--model", name, "--data", "synthetic"}, {name});
  expect(kUsage, {"data", "cifar10:" + name}, {"data_batch_1.bin"});
  expect(kUsage, {"data", "images:" + name}, {"there is no folder"});
  expect(kUsage, {"status", name}, {"there is no run folder"});
  // What nobody foresaw ends with an error too.
  expect(kFailed, {"inspect", name}, {"File name too long"});
}

TEST_F(BadInputTest, an_unknown_flag_is_refused) {
  expect(kUsage, Words{"train", "run"} + kMlp + Words{"--learning-rat", "1"}, {"--learning-rat", "--help"});
}

TEST_F(BadInputTest, of_a_flag_given_twice_the_last_counts) {
  const Words twice = {"--batch",  "many", "--batch", "50", "--epochs", "9",
                       "--epochs", "1",    "--nodes", "2",  "--nodes",  "1"};
  expect(kSuccess, Words{"train", "run"} + kMlp + twice, {});
  EXPECT_EQ(pool_.summary().at("batch"), 50);
  EXPECT_EQ(pool_.summary().at("epochs"), 1.0);
  EXPECT_EQ(pool_.summary().at("nodes"), 1);
}

TEST_F(BadInputTest, two_runs_at_once_are_refused) {
  expect(kUsage, Words{"train", "run", "another"} + kMlp, {"another"});
}

TEST_F(BadInputTest, a_flag_s_value_that_is_none_is_refused) {
  expect(kUsage, Words{"train", "run"} + kMlp + Words{"--batch", "many"}, {"batch", "'many'"});
  expect(kUsage, Words{"train", "run"} + kMlp + Words{"--optimizer", "newton"}, {"'newton'", "adamw"});
}

TEST_F(BadInputTest, an_unknown_key_of_run_toml_is_refused_with_its_line) {
  write("a.toml", "model = \"lenet\"\n\nlearning-rat = 3\n");
  expect(kUsage, {"train", "a.toml"}, {"a.toml:3", "learning-rat", "--help"});
  write("b.toml", "model = \"lenet\"\nbatch = [\n");
  expect(kUsage, {"train", "b.toml"}, {"b.toml:2"});
  expect(kUsage, {"train", "gone.toml"}, {"gone.toml", "--model"});
}

TEST_F(BadInputTest, missing_data_is_refused) {
  expect(kUsage, {"train", "run", "--model", "lenet", "--data", "idx:gone"}, {"gone", "idx:IMAGES,LABELS"});
}

TEST_F(BadInputTest, a_truncated_data_file_is_refused) {
  write_few_images(pool_.folder() / "images");
  const fs::path images = pool_.folder() / "images/train-images-idx3-ubyte";
  fs::resize_file(images, fs::file_size(images) - 1000);
  expect(kFailed, {"train", "run", "--model", "lenet", "--data", "idx:images"},
         {"train-images", "get it again"});
}

TEST_F(BadInputTest, labels_out_of_range_are_refused) {
  save_npy("x.npy", "n.zeros((100, 10), n.float32)");
  save_npy("y.npy", "n.arange(100) - 1");
  expect(kUsage, {"train", "run", "--model", "mlp:10,20,10", "--data", "npy:x.npy,y.npy"},
         {"sample 0", "-1", "Mend"});
  save_npy("y.npy", "n.arange(100) % 12");
  expect(kUsage, {"train", "run", "--model", "mlp:10,20,10", "--data", "npy:x.npy,y.npy"},
         {"12 classes", "mlp:10,20,12"});
}

TEST_F(BadInputTest, a_batch_larger_than_the_data_is_refused) {
  expect(kUsage, Words{"train", "run"} + kMlp + Words{"--batch", "1001"}, {"--batch 1001", "1000"});
}

TEST_F(BadInputTest, a_port_in_use_is_named) {
  Process first = pool_.serve();
  expect(kFailed, Words{"serve", "other"} + kMlp + Words{"--listen", pool_.address()},
         {pool_.address(), "in use", "--listen"});
}

TEST_F(BadInputTest, a_run_has_one_coordinator) {
  Process first = pool_.serve();
  first.wait_for_line("only this machine");
  expect(kUsage, {"train", "run"}, {"in use by process " + std::to_string(first.id()), "another folder"});
  Process node = pool_.join("node");
  EXPECT_EQ(first.wait(), kSuccess) << first.said();
}

TEST_F(BadInputTest, a_run_killed_before_its_first_checkpoint_begins_again) {
  Process killed = pool_.serve();
  killed.signal(SIGKILL);
  killed.wait();
  Process again = pool_.train(1);  // run.toml has its flags
  EXPECT_EQ(again.wait(), kSuccess) << again.said();
  EXPECT_EQ(pool_.summary().at("steps"), 20);
}

TEST_F(BadInputTest, a_coordinator_that_nobody_joined_can_be_stopped) {
  Process coordinator = pool_.serve();
  coordinator.signal(SIGINT);
  expect(kInterrupted, std::move(coordinator), {"go on with: w5xde"});
}

TEST_F(BadInputTest, a_finished_run_that_is_started_again_says_so_and_is_left_as_it_is) {
  Process first = pool_.train(1);
  EXPECT_EQ(first.wait(), kSuccess) << first.said();
  const auto before = pool_.summary();
  expect(kSuccess, {"train", "run"}, {"run is finished, at step 20", "--steps"});
  expect(kSuccess, {"serve", "run"}, {"run is finished, at step 20"});
  EXPECT_EQ(pool_.summary(), before);
}

TEST_F(BadInputTest, two_runs_are_compared_by_what_differs) {
  expect(kSuccess, Words{"train", "one", "--steps", "5", "--lr", "0.1"} + kMlp, {});
  expect(kSuccess, Words{"train", "other", "--steps", "5", "--lr", "0.2"} + kMlp, {});
  Process compare = pool_.start({"compare", "one", "other"}, {.with_output = true});
  expect(kSuccess, std::move(compare),
         {"learning-rate", "0.1", "0.2", "best evaluation", " at step 5", "hash of parameters"});
  expect(kUsage, {"compare", "one", "nowhere"}, {"nowhere"});
}

TEST_F(BadInputTest, a_word_that_is_not_known_brings_up_what_may_have_been_meant) {
  expect(kUsage, {"trian"}, {"there is no command trian; did you mean train?"});
  expect(kUsage, {"train", "run", "--lerning-rate", "0.1"},
         {"there is no --lerning-rate; did you mean --learning-rate?"});
  expect(kUsage, {"status", "runs/nope"}, {"there is no run folder runs/nope"});
  expect(kUsage, {"join", "runs/nope"}, {"'runs/nope' is not HOST:PORT", "w5xde serve"});
  expect(kUsage, {"join", "."}, {"'.' is not HOST:PORT", "but a folder"});
  expect(kUsage, {"bench", "pol"}, {"there is no command pol; did you mean pool?"});
  expect(kUsage, {"bench"}, {"bench needs a command: compute, pool or original"});
  expect(kUsage, {}, {"say a command: train, serve, join"});
  expect(kUsage, {"eval"}, {"eval needs RUN", "as in:", "w5xde eval runs/a"});
}

TEST_F(BadInputTest, the_program_explains_and_completes_itself) {
  Process help = pool_.start({"train", "--help"}, {.with_output = true});
  expect(kSuccess, std::move(help), {"$ w5xde train --model", "--help-all shows all "});
  Process bench = pool_.start({"bench", "pool", "--help-all"}, {.with_output = true});
  expect(kSuccess, std::move(bench), {"$ w5xde bench pool", "--socket-buffer"});
  Process completion = pool_.start({"completion", "bash"}, {.with_output = true});
  expect(kSuccess, std::move(completion), {"' bench original'", "complete -o default -F _w5xde w5xde"});
}

TEST_F(BadInputTest, a_node_says_what_it_computes_and_why_it_left) {
  Process coordinator = pool_.serve({"--steps", "100000"});
  Process node = pool_.join("desk", {"--progress-seconds", "0.2", "--nodes", "2"});
  node.wait_for_line("joined run run");
  const std::string line = node.wait_for_line(" batches computed on this machine, ");
  EXPECT_NE(line.find("run run: "), std::string::npos) << line;
  node.signal_alone(SIGINT);
  EXPECT_EQ(node.wait(), kInterrupted) << node.said();
  EXPECT_NE(node.said().find("left run run: the node was told to stop; "), std::string::npos) << node.said();
  // The first time was before it came.
  coordinator.wait_for_line("waiting for nodes; join with: w5xde join 127.0.0.1:");
  coordinator.wait_for_line("desk-1 joined from");
  coordinator.wait_for_line("waiting for nodes; join with: w5xde join 127.0.0.1:");
  coordinator.signal(SIGINT);
  EXPECT_EQ(coordinator.wait(), kInterrupted) << coordinator.said();
}

TEST_F(BadInputTest, a_node_of_a_finished_run_says_so_at_last) {
  Process coordinator = pool_.serve();
  Process node = pool_.join("desk");
  EXPECT_EQ(coordinator.wait(), kSuccess) << coordinator.said();
  EXPECT_EQ(node.wait(), kSuccess) << node.said();
  EXPECT_NE(node.said().find("left run run: the run is finished; "), std::string::npos) << node.said();
}

TEST_F(BadInputTest, a_node_stays_when_its_coordinator_is_stopped_and_comes_back_to_the_resumed_run) {
  Process coordinator = pool_.serve({"--steps", "100000"});
  coordinator.wait_for_line("waiting for nodes; join with: w5xde join 127.0.0.1:");
  Process node = pool_.join("steady");
  node.wait_for_line("joined run");
  coordinator.wait_for_line("joined from");
  pool_.wait_for("step", 1);
  coordinator.signal(SIGINT);
  expect(kInterrupted, std::move(coordinator), {"go on with: w5xde serve"});
  const std::string stopped = node.wait_for_line("can be resumed");
  EXPECT_NE(stopped.find("steady-1: the coordinator was stopped; the run can be resumed; connecting again"),
            std::string::npos)
      << stopped;
  Process resumed = pool_.serve({"--steps", "100000"});
  resumed.wait_for_line("steady-1 joined from");
  resumed.signal(SIGINT);
  EXPECT_EQ(resumed.wait(), kInterrupted) << resumed.said();
  node.signal(SIGINT);
  EXPECT_EQ(node.wait(), kInterrupted) << node.said();
}

TEST_F(BadInputTest, what_would_do_nothing_is_refused) {
  expect(kUsage, {"train", "run", "--nodes", "0"}, {"--nodes must be at least 1", "w5xde serve"});
  expect(kUsage, {"bench", "pool", "--nodes", "0"}, {"w5xde: --nodes", "must be more than 0"});
  const Words random = {"train", "run", "--model", "mlp:8,4", "--data", "random:8,4"};
  expect(kUsage, random + Words{"--evaluate-every", "5"},
         {"--evaluate-every needs data", "--evaluation-data"});
  expect(kUsage, random + Words{"--evaluate-every", "5", "--target-accuracy", "0.5"},
         {"--target-accuracy needs classes"});
}

TEST_F(BadInputTest, a_start_that_fails_leaves_no_folder) {
  expect(kUsage, {"train", "fresh", "--model", "transformer", "--data", "synthetic"}, {"'transformer'"});
  expect(kUsage, {"train", "fresh", "--model", "mlp:10,20,10", "--data", "idx:nowhere"}, {"nowhere"});
  EXPECT_FALSE(fs::exists(pool_.folder() / "fresh"));
}

TEST_F(BadInputTest, the_summary_has_a_switch_of_its_own) {
  const Words train = Words{"train", "run", "--log", "silent"} + kMlp;
  expect(kSuccess, pool_.start(train + Words{"--steps", "20"}, {.with_output = true}),
         {"sync training with 2 nodes", "exactly once"});
  Process quiet = pool_.start(train + Words{"--steps", "30", "--no-summary"}, {.with_output = true});
  EXPECT_EQ(quiet.wait(), kSuccess);
  EXPECT_EQ(quiet.said(), "");
}

TEST_F(BadInputTest, what_the_result_depends_on_cannot_change) {
  Process first = pool_.train(1);
  EXPECT_EQ(first.wait(), kSuccess) << first.said();
  expect(kUsage, {"train", "run", "--batch", "16"}, {"batch = 32", "leave --batch out"});
  expect(kSuccess, {"train", "run", "--batch", "32", "--steps", "30"}, {"going on from step 20"});
  EXPECT_EQ(pool_.summary().at("steps"), 30);
}

TEST_F(BadInputTest, a_node_with_other_threads_is_told_which) {
  Process coordinator = pool_.serve();
  expect(kIncompatible, pool_.join("odd", {"--threads", "2"}), {"w5xde: refused: ", "join with --threads 1"});
  Process node = pool_.join("even");
  EXPECT_EQ(coordinator.wait(), kSuccess) << coordinator.said();
}

TEST_F(BadInputTest, an_engine_that_is_not_there_is_named) {
  expect(kUsage, Words{"train", "run"} + kMlp + Words{"--engine", "gone.so"}, {"gone.so"});
}

TEST_F(BadInputTest, a_run_that_diverges_goes_on_from_its_last_good_checkpoint) {
  Process good = pool_.train(1);
  EXPECT_EQ(good.wait(), kSuccess) << good.said();
  expect(kDiverged, {"train", "run", "--steps", "40", "--learning-rate", "1e30"},
         {"diverged", "--learning-rate"});
  // The advice can be followed, and what came before was not touched.
  expect(kSuccess, {"train", "run", "--steps", "40", "--learning-rate", "0.01"}, {"going on from step 20"});
  const auto mended = pool_.summary();
  expect(kSuccess, Words{"train", "whole"} + kMlp + Words{"--steps", "40", "--json", "whole.json"}, {});
  std::ifstream whole(pool_.folder() / "whole.json");
  EXPECT_EQ(mended.at("parameters_hash"), nlohmann::json::parse(whole).at("parameters_hash"));
}

TEST_F(BadInputTest, parameters_that_are_no_numbers_are_never_saved) {
  // So high that the very first step leads there, and that step is the last.
  expect(kDiverged, Words{"train", "run"} + kMlp + Words{"--steps", "1", "--learning-rate", "1e39"},
         {"diverged"});
  expect(kSuccess, {"train", "run", "--learning-rate", "0.01"}, {"going on from step 0"});
}

TEST_F(BadInputTest, a_full_disk_loses_nothing_that_was_saved) {
  // A model large enough that its checkpoint with momentum does not fit where the first one, without, does.
  const Words large = {"--model", "mlp:10,400,400,10", "--data", "synthetic", "--momentum",
                       "0.9",     "--steps",           "400"};
  constexpr rlim_t kBetween = 1'000'000;
  expect(kFailed,
         pool_.start(Words{"train", "run"} + large + Words{"--checkpoint-seconds", "0.05"},
                     {.file_bytes_max = kBetween}),
         {"checkpoint", "free some space"});
  expect(kSuccess, {"train", "run", "--checkpoint-seconds", "60"}, {"going on from step 0"});
  const auto resumed = pool_.summary();
  expect(kSuccess, Words{"train", "whole"} + large + Words{"--json", "whole.json"}, {});
  std::ifstream whole(pool_.folder() / "whole.json");
  EXPECT_EQ(resumed.at("parameters_hash"), nlohmann::json::parse(whole).at("parameters_hash"));
}

TEST_F(BadInputTest, idle_connections_do_not_keep_a_checkpoint_from_being_written) {
  Process coordinator =
      pool_.start(Words{"serve", "run", "--listen", "127.0.0.1:0", "--checkpoint-seconds", "0.2"} + kMlp +
                      Words{"--seconds", "5"},
                  {.descriptors_max = 64});
  const std::string line = coordinator.wait_for_line("listens on ");
  const std::string address = line.substr(line.rfind(' ') + 1);
  Process node = pool_.start({"join", address});
  coordinator.wait_for_line("joined from");
  std::vector<int> idle;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < 60; ++i) {
    idle.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(idle.back(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  expect(kSuccess, std::move(coordinator), {"checkpoint of step"});
  for (const int socket : idle) ::close(socket);
}

TEST_F(BadInputTest, training_ends_when_its_last_node_is_gone_for_good) {
  Process coordinator = pool_.start(
      Words{"train", "run", "--nodes", "2", "--seconds", "600", "--checkpoint-seconds", "0.1"} + kMlp);
  coordinator.wait_for_line("joined from");
  coordinator.wait_for_line("joined from");
  coordinator.wait_for_line("checkpoint of step");
  const auto processes = coordinator.descendants();  // the engine host, then its nodes
  ASSERT_EQ(processes.size(), 3u);
  for (const std::size_t i : {1u, 2u}) ::kill(processes[i], SIGTERM);
  expect(kFailed, std::move(coordinator), {"no node is left"});
  EXPECT_GT(pool_.summary().at("steps"), 0) << "what was committed is saved";
}

TEST_F(BadInputTest, a_node_says_when_its_coordinator_is_not_there) {
  expect(kFailed, {"join", "127.0.0.1:1", "--attempts", "2"},
         {"127.0.0.1:1", "attempt 1 of 2", "w5xde serve"});
  expect(kUsage, {"join", "here"}, {"HOST:PORT"});
}

TEST_F(BadInputTest, a_node_stopped_with_ctrl_c_leaves_in_order) {
  Process coordinator = pool_.serve({"--wait-for", "2"});
  Process node = pool_.join("node");
  coordinator.wait_for_line("node-1 joined");
  node.signal(SIGINT);
  expect(kInterrupted, std::move(node), {});
  const auto departures = pool_.status().at("departures");
  ASSERT_EQ(departures.size(), 1u);
  EXPECT_NE(departures[0].at("reason").get<std::string>().find("told to stop"), std::string::npos)
      << departures;
}

TEST_F(BadInputTest, a_file_that_is_missing_is_the_caller_s_mistake_wherever_it_is_named) {
  Process begun = pool_.train(1);
  ASSERT_EQ(begun.wait(), kSuccess) << begun.said();
  const Words mlp = {"train", "fresh", "--model", "mlp:10,20,10", "--log", "verbose", "--data"};
  for (const Words& arguments : std::vector<Words>{mlp + Words{"npy:gone.npy,y.npy"},
                                                   mlp + Words{"safetensors:gone"},
                                                   mlp + Words{"synthetic", "--init", "gone"},
                                                   mlp + Words{"synthetic", "--evaluation-data", "idx:gone"},
                                                   {"train", "gone.toml"},
                                                   {"eval", "gone"},
                                                   {"eval", "run", "--checkpoint", "gone"},
                                                   {"eval", "run", "--data", "npy:gone,gone"},
                                                   {"export", "gone", "a.safetensors"},
                                                   {"inspect", "gone"},
                                                   {"status", "gone"}}) {
    Process process = pool_.start(arguments);
    EXPECT_EQ(process.wait(), kUsage) << arguments[0] << ": " << process.said();
    EXPECT_NE(process.said().find("gone"), std::string::npos) << process.said();
    EXPECT_EQ(process.said().find("trying again"), std::string::npos) << process.said();
  }
  EXPECT_FALSE(fs::exists(pool_.folder() / "fresh"));
}

TEST_F(BadInputTest, a_folder_that_a_file_should_go_to_and_that_is_missing_is_said_before_anything_is_begun) {
  Process begun = pool_.train(1);
  ASSERT_EQ(begun.wait(), kSuccess) << begun.said();
  for (const Words& arguments : std::vector<Words>{Words{"train", "fresh", "--json", "gone/a"} + kMlp,
                                                   {"eval", "run", "--json", "gone/a"},
                                                   {"eval", "run", "--outputs", "gone/a.npy"},
                                                   {"export", "run", "gone/a.safetensors"},
                                                   {"plot", "run", "-o", "gone/a.svg"},
                                                   {"plot", "run", "--csv", "gone/a.csv"},
                                                   {"plan", "--model", "mlp:8,4", "--json", "gone/a"},
                                                   {"bench", "compute", "--json", "gone/a"},
                                                   {"status", "run", "--json", "gone/a"}})
    expect(kUsage, arguments, {"w5xde: there is no folder gone that a", "make it first"});
  EXPECT_FALSE(fs::exists(pool_.folder() / "fresh"));
}

TEST_F(BadInputTest, a_sample_that_is_not_finite_is_named_and_not_blamed_on_the_learning_rate) {
  save_npy("x.npy", "n.where(n.arange(1000).reshape(100, 10) == 173, n.nan, 1).astype('f4')");
  save_npy("y.npy", "n.arange(100) % 10");
  Process process =
      pool_.start({"train", "run", "--model", "mlp:10,20,10", "--data", "npy:x.npy,y.npy", "--split", "0.1"});
  EXPECT_EQ(process.wait(), kUsage) << process.said();
  EXPECT_NE(process.said().find("sample 17 of npy:x.npy,y.npy has NaN or infinity in its inputs"),
            std::string::npos)
      << process.said();
  EXPECT_EQ(process.said().find("Lower"), std::string::npos) << process.said();
}

TEST_F(BadInputTest, labels_that_are_stored_as_floats_are_explained_before_anything_is_begun) {
  save_npy("x.npy", "n.zeros((100, 10), n.float32)");
  save_npy("y.npy", "(n.arange(100) % 10).astype('f4')");
  Process process = pool_.start({"train", "runs/a", "--model", "mlp:10,20,10", "--data", "npy:x.npy,y.npy"});
  EXPECT_EQ(process.wait(), kUsage) << process.said();
  EXPECT_NE(process.said().find("type mlp:10,20,1."), std::string::npos) << process.said();
  EXPECT_NE(process.said().find("targets.astype('int64')"), std::string::npos);
  EXPECT_EQ(process.said().find("the other side"), std::string::npos) << process.said();
  EXPECT_FALSE(fs::exists(pool_.folder() / "runs")) << "a start that fails leaves nothing";
}

TEST_F(BadInputTest, a_file_that_is_no_safetensors_file_is_said_to_be_none) {
  write("data.csv", "x,y,z\n1.5,2,3\n3.5,4,5\n");
  expect(kFailed, {"train", "run", "--model", "mlp:10,20,10", "--data", "safetensors:data.csv"},
         {"data.csv: this is not a safetensors file"});
}

TEST_F(BadInputTest, a_model_file_is_judged_by_what_is_in_it) {
  Process python({"/usr/bin/python3", "-c", "import torch; torch.save(torch.nn.Linear(8, 5), 'net.pth')"},
                 {.folder = pool_.folder()});
  ASSERT_EQ(python.wait(), 0) << python.said();
  expect(kUsage, {"train", "run", "--model", "net.pth", "--data", "random:8,5"},
         {"net.pth is no TorchScript file", "torch.jit.script"});
  fs::copy_file(W5XDE_TORCH_MODELS "/mixed.pt", pool_.folder() / "net.weights");
  expect(kSuccess, {"train", "run", "--model", "net.weights", "--data", "random:8,5", "--steps", "2"}, {});
}

TEST_F(BadInputTest, ends_that_could_never_come_are_refused) {
  const Words train = {"train", "fresh", "--data", "random:6,4", "--evaluation-data", "random:6,4"};
  const Words mlp = train + Words{"--model", "mlp:6,4"};
  expect(kUsage, mlp + Words{"--patience", "3"}, {"--patience looks at", "--evaluate-every"});
  expect(kUsage, mlp + Words{"--target-accuracy", "0.9"}, {"--target-accuracy looks at", "--evaluate-every"});
  expect(kUsage, mlp + Words{"--checkpoint-seconds", "inf"}, {"--checkpoint-seconds", "use a number"});
  expect(kUsage, mlp + Words{"--keep", "0"}, {"--keep begins at 1"});
  expect(kUsage,
         train + Words{"--model", W5XDE_TORCH_MODELS "/own_classes.pt", "--evaluate-every", "2",
                       "--target-accuracy", "0.9"},
         {"--target-accuracy needs outputs", "--target-loss"});
  EXPECT_FALSE(fs::exists(pool_.folder() / "fresh"));
}

}  // namespace
}  // namespace w5xde
