#include "bench/studies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace w5xde {
namespace {

TEST(StudiesTest, every_preset_meets_every_workload_on_every_link) {
  const auto cells = chosen(all_cells(), "presets").value();
  EXPECT_EQ(cells.size(), 9u * 2 * 2);
  std::set<std::string> names;
  for (const Cell& cell : all_cells()) names.insert(cell.part + name_of(cell));
  EXPECT_EQ(names.size(), all_cells().size()) << "two cells are the same";
  EXPECT_EQ(all_cells().size(), 36u + 10 + 3);
}

TEST(StudiesTest, words_of_one_kind_are_alternatives_and_kinds_narrow_each_other) {
  EXPECT_EQ(chosen(all_cells(), "")->size(), all_cells().size());
  EXPECT_EQ(chosen(all_cells(), "presets,original,loopback")->size(), 9u);
  EXPECT_EQ(chosen(all_cells(), "presets,early,adaptive,2M")->size(), 4u);
  EXPECT_EQ(chosen(all_cells(), "logging")->size(), 3u);
  EXPECT_EQ(chosen(all_cells(), "buffers,logging,original")->size(), 8u);
}

TEST(StudiesTest, a_word_that_means_nothing_is_refused_and_so_is_a_choice_of_nothing) {
  const auto unknown = chosen(all_cells(), "original,fast");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("'fast'"), std::string::npos);
  EXPECT_NE(unknown.error().message.find("direct-tensor"), std::string::npos) << "it says what there is";
  EXPECT_FALSE(chosen(all_cells(), "logging,2M").ok());
}

TEST(StudiesTest, rivals_take_turns_and_every_round_begins_with_another) {
  const auto cells = chosen(all_cells(), "presets,early,current,adaptive,loopback").value();
  std::string order;
  for (const Turn& turn : interleaved(cells, 3)) order += std::to_string(turn.cell);
  EXPECT_EQ(order,
            "012102201"
            "345435534");
}

TEST(StudiesTest, nobody_always_runs_after_the_same) {
  const auto cells = chosen(all_cells(), "presets,original,loopback").value();
  std::map<std::size_t, std::set<std::size_t>> before;
  const auto turns = interleaved(cells, 3);
  for (std::size_t i = 1; i < turns.size(); ++i) before[turns[i].cell].insert(turns[i - 1].cell);
  EXPECT_EQ(before.size(), cells.size());
  for (const auto& [cell, others] : before) EXPECT_GE(others.size(), 2u) << cells[cell].preset;
}

TEST(StudiesTest, three_presets_are_predicted_wherever_they_are_compared) {
  std::map<std::string, int> asked;
  for (const Cell& cell : all_cells()) {
    if (predicted(cell)) ++asked[cell.preset];
  }
  EXPECT_EQ(asked,
            (std::map<std::string, int>{{"direct-tensor", 4}, {"gradient-compression", 4}, {"adaptive", 4}}));
}

TEST(StudiesTest, every_cell_has_its_turn_once_a_round) {
  std::map<std::pair<std::size_t, unsigned>, int> turns;
  for (const Turn& turn : interleaved(all_cells(), 3)) ++turns[{turn.cell, turn.round}];
  EXPECT_EQ(turns.size(), all_cells().size() * 3);
  EXPECT_TRUE(std::ranges::all_of(turns, [](const auto& entry) { return entry.second == 1; }));
  EXPECT_TRUE(interleaved({}, 3).empty());
}

TEST(StudiesTest, a_cell_is_what_train_is_asked_for) {
  const Cell cell{"buffers", "adaptive", "2M", "loopback", 4 << 20, "silent"};
  const Words flags = flags_of(cell, 10, 2.5);
  const auto value = [&](const std::string& flag) {
    const auto found = std::ranges::find(flags, flag);
    return found == flags.end() ? "" : *(found + 1);
  };
  EXPECT_EQ(value("--preset"), "adaptive");
  EXPECT_EQ(value("--model"), "mlp:784,1024,1024,10");
  EXPECT_EQ(value("--seconds"), "3.5") << "a second to warm up comes first";
  EXPECT_EQ(value("--slots"), "40");
  EXPECT_EQ(value("--socket-buffer"), "4194304");
  EXPECT_EQ(value("--log"), "silent");
  const Words run = run_flags(cell, 10);
  EXPECT_EQ(std::ranges::find(run, "--seconds"), run.end()) << "how long, w5xde plan does not ask";
  const Words plain = flags_of({"presets", "early", "original", "loopback"}, 2, 1);
  EXPECT_EQ(std::ranges::find(plain, "--socket-buffer"), plain.end());
}

TEST(StudiesTest, a_pool_warms_up_longest_where_its_first_parameters_take_seconds) {
  for (const Cell& cell : all_cells()) {
    EXPECT_EQ(warm_up_seconds(cell), cell.workload == "2M" && cell.link == "100mbit" ? 12 : 1)
        << name_of(cell);
  }
}

}  // namespace
}  // namespace w5xde
