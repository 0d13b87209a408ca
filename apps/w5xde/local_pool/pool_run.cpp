#include "local_pool/pool_run.h"

#include "base/file.h"
#include "record/run_folder.h"

namespace w5xde {

namespace {

std::filesystem::path run_of(const PoolRun& pool) {
  return pool.folder / "run";
}

std::filesystem::path json_of(const PoolRun& pool) {
  return pool.folder / "summary.json";
}

}  // namespace

Words coordinator_words(const std::string& command, const PoolRun& pool) {
  Words words = {command, run_of(pool).string(), "--json", json_of(pool).string()};
  if (!pool.engine.empty()) words.insert(words.end(), {"--engine", pool.engine});
  words.insert(words.end(), pool.flags.begin(), pool.flags.end());
  return words;
}

std::filesystem::path output_of(const PoolRun& pool) {
  return pool.folder / "output.txt";
}

Result<PoolOutcome> outcome_of(const PoolRun& pool, std::span<Child> children, const Watch& watch) {
  const Status ended = wait_for(children, watch);
  auto outcome = [&]() -> Result<PoolOutcome> {
    W5XDE_CHECK(ended);
    W5XDE_TRY(const MappedFile file, MappedFile::open(json_of(pool)));
    W5XDE_TRY(Summary summary, summary_from_json(text_of(file.bytes())));
    W5XDE_TRY(const RunFolder folder, RunFolder::look(run_of(pool)));
    W5XDE_TRY(const RunDatabase record, RunDatabase::look(folder.database()));
    return PoolOutcome{std::move(summary), record.stretch_after(pool.warm_up_seconds)};
  }();
  for (const auto& path : {run_of(pool), json_of(pool), output_of(pool)}) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  return outcome;
}

Result<PoolOutcome> run_pool(const PoolRun& pool, const Watch& watch) {
  W5XDE_TRY(const std::string program, own_program());
  Words words = coordinator_words("train", pool);
  words.insert(words.begin(), program);
  words.insert(words.end(), {"--nodes", std::to_string(pool.nodes)});
  W5XDE_TRY(Child child, Child::start(words, output_of(pool)));
  return outcome_of(pool, {&child, 1}, watch);
}

}  // namespace w5xde
