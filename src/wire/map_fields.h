// Cold messages are MessagePack maps. Each has one list of its keys, a function that gives every key and
// member to `field`; a MapWriter or a MapReader is the field:
//
//   constexpr auto kOffer = [](auto& field, auto& offer) { field("run", offer.run); … };
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/limits.h"
#include "base/printable.h"
#include "w5xde/result.h"
#include "wire/value.h"

namespace w5xde {

struct MapWriter {
  void operator()(const char* key, const auto& value) { map[key] = value; }

  nlohmann::json map = nlohmann::json::object();
};

// A missing key leaves the default; one of another type is an error, and the first error is kept.
class MapReader {
 public:
  // `what` the message is, for errors: "a hello".
  MapReader(std::string_view what, const nlohmann::json& map, const Limits& limits)
      : what_(what), map_(map), limits_(limits) {}

  void operator()(const char* key, std::unsigned_integral auto& to) {
    read(key, to, [&](const nlohmann::json& value) {
      return value.is_number_unsigned() &&
             std::in_range<std::decay_t<decltype(to)>>(value.get<std::uint64_t>());
    });
  }
  void operator()(const char* key, bool& to) {
    read(key, to, [](const nlohmann::json& value) { return value.is_boolean(); });
  }
  // A finite number of any kind.
  void operator()(const char* key, double& to) {
    read(key, to,
         [](const nlohmann::json& value) { return value.is_number() && std::isfinite(value.get<double>()); });
  }
  // Texts come out printable (base/printable.h).
  void operator()(const char* key, std::string& to) {
    const bool found = read(key, to, [&](const nlohmann::json& value) {
      return value.is_string() && value.get_ref<const std::string&>().size() <= limits_.name_bytes_max;
    });
    if (found) to = printable(to, limits_.name_bytes_max);
  }
  // Whole numbers below 2^62.
  void operator()(const char* key, std::vector<std::int64_t>& to) {
    read(key, to, [](const nlohmann::json& value) {
      return value.is_array() && value.size() <= kEntriesMax &&
             std::ranges::all_of(value, [](const nlohmann::json& entry) {
               return entry.is_number_unsigned() && entry.get<std::uint64_t>() < 1ull << 62;
             });
    });
  }

  const Status& status() const { return status_; }

 private:
  static constexpr std::size_t kEntriesMax = 64;

  template <class T>
  bool read(const char* key, T& to, const auto& fits) {
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    if (fits(*found)) {
      to = found->template get<T>();
      return true;
    }
    if (status_.ok()) status_ = corrupt("'{}' in {} is not what it should be", key, what_);
    return false;
  }

  std::string_view what_;
  const nlohmann::json& map_;
  const Limits& limits_;
  Status status_;
};

template <class Message>
void encode_map(const auto& fields, const Message& message, std::vector<std::byte>& head) {
  MapWriter writer;
  fields(writer, message);
  encode_value(writer.map, head);
}

// `message` has the defaults.
template <class Message>
Result<Message> decode_map(const auto& fields, std::string_view what, Bytes head, const Limits& limits,
                           Message message = {}) {
  W5XDE_TRY(const nlohmann::json map, decode_value(head, limits));
  if (!map.is_object()) return corrupt("{} is not a map", what);
  MapReader reader(what, map, limits);
  fields(reader, message);
  W5XDE_CHECK(reader.status());
  return message;
}

}  // namespace w5xde
