#include "wire/value.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace w5xde {

namespace {

using nlohmann::json;

// Walks a MessagePack value without building it. The library recurses once per nesting, so depth is bounded
// here first.
class LimitCheck : public json::json_sax_t {
 public:
  explicit LimitCheck(const Limits& limits) : limits_(limits) {}

  bool null() override { return item(); }
  bool boolean(bool) override { return item(); }
  bool number_integer(json::number_integer_t) override { return item(); }
  bool number_unsigned(json::number_unsigned_t) override { return item(); }
  bool number_float(json::number_float_t, const json::string_t&) override { return item(); }
  bool string(json::string_t&) override { return item(); }
  bool binary(json::binary_t&) override { return item(); }
  bool key(json::string_t&) override { return item(); }
  bool start_object(std::size_t) override { return item() && enter(); }
  bool start_array(std::size_t) override { return item() && enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    if (refusal_.empty()) refusal_ = fmt::format("no MessagePack at byte {}", position);
    return false;
  }

  const std::string& refusal() const { return refusal_; }

 private:
  bool item() {
    if (++items_ <= limits_.value_items_max) return true;
    refusal_ = fmt::format("a value of more than {} items", limits_.value_items_max);
    return false;
  }
  bool enter() {
    if (++depth_ <= limits_.value_depth_max) return true;
    refusal_ = fmt::format("a value nested deeper than {}", limits_.value_depth_max);
    return false;
  }
  bool leave() {
    --depth_;
    return true;
  }

  const Limits& limits_;
  std::uint64_t items_ = 0;
  std::uint64_t depth_ = 0;
  std::string refusal_;
};

}  // namespace

void encode_value(const json& value, std::vector<std::byte>& out) {
  std::vector<std::uint8_t> bytes = json::to_msgpack(value);
  const Bytes view = std::as_bytes(std::span(bytes));
  out.insert(out.end(), view.begin(), view.end());
}

Result<json> decode_value(Bytes bytes, const Limits& limits) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto* last = first + bytes.size();
  LimitCheck check(limits);
  if (!json::sax_parse(first, last, &check, json::input_format_t::msgpack)) {
    return corrupt(check.refusal().empty() ? "no MessagePack" : check.refusal());
  }
  json value = json::from_msgpack(first, last, true, false);
  if (value.is_discarded()) return corrupt("no MessagePack");
  return value;
}

}  // namespace w5xde
