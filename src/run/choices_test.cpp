#include "run/choices.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

template <class Choice>
void expect_read_back(Result<Choice> (*parse)(std::string_view),
                      std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto choice = parse(name);
    ASSERT_TRUE(choice.ok()) << name;
    if constexpr (std::is_enum_v<Choice>)
      EXPECT_EQ(name_of(*choice), name);
    else
      EXPECT_EQ(to_string(*choice), name);
  }
}

TEST(Choices, every_choice_is_printed_as_it_is_read) {
  expect_read_back(parse_loss, {"auto", "cross-entropy", "mse", "own"});
  expect_read_back(parse_serialization, {"direct", "generic"});
  expect_read_back(parse_sample_cache, {"auto", "on", "off"});
  expect_read_back(parse_who_works, {"auto", "all"});
  expect_read_back(parse_batch_policy, {"fixed", "auto"});
  expect_read_back(parse_rate_scaling, {"auto", "linear", "sqrt", "none"});
  expect_read_back(parse_lossless_choice, {"auto", "none", "zlib:9", "lz4-frame:1"});
  expect_read_back(parse_lossless_or_same, {"same", "auto", "none", "zstd:-3"});
  expect_read_back(parse_gradient_choice, {"auto", "none", "int8", "topk:0.01", "powersgd:4"});
}

TEST(Choices, an_automatic_codec_begins_as_none) {
  EXPECT_TRUE(parse_gradient_choice("auto")->automatic);
  EXPECT_EQ(parse_gradient_choice("auto")->codec, GradientCodec());
  EXPECT_EQ(parse_lossless_choice("auto")->codec, LosslessCodec());
  EXPECT_EQ(parse_gradient_choice("none").value(), GradientChoice());
}

TEST(Choices, what_is_no_choice_is_answered_with_those_that_are) {
  EXPECT_EQ(parse_serialization("pickle").error().message, "'pickle' is not a choice; use direct or generic");
  EXPECT_EQ(parse_who_works("some").error().message, "'some' is not a choice; use auto or all");
  EXPECT_EQ(parse_sample_cache("maybe").error().message, "'maybe' is not a choice; use auto, on or off");
  EXPECT_EQ(parse_loss("huber").error().message,
            "'huber' is not a choice; use auto, cross-entropy, mse or own");
  EXPECT_FALSE(parse_batch_policy("large").ok());
  EXPECT_FALSE(parse_rate_scaling("cubic").ok());
  EXPECT_NE(parse_lossless_choice("snappy").error().message.find("snappy"), std::string::npos);
  EXPECT_NE(parse_lossless_or_same("zlib:12").error().message.find("zlib"), std::string::npos);
  EXPECT_NE(parse_gradient_choice("topk:2").error().message.find("topk:2"), std::string::npos);
  EXPECT_NE(parse_gradient_choice("int4").error().message.find("int4"), std::string::npos);
  EXPECT_FALSE(parse_lossless_choice("same").ok()) << "as what?";
}

}  // namespace
}  // namespace w5xde
