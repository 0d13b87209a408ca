#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "local_pool/pool_run.h"
#include "net/tcp.h"
#include "w5xde/result.h"

namespace w5xde {

// A slow network on this machine: a coordinator at its one end, nodes at the other. Where the machine lets
// us, two network namespaces and a veth pair, so that it is the kernel's own TCP that meets the limit;
// elsewhere a relay. Gone without a trace when this is.
class LinkLab {
 public:
  struct Options {
    double bytes_per_second = 12.5e6;   // each way, of all nodes together
    Duration delay = Duration::zero();  // each way
    bool relay = false;                 // even where namespaces can be had
  };
  static Result<std::unique_ptr<LinkLab>> open(const Options& options);
  virtual ~LinkLab() = default;

  // How the link is made, for people: "a veth pair between two network namespaces, …".
  const std::string& how() const { return how_; }

  // w5xde serve at the one end, w5xde join at the other. The summary's memory is the coordinator's alone.
  Result<PoolOutcome> run_pool(const PoolRun& pool, const Watch& watch) const;

 protected:
  LinkLab(std::string how, Address listen, Address join)
      : how_(std::move(how)), listen_(std::move(listen)), join_(std::move(join)) {}

 private:
  // What goes before a command that is to run at this end.
  virtual Words at_coordinator() const { return {}; }
  virtual Words at_nodes() const { return {}; }

  std::string how_;
  Address listen_, join_;
};

}  // namespace w5xde
