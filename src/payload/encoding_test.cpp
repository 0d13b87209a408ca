#include "payload/encoding.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

TEST(EncodingTest, arrives_as_it_was_asked_for) {
  const Encoding encodings[] = {
      {},
      {.form = Form::generic, .lossless = std::nullopt},
      {.lossless = SectionCodec{.lossless = {LosslessKind::zstd, 3}, .shuffle_width = 4}, .part_floats = 10},
      {.form = Form::gradient, .gradient = {.kind = GradientKind::topk, .density = 0.25}},
      {.form = Form::gradient, .gradient = {.kind = GradientKind::powersgd, .rank = 4}}};
  for (const Encoding& encoding : encodings) EXPECT_EQ(from_wire(to_wire(encoding)).value(), encoding);
}

TEST(EncodingTest, a_payload_that_is_coded_otherwise_does_not_follow) {
  const GradientCodec int8{.kind = GradientKind::int8}, low_rank{.kind = GradientKind::powersgd, .rank = 4};
  EXPECT_TRUE(follows({}, {}));
  EXPECT_TRUE(follows({.form = Form::generic, .bytes = 10}, {.form = Form::generic}));
  EXPECT_TRUE(follows(to_wire(int8, 100), {.form = Form::gradient, .gradient = int8}));
  EXPECT_FALSE(follows({}, {.form = Form::generic}));
  EXPECT_FALSE(follows(to_wire(low_rank, 100), {.form = Form::gradient, .gradient = int8}));
  EXPECT_FALSE(follows(to_wire({.kind = GradientKind::powersgd, .rank = 2}, 100),
                       {.form = Form::gradient, .gradient = low_rank}));
  EXPECT_FALSE(follows({.gradient_kind = 3}, {})) << "a direct payload has no gradient codec";
}

TEST(EncodingTest, answers_in_parts_that_cannot_be_are_refused) {
  const auto refusal = [](const Encoding& encoding) {
    const auto read = from_wire(to_wire(encoding));
    return read.ok() ? "accepted" : read.error().message;
  };
  EXPECT_EQ(refusal({.part_floats = 10}), "accepted");
  EXPECT_EQ(refusal({.form = Form::generic, .part_floats = 10}),
            "parts of a payload that is generic or shared");
  EXPECT_EQ(refusal({.form = Form::gradient, .gradient = {.kind = GradientKind::int8}, .part_floats = 2048}),
            "accepted");
  EXPECT_EQ(refusal({.form = Form::gradient, .gradient = {.kind = GradientKind::int8}, .part_floats = 2000}),
            "parts of 2000 floats of int8");
  EXPECT_EQ(
      refusal({.form = Form::gradient, .gradient = {.kind = GradientKind::onebit}, .part_floats = 1024}),
      "parts of 1024 floats of onebit");
}

}  // namespace
}  // namespace w5xde
