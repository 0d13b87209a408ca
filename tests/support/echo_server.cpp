#include "support/echo_server.h"

#include "support/frames.h"
#include "wire/hello.h"

namespace w5xde {

std::vector<std::byte> hello_frame() {
  Head head;
  encode(Hello{.software = "test"}, head);
  return bytes_of_frame({.type = FrameType::hello, .head = head});
}

class EchoServer::Session final : public Connection::Owner {
 public:
  Session(EchoServer& server, std::unique_ptr<Stream> stream)
      : server_(server), connection_(Connection::start(std::move(stream), *this, Limits::stranger())) {}
  ~Session() override { connection_->detach(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<MutableBytes> place(const FrameHeader& header, Bytes) override {
    landing_ = std::make_shared<std::vector<std::byte>>(header.payload_bytes);
    return MutableBytes(*landing_);
  }

  Status received(const FrameHeader& header, Bytes head, MutableBytes payload) override {
    if (!greeted_) {
      if (header.type != FrameType::hello) return invalid("say hello first");
      W5XDE_CHECK(check(decode_hello(head, Limits::stranger())));
      greeted_ = true;
      connection_->set_limits(Limits());
    }
    ++server_.echoed_;
    const TensorView view = TensorView::of_bytes(payload);
    return connection_->send({.type = header.type,
                              .codec = header.codec,
                              .shuffle_width = header.shuffle_width,
                              .head = head,
                              .payload = {&view, payload.empty() ? 0u : 1u},
                              .keep = landing_});
  }

  void closed(const Error& reason) override { server_.ended(*this, reason); }

 private:
  static Status check(const Result<Hello>& hello) { return hello.ok() ? Status() : Status(hello.error()); }

  EchoServer& server_;
  std::shared_ptr<std::vector<std::byte>> landing_;
  std::shared_ptr<Connection> connection_;
  bool greeted_ = false;
};

EchoServer::EchoServer(AsioLoop& loop) : loop_(loop) {
  auto listener = listen_tcp(loop, {"127.0.0.1", 0}, {}, [this](std::unique_ptr<Stream> stream) {
    ++accepted_;
    auto session = std::make_unique<Session>(*this, std::move(stream));
    sessions_.emplace(session.get(), std::move(session));
  });
  listener_ = std::move(listener).value();
}

EchoServer::~EchoServer() = default;

void EchoServer::ended(Session& session, const Error& reason) {
  ++endings_[reason.kind];
  sessions_.erase(&session);
}

}  // namespace w5xde
