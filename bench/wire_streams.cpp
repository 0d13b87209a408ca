// One-way streams, round trips and the bytes that a frame adds.
#include <thread>

#include "base/limits.h"
#include "sockets.h"
#include "wire/frame.h"
#include "wire/messages.h"
#include "wire_groups.h"

#include <fmt/format.h>

namespace w5xde::bench {

namespace {

constexpr std::uint64_t kStreamBytes = 512 * kMiB;  // a measurement
constexpr int kRoundTrips = 2000;
// A round trip is two wake-ups of a sleeping core, which vary far more from round to round than anything else
// here.
constexpr int kRoundTripRoundsFactor = 5;

std::string size_name(std::size_t bytes) {
  return bytes >= kMiB ? fmt::format("{} MB", bytes / kMiB) : fmt::format("{} KB", bytes / kKiB);
}

double bytes_per_second(std::uint64_t bytes, double seconds) {
  return static_cast<double>(bytes) / seconds / 1e6;
}

// Both measurements make their connection anew, so that neither has a socket that the kernel has tuned for
// longer.
double framed_stream(std::size_t frame_bytes) {
  Ends ends(frame_bytes);
  const std::uint64_t frames = kStreamBytes / frame_bytes;
  const double seconds = seconds_for([&] {
    ends.client.run([&](End& end) { end.stream(frames, frame_bytes); });
    ends.server.wait_for(frames);
  });
  return bytes_per_second(kStreamBytes, seconds);
}

double bare_stream(std::size_t piece_bytes) {
  const BareSockets sockets;
  std::vector<std::byte> outgoing(piece_bytes, std::byte{1}), landing(piece_bytes);
  const std::uint64_t pieces = kStreamBytes / piece_bytes;
  const double seconds = seconds_for([&] {
    std::thread sender([&] {
      stay_on_core(0);
      for (std::uint64_t i = 0; i < pieces; ++i) bare_send(sockets.near, outgoing);
    });
    std::thread receiver([&] {
      stay_on_core(1);
      for (std::uint64_t i = 0; i < pieces; ++i) bare_receive(sockets.far, landing);
    });
    sender.join();
    receiver.join();
  });
  return bytes_per_second(kStreamBytes, seconds);
}

double framed_round_trip(std::size_t bytes) {
  Ends ends(bytes);
  ends.server.run([](End& end) { end.echo = true; });
  const double seconds = seconds_for([&] {
    ends.client.run([&](End& end) {
      end.rounds_left = kRoundTrips - 1;
      end.send(bytes);
    });
    ends.client.wait_for(kRoundTrips);
  });
  return seconds / kRoundTrips * 1e6;
}

double bare_round_trip(std::size_t bytes) {
  const BareSockets sockets;
  std::vector<std::byte> request(bytes), reply(bytes);
  const double seconds = seconds_for([&] {
    std::thread server([&] {
      stay_on_core(1);
      for (int i = 0; i < kRoundTrips; ++i) {
        bare_receive(sockets.far, reply);
        bare_send(sockets.far, reply);
      }
    });
    std::thread client([&] {
      stay_on_core(0);
      for (int i = 0; i < kRoundTrips; ++i) {
        bare_send(sockets.near, request);
        bare_receive(sockets.near, request);
      }
    });
    client.join();
    server.join();
  });
  return seconds / kRoundTrips * 1e6;
}

}  // namespace

void bench_streams(int rounds, Report& report) {
  report.heading("one-way tensor stream against bare send/recv");
  for (const std::size_t bytes : {64 * kKiB, 1 * kMiB, 16 * kMiB, 64 * kMiB}) {
    report.add(fmt::format("stream {}", size_name(bytes)), "MB/s",
               interleave(
                   rounds, [&] { return framed_stream(bytes); }, [&] { return bare_stream(bytes); }));
  }
}

void bench_round_trips(int rounds, Report& report) {
  report.heading("request and reply against a bare ping-pong");
  for (const std::size_t bytes : {1 * kKiB, 8 * kKiB}) {
    report.add(fmt::format("round trip {}", size_name(bytes)), "us",
               interleave(
                   kRoundTripRoundsFactor * rounds, [&] { return framed_round_trip(bytes); },
                   [&] { return bare_round_trip(bytes); }));
  }
}

void bench_overhead(int, Report& report) {
  report.heading("bytes over the payload of a one-tensor frame");
  for (const Shape& shape : {Shape{}, Shape{430}, Shape{1024, 4096}, Shape{512, 512, 3, 3}}) {
    Head head;
    encode(Tensors{{{DType::f32, shape, true, ""}}}, head);
    const std::size_t bytes = kFrameHeaderBytes + head.size() + kFrameChecksumBytes;
    report.add({fmt::format("overhead {}", shape.to_string()), static_cast<double>(bytes), "bytes", {}, {}});
  }
}

}  // namespace w5xde::bench
