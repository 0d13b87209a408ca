#include "base/log.h"

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/errors.h"

namespace w5xde {

namespace {

// When the disk or terminal cannot keep up, the oldest lines are dropped: logging must not hold up training.
constexpr std::size_t kQueuedLinesMax = 8192;

// On a terminal a line about progress may be open: the log's line takes its place.
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

class Log::Writer {
 public:
  // `before` stands at the front of each line.
  explicit Writer(spdlog::sink_ptr sink, const std::string& before = "")
      : thread_(std::make_shared<spdlog::details::thread_pool>(kQueuedLinesMax, 1)),
        logger_(std::make_shared<spdlog::async_logger>("w5xde", std::move(sink), thread_,
                                                       spdlog::async_overflow_policy::overrun_oldest)) {
    logger_->set_pattern(before + "%H:%M:%S.%e %v");
    // Every line, on the background thread: a killed process's last words are the ones that matter.
    logger_->flush_on(spdlog::level::info);
  }

  // The thread first, which writes what is queued and ends: the file then closes here, after the last line.
  ~Writer() { thread_.reset(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void write(const std::string& line) { logger_->log(spdlog::level::info, spdlog::string_view_t(line)); }

 private:
  std::shared_ptr<spdlog::details::thread_pool> thread_;
  std::shared_ptr<spdlog::async_logger> logger_;
};

Result<LogTier> parse_log_tier(std::string_view name) {
  if (name == "silent") return LogTier::silent;
  if (name == "normal") return LogTier::normal;
  if (name == "verbose") return LogTier::verbose;
  return invalid("log tier '{}' is none of silent, normal, verbose", name);
}

Log::Log(LogTier tier)
    : Log(tier, std::make_shared<Writer>(std::make_shared<spdlog::sinks::stderr_sink_mt>(),
                                         isatty(STDERR_FILENO) != 0 ? kClearLine : "")) {}

Result<Log> Log::to_file(LogTier tier, const std::string& path) {
  try {
    return Log(tier, std::make_shared<Writer>(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path)));
  } catch (const spdlog::spdlog_ex& refused) {
    return Error{ErrorKind::system, refused.what()};
  }
}

void Log::write(const std::string& line) const {
  writer_->write(line);
}

}  // namespace w5xde
