// w5xde plan where steps are short: it tries a pool before it says anything.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "pool.h"

namespace w5xde {
namespace {

constexpr int kInterrupted = 4;
constexpr double kUsualExchangeSeconds = 60e-6;

class PlanTest : public testing::Test {
 protected:
  PlanTest() { std::filesystem::create_directory(scratch()); }
  Process plan(const Words& more) const {
    Words words = {"plan", "--nodes", "3", "--json", "plan.json"};
    words.insert(words.end(), more.begin(), more.end());
    return pool_.start(words, {.environment = {{"TMPDIR", scratch().string()}}});
  }
  nlohmann::json figures() const {
    std::ifstream file(pool_.folder() / "plan.json");
    return nlohmann::json::parse(file);
  }
  std::filesystem::path scratch() const { return pool_.folder() / "scratch"; }

  const Pool pool_{{.name = "numbers"}};
};

TEST_F(PlanTest, what_an_exchange_costs_is_seen_in_a_pool_that_leaves_nothing_behind) {
  Process process = plan(
      {"--model", "mlp:10,20,10", "--data", "synthetic", "--preset", "standard", "--measure-seconds", "0.5"});
  ASSERT_EQ(process.wait(), 0) << process.said();
  EXPECT_NE(process.said().find("trying a pool of 3 here"), std::string::npos) << process.said();
  EXPECT_GT(figures().at("slot_seconds"), 0);
  EXPECT_NE(figures().at("exchange_seconds"), kUsualExchangeSeconds);
  EXPECT_TRUE(std::filesystem::is_empty(scratch()));
}

TEST_F(PlanTest, where_the_nodes_have_machines_of_their_own_or_slots_were_told_there_is_no_such_pool) {
  for (const Words& more :
       {Words{"--link", "1gbit", "--measure-seconds", "0.1"}, Words{"--slot-seconds", "0.0001"}}) {
    Words words = {"--model", "mlp:10,20,10", "--data", "synthetic"};
    words.insert(words.end(), more.begin(), more.end());
    Process process = plan(words);
    ASSERT_EQ(process.wait(), 0) << process.said();
    EXPECT_EQ(process.said().find("trying a pool"), std::string::npos) << process.said();
    EXPECT_EQ(figures().at("exchange_seconds"), kUsualExchangeSeconds);
  }
}

TEST_F(PlanTest, stopped_meanwhile_it_takes_that_pool_with_it) {
  Process process = plan({"--model", "mlp:10,20,10", "--data", "synthetic", "--measure-seconds", "5"});
  process.wait_for_line("trying a pool of 3");
  process.signal_alone(SIGINT);
  EXPECT_EQ(process.wait(), kInterrupted) << process.said();
  EXPECT_TRUE(process.descendants().empty());
  EXPECT_TRUE(std::filesystem::is_empty(scratch()));
  EXPECT_FALSE(std::filesystem::exists(pool_.folder() / "plan.json"));
}

}  // namespace
}  // namespace w5xde
