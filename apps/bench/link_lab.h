#pragma once

#include <memory>
#include <string>

#include "local_pool/pool_run.h"
#include "net/tcp.h"
#include "w5xde/result.h"

namespace w5xde {

// A slow link on this machine, with a coordinator at one end and nodes at the other. As root it is a veth
// pair between two network namespaces, so that the kernel's own TCP meets the limit; otherwise it is a relay.
// The destructor removes all of it.
class LinkLab {
 public:
  // The rate is that of each direction, for all nodes together.
  static Result<std::unique_ptr<LinkLab>> open(double bytes_per_second);
  virtual ~LinkLab() = default;

  // How the link is made, for people: "a veth pair between two network namespaces, …".
  const std::string& how() const { return how_; }

  // w5xde serve at the one end, w5xde join at the other. The summary's memory is the coordinator's alone.
  Result<PoolOutcome> run_pool(const PoolRun& pool, const Watch& watch) const;

 protected:
  LinkLab(std::string how, Address listen, Address join)
      : how_(std::move(how)), listen_(std::move(listen)), join_(std::move(join)) {}

 private:
  // The words before a command that make it run at this end.
  virtual Words at_coordinator() const { return {}; }
  virtual Words at_nodes() const { return {}; }

  std::string how_;
  Address listen_, join_;
};

}  // namespace w5xde
