// Simulated links between processes: they delay, stall, lose their ends, and flip bits when they are told to.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/stream.h"
#include "sim/world/process.h"

namespace w5xde {

struct SimLinkShape {
  Duration latency = std::chrono::microseconds(50);
  double jitter = 1;                // a delay is up to this many latencies longer
  double bytes_per_second = 100e6;  // each way
  std::size_t buffer_bytes = 64 * 1024;
  double short_chance = 0.1;  // that a read or a write moves less than it could
  bool loopback = false;      // both ends are on one machine
};

using SimTrace = std::function<void(const std::string&)>;

// A connection between two processes. Its streams keep it, and so do bytes on their way.
class SimLink : public std::enable_shared_from_this<SimLink> {
 public:
  // There: from the process that connected to the one that accepted.
  enum class Way { there, back, both };

  static std::shared_ptr<SimLink> make(SimTime& time, const SimLinkShape& shape, std::uint64_t seed,
                                       SimTrace trace);
  ~SimLink();
  // The end of the process that connected, and the other one. Once.
  std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> ends(SimProcess& near, SimProcess& far);

  // Nothing arrives before that time.
  void block(Way way, Instant until);
  void set_rate(Way way, double bytes_per_second);
  // Both ends find it broken; of what was on its way, at most the first bytes arrive.
  void cut();
  // One bit of what arrives next.
  void flip_bit(Way way);
  // From here on an end that closes does so without a word, as a machine without power.
  void set_silent() { silent_ = true; }

 private:
  friend class SimStream;
  struct Pipe;

  SimLink(SimTime& time, const SimLinkShape& shape, std::uint64_t seed, SimTrace trace);
  std::vector<Pipe*> pipes(Way way);
  std::size_t take(Pipe& pipe, std::span<const iovec> parts);
  std::size_t give(Pipe& pipe, std::span<const iovec> parts);
  bool has_room(const Pipe& pipe) const;
  std::size_t shorter(std::size_t count);
  Duration delay();
  void fly(Pipe& pipe, std::vector<std::byte> bytes, bool end);
  void arm(Pipe& pipe);
  void arrive(Pipe& pipe);
  void break_off(Pipe& pipe);
  void wake_reader(Pipe& pipe);
  void wake_writer(Pipe& pipe);

  SimTime& time_;
  SimLinkShape shape_;
  Random random_;
  SimTrace trace_;
  bool silent_ = false;
  std::unique_ptr<Pipe> there_, back_;
};

}  // namespace w5xde
