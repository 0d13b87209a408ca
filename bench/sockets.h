// Two threads with a connection between them: through Connection, and through bare sockets as the baseline.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "net/asio_loop.h"
#include "net/connection.h"
#include "net/tcp.h"

namespace w5xde::bench {

// One end of a connection on a loop and thread of its own. Counts frames; answers each with `reply` if set.
class End final : public Connection::Owner {
 public:
  explicit End(std::size_t payload_bytes_max);
  ~End() override;
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  // Connects two ends over loopback and starts their threads.
  static void connect(End& client, End& server);
  // Ends the thread; the connection stays until the destructor.
  void stop();

  // Runs on this end's thread, and waits for it.
  void run(const std::function<void(End&)>& task);
  // Waits until that many frames have come since the start.
  void wait_for(std::uint64_t frames);
  void send(std::size_t payload_bytes);
  // Sends that many frames, never with more than a few queued.
  void stream(std::uint64_t frames, std::size_t payload_bytes);

  std::uint64_t frames() const { return frames_; }
  const Connection& connection() const { return *connection_; }
  bool echo = false;
  // Frames to send by itself, one for each that comes.
  std::uint64_t rounds_left = 0;

 private:
  Result<MutableBytes> place(const FrameHeader& header, Bytes head) override;
  Status received(const FrameHeader& header, Bytes head, MutableBytes payload) override;
  void drained() override;
  void closed(const Error& reason) override;

  AsioLoop loop_;
  std::shared_ptr<Connection> connection_;
  std::vector<std::byte> outgoing_;
  std::vector<std::byte> landing_;
  std::vector<std::byte> head_;
  std::uint64_t stream_left_ = 0;
  std::size_t stream_bytes_ = 0;
  std::atomic<std::uint64_t> frames_ = 0;
  std::atomic<std::uint64_t> wanted_ = 0;
  std::thread thread_;
};

struct Ends {
  explicit Ends(std::size_t payload_bytes_max) : client(payload_bytes_max), server(payload_bytes_max) {
    End::connect(client, server);
  }
  // Both stop before either goes, or one would see the other leave.
  ~Ends() {
    client.stop();
    server.stop();
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;

  End client;
  End server;
};

// A connected pair of bare TCP sockets with TCP_NODELAY, nothing else.
struct BareSockets {
  BareSockets();
  ~BareSockets();
  BareSockets(const BareSockets&) = delete;
  BareSockets& operator=(const BareSockets&) = delete;

  int near = -1;
  int far = -1;
};

void bare_send(int fd, const std::vector<std::byte>& bytes);
void bare_receive(int fd, std::vector<std::byte>& bytes);

}  // namespace w5xde::bench
