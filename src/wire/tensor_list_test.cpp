#include "wire/tensor_list.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "support/hex.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace w5xde {
namespace {

std::vector<std::byte> bytes_from(const std::vector<std::uint8_t>& values) {
  std::vector<std::byte> bytes;
  for (const std::uint8_t value : values) bytes.push_back(std::byte{value});
  return bytes;
}

std::vector<std::byte> encoded(const TensorList& tensors) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  encode_tensor_list(tensors, writer);
  return bytes;
}

std::string refusal_of(Bytes bytes, const Limits& limits = {}) {
  ByteReader reader(bytes);
  const auto tensors = decode_tensor_list(reader, limits);
  return tensors.ok() ? "accepted" : tensors.error().to_string();
}

std::string refusal_of(const std::vector<std::uint8_t>& values, const Limits& limits = {}) {
  return refusal_of(bytes_from(values), limits);
}

std::string refusal_of(const TensorList& tensors, const Limits& limits = {}) {
  return refusal_of(encoded(tensors), limits);
}

rc::Gen<TensorDescriptor> any_descriptor() {
  return rc::gen::exec([] {
    const auto dims = *rc::gen::container<std::vector<std::int64_t>>(
        *rc::gen::inRange<std::size_t>(0, kRankMax + 1), rc::gen::inRange<std::int64_t>(0, 6));
    return TensorDescriptor{*rc::gen::elementOf(std::vector<DType>(kDTypes.begin(), kDTypes.end())),
                            Shape::make(dims).value(), *rc::gen::arbitrary<bool>(),
                            *rc::gen::arbitrary<std::string>()};
  });
}

TEST(TensorListTest, has_these_bytes) {
  const TensorList tensors = {{DType::f32, Shape{512, 3}, true, "w"}, {DType::i64, Shape{}, false, ""}};
  EXPECT_EQ(hex_of(encoded(tensors)),
            "02"      // two tensors
            "01"      // f32
            "c2"      // rank 2, named, requires grad
            "800403"  // 512, 3
            "0177"    // "w"
            "05"      // i64
            "00");    // a scalar without name
}

TEST(TensorListTest, a_frame_of_one_tensor_costs_at_most_48_bytes_over_its_payload) {
  const std::vector<Shape> typical = {
      {},          {430},          {1'000'000},      {1024, 4096},     {32000, 4096},
      {64, 3, 32}, {64, 512, 768}, {512, 512, 3, 3}, {64, 3, 224, 224}};
  for (const Shape& shape : typical) {
    Head head;
    encode(Tensors{{{DType::f32, shape, true, ""}}}, head);
    EXPECT_LE(kFrameHeaderBytes + head.size() + kFrameChecksumBytes, 48u) << shape.to_string();
  }
}

// Not only typical ones: elements are below 2^58, so long dimensions leave no room for others.
RC_GTEST_PROP(TensorListTest, no_shape_of_up_to_four_dimensions_costs_more_than_48_bytes, ()) {
  std::vector<std::int64_t> dims;
  int bits_left = 58;
  for (int rank = *rc::gen::inRange(0, 5); rank > 0; --rank) {
    const int bits = *rc::gen::inRange(0, bits_left + 1);
    dims.push_back(std::int64_t{1} << bits);
    bits_left -= bits;
  }
  Head head;
  encode(Tensors{{{DType::u8, Shape::make(dims).value(), true, ""}}}, head);
  RC_ASSERT(kFrameHeaderBytes + head.size() + kFrameChecksumBytes <= 48u);
}

RC_GTEST_PROP(TensorListTest, what_is_encoded_is_decoded, ()) {
  const auto tensors = *rc::gen::container<TensorList>(any_descriptor());
  const auto bytes = encoded(tensors);
  ByteReader reader(bytes);
  const auto decoded = decode_tensor_list(reader, Limits{});
  RC_ASSERT(decoded.ok());
  RC_ASSERT(reader.finished());
  RC_ASSERT(decoded.value() == tensors);
}

TEST(TensorListTest, leaves_what_comes_after_it_to_the_reader) {
  auto bytes = encoded({{DType::u8, Shape{3}, false, "a"}});
  bytes.push_back(std::byte{0x7e});
  ByteReader reader(bytes);
  ASSERT_TRUE(decode_tensor_list(reader, Limits{}).ok());
  EXPECT_EQ(hex_of(reader.rest()), "7e");
}

TEST(TensorListTest, a_descriptor_is_made_of_a_view) {
  const std::vector<std::int64_t> strides = {1, 2};
  const std::vector<std::byte> memory(6 * 2);
  const TensorView view(memory.data(), DType::bf16, Shape{2, 3}, strides, true);
  EXPECT_EQ(TensorDescriptor::of(view, "w"), (TensorDescriptor{DType::bf16, Shape{2, 3}, true, "w"}));
  EXPECT_EQ(TensorDescriptor::of(view).byte_count(), 12u);
}

TEST(TensorListTest, tensors_lie_in_the_payload_at_multiples_of_eight) {
  const TensorList tensors = {{DType::u8, Shape{3}, false, "a"},
                              {DType::f64, Shape{2}, true, "b"},
                              {DType::i16, Shape{0, 4}, false, "none"},
                              {DType::boolean, Shape{}, false, "last"}};
  EXPECT_EQ(payload_bytes_of(tensors), 8u + 16u + 1u);
  EXPECT_EQ(payload_bytes_of(TensorList{}), 0u);
  AlignedBuffer buffer;
  const MutableBytes payload = buffer.take(25);
  const auto views = views_of(tensors, payload);
  ASSERT_EQ(views.size(), 4u);
  EXPECT_EQ(views[0].bytes().data(), payload.data());
  EXPECT_EQ(views[1].bytes().data(), payload.data() + 8);
  EXPECT_TRUE(views[1].requires_grad());
  EXPECT_TRUE(views[2].bytes().empty());
  EXPECT_EQ(views[3].bytes().data(), payload.data() + 24);
  EXPECT_FALSE(views[3].requires_grad());
}

RC_GTEST_PROP(TensorListTest, views_are_aligned_apart_and_as_described, ()) {
  const auto tensors = *rc::gen::container<TensorList>(any_descriptor());
  AlignedBuffer buffer;
  const MutableBytes payload = buffer.take(payload_bytes_of(tensors));
  const auto views = views_of(tensors, payload);
  RC_ASSERT(views.size() == tensors.size());
  const std::byte* end = payload.data();
  for (std::size_t i = 0; i < views.size(); ++i) {
    RC_ASSERT(TensorDescriptor::of(views[i], tensors[i].name) == tensors[i]);
    RC_ASSERT(reinterpret_cast<std::uintptr_t>(views[i].bytes().data()) % kPayloadAlignment == 0);
    RC_ASSERT(views[i].bytes().data() >= end);
    RC_ASSERT(views[i].bytes().data() - end < 8);
    end = views[i].bytes().data() + views[i].byte_count();
  }
  RC_ASSERT(end == payload.data() + payload.size());
}

TEST(TensorListTest, a_dtype_that_is_not_known_is_refused) {
  EXPECT_EQ(refusal_of({1, 0, 0}), "corrupt: dtype 0 is not known");
  EXPECT_EQ(refusal_of({1, 13, 0}), "corrupt: dtype 13 is not known");
}

TEST(TensorListTest, more_dimensions_than_a_shape_can_have_are_refused) {
  for (std::uint8_t rank = 9; rank < 16; ++rank) {
    std::vector<std::uint8_t> bytes(3 + rank, 1);
    bytes[2] = rank;
    EXPECT_EQ(refusal_of(bytes), fmt::format("corrupt: a tensor of {} dimensions; at most 8", rank));
  }
}

TEST(TensorListTest, bits_that_are_not_known_are_refused) {
  EXPECT_EQ(refusal_of({1, 1, 0x10}), "corrupt: tensor descriptor bits 0x10 are not known");
  EXPECT_EQ(refusal_of({1, 1, 0x20}), "corrupt: tensor descriptor bits 0x20 are not known");
  EXPECT_EQ(refusal_of({1, 1, 0xb0}), "corrupt: tensor descriptor bits 0xb0 are not known");
}

TEST(TensorListTest, a_list_cut_short_anywhere_is_refused) {
  const auto bytes =
      encoded({{DType::f32, Shape{512, 3}, true, "weight"}, {DType::u8, Shape{7}, false, "b"}});
  EXPECT_EQ(refusal_of(Bytes(bytes).first(0)), "corrupt: the tensor count is missing");
  EXPECT_EQ(refusal_of(Bytes(bytes).first(4)), "corrupt: 2 tensors described in 3 bytes");
  for (std::size_t size = 5; size < bytes.size(); ++size) {
    EXPECT_EQ(refusal_of(Bytes(bytes).first(size)), "corrupt: a tensor descriptor is cut short") << size;
  }
}

TEST(TensorListTest, more_tensors_than_the_limit_are_refused) {
  const TensorList three(3, {DType::u8, Shape{0}, false, ""});
  EXPECT_EQ(refusal_of(three, {.tensors_max = 3}), "accepted");
  EXPECT_EQ(refusal_of(three, {.tensors_max = 2}), "overloaded: 3 tensors in a frame; at most 2");
  EXPECT_EQ(refusal_of(three, Limits::stranger()), "overloaded: 3 tensors in a frame; at most 0");
}

TEST(TensorListTest, a_count_that_the_bytes_cannot_hold_is_refused_before_anything_is_reserved) {
  EXPECT_EQ(refusal_of({3, 1, 0, 1, 0, 1}), "corrupt: 3 tensors described in 5 bytes");
  std::vector<std::uint8_t> huge(10, 0xff);
  huge[9] = 1;  // 2^64 - 1
  EXPECT_EQ(refusal_of(huge, {.tensors_max = UINT64_MAX}),
            "corrupt: 18446744073709551615 tensors described in 0 bytes");
}

TEST(TensorListTest, names_are_not_empty_and_not_over_the_limit) {
  const auto named = [](std::size_t length) {
    return TensorList{{DType::u8, Shape{}, false, std::string(length, 'n')}};
  };
  EXPECT_EQ(refusal_of(named(256)), "accepted");
  EXPECT_EQ(refusal_of(named(257)), "corrupt: a tensor name of 257 bytes; 1 to 256");
  EXPECT_EQ(refusal_of({1, 1, 0x40, 0}), "corrupt: a tensor name of 0 bytes; 1 to 256");
  EXPECT_EQ(refusal_of({1, 1, 0x40, 0xff, 0xff, 0xff, 0xff, 0x0f}),
            "corrupt: a tensor name of 4294967295 bytes; 1 to 256");
}

TEST(TensorListTest, shapes_that_overflow_are_refused) {
  // 2^32 * 2^32, and a dimension of 2^64 - 1.
  EXPECT_EQ(refusal_of({1, 9, 2, 0x80, 0x80, 0x80, 0x80, 0x10, 0x80, 0x80, 0x80, 0x80, 0x10}),
            "corrupt: a shape of [4294967296, 4294967296] overflows");
  EXPECT_EQ(refusal_of({1, 9, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}),
            "corrupt: dimension 0 of a shape is -1");
}

TEST(TensorListTest, a_dimension_in_more_bytes_than_it_needs_is_refused) {
  EXPECT_EQ(refusal_of({1, 9, 1, 0x83, 0x00}), "corrupt: a tensor descriptor is cut short");
}

TEST(TensorListTest, tensors_whose_sum_is_more_than_a_payload_are_refused) {
  const std::string refusal = "overloaded: tensors take more than the 100 bytes that a payload may have";
  const Limits limits{.payload_bytes_max = 100};
  EXPECT_EQ(refusal_of({{DType::u8, Shape{100}, false, ""}}, limits), "accepted");
  EXPECT_EQ(refusal_of({{DType::u8, Shape{101}, false, ""}}, limits), refusal);
  // 49 bytes and the seven between them and the next multiple of eight leave 44.
  EXPECT_EQ(refusal_of({{DType::u8, Shape{49}, false, ""}, {DType::u8, Shape{44}, false, ""}}, limits),
            "accepted");
  EXPECT_EQ(refusal_of({{DType::u8, Shape{49}, false, ""}, {DType::u8, Shape{45}, false, ""}}, limits),
            refusal);
}

TEST(TensorListTest, the_bytes_before_an_empty_tensor_count_too) {
  const TensorList tensors = {{DType::u8, Shape{97}, false, ""}, {DType::u8, Shape{0}, false, ""}};
  EXPECT_EQ(payload_bytes_of(tensors), 104u);
  EXPECT_EQ(refusal_of(tensors, {.payload_bytes_max = 104}), "accepted");
  EXPECT_EQ(refusal_of(tensors, {.payload_bytes_max = 100}),
            "overloaded: tensors take more than the 100 bytes that a payload may have");
}

TEST(TensorListTest, a_sum_past_64_bits_is_refused_whatever_the_limit) {
  const TensorDescriptor largest{DType::c128, Shape{std::int64_t{1} << 58}, false, ""};  // 2^62 bytes
  const TensorDescriptor almost{DType::c128, Shape{(std::int64_t{1} << 58) - 1}, false, ""};
  const TensorDescriptor rest{DType::u8, Shape{15}, false, ""}, one{DType::u8, Shape{1}, false, ""};
  const Limits no_limit{.payload_bytes_max = UINT64_MAX};
  const std::string refusal =
      fmt::format("overloaded: tensors take more than the {} bytes that a payload may have", UINT64_MAX);
  EXPECT_EQ(refusal_of(TensorList(3, largest), no_limit), "accepted");
  EXPECT_EQ(refusal_of(TensorList(4, largest), no_limit), refusal);
  // 2^64 - 1 bytes; the next multiple of eight is past them all.
  EXPECT_EQ(refusal_of({largest, largest, largest, almost, rest}, no_limit), "accepted");
  EXPECT_EQ(refusal_of({largest, largest, largest, almost, rest, one}, no_limit), refusal);
  EXPECT_EQ(refusal_of(TensorList(3, largest)),
            "overloaded: tensors take more than the 1073741824 bytes that a payload may have");
}

}  // namespace
}  // namespace w5xde
