// --train: a run that trains a part of its model, and keeps the rest to the bit.
#include <gtest/gtest.h>

#include <algorithm>
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

class PartTrainingTest : public testing::Test {
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
  nlohmann::json summary(const std::string& run_folder) const { return read(run_folder + "/summary.json"); }
  std::string hash(const std::string& run_folder) const { return summary(run_folder).at("parameters_hash"); }

  // What the run exports by this name.
  std::string exported(const std::string& run_folder, const std::string& name) const {
    run(kSuccess, {"export", run_folder, run_folder + ".safetensors"});
    return bytes_in(run_folder + ".safetensors", name);
  }
  std::string bytes_in(const std::string& file, const std::string& name) const {
    const auto opened = SafetensorsFile::open(pool_.folder() / file);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    const TensorView* view = opened.ok() ? opened->contents().find(name) : nullptr;
    return view == nullptr ? "missing" : std::string(text_of(view->bytes()));
  }
  void expect_kept(const std::string& first, const std::string& second, const Words& kept,
                   const Words& moved) const {
    for (const std::string& name : kept + moved) {
      const std::string before = exported(first, name), after = exported(second, name);
      EXPECT_NE(before, "missing") << name;
      EXPECT_NE(after, "missing") << name;
      EXPECT_EQ(before == after, std::ranges::find(kept, name) != kept.end()) << name;
    }
  }

  void python(const std::string& script) const {
    Process process({"/usr/bin/python3", "-c", script}, {.folder = pool_.folder()});
    EXPECT_EQ(process.wait(), 0) << process.said();
  }

  static Words train(const std::string& run_folder, const Words& more, const std::string& nodes = "2",
                     const std::string& model = "mlp:8,16,16,5") {
    return Words{"train",           run_folder, "--model", model,  "--data",     "random:8,5,512",
                 "--batch",         "16",       "--slots", "4",    "--momentum", "0.9",
                 "--learning-rate", "0.05",     "--split", "0.25", "--nodes",    nodes} +
           more;
  }

  Pool pool_{{.name = "part", .flags = {}}};
};

const Words kBody = {"0.weight", "0.bias", "2.weight", "2.bias"}, kHead = {"4.weight", "4.bias"};

TEST_F(PartTrainingTest, a_head_is_trained_on_a_body_that_stays_to_the_same_bits_by_any_nodes) {
  run(kSuccess, train("first", {"--steps", "10"}));
  const Words part = {"--init", "first", "--train", "^4\\.", "--seed", "7", "--steps", "12"};
  run(kSuccess, train("one", part, "1"));
  run(kSuccess, train("three", part, "3"));
  EXPECT_EQ(hash("one"), hash("three"));
  expect_kept("first", "one", kBody, kHead);
  // What is not trained is neither in the checkpoints nor sent with the steps.
  EXPECT_EQ(bytes_in("one/checkpoints/step-000000012.safetensors", "parameters/0.weight"), "missing");
  // It is evaluated with the body that it was trained on.
  run(kSuccess, {"eval", "one", "--json", "scores.json"});
  EXPECT_NEAR(read("scores.json").at("loss").get<double>(),
              summary("one").at("evaluation").at("loss").get<double>(), 1e-5);
  // And what it is goes into another run whole.
  run(kSuccess, train("next", {"--init", "one", "--steps", "1", "--learning-rate", "1e-30"}));
  expect_kept("one", "next", kBody + kHead, {});
}

TEST_F(PartTrainingTest, it_goes_on_to_the_bits_of_a_run_that_never_stopped) {
  const Words part = {"--train", "bias|^4"};
  run(kSuccess, train("whole", part + Words{"--steps", "12"}));
  run(kSuccess, train("halves", part + Words{"--steps", "5"}));
  expect(kSuccess, {"train", "halves", "--steps", "12", "--nodes", "3"}, {"going on from step 5"});
  EXPECT_EQ(hash("whole"), hash("halves"));
  expect(kUsage, {"train", "halves", "--train", "^4"}, {"train = bias|^4", "leave --train out"});
}

// mixed.pt has a BatchNorm, and a layer that the file itself freezes.
TEST_F(PartTrainingTest, a_torchscript_model_keeps_its_body_and_travels_with_the_weights_that_it_began_with) {
  const std::string mixed = W5XDE_TORCH_MODELS "/mixed.pt";
  python(
      "import numpy as n; r = n.random.RandomState(1); n.save('x.npy', r.randn(64, 8).astype('f4'))\n"
      "n.save('y.npy', r.randint(0, 5, 64))");
  run(kSuccess, train("first", {"--steps", "10"}, "1", mixed));
  const Words part = {"--init", "first", "--train", "^last", "--steps", "12"};
  run(kSuccess, train("one", part, "1", mixed));
  run(kSuccess, train("three", part, "3", mixed));
  EXPECT_EQ(hash("one"), hash("three"));
  // As in PyTorch, statistics follow the samples where their layer is frozen too.
  expect_kept("first", "one", {"first.weight", "middle.weight", "norm.weight", "again.bias"},
              {"last.weight", "last.bias", "norm.running_mean"});
  // The exported file gives in Python what eval gives here.
  run(kSuccess, {"eval", "one", "--outputs", "again.npy", "--data", "npy:x.npy,y.npy"});
  run(kSuccess, {"export", "one", "one.pt"});
  python(
      "import numpy as n, torch; net = torch.jit.load('one.pt')\n"
      "here = n.load('again.npy'); there = net(torch.from_numpy(n.load('x.npy'))).detach().numpy()\n"
      "assert abs(here - there).max() <= 1e-5 * max(1, abs(here).max()), abs(here - there).max()\n"
      "frozen = [k for k, v in net.named_parameters() if not v.requires_grad]\n"
      "assert 'first.weight' in frozen and 'last.weight' not in frozen, frozen");
}

TEST_F(PartTrainingTest, a_pattern_that_finds_no_parameter_is_refused_with_those_there_are) {
  expect(kUsage, train("run", {"--train", "^head"}),
         {"--train '^head' finds none of the model's parameters", "0.weight, 0.bias, 2.weight"});
  EXPECT_FALSE(fs::exists(pool_.folder() / "run"));
  expect(kUsage, train("run", {"--train", "head("}), {"'head(' is no regular expression"});
}

}  // namespace
}  // namespace w5xde
