#include "wire/value.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace w5xde {
namespace {

using nlohmann::json;

std::vector<std::byte> bytes_from(const std::vector<std::uint8_t>& values) {
  std::vector<std::byte> bytes;
  for (const std::uint8_t value : values) bytes.push_back(std::byte{value});
  return bytes;
}

std::vector<std::byte> encoded(const json& value) {
  std::vector<std::byte> bytes;
  encode_value(value, bytes);
  return bytes;
}

std::string refusal_of(Bytes bytes, const Limits& limits = {}) {
  const auto value = decode_value(bytes, limits);
  return value.ok() ? "accepted" : value.error().to_string();
}

json nested_arrays(std::size_t depth) {
  json value = json::array();
  for (std::size_t i = 1; i < depth; ++i) value = json::array({std::move(value)});
  return value;
}

rc::Gen<json> any_value(int depth_max) {
  return rc::gen::exec([depth_max] {
    switch (*rc::gen::inRange(0, depth_max == 0 ? 6 : 8)) {
      case 0:
        return json();
      case 1:
        return json(*rc::gen::arbitrary<bool>());
      case 2:
        return json(*rc::gen::arbitrary<std::int64_t>());
      case 3:
        return json(*rc::gen::arbitrary<std::uint64_t>());
      case 4:
        return json(*rc::gen::arbitrary<double>());
      case 5:
        return json(*rc::gen::string<std::string>());
      case 6: {
        json array = json::array();
        for (int left = *rc::gen::inRange(0, 4); left > 0; --left) array.push_back(*any_value(depth_max - 1));
        return array;
      }
      default: {
        json map = json::object();
        for (int left = *rc::gen::inRange(0, 4); left > 0; --left) {
          map[*rc::gen::string<std::string>()] = *any_value(depth_max - 1);
        }
        return map;
      }
    }
  });
}

TEST(ValueTest, is_messagepack) {
  EXPECT_EQ(
      encoded({{"a", 1}, {"b", {true, nullptr, -1, "x", 0.5}}}),
      bytes_from({0x82, 0xa1, 'a', 0x01, 0xa1, 'b', 0x95, 0xc3, 0xc0, 0xff, 0xa1, 'x', 0xca, 0x3f, 0, 0, 0}));
}

TEST(ValueTest, is_appended_to_what_is_there) {
  auto bytes = bytes_from({9});
  encode_value(7, bytes);
  EXPECT_EQ(bytes, bytes_from({9, 7}));
}

RC_GTEST_PROP(ValueTest, what_is_encoded_is_decoded, ()) {
  const json value = *any_value(4);
  const auto decoded = decode_value(encoded(value), Limits{});
  RC_ASSERT(decoded.ok());
  RC_ASSERT(decoded.value() == value);
}

TEST(ValueTest, binary_data_and_extensions_are_decoded) {
  const auto binary = decode_value(bytes_from({0xc4, 2, 1, 2}), Limits{});
  ASSERT_TRUE(binary.ok());
  EXPECT_EQ(binary.value(), json::binary({1, 2}));
  const auto extension = decode_value(bytes_from({0xd4, 5, 1}), Limits{});
  ASSERT_TRUE(extension.ok());
  EXPECT_EQ(extension.value(), json::binary({1}, 5));
}

TEST(ValueTest, may_be_nested_up_to_the_limit_and_no_deeper) {
  const Limits limits{.value_depth_max = 3};
  EXPECT_EQ(refusal_of(encoded(nested_arrays(3)), limits), "accepted");
  EXPECT_EQ(refusal_of(encoded(nested_arrays(4)), limits), "corrupt: a value nested deeper than 3");
  EXPECT_EQ(refusal_of(encoded({{"a", {{"b", {{"c", json::object()}}}}}}), limits),
            "corrupt: a value nested deeper than 3");
  // Side by side is not deep.
  EXPECT_EQ(refusal_of(encoded({nested_arrays(2), nested_arrays(2), nested_arrays(2)}), limits), "accepted");
}

TEST(ValueTest, a_megabyte_of_openings_does_not_overflow_the_stack) {
  const std::vector<std::byte> arrays(1 << 20, std::byte{0x91});
  EXPECT_EQ(refusal_of(arrays), "corrupt: a value nested deeper than 16");
  std::vector<std::byte> maps;
  while (maps.size() < arrays.size()) maps.insert(maps.end(), {std::byte{0x81}, std::byte{0xa0}});
  EXPECT_EQ(refusal_of(maps), "corrupt: a value nested deeper than 16");
}

TEST(ValueTest, may_have_items_up_to_the_limit_and_no_more) {
  const Limits limits{.value_items_max = 5};
  // The container is an item, and so are a map's keys.
  EXPECT_EQ(refusal_of(encoded({1, "b", nullptr, true}), limits), "accepted");
  EXPECT_EQ(refusal_of(encoded({1, "b", nullptr, true, 0.5}), limits),
            "corrupt: a value of more than 5 items");
  EXPECT_EQ(refusal_of(encoded({{"a", 1}, {"b", 2}}), limits), "accepted");
  EXPECT_EQ(refusal_of(encoded({{"a", 1}, {"b", 2}, {"c", 3}}), limits),
            "corrupt: a value of more than 5 items");
  std::vector<std::byte> many(5 + (std::size_t{1} << 20), std::byte{0xc0});
  std::ranges::copy(bytes_from({0xdd, 0x00, 0x10, 0x00, 0x00}), many.begin());
  EXPECT_EQ(refusal_of(many), "corrupt: a value of more than 65536 items");
}

TEST(ValueTest, four_billion_entries_declared_in_five_bytes_are_refused) {
  const std::vector<std::uint8_t> markers = {0xdd, 0xdf, 0xdb, 0xc6};  // array32, map32, str32, bin32
  for (const std::uint8_t marker : markers) {
    EXPECT_EQ(refusal_of(bytes_from({marker, 0xff, 0xff, 0xff, 0xff})), "corrupt: no MessagePack at byte 6")
        << +marker;
  }
  EXPECT_EQ(refusal_of(bytes_from({0xc9, 0xff, 0xff, 0xff, 0xff, 5})),
            "corrupt: no MessagePack at byte 7");  // ext32
}

TEST(ValueTest, bytes_after_the_value_are_refused) {
  EXPECT_EQ(refusal_of(bytes_from({0x01, 0x01})), "corrupt: no MessagePack at byte 2");
  EXPECT_EQ(refusal_of(bytes_from({0x90, 0xc0})), "corrupt: no MessagePack at byte 2");
}

TEST(ValueTest, nothing_is_not_a_value) {
  EXPECT_EQ(refusal_of({}), "corrupt: no MessagePack at byte 1");
}

TEST(ValueTest, what_messagepack_does_not_define_or_a_map_cannot_have_is_refused) {
  EXPECT_EQ(refusal_of(bytes_from({0xc1})), "corrupt: no MessagePack at byte 1");
  EXPECT_EQ(refusal_of(bytes_from({0x81, 0x01, 0x01})),
            "corrupt: no MessagePack at byte 2");  // a key that is a number
}

TEST(ValueTest, a_value_cut_short_anywhere_is_refused) {
  const auto bytes =
      encoded({{"key", {1, 300, 70'000, 5'000'000'000, -1, -300, -70'000, -5'000'000'000}},
               {"other", {0.5, 0.1, std::string(40, 's'), true, nullptr, json::binary({1, 2, 3})}}});
  ASSERT_EQ(refusal_of(bytes), "accepted");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(refusal_of(Bytes(bytes).first(size)),
              "corrupt: no MessagePack at byte " + std::to_string(size + 1));
  }
}

}  // namespace
}  // namespace w5xde
