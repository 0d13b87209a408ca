// Tiers: silent (errors only), normal (what a person wants to know), verbose (every frame and decision). A
// line that is not wanted costs one comparison; a background thread writes the others.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "w5xde/result.h"

namespace w5xde {

enum class LogTier { silent, normal, verbose };

Result<LogTier> parse_log_tier(std::string_view name);

class Log {
 public:
  // Writes to standard error. Copies share the writer; all is written before the last of them is gone.
  explicit Log(LogTier tier);
  // Writes to a file instead; the file is created or appended to.
  static Result<Log> to_file(LogTier tier, const std::string& path);

  LogTier tier() const { return tier_; }

  template <class... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    write("error: " + fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void normal(fmt::format_string<Args...> format, Args&&... args) const {
    if (tier_ >= LogTier::normal) write(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void verbose(fmt::format_string<Args...> format, Args&&... args) const {
    if (tier_ >= LogTier::verbose) write(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  class Writer;
  Log(LogTier tier, std::shared_ptr<Writer> writer) : tier_(tier), writer_(std::move(writer)) {}
  void write(const std::string& line) const;

  LogTier tier_;
  std::shared_ptr<Writer> writer_;
};

}  // namespace w5xde
