#pragma once

#include <cstdint>
#include <memory>

#include "net/asio_loop.h"
#include "net/tcp.h"
#include "w5xde/result.h"

namespace w5xde {

// How a link misbehaves. The default is a perfect one.
struct LinkShape {
  Duration delay = Duration::zero();        // each way
  double bytes_per_second = 0;              // each way; 0: no limit
  bool shared = false;                      // all connections have that rate together, not each
  Duration stall_every = Duration::zero();  // nothing moves for stall_for, every so often; 0: never
  Duration stall_for = Duration::zero();
  std::uint64_t flip_every_bytes = 0;  // one bit is flipped about that often; 0: never
  std::uint64_t cut_after_bytes = 0;   // a connection is cut when it has carried that much; 0: never
};

// A relay that makes a loopback connection behave like a bad network: connect to address() instead of the
// target. Needs no privileges, and does the same again from the same seed. Loop thread only.
class Link {
 public:
  static Result<std::unique_ptr<Link>> start(AsioLoop& loop, const Address& target, const LinkShape& shape,
                                             std::uint64_t seed);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const Address& address() const;
  void set_shape(const LinkShape& shape);
  // While partitioned nothing moves, and new connections lead nowhere. Bytes on their way wait.
  void set_partitioned(bool partitioned);
  // Drops every connection, as a broken cable or a restarted router does.
  void cut_all();

  std::uint64_t connections() const;  // now
  std::uint64_t bits_flipped() const;

 private:
  struct State;
  explicit Link(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace w5xde
