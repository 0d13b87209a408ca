#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "w5xde/result.h"

namespace w5xde {

// Reads the keys of a cold message's map. A missing key leaves the default; one of another type is an error.
class MapReader {
 public:
  // `what` the message is, for errors: "a hello".
  MapReader(std::string_view what, const nlohmann::json& map, const Limits& limits)
      : what_(what), map_(map), limits_(limits) {}

  template <class T>
  Status number(const char* key, T& to) const {
    std::uint64_t value = to;
    W5XDE_CHECK(number(key, std::numeric_limits<T>::max(), value));
    to = static_cast<T>(value);
    return {};
  }
  Status number(const char* key, std::uint64_t max, std::uint64_t& to) const;
  // A finite number of any kind.
  Status real(const char* key, double& to) const;
  Status flag(const char* key, bool& to) const;
  // Texts come out printable (base/printable.h).
  Status text(const char* key, std::string& to) const;
  // Whole numbers below 2^62.
  Status numbers(const char* key, std::vector<std::int64_t>& to) const;

 private:
  Error wrong(const char* key) const;

  std::string_view what_;
  const nlohmann::json& map_;
  const Limits& limits_;
};

}  // namespace w5xde
