#include "wire/map_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "base/printable.h"

namespace w5xde {

namespace {

constexpr std::size_t kEntriesMax = 64;

}  // namespace

Error MapReader::wrong(const char* key) const {
  return corrupt(fmt::format("'{}' in {} is not what it should be", key, what_));
}

Status MapReader::number(const char* key, std::uint64_t max, std::uint64_t& to) const {
  const auto found = map_.find(key);
  if (found == map_.end()) return {};
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > max) return wrong(key);
  to = found->get<std::uint64_t>();
  return {};
}

Status MapReader::real(const char* key, double& to) const {
  const auto found = map_.find(key);
  if (found == map_.end()) return {};
  if (!found->is_number() || !std::isfinite(found->get<double>())) return wrong(key);
  to = found->get<double>();
  return {};
}

Status MapReader::flag(const char* key, bool& to) const {
  const auto found = map_.find(key);
  if (found == map_.end()) return {};
  if (!found->is_boolean()) return wrong(key);
  to = found->get<bool>();
  return {};
}

Status MapReader::text(const char* key, std::string& to) const {
  const auto found = map_.find(key);
  if (found == map_.end()) return {};
  if (!found->is_string()) return wrong(key);
  const auto& text = found->get_ref<const std::string&>();
  if (text.size() > limits_.name_bytes_max) return wrong(key);
  to = printable(text, limits_.name_bytes_max);
  return {};
}

Status MapReader::numbers(const char* key, std::vector<std::int64_t>& to) const {
  const auto found = map_.find(key);
  if (found == map_.end()) return {};
  if (!found->is_array() || found->size() > kEntriesMax) return wrong(key);
  for (const nlohmann::json& entry : *found) {
    if (!entry.is_number_unsigned() || entry.get<std::uint64_t>() >= 1ull << 62) return wrong(key);
    to.push_back(entry.get<std::int64_t>());
  }
  return {};
}

}  // namespace w5xde
