// --normalize and --augment: what a run does with its samples, from the command line to eval.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "pool.h"

namespace w5xde {
namespace {

namespace fs = std::filesystem;

enum Code { kSuccess = 0, kUsage = 2 };

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class PreparationPoolTest : public testing::Test {
 protected:
  // "plain.npy" is what --normalize makes of "raw.npy": images of two channels, as f32.
  PreparationPoolTest() {
    python(
        "import numpy as n; r = n.random.RandomState(1); x = (r.rand(300, 2, 6, 6) * 9 + 3).astype('f4')\n"
        "n.save('raw.npy', x); m, s = [n.array(v, 'f4').reshape(2, 1, 1) for v in ([7.5, 6], [2.5, 3])]\n"
        "n.save('plain.npy', (x - m) / s); n.save('y.npy', r.randint(0, 3, 300))\n"
        "n.save('tokens.npy', r.randint(0, 9, (300, 4)).astype('i2'))");
  }
  void python(const std::string& script) const {
    Process process({"/usr/bin/python3", "-c", script}, {.folder = pool_.folder()});
    EXPECT_EQ(process.wait(), 0) << process.said();
  }
  std::string run(int code, const Words& arguments) const {
    Process process = pool_.start(arguments, {.with_output = true});
    EXPECT_EQ(process.wait(), code) << process.said();
    return process.said();
  }
  void expect_refused(const Words& more, const std::string& part, const std::string& inputs = "raw") const {
    const std::string said = run(kUsage, train("refused", inputs, more));
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
    EXPECT_FALSE(fs::exists(pool_.folder() / "refused"));
  }
  nlohmann::json summary(const std::string& run_folder) const {
    return nlohmann::json::parse(std::ifstream(pool_.folder() / run_folder / "summary.json"));
  }
  std::string content(const std::string& file) const {
    std::ifstream in(pool_.folder() / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static Words train(const std::string& run_folder, const std::string& inputs, const Words& more = {}) {
    return Words{"train",   run_folder,
                 "--model", "mlp:72,16,3",
                 "--data",  "npy:" + inputs + ".npy,y.npy",
                 "--batch", "16",
                 "--slots", "4",
                 "--split", "0.2",
                 "--nodes", "2",
                 "--steps", "6"} +
           more;
  }

  Pool pool_{{.name = "preparation", .flags = {}}};
};

const Words kNormalize = {"--normalize", "7.5,6/2.5,3"};

TEST_F(PreparationPoolTest, a_run_that_normalizes_has_the_bits_of_one_on_data_that_are_normalized) {
  run(kSuccess, train("plain", "plain"));
  run(kSuccess, train("raw", "raw", kNormalize));
  EXPECT_EQ(summary("raw").at("parameters_hash"), summary("plain").at("parameters_hash"));
  EXPECT_EQ(summary("raw").at("evaluation").at("loss"), summary("plain").at("evaluation").at("loss"));
  // eval and its outputs are of normalised samples too.
  run(kSuccess, {"eval", "plain", "--outputs", "plain-outputs.npy"});
  run(kSuccess, {"eval", "raw", "--outputs", "raw-outputs.npy"});
  EXPECT_EQ(content("raw-outputs.npy"), content("plain-outputs.npy"));
  run(kSuccess, train("none", "raw"));
  EXPECT_NE(summary("none").at("parameters_hash"), summary("raw").at("parameters_hash"));
}

// With such a learning rate the parameters stay: only the samples could change what is seen.
TEST_F(PreparationPoolTest, evaluation_is_not_augmented_and_training_is) {
  const Words still = {"--learning-rate", "1e-30"}, augment = {"--augment", "crop:2,flip"};
  run(kSuccess, train("still", "raw", still));
  run(kSuccess, train("moved", "raw", still + augment));
  EXPECT_EQ(summary("moved").at("evaluation").at("loss"), summary("still").at("evaluation").at("loss"));
  run(kSuccess, {"eval", "still", "--outputs", "still.npy"});
  run(kSuccess, {"eval", "moved", "--outputs", "moved.npy"});
  EXPECT_EQ(content("moved.npy"), content("still.npy"));
  run(kSuccess, train("trained", "raw"));
  run(kSuccess, train("trained-moved", "raw", augment));
  EXPECT_NE(summary("trained").at("parameters_hash"), summary("trained-moved").at("parameters_hash"));
}

TEST_F(PreparationPoolTest, auto_is_measured_once_recorded_and_goes_on_with_the_same_command_line) {
  const Words flags = {"--normalize", "auto", "--augment", "flip"};
  const std::string said = run(kSuccess, train("run", "raw", flags));
  EXPECT_NE(said.find("--normalize auto is --normalize 7."), std::string::npos) << said;
  const std::string toml = content("run/run.toml");
  EXPECT_NE(toml.find("\nnormalize = \"7."), std::string::npos) << toml;
  EXPECT_NE(toml.find("\naugment = \"flip\"\n"), std::string::npos) << toml;
  run(kSuccess, train("run", "raw", flags + Words{"--steps", "12"}));
  const auto numbers = [](const std::string& text) {
    const auto at = text.find("\nnormalize = ");
    return text.substr(at, text.find('\n', at + 1) - at);
  };
  EXPECT_EQ(numbers(content("run/run.toml")), numbers(toml));
  run(kSuccess, train("whole", "raw", flags + Words{"--steps", "12", "--nodes", "1"}));
  EXPECT_EQ(summary("run").at("parameters_hash"), summary("whole").at("parameters_hash"));
  EXPECT_NE(run(kUsage, {"train", "run", "--augment", "none"}).find("augment = flip"), std::string::npos);
  run(kSuccess, train("plain", "plain"));
  const std::string refused = run(kUsage, train("plain", "plain", {"--normalize", "auto"}));
  EXPECT_NE(refused.find("normalize = none"), std::string::npos) << refused;
}

TEST_F(PreparationPoolTest, what_makes_no_sense_is_refused_before_a_run_begins) {
  expect_refused({"--normalize", "1,2,3/1,1,1"}, "3 means and deviations for 'raw'");
  expect_refused({"--augment", "crop:6"}, "it must be less than 6");
  expect_refused({"--augment", "flip"}, "--augment: it is done to the one input that is numbers", "tokens");
  expect_refused({"--normalize", "auto"}, "--normalize: it is done to", "tokens");
  expect_refused({"--augment", "flip", "--data", "random:72,3"}, "is no image");
}

}  // namespace
}  // namespace w5xde
