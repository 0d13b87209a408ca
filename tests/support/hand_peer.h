// A peer that is played by hand: says frames, keeps what it hears.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "net/connection.h"
#include "support/frames.h"
#include "wire/messages.h"

namespace w5xde {

class HandPeer final : private Connection::Owner {
 public:
  explicit HandPeer(std::unique_ptr<Stream> stream);
  ~HandPeer() override;

  // A payload is copied, and kept until it is written.
  void say(const OutgoingFrame& frame);
  template <class Message>
  void say(FrameType type, const Message& message, Bytes payload = {}) {
    Head head;
    encode(message, head);
    say_bytes(type, head, payload);
  }

  // How many frames of a type it holds, and the first of them, taken out.
  std::size_t count(FrameType type) const;
  std::optional<ReceivedFrame> take(FrameType type);

  bool closed() const { return why_.has_value(); }
  // "still open" while it is.
  std::string why() const { return why_ ? why_->to_string() : "still open"; }
  Connection& connection() { return *connection_; }

 private:
  void say_bytes(FrameType type, Bytes head, Bytes payload);
  Result<MutableBytes> place(const FrameHeader& header, Bytes head) override;
  Status received(const FrameHeader& header, Bytes head, MutableBytes payload) override;
  void closed(const Error& reason) override { why_ = reason; }

  std::vector<std::byte> landing_;
  std::list<ReceivedFrame> frames_;
  std::optional<Error> why_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace w5xde
