// Cold messages are MessagePack maps. Each has one list of its keys, a function that gives every key and
// member to `field`; a MapWriter or a MapReader is the field:
//
//   constexpr auto kOffer = [](auto& field, auto& offer) { field("run", offer.run); … };
//
// A member that has keys of its own is given with its list: field.map("targets", offer.targets, kField), and
// a vector of such members with the most entries that it may have: field.maps("inputs", offer.inputs, kField,
// 8). So is a vector of numbers: field.numbers("mean", offer.mean, 3).
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/limits.h"
#include "base/printable.h"
#include "tensor/dtype.h"
#include "w5xde/result.h"
#include "w5xde/shape.h"
#include "wire/value.h"

namespace w5xde {

struct MapWriter {
  void operator()(const char* key, const auto& value) { out[key] = value; }
  template <class T>
  void operator()(const char* key, const std::optional<T>& value) {
    out[key] = value ? nlohmann::json(*value) : nlohmann::json();
  }
  void operator()(const char* key, DType value) { out[key] = name_of(value); }
  void operator()(const char* key, const Shape& value) {
    out[key] = std::vector<std::int64_t>(value.dims().begin(), value.dims().end());
  }
  void numbers(const char* key, const std::vector<float>& values, std::size_t = 0) { out[key] = values; }
  void map(const char* key, const auto& entry, const auto& fields) { out[key] = map_of(entry, fields); }
  void maps(const char* key, const auto& entries, const auto& fields, std::size_t = 0) {
    out[key] = nlohmann::json::array();
    for (const auto& entry : entries) out[key].push_back(map_of(entry, fields));
  }
  static nlohmann::json map_of(const auto& entry, const auto& fields) {
    MapWriter writer;
    fields(writer, entry);
    return std::move(writer.out);
  }

  nlohmann::json out = nlohmann::json::object();
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
  // null: none.
  void operator()(const char* key, std::optional<std::int64_t>& to) {
    const auto found = map_.find(key);
    if (found == map_.end() || found->is_null()) return;
    const bool fits =
        found->is_number_integer() &&
        (!found->is_number_unsigned() || std::in_range<std::int64_t>(found->get<std::uint64_t>()));
    if (!fits) return refuse(key);
    to = found->get<std::int64_t>();
  }
  // By its name.
  void operator()(const char* key, DType& to) {
    const auto found = map_.find(key);
    if (found == map_.end()) return;
    const auto dtype = found->is_string() ? parse_dtype(found->get_ref<const std::string&>())
                                          : Result<DType>(corrupt("not a text"));
    if (!dtype.ok()) return refuse(key);
    to = *dtype;
  }
  void operator()(const char* key, Shape& to) {
    const auto found = map_.find(key);
    if (found == map_.end()) return;
    std::vector<std::int64_t> dims;
    const bool whole = found->is_array() && found->size() <= kRankMax &&
                       std::ranges::all_of(*found, [](const nlohmann::json& dim) {
                         return dim.is_number_unsigned() && dim.get<std::uint64_t>() < 1ull << 62;
                       });
    if (whole) dims = found->get<std::vector<std::int64_t>>();
    const auto shape = Shape::make(dims);
    if (!whole || !shape.ok()) return refuse(key);
    to = *shape;
  }
  // Finite ones.
  void numbers(const char* key, std::vector<float>& to, std::size_t numbers_max) {
    const auto found = map_.find(key);
    if (found == map_.end()) return;
    const bool good = found->is_array() && found->size() <= numbers_max &&
                      std::ranges::all_of(*found, [](const nlohmann::json& number) {
                        return number.is_number() && std::isfinite(number.get<float>());
                      });
    if (!good) return refuse(key);
    to = found->get<std::vector<float>>();
  }
  void map(const char* key, auto& to, const auto& fields) {
    const auto found = map_.find(key);
    if (found == map_.end()) return;
    if (!found->is_object()) return refuse(key);
    read_entry(*found, to, fields);
  }
  void maps(const char* key, auto& to, const auto& fields, std::size_t entries_max) {
    const auto found = map_.find(key);
    if (found == map_.end()) return;
    if (!found->is_array() || found->size() > entries_max) return refuse(key);
    for (const nlohmann::json& entry : *found) {
      if (!entry.is_object()) return refuse(key);
      read_entry(entry, to.emplace_back(), fields);
    }
  }

  const Status& status() const { return status_; }

 private:
  void refuse(const char* key) {
    if (status_.ok()) status_ = corrupt("'{}' in {} is not what it should be", key, what_);
  }
  void read_entry(const nlohmann::json& entry, auto& to, const auto& fields) {
    MapReader reader(what_, entry, limits_);
    fields(reader, to);
    if (status_.ok()) status_ = reader.status_;
  }

  template <class T>
  bool read(const char* key, T& to, const auto& fits) {
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    if (fits(*found)) {
      to = found->template get<T>();
      return true;
    }
    refuse(key);
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
  encode_value(writer.out, head);
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
