#include "local_pool/part_training.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

using Names = std::vector<std::string>;

TEST(PartTraining, names_in_which_the_pattern_finds_nothing_are_frozen) {
  const auto model =
      BlockLayout::make({{"body.0.weight", {2}}, {"body.0.bias", {2}}, {"head.weight", {2}}}, 1000).value();
  EXPECT_EQ(frozen_names("^head", *model).value(), (Names{"body.0.weight", "body.0.bias"}));
  EXPECT_EQ(frozen_names("bias|head", *model).value(), Names{"body.0.weight"}) << "anywhere in the name";
  EXPECT_EQ(frozen_names(R"(\.\d\.)", *model).value(), Names{"head.weight"});
  EXPECT_EQ(frozen_names(".", *model).value(), Names{});
  EXPECT_EQ(
      frozen_names("^weight", *model).error().message,
      "--train '^weight' finds none of the model's parameters: body.0.weight, body.0.bias, head.weight");
}

TEST(PartTraining, what_is_no_regular_expression_is_refused) {
  EXPECT_TRUE(check_pattern("").ok()) << "all is trained";
  EXPECT_TRUE(check_pattern("^head").ok());
  EXPECT_NE(check_pattern("head(").error().message.find("--train: 'head(' is no regular expression"),
            std::string::npos);
}

}  // namespace
}  // namespace w5xde
