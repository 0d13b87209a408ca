// SQLite for record/: statements are prepared once, an error says what to do about it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "w5xde/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace w5xde {

// One thread at a time.
class Sqlite {
 public:
  // A prepared statement while it runs. Its values are bound from left to right; a NaN is NULL both ways.
  class Statement {
   public:
    Statement(Sqlite& database, sqlite3_stmt* prepared) : database_(&database), prepared_(prepared) {}

    void bind(std::uint64_t value);
    void bind(double value);
    void bind(std::string_view value);

    Result<bool> next();  // whether there is a (further) row

    // The next column of the row that next() found.
    void read(std::uint64_t& value);
    void read(double& value);
    void read(std::string& value);

   private:
    struct Reset {
      void operator()(sqlite3_stmt* prepared) const;
    };

    Sqlite* database_;
    std::unique_ptr<sqlite3_stmt, Reset> prepared_;
    int bound_ = 0;
    int read_ = 0;
  };

  enum class Access { write, read };
  static Result<std::unique_ptr<Sqlite>> open(const std::filesystem::path& path, Access access);
  ~Sqlite();  // commits what is open, if it can
  Sqlite(const Sqlite&) = delete;
  Sqlite& operator=(const Sqlite&) = delete;

  // `sql` is looked up among those prepared before.
  Result<Statement> prepare(std::string_view sql);

  // Prepares, binds and runs a statement whose rows do not matter.
  template <class... Values>
  Status run(std::string_view sql, const Values&... values) {
    W5XDE_TRY(Statement statement, prepare(sql));
    (statement.bind(values), ...);
    W5XDE_TRY([[maybe_unused]] const bool row, statement.next());
    return {};
  }

  // Begins a transaction if none is open. Waits for a file that another program has locked, but only once:
  // training must not wait at every row.
  Status begin();
  // Commits the open transaction, if there is one; on failure it is rolled back.
  Status commit();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit Sqlite(std::filesystem::path path) : path_(std::move(path)) {}
  Status connect(const std::string& name, int flags);
  Error error_of(int code) const;

  std::filesystem::path path_;
  sqlite3* handle_ = nullptr;
  std::map<std::string, sqlite3_stmt*, std::less<>> prepared_;
};

}  // namespace w5xde
