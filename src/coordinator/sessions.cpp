#include "coordinator/sessions.h"

#include <algorithm>

namespace w5xde {

void Sessions::accept(std::unique_ptr<Stream> stream) {
  if (!has_room_for(*stream)) return;
  const NodeId id = next_++;
  here_[id] = std::make_unique<Session>(id, host_, std::move(stream), socket_, pool_, log_);
}

bool Sessions::has_room_for(const Stream& newcomer) const {
  constexpr Limits kLimits;
  const std::string host = host_of(newcomer);
  std::uint64_t strangers = 0, neighbours = 0;
  for (const auto* members : {&here_, &parting_}) {
    for (const auto& [id, session] : *members) {
      if (session->is_ready()) continue;
      ++strangers;
      if (session->host() == host) ++neighbours;
    }
  }
  const bool room = size() < kLimits.connections_max && strangers < kLimits.strangers_max &&
                    neighbours < kLimits.strangers_per_address_max;
  if (!room)
    log_.verbose("no room for {}: {} are not ready yet, {} of them from there", newcomer.peer(), strangers,
                 neighbours);
  return room;
}

void Sessions::offer() {
  for (auto& [id, session] : here_) session->offer();
}

Session* Sessions::find(NodeId id) {
  const auto found = here_.find(id);
  return found == here_.end() ? nullptr : found->second.get();
}

bool Sessions::any_has_feedback() const {
  return std::ranges::any_of(here_, [](const auto& member) { return member.second->has_feedback(); });
}

void Sessions::close_all(const Error& reason) {
  for (auto& [id, session] : here_) session->close(reason);
}

Status Sessions::check_bounds() const {
  constexpr Limits kLimits;
  if (size() > kLimits.connections_max) return corrupt("too many connections");
  for (const auto& [id, session] : here_) {
    const Connection& connection = session->connection();
    if (connection.queued_bytes() > kLimits.send_queue_bytes_max ||
        connection.queued_frames() > kLimits.send_queue_frames_max)
      return corrupt(session->name() + "'s queue is past its bound");
  }
  return {};
}

}  // namespace w5xde
