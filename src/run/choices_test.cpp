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

TEST(Choices, a_preparation_of_samples_is_read_and_written) {
  SamplePreparation preparation;
  ASSERT_TRUE(parse_normalize("0.4914,0.4822,0.4465/0.247,0.2435,0.2616", preparation).ok());
  EXPECT_EQ(preparation.mean, (std::vector<float>{0.4914F, 0.4822F, 0.4465F}));
  EXPECT_EQ(preparation.deviation, (std::vector<float>{0.247F, 0.2435F, 0.2616F}));
  for (const char* text : {"crop:4,flip", "crop:4", "flip", "none"}) {
    ASSERT_TRUE(parse_augment(text, preparation).ok()) << text;
    EXPECT_EQ(augment_of(preparation), text);
  }
  EXPECT_EQ(normalize_of(preparation), "0.4914,0.4822,0.4465/0.247,0.2435,0.2616") << "by itself";
  ASSERT_TRUE(parse_augment("flip,crop:2", preparation).ok());
  EXPECT_EQ(augment_of(preparation), "crop:2,flip");
  ASSERT_TRUE(parse_normalize("none", preparation).ok());
  EXPECT_EQ(preparation, (SamplePreparation{.crop_pixels = 2, .flip = true}));
}

TEST(Choices, a_preparation_that_is_none_is_refused_with_how_it_is_written) {
  SamplePreparation preparation;
  for (const char* text :
       {"", "0.5", "0.5/", "/1", "0.5/0", "0.5/-1", "1,2/1", "1,/1,1", "x/1", "nan/1", "1/inf"})
    EXPECT_NE(parse_normalize(text, preparation).error().message.find("0.2860/0.3530"), std::string::npos)
        << text;
  for (const char* text :
       {"", "crop", "crop:0", "crop:-1", "crop:4,", "flip,flip", "crop:1,crop:2", "rotate"})
    EXPECT_NE(parse_augment(text, preparation).error().message.find("crop:PIXELS,flip"), std::string::npos)
        << text;
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
