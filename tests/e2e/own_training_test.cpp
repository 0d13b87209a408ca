// What people do with a model and data of their own: hold samples out, end when nothing gets better, begin
// with weights that they have.
#include <gtest/gtest.h>

#include <fstream>

#include "pool.h"
#include "tensor/safetensors.h"

namespace w5xde {
namespace {

namespace fs = std::filesystem;

enum Code { kSuccess = 0, kUsage = 2 };

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The bytes of a tensor of a safetensors file.
std::string bytes_in(const fs::path& file, const std::string& tensor) {
  const auto opened = SafetensorsFile::open(file);
  const TensorView* view = opened.ok() ? opened->contents().find(tensor) : nullptr;
  return view == nullptr ? "missing" : std::string(text_of(view->bytes()));
}

class OwnTrainingTest : public testing::Test {
 protected:
  std::string run(int code, const Words& arguments) const {
    Process process = pool_.start(arguments, {.with_output = true});
    EXPECT_EQ(process.wait(), code) << process.said();
    return process.said();
  }
  void expect(int code, const Words& arguments, const Words& parts) const {
    const std::string said = run(code, arguments);
    for (const std::string& part : parts)
      EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
  }
  nlohmann::json read(const fs::path& file) const {
    return nlohmann::json::parse(std::ifstream(pool_.folder() / file));
  }
  nlohmann::json scores(const std::string& run_folder, const Words& more = {}) const {
    run(kSuccess, Words{"eval", run_folder, "--json", "scores.json"} + more);
    return read("scores.json");
  }
  static Words train(const std::string& run_folder, const Words& more) {
    return Words{"train",   run_folder, "--model", "mlp:8,16,5", "--data",  "random:8,5,512",
                 "--batch", "16",       "--slots", "4",          "--nodes", "2"} +
           more;
  }

  void python(Words arguments) const {
    arguments.insert(arguments.begin(), "/usr/bin/python3");
    Process process(arguments, {.folder = pool_.folder()});
    ASSERT_EQ(process.wait(), 0) << process.said();
  }
  // numpy stores this expression.
  void save_npy(const std::string& name, const std::string& expression) const {
    python({"-c", "import numpy as n; n.save('" + name + "', " + expression + ")"});
  }

  Pool pool_{{.name = "own", .flags = {}}};
};

TEST_F(OwnTrainingTest, samples_that_are_held_out_are_evaluated_on_and_never_trained_on) {
  expect(kSuccess, train("run", {"--split", "0.25", "--epochs", "2"}), {"evaluation at step 12"});
  const auto summary = pool_.summary();
  EXPECT_EQ(summary.at("samples"), 2 * 384);
  const auto held_out = scores("run");
  EXPECT_EQ(held_out.at("samples"), 128);
  EXPECT_NEAR(held_out.at("loss").get<double>(), summary.at("evaluation").at("loss").get<double>(), 1e-5);
  EXPECT_EQ(scores("run", {"--data", "random:8,5,512"}).at("samples"), 512) << "all, where that is asked for";
  expect(kUsage, {"train", "run", "--split", "0.5"}, {"split = 0.25", "leave --split out"});
}

TEST_F(OwnTrainingTest, a_split_is_refused_where_something_else_is_evaluated_on) {
  expect(kUsage, train("run", {"--split", "0.2", "--evaluation-data", "random:8,5,64"}),
         {"leave one of the two out"});
  expect(kUsage, {"train", "run", "--model", "mlp:10,10", "--data", "synthetic", "--split", "0.2"},
         {"synthetic has one, of 1000 samples", "leave --split out"});
  expect(kUsage, train("run", {"--split", "1.5"}), {"--split is the part"});
}

// With such a learning rate no parameter changes, so no evaluation is better than the first.
TEST_F(OwnTrainingTest, a_run_ends_when_patience_is_over_and_says_so) {
  const Words still = {"--split", "0.25", "--learning-rate", "1e-30", "--evaluate-every", "2",
                       "--steps", "50",   "--patience",      "2"};
  expect(kSuccess, train("run", still),
         {"2 evaluations in a row brought no lower loss than", "  ended         2 evaluations"});
  EXPECT_EQ(pool_.summary().at("steps"), 6);
  expect(kSuccess, {"train", "run"}, {"run is finished, at step 6. To go on, give a larger --patience"});
  expect(kSuccess, {"train", "run", "--patience", "4"}, {"going on from step 6", "4 evaluations in a row"});
  EXPECT_EQ(pool_.summary().at("steps"), 10);
}

TEST_F(OwnTrainingTest, a_run_ends_when_its_loss_is_low_enough) {
  expect(kSuccess,
         train("run", {"--split", "0.25", "--evaluate-every", "3", "--steps", "50", "--target-loss", "1000"}),
         {"the target loss is reached: ", "  ended         the target loss"});
  EXPECT_EQ(pool_.summary().at("steps"), 3);
  expect(kSuccess, {"train", "run"}, {"give a lower --target-loss"});
  // Without evaluation there is nothing to look at.
  expect(kUsage, train("other", {"--evaluate-every", "3", "--target-loss", "1"}), {"--split"});
}

TEST_F(OwnTrainingTest, a_run_begins_with_the_weights_of_a_run_or_of_a_file) {
  run(kSuccess, train("first", {"--split", "0.25", "--steps", "20", "--learning-rate", "0.1"}));
  run(kSuccess, {"export", "first", "net.safetensors"});
  const auto trained = scores("first");
  const Words still = {"--split", "0.25", "--steps", "1", "--learning-rate", "1e-30", "--seed", "1"};
  run(kSuccess, train("fresh", still));
  EXPECT_NE(scores("fresh").at("loss"), trained.at("loss"));
  for (const std::string from : {"first", "net.safetensors"}) {
    run(kSuccess, train("from-" + from, still + Words{"--init", from}));
    EXPECT_EQ(scores("from-" + from).at("loss"), trained.at("loss")) << from;
  }
  // It is fixed, and needed no more.
  fs::remove(pool_.folder() / "net.safetensors");
  expect(kSuccess, {"train", "from-net.safetensors", "--steps", "2"}, {"going on from step 1"});
  expect(kUsage, {"train", "from-net.safetensors", "--init", "first"}, {"init = net.safetensors"});
}

TEST_F(OwnTrainingTest, weights_of_another_model_are_refused_by_name_and_leave_no_run) {
  run(kSuccess, train("first", {"--steps", "1"}));
  expect(kUsage, train("second", {"--model", "mlp:8,24,5", "--init", "first"}),
         {"the weights of first do not fit", "is [16, 8] there and [24, 8] in the model"});
  EXPECT_FALSE(fs::exists(pool_.folder() / "second"));
}

TEST_F(OwnTrainingTest, a_start_that_the_engine_refuses_leaves_the_folders_of_others) {
  const Words misfit = {"--model", "mlp:11,4"};
  expect(kUsage, train("made/for/it", misfit), {"11"});
  EXPECT_FALSE(fs::exists(pool_.folder() / "made"));
  fs::create_directories(pool_.folder() / "mine");
  expect(kUsage, train("mine/run", misfit), {"11"});
  EXPECT_FALSE(fs::exists(pool_.folder() / "mine/run"));
  EXPECT_TRUE(fs::exists(pool_.folder() / "mine"));
}

// mixed.pt has BatchNorm, whose statistics are buffers.
TEST_F(OwnTrainingTest, a_torchscript_model_begins_with_its_parameters_and_its_buffers) {
  const auto mixed = [](const std::string& run_folder, const Words& more) {
    return Words{"train",  run_folder,       "--model", W5XDE_TORCH_MODELS "/mixed.pt",
                 "--data", "random:8,5,512", "--batch", "16"} +
           more;
  };
  run(kSuccess, mixed("first", {"--lr", "0.05", "--steps", "20"}));
  run(kSuccess, {"export", "first", "first.safetensors"});
  run(kSuccess, mixed("second", {"--lr", "1e-30", "--steps", "1", "--init", "first.safetensors"}));
  run(kSuccess, {"export", "second", "second.safetensors"});
  run(kSuccess, mixed("plain", {"--lr", "1e-30", "--steps", "1"}));
  run(kSuccess, {"export", "plain", "plain.safetensors"});
  const auto first = pool_.folder() / "first.safetensors", second = pool_.folder() / "second.safetensors";
  const std::string weight = bytes_in(first, "last.weight");
  EXPECT_EQ(weight, bytes_in(second, "last.weight"));
  EXPECT_NE(weight, bytes_in(pool_.folder() / "plain.safetensors", "last.weight"));
  const auto seen = [](const fs::path& file) {
    return load<float>(bytes_of(bytes_in(file, "norm.num_batches_tracked")).data());
  };
  EXPECT_GT(seen(first), 0);
  EXPECT_GT(seen(second), seen(first)) << "it goes on from what the first run had";
}

// It takes the zeros that its shapes are tried with: what it does with real samples is tried too.
TEST_F(OwnTrainingTest, a_forward_that_fails_on_the_first_batch_is_shown_with_its_trace_before_nodes_start) {
  save_npy("x.npy", "n.ones((100, 8), n.float32)");
  save_npy("y.npy", "n.arange(100) % 5");
  std::ofstream(pool_.folder() / "net.py") << "import torch\n"
                                              "class Net(torch.nn.Module):\n"
                                              "    def __init__(self):\n"
                                              "        super().__init__()\n"
                                              "        self.last = torch.nn.Linear(8, 5)\n"
                                              "    def forward(self, x):\n"
                                              "        if bool(x.sum() > 0):\n"
                                              "            x = x.view(-1, 7)\n"
                                              "        return self.last(x)\n"
                                              "torch.jit.script(Net()).save('net.pt')\n";
  python({"net.py"});
  const std::string said = run(kUsage, {"train", "fresh", "--model", "net.pt", "--data", "npy:x.npy,y.npy"});
  for (const char* part :
       {"shape '[-1, 7]' is invalid", "net.py\", line 8, in forward", "x = x.view(-1, 7)", "<--- HERE"})
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
  EXPECT_EQ(said.find("joined from"), std::string::npos) << said;
  EXPECT_FALSE(fs::exists(pool_.folder() / "fresh"));
}

TEST_F(OwnTrainingTest, a_run_does_not_go_on_with_other_data_or_another_model_and_loses_nothing) {
  save_npy("x.npy", "n.ones((100, 8), n.float32)");
  save_npy("y.npy", "n.arange(100) % 5");
  const Words begin = {"train", "run", "--model", "mine.pt", "--data", "npy:x.npy,y.npy", "--steps"};
  const fs::path mine = pool_.folder() / "mine.pt", copy = pool_.run() / "model.pt";
  const auto use_model = [](const std::string& name, const fs::path& place) {
    fs::copy_file(W5XDE_TORCH_MODELS "/" + name, place, fs::copy_options::overwrite_existing);
  };
  use_model("mixed.pt", mine);
  run(kSuccess, begin + Words{"2"});
  const auto hash = pool_.summary().at("parameters_hash");

  fs::rename(pool_.folder() / "x.npy", pool_.folder() / "before.npy");
  save_npy("x.npy", "n.where(n.arange(800).reshape(100, 8) == 400, 2, 1).astype('f4')");
  expect(kUsage, begin + Words{"4"}, {"the samples of npy:x.npy,y.npy are not those", "--init run"});
  fs::rename(pool_.folder() / "before.npy", pool_.folder() / "x.npy");

  use_model("dropout.pt", mine);
  expect(kUsage, begin + Words{"4"}, {"mine.pt is not the model", "leave --model out", "--init run"});
  use_model("dropout.pt", copy);
  expect(kUsage, {"train", "run", "--steps", "4"}, {"the model's file in run is not the one", "--init run"});

  use_model("mixed.pt", copy);
  EXPECT_EQ(pool_.summary().at("parameters_hash"), hash);
  expect(kSuccess, {"train", "run", "--steps", "4"}, {"going on from step 2"});
}

TEST_F(OwnTrainingTest, scores_of_an_older_checkpoint_are_said_to_be_that) {
  run(kSuccess, train("run", {"--steps", "2"}));
  run(kSuccess, {"train", "run", "--steps", "4"});
  const fs::path newest = pool_.run() / "checkpoints/step-000000004.safetensors";
  fs::resize_file(newest, fs::file_size(newest) - 10);
  expect(kSuccess, {"eval", "run"},
         {"this checkpoint cannot be used", "step-000000004", "the checkpoint of step 2 takes its place",
          "step 2  samples 512"});
}

}  // namespace
}  // namespace w5xde
