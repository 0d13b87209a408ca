// A language model in a TorchScript file (engines/torch/testdata), trained on text by real pools.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "pool.h"

namespace w5xde {
namespace {

class LanguageTest : public testing::Test {
 protected:
  // About 6,000 bytes of English, of which a bigram model learns a lot.
  static std::string text() {
    std::string words;
    for (int i = 0; i < 60; ++i) {
      words += "the quick brown fox jumps over the lazy dog number " + std::to_string(i * 7919 % 1000) +
               ", and the dog sleeps on without a word. ";
    }
    words.resize(words.size() / 2 * 2);  // for those who take it for u16
    return words;
  }
  static Workload workload_on(const std::string& data, const Words& more = {}) {
    Workload workload{
        .name = "language",
        .flags = {"--model", W5XDE_TORCH_MODELS "/bytes.pt", "--data", data, "--batch", "4", "--slots", "4",
                  "--optimizer", "adam", "--learning-rate", "0.01", "--epochs", "3"}};
    workload.flags.insert(workload.flags.end(), more.begin(), more.end());
    return workload;
  }
  static void write_text(const Pool& pool) {
    std::ofstream(pool.folder() / "text.txt", std::ios::binary) << text();
  }
};

TEST_F(LanguageTest, one_node_and_three_train_it_on_text_to_the_same_bits_and_say_its_perplexity) {
  std::string hash;
  for (const unsigned nodes : {1u, 3u}) {
    Pool pool(workload_on("text:text.txt,context=32"));
    write_text(pool);
    Process coordinator = pool.train(nodes);
    EXPECT_EQ(coordinator.wait(), 0) << coordinator.said();
    const auto summary = pool.summary();
    EXPECT_TRUE(hash.empty() || summary.at("parameters_hash") == hash);
    hash = summary.at("parameters_hash");
    const auto evaluation = summary.at("evaluation");
    const double loss = evaluation.at("loss"), perplexity = evaluation.at("perplexity");
    EXPECT_LT(loss, std::log(256.0) - 0.5) << "it learns";
    EXPECT_NEAR(perplexity, std::exp(loss), 1e-9 * perplexity);
    EXPECT_GT(evaluation.at("accuracy"), 0.1);
    EXPECT_NE(coordinator.said().find(" perplexity"), std::string::npos) << coordinator.said();
    if (nodes == 1) continue;
    Process eval = pool.start({"eval", "run", "--json", "scores.json"});
    EXPECT_EQ(eval.wait(), 0) << eval.said();
    const auto scores = nlohmann::json::parse(std::ifstream(pool.folder() / "scores.json"));
    EXPECT_NEAR(scores.at("loss"), loss, 1e-6);
    EXPECT_NEAR(scores.at("perplexity"), perplexity, 1e-4);
    EXPECT_NEAR(scores.at("accuracy").get<double>(), evaluation.at("accuracy").get<double>(), 1e-9);
  }
}

TEST_F(LanguageTest, what_does_not_fit_is_refused_before_a_run_begins) {
  const auto refused = [](const std::string& data, const Words& more, const std::string& words) {
    Pool pool(workload_on(data, more));
    write_text(pool);
    Process process = pool.train(2);
    EXPECT_EQ(process.wait(), 2) << process.said();
    EXPECT_NE(process.said().find(words), std::string::npos) << process.said();
  };
  refused("text:text.txt,context=6000", {}, "a window with context=6000 takes 6001");
  refused("text:text.txt,context=0", {}, "is not a context");
  refused("tokens:text.txt", {}, "tokens:text.txt:u16");
  refused("tokens:text.txt:u16", {}, "does not take samples of 'inputs' of [128] with ids up to");
  refused("random:32,256", {}, "does not take samples of 'inputs' of [32]");
  refused("text:text.txt", {"--loss", "mse"}, "--loss cross-entropy");
  refused("text:text.txt", {"--evaluation-data", "synthetic"}, "use data of one kind");
}

}  // namespace
}  // namespace w5xde
