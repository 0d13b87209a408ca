#include "wire/generic_tensors.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/hex.h"
#include "wire/value.h"

namespace w5xde {
namespace {

using nlohmann::json;

std::vector<std::byte> encoded(const std::vector<GenericTensor>& tensors) {
  std::vector<std::byte> bytes;
  encode_generic_tensors(tensors, bytes);
  return bytes;
}

std::string refusal_of_bytes(Bytes bytes, const Limits& limits = {}) {
  const auto decoded = decode_generic_tensors(bytes, limits);
  return decoded.ok() ? "accepted" : decoded.error().to_string();
}

std::string refusal_of(const json& value, const Limits& limits = {}) {
  std::vector<std::byte> bytes;
  encode_value(value, bytes);
  return refusal_of_bytes(bytes, limits);
}

// A sound tensor with one of its five fields replaced.
json with_field(std::size_t field, json value) {
  json tensor = {"w", "f32", {2}, true, {0.5, 1.5}};
  tensor[field] = std::move(value);
  return json::array({std::move(tensor)});
}

json tensor_of(const std::string& dtype, const json& elements) {
  return json::array({{"", dtype, {elements.size()}, false, elements}});
}

template <class T>
std::vector<std::byte> memory_of(const std::vector<T>& values) {
  const Bytes bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// The bytes that come out for one tensor that goes in.
std::vector<std::byte> there_and_back(const TensorView& tensor) {
  const auto decoded = decode_generic_tensors(encoded({{"t", tensor}}), Limits{});
  EXPECT_TRUE(decoded.ok());
  return decoded.ok() ? decoded->payload : std::vector<std::byte>{};
}

std::vector<std::byte> there_and_back(const std::vector<std::byte>& memory, DType dtype) {
  return there_and_back(
      TensorView(memory, dtype, Shape{static_cast<std::int64_t>(memory.size() / size_of(dtype))}));
}

// Random bytes as numbers of a dtype, less what the format does not keep: a boolean is 0 or 1, a NaN is
// quiet.
std::vector<std::byte> any_memory(DType dtype, std::uint64_t elements) {
  auto memory = *rc::gen::container<std::vector<std::byte>>(
      elements * size_of(dtype), rc::gen::cast<std::byte>(rc::gen::arbitrary<std::uint8_t>()));
  const auto change = [&]<class T>(T, auto how) {
    for (std::size_t at = 0; at < memory.size(); at += sizeof(T)) {
      store(memory.data() + at, how(load<T>(memory.data() + at)));
    }
  };
  const auto quiet = [&]<class T>(T, T exponent, T quiet_bit) {
    change(T{},
           [=](T bits) { return static_cast<T>((bits & exponent) == exponent ? bits | quiet_bit : bits); });
  };
  if (dtype == DType::boolean)
    change(std::uint8_t{}, [](std::uint8_t byte) { return static_cast<std::uint8_t>(byte & 1u); });
  if (dtype == DType::f16) quiet(std::uint16_t{}, std::uint16_t{0x7c00}, std::uint16_t{0x0200});
  if (dtype == DType::bf16) quiet(std::uint16_t{}, std::uint16_t{0x7f80}, std::uint16_t{0x0040});
  if (dtype == DType::f32 || dtype == DType::c64) quiet(0u, 0x7f800000u, 0x00400000u);
  if (dtype == DType::f64 || dtype == DType::c128) {
    quiet(std::uint64_t{}, std::uint64_t{0x7ff0000000000000}, std::uint64_t{0x0008000000000000});
  }
  return memory;
}

TEST(GenericTensorsTest, have_these_bytes) {
  const std::vector<std::int16_t> values = {1, -2};
  const TensorView tensor(std::as_bytes(std::span(values)), DType::i16, Shape{2}, true);
  EXPECT_EQ(hex_of(encoded({{"w", tensor}})),
            "dd00000001"  // one tensor
            "dd00000005"  // of five fields
            "da0001"
            "77"  // "w"
            "da0003"
            "693136"  // "i16"
            "dd00000001"
            "02"                  // [2]
            "c3"                  // true
            "dd00000002"          // two numbers
            "01"                  // 1
            "d3fffffffffffffffe"  // -2
  );
}

TEST(GenericTensorsTest, are_values_as_any_messagepack_reader_sees_them) {
  const std::vector<float> values = {0.5f, -1.0f};
  const TensorView tensor(std::as_bytes(std::span(values)), DType::c64, Shape{}, false);
  EXPECT_EQ(decode_value(encoded({{"z", tensor}, {"", tensor}}), Limits{}).value(),
            json({{"z", "c64", json::array(), false, {0.5, -1.0}},
                  {"", "c64", json::array(), false, {0.5, -1.0}}}));
}

RC_GTEST_PROP(GenericTensorsTest, what_is_encoded_is_decoded, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 5);
  std::vector<std::vector<std::byte>> memory(count);
  std::vector<GenericTensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    const auto dtype = *rc::gen::elementOf(std::vector<DType>(kDTypes.begin(), kDTypes.end()));
    const auto dims = *rc::gen::container<std::vector<std::int64_t>>(*rc::gen::inRange<std::size_t>(0, 4),
                                                                     rc::gen::inRange<std::int64_t>(0, 5));
    const Shape shape = Shape::make(dims).value();
    memory[i] = any_memory(dtype, shape.elements());
    tensors.push_back(
        {*rc::gen::string<std::string>(), TensorView(memory[i], dtype, shape, *rc::gen::arbitrary<bool>())});
  }
  const auto decoded = decode_generic_tensors(encoded(tensors), Limits{});
  RC_ASSERT(decoded.ok());
  RC_ASSERT(decoded->tensors.size() == count);
  RC_ASSERT(decoded->payload.size() == payload_bytes_of(decoded->tensors));
  const auto views = views_of(decoded->tensors, decoded->payload);
  for (std::size_t i = 0; i < count; ++i) {
    RC_ASSERT(decoded->tensors[i] == TensorDescriptor::of(tensors[i].tensor, tensors[i].name));
    RC_ASSERT(hex_of(views[i].bytes()) == hex_of(memory[i]));
  }
}

RC_GTEST_PROP(GenericTensorsTest, a_strided_tensor_arrives_as_its_elements_in_order, ()) {
  const auto dtype = *rc::gen::elementOf(std::vector<DType>(kDTypes.begin(), kDTypes.end()));
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 40), columns = *rc::gen::inRange<std::int64_t>(1, 40);
  const auto memory = any_memory(dtype, static_cast<std::uint64_t>(rows * columns));
  const std::vector<std::int64_t> transposed = {1, columns};
  const TensorView view(memory.data(), dtype, Shape{columns, rows}, transposed);
  std::vector<std::byte> gathered(view.byte_count());
  view.gather(0, gathered);
  RC_ASSERT(hex_of(there_and_back(view)) == hex_of(gathered));
}

TEST(GenericTensorsTest, a_tensor_longer_than_a_block_arrives_whole) {
  std::vector<double> values(3 * 4096 / sizeof(double) + 1);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) / 3;
  EXPECT_EQ(there_and_back(memory_of(values), DType::f64), memory_of(values));
}

TEST(GenericTensorsTest, every_16_bit_float_arrives_exactly) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto infinity = static_cast<std::uint16_t>(dtype == DType::f16 ? 0x7c00u : 0x7f80u);
    std::vector<std::uint16_t> values;
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
      const bool nan = (bits & 0x7fffu) > infinity;
      const unsigned quiet_bit = dtype == DType::f16 ? 0x200u : 0x40u;
      if (!nan || (bits & quiet_bit) != 0) values.push_back(static_cast<std::uint16_t>(bits));
    }
    EXPECT_TRUE(there_and_back(memory_of(values), dtype) == memory_of(values)) << name_of(dtype);
  }
}

TEST(GenericTensorsTest, nan_infinity_and_minus_zero_arrive) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {std::numeric_limits<float>::quiet_NaN(),
                                     infinity,
                                     -infinity,
                                     -0.0f,
                                     std::numeric_limits<float>::denorm_min(),
                                     std::numeric_limits<float>::max()};
  EXPECT_EQ(hex_of(there_and_back(memory_of(values), DType::f32)), hex_of(memory_of(values)));
  const std::vector<double> wide(values.begin(), values.end());
  EXPECT_EQ(hex_of(there_and_back(memory_of(wide), DType::c128)), hex_of(memory_of(wide)));
}

TEST(GenericTensorsTest, the_extreme_integers_arrive) {
  const std::vector<std::int64_t> values = {INT64_MIN, INT64_MAX, INT32_MIN, 127, 128, -128, 0};
  EXPECT_EQ(there_and_back(memory_of(values), DType::i64), memory_of(values));
}

TEST(GenericTensorsTest, a_boolean_byte_that_is_neither_0_nor_1_arrives_as_1) {
  EXPECT_EQ(there_and_back(memory_of<std::uint8_t>({0, 1, 2, 255}), DType::boolean),
            memory_of<std::uint8_t>({0, 1, 1, 1}));
}

TEST(GenericTensorsTest, none_at_all_and_empty_ones_arrive) {
  EXPECT_TRUE(decode_generic_tensors(encoded({}), Limits{})->tensors.empty());
  const GenericTensor empty{"e", TensorView({}, DType::f64, Shape{3, 0})};
  const std::vector<std::byte> one(1);
  const auto decoded =
      decode_generic_tensors(encoded({empty, {"one", TensorView(one, DType::u8, Shape{})}, empty}), Limits{});
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->tensors[2].shape, (Shape{3, 0}));
  EXPECT_EQ(decoded->payload.size(), payload_bytes_of(decoded->tensors));
}

TEST(GenericTensorsTest, what_is_not_an_array_of_arrays_is_refused) {
  EXPECT_EQ(refusal_of(json(nullptr)), "corrupt: generic tensors hold a null");
  EXPECT_EQ(refusal_of(json(7)), "corrupt: generic tensors hold an integer");
  EXPECT_EQ(refusal_of(json(0.5)), "corrupt: generic tensors hold a real number");
  EXPECT_EQ(refusal_of(json("w")), "corrupt: generic tensors hold a string");
  EXPECT_EQ(refusal_of(json(true)), "corrupt: generic tensors hold a boolean");
  EXPECT_EQ(refusal_of(json::binary({1})), "corrupt: generic tensors hold binary data");
  EXPECT_EQ(refusal_of(json::object()), "corrupt: generic tensors hold a map");
  EXPECT_EQ(refusal_of(json::array({json::object()})), "corrupt: generic tensors hold a map");
  EXPECT_EQ(refusal_of(json::array({"w"})), "corrupt: generic tensors hold a string");
}

TEST(GenericTensorsTest, a_tensor_has_five_fields) {
  const std::string refusal = "corrupt: generic tensors hold a tensor that has not five fields";
  const json none = json::array({json::array()});
  EXPECT_EQ(refusal_of(none), refusal);
  EXPECT_EQ(refusal_of(json::array({{"w", "f32", {2}, true}})), refusal);
  EXPECT_EQ(refusal_of(json::array({{"w", "f32", {2}, true, {0.5, 1.5}, 1}})), refusal);
}

TEST(GenericTensorsTest, each_field_has_its_type) {
  enum : std::size_t { kName, kDType, kShape, kRequiresGrad, kElements };
  const std::vector<std::pair<std::size_t, std::vector<json>>> wrong = {
      {kName,
       {nullptr, 1, -1, 0.5, true, json::array(), json::object(), json::binary({1}), std::string(257, 'n')}},
      {kDType,
       {nullptr, 1, -1, 0.5, true, json::array(), json::object(), json::binary({1}), "f8", "", "F32"}},
      {kShape,
       {nullptr, 1, -1, 0.5, true, "2", json::object(), {"2"}, {2.0}, {true}, {{2}}, {nullptr}, {-2}}},
      {kRequiresGrad, {nullptr, 1, -1, 0.5, "true", json::array(), json::object(), json::binary({1})}},
      {kElements,
       {nullptr, 1, -1, 0.5, true, "0.5", json::object(), {"0.5", 1.5}, {0.5, nullptr}, {0.5, {1.5}}}}};
  EXPECT_EQ(refusal_of(with_field(kName, "w")), "accepted");
  for (const auto& [field, values] : wrong) {
    for (const json& value : values) {
      const std::string refusal = refusal_of(with_field(field, value));
      EXPECT_EQ(refusal.find("corrupt: generic tensors hold "), 0u) << value << ": " << refusal;
    }
  }
}

TEST(GenericTensorsTest, as_many_elements_as_the_shape_says_are_taken) {
  const std::string refusal = "corrupt: generic tensors hold an element count that does not fit the shape";
  EXPECT_EQ(refusal_of(with_field(4, {0.5})), refusal);
  EXPECT_EQ(refusal_of(with_field(4, {0.5, 0.5, 0.5})), refusal);
  EXPECT_EQ(refusal_of(with_field(2, {0})), refusal);
  EXPECT_EQ(refusal_of(with_field(2, {2, 2})), refusal);
  EXPECT_EQ(refusal_of(with_field(1, "c64")), refusal);
  EXPECT_EQ(refusal_of(json::array({{"z", "c64", {1}, true, {0.5, 1.5}}})), "accepted");
}

TEST(GenericTensorsTest, a_number_out_of_its_dtype_s_range_is_refused) {
  const std::string refusal = "corrupt: generic tensors hold a number that does not fit its dtype";
  const std::vector<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>> ranges = {
      {"i8", {-128, 127}}, {"u8", {0, 255}}, {"i16", {-32768, 32767}}, {"i32", {INT32_MIN, INT32_MAX}}};
  for (const auto& [dtype, range] : ranges) {
    EXPECT_EQ(refusal_of(tensor_of(dtype, {range.first, range.second})), "accepted") << dtype;
    EXPECT_EQ(refusal_of(tensor_of(dtype, {range.first - 1})), refusal) << dtype;
    EXPECT_EQ(refusal_of(tensor_of(dtype, {range.second + 1})), refusal) << dtype;
  }
  EXPECT_EQ(refusal_of(tensor_of("i64", {UINT64_MAX})),
            "corrupt: generic tensors hold a number past the 64-bit integers");
}

// Infinity is a number of these dtypes, but it is not the number that was sent.
TEST(GenericTensorsTest, a_real_number_too_large_for_its_dtype_is_refused) {
  const std::string refusal = "corrupt: generic tensors hold a number that does not fit its dtype";
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::string dtype : {"f32", "f16", "bf16", "f64"}) {
    EXPECT_EQ(refusal_of(tensor_of(dtype, {infinity, -infinity})), "accepted") << dtype;
  }
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    EXPECT_EQ(refusal_of(tensor_of(dtype, {1e300})), refusal) << dtype;
    EXPECT_EQ(refusal_of(tensor_of(dtype, {-1e300})), refusal) << dtype;
  }
  EXPECT_EQ(refusal_of(tensor_of("f16", {65504.0})), "accepted");
  EXPECT_EQ(refusal_of(tensor_of("f16", {65520.0})), refusal);
  EXPECT_EQ(refusal_of(json::array({{"z", "c64", {1}, true, {0.5, 1e39}}})), refusal);
}

TEST(GenericTensorsTest, integers_are_not_taken_for_reals_nor_reals_for_integers) {
  const std::string refusal = "corrupt: generic tensors hold a number that does not fit its dtype";
  for (const DType dtype : kDTypes) {
    const std::string name(name_of(dtype));
    const bool whole = dtype == DType::i64 || dtype == DType::i32 || dtype == DType::i16 ||
                       dtype == DType::i8 || dtype == DType::u8;
    if (dtype == DType::boolean) {
      EXPECT_EQ(refusal_of(tensor_of(name, {1})), refusal);
      EXPECT_EQ(refusal_of(tensor_of(name, {1.0})), refusal);
    } else if (dtype == DType::c64 || dtype == DType::c128) {
      EXPECT_EQ(refusal_of(json::array({{"z", name, {1}, true, {1, 1}}})), refusal);
    } else {
      EXPECT_EQ(refusal_of(tensor_of(name, {1.0})), whole ? refusal : "accepted") << name;
      EXPECT_EQ(refusal_of(tensor_of(name, {1})), whole ? "accepted" : refusal) << name;
      EXPECT_EQ(refusal_of(tensor_of(name, {true})), "corrupt: generic tensors hold a boolean") << name;
    }
  }
}

TEST(GenericTensorsTest, shapes_that_are_none_are_refused) {
  EXPECT_EQ(refusal_of(with_field(2, {1, 1, 1, 1, 1, 1, 1, 1, 2})),
            "corrupt: generic tensors hold a shape of too many dimensions");
  EXPECT_EQ(refusal_of(with_field(2, {0x1'0000'0000, 0x1'0000'0000})),
            "corrupt: generic tensors hold no shape: a shape of [4294967296, 4294967296] overflows");
  EXPECT_EQ(refusal_of(with_field(2, {UINT64_MAX})),
            "corrupt: generic tensors hold a number past the 64-bit integers");
}

TEST(GenericTensorsTest, more_than_the_limits_allow_is_refused) {
  const json sound = with_field(0, "w");
  EXPECT_EQ(refusal_of(sound, {.tensors_max = 0}), "corrupt: generic tensors hold too many tensors");
  EXPECT_EQ(refusal_of(sound, {.payload_bytes_max = 8}), "accepted");
  EXPECT_EQ(refusal_of(sound, {.payload_bytes_max = 7}),
            "corrupt: generic tensors hold more than a payload may have");
  EXPECT_EQ(refusal_of(sound, {.name_bytes_max = 0}), "corrupt: generic tensors hold a long name");
}

TEST(GenericTensorsTest, four_billion_elements_declared_in_few_bytes_are_refused_before_memory_is_taken) {
  std::vector<std::byte> bytes;
  encode_value(json::array({{"w", "c128", {0x7fffffff}, true}}), bytes);
  bytes[1] = std::byte{0x95};  // five fields
  bytes.insert(bytes.end(),
               {std::byte{0xdd}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xfe}});
  EXPECT_EQ(refusal_of_bytes(bytes),
            "corrupt: generic tensors hold an element count that does not fit the shape");
}

TEST(GenericTensorsTest, nesting_is_refused_before_it_is_deep) {
  EXPECT_EQ(refusal_of_bytes(std::vector<std::byte>(1 << 20, std::byte{0x91})),
            "corrupt: generic tensors hold a tensor that has not five fields");
  EXPECT_EQ(refusal_of_bytes(std::vector<std::byte>(1 << 20, std::byte{0x95})),
            "corrupt: generic tensors hold an array");
}

TEST(GenericTensorsTest, cut_short_anywhere_or_with_bytes_after_them_they_are_refused) {
  const std::vector<float> values = {0.5f, -1.0f};
  const TensorView tensor(std::as_bytes(std::span(values)), DType::f32, Shape{2, 1}, false);
  std::vector<std::byte> bytes = encoded({{"first", tensor}, {"second", tensor}});
  ASSERT_EQ(refusal_of_bytes(bytes), "accepted");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(refusal_of_bytes(Bytes(bytes).first(size)).find("no MessagePack at byte"), std::string::npos)
        << size;
  }
  bytes.push_back(std::byte{0xc0});
  EXPECT_NE(refusal_of_bytes(bytes), "accepted");
}

}  // namespace
}  // namespace w5xde
