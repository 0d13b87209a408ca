#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/log.h"
#include "coordinator/session.h"

namespace w5xde {

// The coordinator's peers: those that are here, and those that have ended while what was said last is on its
// way. Loop thread only.
class Sessions {
 public:
  Sessions(Session::Host& host, const SocketOptions& socket, ThreadPool* pool, const Log& log)
      : host_(host), socket_(socket), pool_(pool), log_(log) {}

  // Takes the peer in. One too many that is not ready yet, of all or of its address, is dropped.
  void accept(std::unique_ptr<Stream> stream);
  // Sends the offer to all that wait for it.
  void offer();

  Session& at(NodeId id) { return *here_.at(id); }
  Session* find(NodeId id);
  // Nodes that can work, in the order in which they came.
  template <class Visit>
  void each_ready(const Visit& visit) const {
    for (const auto& [id, session] : here_) {
      if (session->is_ready()) visit(*session);
    }
  }
  bool any_has_feedback() const;

  // The session has ended; and: it may be destroyed.
  void part(NodeId id) { parting_.insert(here_.extract(id)); }
  void gone(NodeId id) { parting_.erase(id); }
  void close_all(const Error& reason);
  bool empty() const { return here_.empty() && parting_.empty(); }
  std::size_t size() const { return here_.size() + parting_.size(); }

  // Whether there are no more of them, and no more is queued for them, than limits allow. For tests.
  Status check_bounds() const;

 private:
  using Members = std::map<NodeId, std::unique_ptr<Session>>;

  bool has_room_for(const Stream& newcomer) const;

  Session::Host& host_;
  const SocketOptions socket_;
  ThreadPool* pool_;
  Log log_;
  Members here_;
  Members parting_;
  NodeId next_ = 1;
};

}  // namespace w5xde
