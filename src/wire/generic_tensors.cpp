#include "wire/generic_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tensor/half.h"

namespace w5xde {

namespace {

using nlohmann::json;

// MessagePack is big-endian.
template <class T>
void append_big_endian(std::vector<std::byte>& out, std::uint8_t marker, T value) {
  std::array<std::byte, 1 + sizeof(T)> bytes{};
  store(bytes.data(), marker);
  store(bytes.data() + 1, value);
  std::reverse(bytes.begin() + 1, bytes.end());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_array(std::vector<std::byte>& out, std::uint64_t count) {
  append_big_endian(out, 0xdd, static_cast<std::uint32_t>(count));
}

void append_text(std::vector<std::byte>& out, std::string_view text) {
  append_big_endian(out, 0xda, static_cast<std::uint16_t>(text.size()));
  const Bytes bytes = bytes_of(text);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append(std::vector<std::byte>& out, bool value) {
  out.push_back(value ? std::byte{0xc3} : std::byte{0xc2});
}

void append(std::vector<std::byte>& out, std::int64_t value) {
  if (value >= 0 && value < 128) {
    out.push_back(static_cast<std::byte>(value));
  } else {
    append_big_endian(out, 0xd3, value);
  }
}

void append(std::vector<std::byte>& out, float value) {
  append_big_endian(out, 0xca, value);
}

void append(std::vector<std::byte>& out, double value) {
  append_big_endian(out, 0xcb, value);
}

// Numbers in an element: two for complex ones.
std::uint64_t parts_of(DType dtype) {
  return dtype == DType::c64 || dtype == DType::c128 ? 2 : 1;
}

void append_element(std::vector<std::byte>& out, DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f32:
      return append(out, load<float>(at));
    case DType::f64:
      return append(out, load<double>(at));
    case DType::f16:
      return append(out, f32_from_f16(load<std::uint16_t>(at)));
    case DType::bf16:
      return append(out, f32_from_bf16(load<std::uint16_t>(at)));
    case DType::i64:
      return append(out, load<std::int64_t>(at));
    case DType::i32:
      return append(out, std::int64_t{load<std::int32_t>(at)});
    case DType::i16:
      return append(out, std::int64_t{load<std::int16_t>(at)});
    case DType::i8:
      return append(out, std::int64_t{load<std::int8_t>(at)});
    case DType::u8:
      return append(out, std::int64_t{load<std::uint8_t>(at)});
    case DType::boolean:
      return append(out, load<std::uint8_t>(at) != 0);
    case DType::c64:
      append(out, load<float>(at));
      return append(out, load<float>(at + sizeof(float)));
    case DType::c128:
      append(out, load<double>(at));
      return append(out, load<double>(at + sizeof(double)));
  }
}

void append_elements(std::vector<std::byte>& out, const TensorView& tensor) {
  const std::size_t size = size_of(tensor.dtype());
  std::array<std::byte, 4096> block{};
  const std::uint64_t block_elements = block.size() / size;
  for (std::uint64_t first = 0; first < tensor.shape().elements(); first += block_elements) {
    const std::uint64_t count = std::min(block_elements, tensor.shape().elements() - first);
    tensor.gather(first, std::span(block).first(count * size));
    for (std::uint64_t i = 0; i < count; ++i) append_element(out, tensor.dtype(), block.data() + i * size);
  }
}

// Stores a number as the next part of a tensor's element; false when the dtype has no such number.
bool store_integer(DType dtype, std::int64_t number, std::byte* to) {
  const auto store_as = [&]<class T>(T) {
    if (!std::in_range<T>(number)) return false;
    store(to, static_cast<T>(number));
    return true;
  };
  switch (dtype) {
    case DType::i64:
      return store_as(std::int64_t{});
    case DType::i32:
      return store_as(std::int32_t{});
    case DType::i16:
      return store_as(std::int16_t{});
    case DType::i8:
      return store_as(std::int8_t{});
    case DType::u8:
      return store_as(std::uint8_t{});
    default:
      return false;
  }
}

bool store_real(DType dtype, double number, std::byte* to) {
  // A finite number must not arrive as infinity: it is then no rounding but another number.
  const auto fits = [&](double rounded) { return std::isfinite(rounded) || !std::isfinite(number); };
  const auto narrow = static_cast<float>(number);
  switch (dtype) {
    case DType::f64:
    case DType::c128:
      store(to, number);
      return true;
    case DType::f32:
    case DType::c64:
      store(to, narrow);
      return fits(narrow);
    case DType::f16:
      store(to, f16_from_f32(narrow));
      return fits(f32_from_f16(f16_from_f32(narrow)));
    case DType::bf16:
      store(to, bf16_from_f32(narrow));
      return fits(f32_from_bf16(bf16_from_f32(narrow)));
    default:
      return false;
  }
}

// Follows the shape that encode_generic_tensors writes; anything else ends the parse with a reason.
class Reader : public json::json_sax_t {
 public:
  Reader(std::uint64_t bytes, const Limits& limits) : bytes_(bytes), limits_(limits) {}

  bool null() override { return refuse("a null"); }
  bool binary(json::binary_t&) override { return refuse("binary data"); }
  bool start_object(std::size_t) override { return refuse("a map"); }
  bool key(json::string_t&) override { return refuse("a key"); }
  bool end_object() override { return refuse("a map"); }

  bool string(json::string_t& text) override {
    if (in_field(kName)) {
      if (text.size() > limits_.name_bytes_max) return refuse("a long name");
      tensor_.name = text;
    } else if (in_field(kDType)) {
      auto dtype = parse_dtype(text);
      if (!dtype) return refuse("an unknown dtype");
      tensor_.dtype = *dtype;
    } else {
      return refuse("a string");
    }
    ++field_;
    return true;
  }

  bool boolean(bool value) override {
    if (in_elements() && tensor_.dtype == DType::boolean)
      return store_part([&](std::byte* to) {
        store(to, static_cast<std::uint8_t>(value));
        return true;
      });
    if (!in_field(kRequiresGrad)) return refuse("a boolean");
    tensor_.requires_grad = value;
    ++field_;
    return true;
  }

  bool number_integer(json::number_integer_t number) override { return integer(number); }
  bool number_unsigned(json::number_unsigned_t number) override {
    if (!std::in_range<std::int64_t>(number)) return refuse("a number past the 64-bit integers");
    return integer(static_cast<std::int64_t>(number));
  }
  bool number_float(json::number_float_t number, const json::string_t&) override {
    if (!in_elements()) return refuse("a real number");
    return store_part([&](std::byte* to) { return store_real(tensor_.dtype, number, to); });
  }

  bool start_array(std::size_t count) override {
    ++depth_;
    if (depth_ == 1) return count <= limits_.tensors_max || refuse("too many tensors");
    if (depth_ == 2) {
      tensor_ = {};
      field_ = kName;
      return count == kFields || refuse("a tensor that has not five fields");
    }
    if (depth_ == 3 && field_ == kShape) {
      dims_.clear();
      return count <= kRankMax || refuse("a shape of too many dimensions");
    }
    if (depth_ == 3 && field_ == kElements) return start_elements(count);
    return refuse("an array");
  }

  bool end_array() override {
    --depth_;
    if (depth_ == 2 && field_ == kShape) {
      auto shape = Shape::make(dims_);
      if (!shape) return refuse("no shape: " + shape.error().message);
      tensor_.shape = *shape;
      ++field_;
    } else if (depth_ == 2 && field_ == kElements) {
      if (part_ != parts_) return refuse("too few elements");
      decoded_.tensors.push_back(std::move(tensor_));
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return refuse(fmt::format("no MessagePack at byte {}", position));
  }

  const std::string& refusal() const { return refusal_; }
  DecodedTensors take() { return std::move(decoded_); }

 private:
  enum Field : std::size_t { kName, kDType, kShape, kRequiresGrad, kElements, kFields };

  bool in_field(Field field) const { return depth_ == 2 && field_ == field; }
  bool in_elements() const { return depth_ == 3 && field_ == kElements; }

  bool refuse(std::string_view what) {
    if (refusal_.empty()) refusal_ = fmt::format("generic tensors hold {}", what);
    return false;
  }

  bool integer(std::int64_t number) {
    if (depth_ == 3 && field_ == kShape) {
      dims_.push_back(number);
      return true;
    }
    if (!in_elements()) return refuse("an integer");
    return store_part([&](std::byte* to) { return store_integer(tensor_.dtype, number, to); });
  }

  bool start_elements(std::size_t count) {
    parts_ = tensor_.shape.elements() * parts_of(tensor_.dtype);
    part_ = 0;
    // Every number takes at least a byte, so the input itself bounds what it may make us allocate.
    if (count != parts_ || parts_ > bytes_) return refuse("an element count that does not fit the shape");
    part_at_ = align_up(decoded_.payload.size(), kPayloadAlignment);
    const std::uint64_t end = part_at_ + tensor_.byte_count();
    if (end > limits_.payload_bytes_max) return refuse("more than a payload may have");
    decoded_.payload.resize(end);
    return true;
  }

  template <class Store>
  bool store_part(Store store_it) {
    if (part_ == parts_) return refuse("too many elements");
    const std::size_t size = size_of(tensor_.dtype) / parts_of(tensor_.dtype);
    if (!store_it(decoded_.payload.data() + part_at_)) return refuse("a number that does not fit its dtype");
    part_at_ += size;
    ++part_;
    return true;
  }

  const std::uint64_t bytes_;
  const Limits& limits_;
  DecodedTensors decoded_;
  TensorDescriptor tensor_;
  std::vector<std::int64_t> dims_;
  std::size_t depth_ = 0;
  std::size_t field_ = kName;
  std::uint64_t parts_ = 0;
  std::uint64_t part_ = 0;
  std::uint64_t part_at_ = 0;
  std::string refusal_;
};

}  // namespace

void encode_generic_tensors(std::span<const GenericTensor> tensors, std::vector<std::byte>& out) {
  append_array(out, tensors.size());
  for (const auto& [name, tensor] : tensors) {
    append_array(out, 5);
    append_text(out, name);
    append_text(out, name_of(tensor.dtype()));
    append_array(out, tensor.shape().rank());
    for (const std::int64_t dim : tensor.shape().dims()) append(out, dim);
    append(out, tensor.requires_grad());
    append_array(out, tensor.shape().elements() * parts_of(tensor.dtype()));
    append_elements(out, tensor);
  }
}

Result<DecodedTensors> decode_generic_tensors(Bytes bytes, const Limits& limits) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  Reader reader(bytes.size(), limits);
  if (!json::sax_parse(first, first + bytes.size(), &reader, json::input_format_t::msgpack)) {
    return corrupt(reader.refusal().empty() ? "no MessagePack" : reader.refusal());
  }
  return reader.take();
}

}  // namespace w5xde
