// Whose turn it is, on machines that have more nodes than cores.
//
// Ten nodes on two cores do not compute faster than two, but every step then has ten exchanges in place of
// two, and every core goes from node to node with cold caches. So as many nodes as a machine has cores for
// work at a time, with larger leases, or fewer, with several lanes each, and the others rest until it is
// their turn. A node alone on its machine never rests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lease/ledger.h"

namespace w5xde {

// Where a node computes.
struct Place {
  std::string machine;      // empty: not known, and so nobody else's
  std::uint32_t lanes = 0;  // how many slots are computed there at full speed at once; 0: any number
  std::string host;         // the address it comes from: nodes that share it share a link
};

class Turns {
 public:
  void join(NodeId node, const Place& place);
  void leave(NodeId node);

  // No more than so many of a machine's nodes work at a time; 0: as many as it has lanes. Holds from the next
  // advance() on.
  void set_at_once(std::size_t nodes) { at_once_ = nodes; }
  // How many could work at a time if that were 0.
  std::size_t workers(const std::function<bool(NodeId)>& ill) const;

  // The node was given work: those who were given the least have the next turn.
  void leased(NodeId node, std::uint32_t slots);
  // Nodes that are ill do not take part, and their turn passes to others at once. A turn lasts for some
  // milliseconds and for `leases_min` leases to each node at least.
  void advance(Instant now, std::uint64_t leases_min, const std::function<bool(NodeId)>& ill);
  bool rests(NodeId node) const { return members_.at(node).rests; }
  // Whose cores it shares; empty: nobody else's.
  const std::string& machine(NodeId node) const { return members_.at(node).machine; }
  // Whose cores are shared.
  std::size_t machines() const { return machines_.size(); }
  // How many of its machine's lanes are the node's, shared with the others there that work; 1 at least.
  std::uint32_t lanes(NodeId node, const std::function<bool(NodeId)>& works) const;

 private:
  struct Member {
    std::string machine;
    std::uint32_t lanes = 0;  // that it says the machine has
    std::uint64_t slots = 0;
    std::uint64_t leases = 0;  // in this turn
    bool rests = false;
  };
  struct Machine {
    std::uint32_t lanes = 0;
    std::vector<NodeId> nodes;
    Instant turn_began;
  };

  std::size_t places(const Machine& machine) const;
  bool turn_over(const Machine& machine, const std::vector<NodeId>& fit, Instant now,
                 std::uint64_t leases_min) const;

  std::map<NodeId, Member> members_;
  std::map<std::string, Machine> machines_;
  std::size_t at_once_ = 0;
};

}  // namespace w5xde
