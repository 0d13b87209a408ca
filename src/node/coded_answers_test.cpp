#include "node/coded_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace w5xde {
namespace {

class CodedAnswersTest : public testing::Test {
 protected:
  void answer(std::uint64_t lease, std::uint64_t step, float value) {
    const bool same_step = answers_.begin(lease, step);
    std::vector<float> gradient(layout_->floats());
    for (std::size_t i = 0; i < layout_->parameters(); ++i)
      gradient[i] = value * static_cast<float>(1 + i % 7);
    (void)encoder_.encode(gradient, same_step);
  }
  std::vector<float> feedback() const { return {encoder_.feedback().begin(), encoder_.feedback().end()}; }

  const std::shared_ptr<const BlockLayout> layout_ = BlockLayout::make({{"w", Shape{64}}}, 1 << 20).value();
  GradientEncoder encoder_{{.kind = GradientKind::topk, .density = 0.1}, layout_, 0.9F};
  CodedAnswers answers_{encoder_};
};

TEST_F(CodedAnswersTest, the_last_answer_is_undone_if_it_is_dropped) {
  answer(1, 5, 0.5F);
  const auto before = feedback();
  answer(2, 6, 0.25F);
  answers_.judge(1, true);
  answers_.judge(2, false);
  EXPECT_EQ(feedback(), before);
  EXPECT_TRUE(answers_.begin(3, 5)) << "the last that stands is of step 5";
}

TEST_F(CodedAnswersTest, one_before_the_last_is_undone_too) {
  answer(1, 5, 0.5F);
  const auto first = feedback();
  answer(2, 5, 0.25F);
  const auto second = feedback();
  answer(3, 5, 0.125F);
  const auto third = feedback();
  answers_.judge(2, false);
  for (std::size_t i = 0; i < third.size(); ++i)
    EXPECT_NEAR(feedback()[i], third[i] + first[i] - second[i], 1e-5) << i;
}

TEST_F(CodedAnswersTest, what_counts_stays_and_is_judged_once) {
  answer(1, 5, 0.5F);
  answer(2, 5, 0.25F);
  const auto after = feedback();
  for (const std::uint64_t lease : {1u, 2u}) answers_.judge(lease, true);
  for (const std::uint64_t lease : {1u, 2u, 77u}) answers_.judge(lease, false);
  EXPECT_EQ(feedback(), after);
}

TEST_F(CodedAnswersTest, of_answers_that_nobody_judges_only_the_newest_are_kept) {
  for (std::uint64_t lease = 1; lease <= CodedAnswers::kKeptMax + 1; ++lease) answer(lease, 5, 0.5F);
  const auto after = feedback();
  answers_.judge(1, false);
  EXPECT_EQ(feedback(), after);
}

TEST_F(CodedAnswersTest, a_copy_has_what_counts_of_the_answers_before_it) {
  answer(1, 5, 0.5F);
  const auto first = feedback();
  answer(2, 5, 0.25F);
  std::optional<std::vector<float>> copy;
  const auto take = [&](std::span<const float> floats) { copy.emplace(floats.begin(), floats.end()); };
  EXPECT_TRUE(answers_.copy_feedback(take));
  EXPECT_FALSE(answers_.copy_feedback(take)) << "one at a time";
  answer(3, 6, 0.125F);
  answers_.judge(3, true);
  answers_.judge(2, false);
  EXPECT_FALSE(copy) << "it is not known yet whether the first counts";
  answers_.judge(1, true);
  ASSERT_TRUE(copy);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR((*copy)[i], first[i], 1e-5) << i;
}

TEST_F(CodedAnswersTest, a_copy_does_not_wait_for_answers_that_are_not_kept) {
  int copies = 0;
  const auto take = [&](std::span<const float>) { ++copies; };
  EXPECT_TRUE(answers_.copy_feedback(take));
  EXPECT_EQ(copies, 1) << "at once where nothing is open";
  answer(1, 5, 0.5F);
  EXPECT_TRUE(answers_.copy_feedback(take));
  for (std::uint64_t lease = 2; lease <= CodedAnswers::kKeptMax; ++lease) answer(lease, 5, 0.5F);
  EXPECT_EQ(copies, 1);
  answer(99, 5, 0.5F);
  EXPECT_EQ(copies, 2);
}

}  // namespace
}  // namespace w5xde
