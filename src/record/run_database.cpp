#include "record/run_database.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "base/errors.h"
#include "base/limits.h"
#include "record/sqlite.h"

namespace w5xde {

namespace {

constexpr std::uint64_t kSchemaVersion = 1;

constexpr std::array kTables = {
    "CREATE TABLE IF NOT EXISTS steps (step INTEGER PRIMARY KEY, steps INTEGER, loss REAL,"
    " learning_rate REAL, samples INTEGER, batches_per_second REAL, nodes INTEGER, seconds REAL)",
    "CREATE TABLE IF NOT EXISTS evaluations (step INTEGER PRIMARY KEY, loss REAL, accuracy REAL,"
    " samples INTEGER)",
    "CREATE TABLE IF NOT EXISTS nodes (name TEXT, peer TEXT, engine TEXT, joined_seconds REAL,"
    " left_seconds REAL, reason TEXT, batches INTEGER, PRIMARY KEY (name, peer, joined_seconds))",
    "CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, seconds REAL, text TEXT)",
    "CREATE TABLE IF NOT EXISTS checkpoints (step INTEGER PRIMARY KEY, file TEXT, bytes INTEGER,"
    " write_seconds REAL)",
};

// In the order of the tables' columns.
auto columns(RunDatabase::StepRow& row) {
  return std::tie(row.step, row.steps, row.loss, row.learning_rate, row.samples, row.batches_per_second,
                  row.nodes, row.seconds);
}

auto columns(RunDatabase::EvaluationRow& row) {
  return std::tie(row.step, row.loss, row.accuracy, row.samples);
}

auto columns(RunDatabase::NodeRow& row) {
  return std::tie(row.name, row.peer, row.engine, row.joined_seconds, row.left_seconds, row.reason,
                  row.batches);
}

auto columns(RunDatabase::EventRow& row) {
  return std::tie(row.seconds, row.text);
}

auto columns(RunDatabase::CheckpointRow& row) {
  return std::tie(row.step, row.file, row.bytes, row.write_seconds);
}

auto columns(RunDatabase::Stretch& row) {
  return std::tie(row.steps, row.seconds);
}

// None in a file without a schema table.
Result<std::uint64_t> schema_version(Sqlite& database) {
  W5XDE_TRY(auto table, database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'schema'"));
  W5XDE_TRY(const bool has_table, table.next());
  if (!has_table) return std::uint64_t{0};
  W5XDE_TRY(auto statement, database.prepare("SELECT max(version) FROM schema"));
  W5XDE_TRY(const bool has_row, statement.next());
  std::uint64_t version = 0;
  if (has_row) statement.read(version);
  return version;
}

Status check_version(const Sqlite& database, std::uint64_t version) {
  if (version <= kSchemaVersion) return {};
  return incompatible("{} has schema {}, this w5xde knows up to {}: use the w5xde that wrote it",
                      database.path().string(), version, kSchemaVersion);
}

Status create_tables(Sqlite& database) {
  W5XDE_CHECK(database.begin());
  W5XDE_TRY(const std::uint64_t version, schema_version(database));
  W5XDE_CHECK(check_version(database, version));
  if (version == kSchemaVersion) return database.commit();
  W5XDE_CHECK(database.run("CREATE TABLE IF NOT EXISTS schema (version INTEGER)"));
  for (const char* table : kTables) W5XDE_CHECK(database.run(table));
  W5XDE_CHECK(database.run("INSERT INTO schema VALUES (?)", kSchemaVersion));
  return database.commit();
}

// What cannot be read ends the list.
template <class Row, class... Values>
std::vector<Row> rows_of(Sqlite& database, std::string_view sql, const Values&... values) {
  std::vector<Row> rows;
  auto statement = database.prepare(sql);
  if (!statement.ok()) return rows;
  (statement->bind(values), ...);
  for (auto more = statement->next(); more.ok() && *more; more = statement->next())
    std::apply([&](auto&... fields) { (statement->read(fields), ...); }, columns(rows.emplace_back()));
  return rows;
}

template <class Row>
Status add_row(Sqlite& database, std::string_view sql, Row row) {
  W5XDE_CHECK(database.begin());
  return std::apply([&](const auto&... fields) { return database.run(sql, fields...); }, columns(row));
}

}  // namespace

std::uint64_t RunDatabase::steps_of_row(std::uint64_t step) {
  return std::bit_ceil((std::max<std::uint64_t>(step, 1) - 1) / kStepRowsMax + 1);
}

Result<RunDatabase> RunDatabase::open(const std::filesystem::path& path) {
  W5XDE_TRY(auto database, Sqlite::open(path, Sqlite::Access::write));
  // The write-ahead log lets readers look while we write. With it, NORMAL keeps the file sound after a power
  // cut, at the price of the last rows, and saves a wait for the disk at every flush.
  W5XDE_CHECK(database->run("PRAGMA journal_mode = WAL"));
  W5XDE_CHECK(database->run("PRAGMA synchronous = NORMAL"));
  W5XDE_CHECK(create_tables(*database));
  RunDatabase opened(std::move(database));
  W5XDE_CHECK(opened.count_step_rows());
  return opened;
}

Result<RunDatabase> RunDatabase::look(const std::filesystem::path& path) {
  W5XDE_TRY(auto database, Sqlite::open(path, Sqlite::Access::read));
  W5XDE_TRY(const std::uint64_t version, schema_version(*database));
  if (version == 0) return invalid(path.string() + " is not the database of a run");
  W5XDE_CHECK(check_version(*database, version));
  return RunDatabase(std::move(database));
}

Status RunDatabase::add(const StepRow& row) {
  W5XDE_CHECK(add_row(*database_, "INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row));
  ++step_rows_;
  while (step_rows_ >= kStepRowsMax) W5XDE_CHECK(merge_step_rows());
  return {};
}

Status RunDatabase::count_step_rows() {
  W5XDE_TRY(auto statement, database_->prepare("SELECT count(*) FROM steps"));
  W5XDE_TRY([[maybe_unused]] const bool row, statement.next());
  statement.read(step_rows_);
  return {};
}

// Each two neighbours become one row, in place of the later; an odd one at the end stays.
Status RunDatabase::merge_step_rows() {
  // A column that stands by itself beside max() is of the row that has the maximum.
  W5XDE_CHECK(database_->run(
      "INSERT OR REPLACE INTO steps SELECT max(step), sum(steps),"
      " sum(loss * steps) / sum(CASE WHEN loss IS NOT NULL THEN steps END), learning_rate, sum(samples),"
      " coalesce(sum(batches_per_second * elapsed) / sum(elapsed), batches_per_second), nodes, seconds FROM"
      " (SELECT *, (row_number() OVER (ORDER BY step) - 1) / 2 AS pair,"
      " max(seconds - lag(seconds, 1, 0) OVER (ORDER BY step), 0) AS elapsed FROM steps)"
      " GROUP BY pair"));
  W5XDE_CHECK(database_->run(
      "DELETE FROM steps WHERE step IN (SELECT step FROM"
      " (SELECT step, row_number() OVER (ORDER BY step) AS i, count(*) OVER () AS n FROM steps)"
      " WHERE i % 2 = 1 AND i < n)"));
  return count_step_rows();
}

Status RunDatabase::add(const EvaluationRow& row) {
  return add_row(*database_, "INSERT OR REPLACE INTO evaluations VALUES (?, ?, ?, ?)", row);
}

Status RunDatabase::add(const NodeRow& row) {
  W5XDE_CHECK(add_row(*database_, "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?)", row));
  // Nodes that come and go must not fill the disk. A row that is added has the highest number.
  return database_->run("DELETE FROM nodes WHERE rowid <= (SELECT max(rowid) FROM nodes) - ?",
                        Limits{}.database_rows_max);
}

Status RunDatabase::add(const EventRow& row) {
  W5XDE_CHECK(add_row(*database_, "INSERT INTO events (seconds, text) VALUES (?, ?)", row));
  return database_->run("DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?",
                        Limits{}.database_rows_max);
}

Status RunDatabase::add(const CheckpointRow& row) {
  return add_row(*database_, "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)", row);
}

Status RunDatabase::resume(const Resumption& from) {
  W5XDE_CHECK(database_->begin());
  W5XDE_CHECK(database_->run("DELETE FROM steps WHERE step > ?", from.step));
  W5XDE_CHECK(database_->run("DELETE FROM evaluations WHERE step > ?", from.step));
  W5XDE_CHECK(database_->run("DELETE FROM checkpoints WHERE step > ?", from.checkpoint_step));
  W5XDE_CHECK(
      database_->run("UPDATE nodes SET left_seconds = max(joined_seconds, ?), reason = ?"
                     " WHERE left_seconds IS NULL",
                     from.seconds, std::string_view(kCutOff)));
  W5XDE_CHECK(count_step_rows());
  return database_->commit();
}

Status RunDatabase::flush() {
  return database_->commit();
}

std::vector<RunDatabase::StepRow> RunDatabase::steps(std::size_t rows_max) const {
  // Row i of n is taken when i (m - 1) / (n - 1), rounded down, is larger than for the row before it: m rows,
  // evenly spread, from the first to the last.
  constexpr std::string_view kThinned =
      "SELECT step, steps, loss, learning_rate, samples, batches_per_second, nodes, seconds FROM"
      " (SELECT *, row_number() OVER (ORDER BY step) - 1 AS i, count(*) OVER () AS n FROM steps)"
      " WHERE n <= ?1 OR (?1 = 1 AND i = n - 1)"
      " OR (?1 > 1 AND (i = 0 OR i * (?1 - 1) / (n - 1) > (i - 1) * (?1 - 1) / (n - 1)))"
      " ORDER BY step";
  constexpr std::size_t kRowsMax = 1'000'000'000;  // keeps the products above below 2^63
  return rows_of<StepRow>(*database_, kThinned, std::uint64_t{std::min(rows_max, kRowsMax)});
}

std::optional<RunDatabase::Stretch> RunDatabase::stretch_after(double seconds) const {
  const auto rows =
      rows_of<Stretch>(*database_,
                       "SELECT step, seconds FROM steps WHERE step >="
                       " coalesce((SELECT max(step) FROM steps WHERE seconds <= ?), 0) ORDER BY step",
                       seconds);
  if (rows.size() < 2 || !(rows.back().seconds > rows.front().seconds)) return std::nullopt;
  return Stretch{rows.back().steps - rows.front().steps, rows.back().seconds - rows.front().seconds};
}

double RunDatabase::batches_per_second() const {
  // A row's rate holds from the row before on.
  auto statement = database_->prepare(
      "SELECT coalesce(sum(batches_per_second * elapsed) / sum(elapsed), 0) FROM"
      " (SELECT batches_per_second, seconds - lag(seconds, 1, 0) OVER (ORDER BY step) AS elapsed FROM steps)"
      " WHERE elapsed > 0");
  double rate = 0;
  if (statement.ok() && statement->next().ok()) statement->read(rate);
  return rate;
}

std::vector<RunDatabase::EvaluationRow> RunDatabase::evaluations() const {
  return rows_of<EvaluationRow>(*database_, "SELECT * FROM evaluations ORDER BY step");
}

std::vector<RunDatabase::NodeRow> RunDatabase::nodes() const {
  return rows_of<NodeRow>(*database_, "SELECT * FROM nodes ORDER BY joined_seconds, name, peer");
}

std::vector<RunDatabase::EventRow> RunDatabase::events(std::size_t rows_max) const {
  const auto limit = std::min<std::uint64_t>(rows_max, std::numeric_limits<std::int64_t>::max());
  auto rows =
      rows_of<EventRow>(*database_, "SELECT seconds, text FROM events ORDER BY id DESC LIMIT ?", limit);
  std::ranges::reverse(rows);
  return rows;
}

std::vector<RunDatabase::CheckpointRow> RunDatabase::checkpoints() const {
  return rows_of<CheckpointRow>(*database_, "SELECT * FROM checkpoints ORDER BY step");
}

}  // namespace w5xde
