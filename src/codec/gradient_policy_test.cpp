#include "codec/gradient_policy.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

class GradientPolicyTest : public testing::Test {
 protected:
  std::shared_ptr<const BlockLayout> layout_ = BlockLayout::make({{"w", Shape{1000, 2000}}}, 1 << 24).value();
  GradientPolicy policy_{*layout_, 0.01};

  GradientKind chosen(double bytes_per_second, double computing_seconds) {
    return policy_.choose({.link_bytes_per_second = bytes_per_second, .computing_seconds = computing_seconds})
        .kind;
  }
};

TEST_F(GradientPolicyTest, nothing_is_lost_before_the_link_is_known) {
  EXPECT_EQ(chosen(0, 0.1), GradientKind::none);
  EXPECT_EQ(policy_.describe(), "none (link not measured yet)");
}

TEST_F(GradientPolicyTest, a_fast_link_and_a_long_step_need_no_codec) {
  EXPECT_EQ(chosen(2e9, 0.08), GradientKind::none);
  EXPECT_EQ(chosen(3e6, 60), GradientKind::none) << "2.7 s of a minute";
  EXPECT_EQ(policy_.describe(), "none (63 s a step anyway)");
}

TEST_F(GradientPolicyTest, a_slow_link_takes_the_harshest_and_one_between_the_gentler) {
  EXPECT_EQ(chosen(50e6, 0.25), GradientKind::int8)
      << "0.16 s for all, 0.04 for a quarter, 0.002 for a hundredth";
  EXPECT_EQ(chosen(3e6, 0.08), GradientKind::topk);
  EXPECT_EQ(policy_.describe(), "topk:0.01 (a step in 0.12 s, not 2.7)");
}

TEST_F(GradientPolicyTest, where_changes_are_not_sparse_the_sparse_codec_is_no_choice) {
  policy_ = GradientPolicy(*layout_, 0);
  EXPECT_EQ(chosen(3e6, 0.08), GradientKind::int8);
}

TEST_F(GradientPolicyTest, it_changes_with_the_link_but_not_to_and_fro) {
  EXPECT_EQ(chosen(3e6, 1), GradientKind::topk);
  // 8 MB in 0.16 s: within a quarter of the best, not within a tenth.
  EXPECT_EQ(chosen(50e6, 0.75), GradientKind::int8);
  EXPECT_EQ(chosen(50e6, 0.75), GradientKind::int8);
  EXPECT_EQ(chosen(500e6, 0.75), GradientKind::none);
  EXPECT_EQ(chosen(50e6, 0.75), GradientKind::none) << "what is lost would not be worth it";
}

TEST_F(GradientPolicyTest, a_codec_that_takes_longer_than_it_saves_is_left_alone) {
  for (int i = 0; i < 50; ++i) {
    policy_.measured({.kind = GradientKind::topk, .density = 0.01}, 5);
    policy_.measured({.kind = GradientKind::int8}, 5);
  }
  EXPECT_EQ(chosen(3e6, 0.08), GradientKind::none);
}

}  // namespace
}  // namespace w5xde
