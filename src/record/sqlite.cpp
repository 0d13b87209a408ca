#include "record/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cctype>
#include <limits>

namespace w5xde {

namespace {

constexpr int kBusyWaitMs = 1000;

// What the person at the machine should do, by SQLite's result code.
std::string_view advice_for(int code) {
  switch (code & 0xff) {  // the rest is detail
    case SQLITE_FULL:
      return "free space on its disk";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another program has it locked: close that program";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
      return "check that its folder exists and may be written";
    case SQLITE_IOERR:
      return "check its disk, and the space that is left on it";
    default:
      return "move it away to have a new one made";
  }
}

// As a file: URI has it.
std::string escaped(const std::string& path) {
  std::string uri;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '/' || c == '.' || c == '-' || c == '_') {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", byte);
    }
  }
  return uri;
}

}  // namespace

void Sqlite::Statement::Reset::operator()(sqlite3_stmt* prepared) const {
  sqlite3_reset(prepared);
  sqlite3_clear_bindings(prepared);
}

void Sqlite::Statement::bind(std::uint64_t value) {
  sqlite3_bind_int64(prepared_.get(), ++bound_, static_cast<sqlite3_int64>(value));
}

void Sqlite::Statement::bind(double value) {
  sqlite3_bind_double(prepared_.get(), ++bound_, value);
}

void Sqlite::Statement::bind(std::string_view value) {
  // A null pointer would bind NULL.
  const char* text = value.empty() ? "" : value.data();
  sqlite3_bind_text64(prepared_.get(), ++bound_, text, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

Result<bool> Sqlite::Statement::next() {
  read_ = 0;
  const int code = sqlite3_step(prepared_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->error_of(code);
}

void Sqlite::Statement::read(std::uint64_t& value) {
  value = static_cast<std::uint64_t>(sqlite3_column_int64(prepared_.get(), read_++));
}

void Sqlite::Statement::read(double& value) {
  const int column = read_++;
  const bool null = sqlite3_column_type(prepared_.get(), column) == SQLITE_NULL;
  value = null ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(prepared_.get(), column);
}

void Sqlite::Statement::read(std::string& value) {
  const int column = read_++;
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared_.get(), column));
  value.assign(text ? text : "", static_cast<std::size_t>(sqlite3_column_bytes(prepared_.get(), column)));
}

Result<std::unique_ptr<Sqlite>> Sqlite::open(const std::filesystem::path& path, Access access) {
  std::unique_ptr<Sqlite> database(new Sqlite(path));  // the constructor is private
  if (access == Access::write) {
    W5XDE_CHECK(database->connect(path.string(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
    return database;
  }
  W5XDE_CHECK(database->connect(path.string(), SQLITE_OPEN_READONLY));
  if (database->run("SELECT count(*) FROM sqlite_master").ok()) return database;
  // A reader makes files beside a database in WAL mode, which it may not in somebody else's folder. Without a
  // log of changes nobody writes, and the file can be read as it is.
  std::error_code ignored;
  if (std::filesystem::exists(path.string() + "-wal", ignored)) return database;
  database.reset(new Sqlite(path));
  W5XDE_CHECK(
      database->connect("file:" + escaped(std::filesystem::absolute(path, ignored).string()) + "?immutable=1",
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI));
  return database;
}

Status Sqlite::connect(const std::string& name, int flags) {
  const int code = sqlite3_open_v2(name.c_str(), &handle_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) return error_of(code);
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, kBusyWaitMs);
  return {};
}

Sqlite::~Sqlite() {
  [[maybe_unused]] const Status ignored = commit();  // nobody is left to tell
  for (const auto& [sql, statement] : prepared_) sqlite3_finalize(statement);
  sqlite3_close(handle_);
}

Result<Sqlite::Statement> Sqlite::prepare(std::string_view sql) {
  auto found = prepared_.find(sql);
  if (found == prepared_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return error_of(code);
    found = prepared_.emplace(sql, statement).first;
  }
  return Statement(*this, found->second);
}

Status Sqlite::begin() {
  if (!sqlite3_get_autocommit(handle_)) return {};
  Status begun = run("BEGIN IMMEDIATE");
  sqlite3_busy_timeout(handle_, begun.ok() ? kBusyWaitMs : 0);
  return begun;
}

Status Sqlite::commit() {
  if (!handle_ || sqlite3_get_autocommit(handle_)) return {};
  Status committed = run("COMMIT");
  if (!committed.ok() && !sqlite3_get_autocommit(handle_)) {
    // The commit's error is the one to report; whether this works shows at the next begin().
    [[maybe_unused]] const Status ignored = run("ROLLBACK");
  }
  return committed;
}

Error Sqlite::error_of(int code) const {
  const char* reason = handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  const int primary = code & 0xff;
  const bool broken = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
  return {broken ? ErrorKind::corrupt : ErrorKind::system,
          fmt::format("{}: {}; {}", path_.string(), reason, advice_for(code))};
}

}  // namespace w5xde
