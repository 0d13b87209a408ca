#include "local_pool/pool_run.h"

#include "base/file.h"
#include "local_pool/scratch.h"
#include "record/run_folder.h"

namespace w5xde {

Result<PoolOutcome> run_pool(const PoolRun& pool, const Watch& watch) {
  const Scratch scratch("pool");
  const auto run = scratch.path / "run", json = scratch.path / "summary.json";
  W5XDE_TRY(const std::string program, own_program());
  const std::string nodes = std::to_string(pool.nodes);
  const Words engine = pool.engine.empty() ? Words() : Words{"--engine", pool.engine};
  const Words coordinator = Words{run.string(), "--json", json.string()} + engine + pool.flags;
  std::vector<Words> commands = {Words{program, "train"} + coordinator + Words{"--nodes", nodes}};
  if (const LinkEnds* link = pool.link) {
    commands = {link->at_coordinator + Words{program, "serve"} + coordinator +
                    Words{"--listen", link->listen.to_string(), "--insecure", "--wait-for", nodes},
                link->at_nodes + Words{program, "join", link->join.to_string(), "--nodes", nodes} +
                    Words{"--name", "node", "--log", "silent"} + engine};
  }
  std::vector<Child> children;
  for (const Words& command : commands) {
    W5XDE_TRY(Child child, Child::start(command, scratch.path / "output.txt"));
    children.push_back(std::move(child));
  }
  W5XDE_CHECK(wait_for(children, watch));
  W5XDE_TRY(const MappedFile file, MappedFile::open(json));
  W5XDE_TRY(Summary summary, summary_from_json(text_of(file.bytes())));
  W5XDE_TRY(const RunFolder folder, RunFolder::look(run));
  W5XDE_TRY(const RunDatabase record, RunDatabase::look(folder.database()));
  return PoolOutcome{std::move(summary), record.stretch_after(pool.warm_up_seconds)};
}

}  // namespace w5xde
