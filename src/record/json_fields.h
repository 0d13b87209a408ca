// JSON objects from structs and back. A struct takes part by a function that names its fields:
//
//   void visit_fields(auto& visit, Like<LossStats> auto& loss) { visit("first", loss.first); … }
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/batch_growth.h"
#include "base/slot_block.h"

namespace w5xde {

using Json = nlohmann::ordered_json;

// A Struct, const or not.
template <class T, class Struct>
concept Like = std::same_as<std::remove_const_t<T>, Struct>;

class FieldWriter;
template <class T>
concept HasFields = requires(FieldWriter& visit, const T& fields) {
  visit_fields(visit, fields);
};

void visit_fields(auto& visit, Like<BatchGrowth> auto& growth) {
  visit("step", growth.step);
  visit("samples_before", growth.samples_before);
  visit("samples", growth.samples);
  visit("noise_scale", growth.noise_scale);
  visit("learning_rate_before", growth.learning_rate_before);
  visit("learning_rate", growth.learning_rate);
}

// NaN, infinity and an empty optional are null.
class FieldWriter {
 public:
  explicit FieldWriter(Json& json) : json_(json) { json_ = Json::object(); }

  template <class T>
  void operator()(const char* key, const std::optional<T>& field) {
    json_[key] = field ? Json(*field) : Json();
  }
  void operator()(const char* key, const auto& field) { json_[key] = field; }

  template <class T>
  void unless_empty(const char* key, const std::optional<T>& field) {
    if (field) json_[key] = *field;
  }
  void unless_empty(const char* key, const auto& field) {
    if (!field.empty()) json_[key] = field;
  }

 private:
  Json& json_;
};

// For nlohmann, which looks for a function of this name.
template <HasFields T>
void to_json(Json& json, const T& fields) {
  FieldWriter writer(json);
  visit_fields(writer, fields);
}

enum class MissingKey {
  refused,
  skipped,  // of the outermost object: a file of an older w5xde has fewer
};

// Remembers the first field that is missing or of another kind. null is NaN, or an empty optional.
class FieldReader {
 public:
  FieldReader(const Json& json, std::string where, MissingKey missing, std::string& problem)
      : json_(json), where_(std::move(where)), missing_(missing), problem_(problem) {}

  void operator()(const char* key, auto& field) {
    static const Json kNothing(Json::value_t::discarded);
    const auto found = json_.find(key);
    if (found == json_.end() && missing_ == MissingKey::skipped) return;
    read_at(where_ + key, found == json_.end() ? kNothing : *found, field);
  }
  void unless_empty(const char* key, auto& field) {
    if (json_.contains(key)) (*this)(key, field);
  }

 private:
  void read_at(const std::string& where, const Json& json, auto& field) {
    if (read(where, json, field) || !problem_.empty()) return;
    problem_ =
        where + (missing_ == MissingKey::refused ? " is missing or of another kind" : " is " + json.dump());
  }

  bool read(const std::string&, const Json& json, std::uint64_t& field) {
    if (json.is_number_unsigned()) field = json.get<std::uint64_t>();
    return json.is_number_unsigned();
  }
  bool read(const std::string&, const Json& json, double& field) {
    field = json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
    return json.is_number() || json.is_null();
  }
  bool read(const std::string&, const Json& json, std::string& field) {
    if (json.is_string()) field = json.get<std::string>();
    return json.is_string();
  }
  bool read(const std::string& where, const Json& json, std::map<std::string, std::uint64_t>& field) {
    if (!json.is_object()) return false;
    for (const auto& [key, value] : json.items())
      read_at(fmt::format("{}.{}", where, key), value, field[key]);
    return true;
  }
  bool read(const std::string& where, const Json& json, SlotRanges& ranges) {
    return json.is_array() && std::ranges::all_of(json, [&](const Json& range) {
             auto& [first, end] = ranges.emplace_back();
             return range.is_array() && range.size() == 2 && read(where, range[0], first) &&
                    read(where, range[1], end) && first < end;
           });
  }
  template <class T>
  bool read(const std::string& where, const Json& json, std::optional<T>& field) {
    return json.is_null() || read(where, json, field.emplace());
  }
  template <HasFields T>
  bool read(const std::string& where, const Json& json, std::vector<T>& list) {
    if (!json.is_array()) return false;
    for (const Json& entry : json) {
      const std::string at = fmt::format("{}[{}]", where, list.size());
      read_at(at, entry, list.emplace_back());
    }
    return true;
  }
  template <HasFields T>
  bool read(const std::string& where, const Json& json, T& fields) {
    if (!json.is_object()) return false;
    FieldReader reader(json, where + ".", MissingKey::refused, problem_);
    visit_fields(reader, fields);
    return true;
  }

  const Json& json_;
  std::string where_;  // ends with a dot, or is empty
  MissingKey missing_;
  std::string& problem_;
};

}  // namespace w5xde
