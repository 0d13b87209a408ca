#include "support/hand_peer.h"

#include <algorithm>
#include <utility>

namespace w5xde {

HandPeer::HandPeer(std::unique_ptr<Stream> stream)
    : connection_(Connection::start(std::move(stream), *this, Limits{})) {}

HandPeer::~HandPeer() {
  connection_->detach();
}

void HandPeer::say(const OutgoingFrame& frame) {
  (void)connection_->send(frame);
}

void HandPeer::say_bytes(FrameType type, Bytes head, Bytes payload) {
  const auto memory = std::make_shared<std::vector<std::byte>>(payload.begin(), payload.end());
  const TensorView view = TensorView::of_bytes(*memory);
  say({.type = type, .head = head, .payload = {&view, payload.empty() ? 0u : 1u}, .keep = memory});
}

std::size_t HandPeer::count(FrameType type) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(frames_, [&](const ReceivedFrame& frame) { return frame.header.type == type; }));
}

std::optional<ReceivedFrame> HandPeer::take(FrameType type) {
  const auto found =
      std::ranges::find_if(frames_, [&](const ReceivedFrame& frame) { return frame.header.type == type; });
  if (found == frames_.end()) return std::nullopt;
  ReceivedFrame frame = std::move(*found);
  frames_.erase(found);
  return frame;
}

Result<MutableBytes> HandPeer::place(const FrameHeader& header, Bytes) {
  landing_.resize(header.payload_bytes);
  return MutableBytes(landing_);
}

Status HandPeer::received(const FrameHeader& header, Bytes head, MutableBytes payload) {
  frames_.push_back({header, {head.begin(), head.end()}, {payload.begin(), payload.end()}});
  return {};
}

}  // namespace w5xde
