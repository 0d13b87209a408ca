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
  expect_read_back(parse_choice<Loss>, {"auto", "cross-entropy", "bce", "mse", "own"});
  expect_read_back(parse_ignore_index, {"none", "-100", "0", "255"});
  expect_read_back(parse_choice<DType>, {"f32", "bf16"});
  expect_read_back(parse_choice<Serialization>, {"direct", "generic"});
  expect_read_back(parse_choice<SampleCaching>, {"auto", "on", "off"});
  expect_read_back(parse_choice<WhoWorks>, {"auto", "all"});
  expect_read_back(parse_choice<BatchPolicy>, {"fixed", "auto"});
  expect_read_back(parse_choice<RateScaling>, {"auto", "linear", "sqrt", "none"});
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
  EXPECT_EQ(parse_choice<Serialization>("pickle").error().message,
            "'pickle' is not a choice; use direct or generic");
  EXPECT_EQ(parse_choice<WhoWorks>("some").error().message, "'some' is not a choice; use auto or all");
  EXPECT_EQ(parse_choice<SampleCaching>("maybe").error().message,
            "'maybe' is not a choice; use auto, on or off");
  EXPECT_EQ(parse_choice<Loss>("huber").error().message,
            "'huber' is not a choice; use auto, cross-entropy, bce, mse or own");
  EXPECT_EQ(parse_ignore_index("1.5").error().message, "'1.5': use a whole number, as -100, or none");
  EXPECT_FALSE(parse_choice<BatchPolicy>("large").ok());
  EXPECT_FALSE(parse_choice<RateScaling>("cubic").ok());
  EXPECT_NE(parse_lossless_choice("snappy").error().message.find("snappy"), std::string::npos);
  EXPECT_NE(parse_lossless_or_same("zlib:12").error().message.find("zlib"), std::string::npos);
  EXPECT_NE(parse_gradient_choice("topk:2").error().message.find("topk:2"), std::string::npos);
  EXPECT_NE(parse_gradient_choice("int4").error().message.find("int4"), std::string::npos);
  EXPECT_FALSE(parse_lossless_choice("same").ok()) << "as what?";
}

}  // namespace
}  // namespace w5xde
