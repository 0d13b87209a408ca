// A goodbye was lost when its reader had still something to say: the socket was closed with that unread,
// which resets the connection, and what lay in the kernel's buffers was dropped, the goodbye with it. Behind
// a slow link a node then held the coordinator for crashed, and tried to come back to a run that was over.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "net/connection.h"
#include "support/stream_pairs.h"

namespace w5xde {
namespace {

class Talker : public Connection::Owner {
 public:
  Result<MutableBytes> place(const FrameHeader& header, Bytes) override {
    landing_.resize(header.payload_bytes);
    return MutableBytes(landing_);
  }
  Status received(const FrameHeader&, Bytes, MutableBytes) override {
    ++frames;
    if (on_frame) on_frame();
    return {};
  }
  void closed(const Error& reason) override { why = reason; }

  int frames = 0;
  std::function<void()> on_frame;
  std::optional<Error> why;

 private:
  std::vector<std::byte> landing_;
};

class GoodbyeTest : public testing::TestWithParam<StreamKind> {};

TEST_P(GoodbyeTest, reaches_a_peer_that_goes_on_talking) {
  const auto pair = GetParam().make();
  Talker leaving, talking;
  const auto near = Connection::start(std::move(pair->near), leaving, {});
  const auto far = Connection::start(std::move(pair->far), talking, {});
  const std::vector<std::byte> megabyte(1 << 20);
  const TensorView payload = TensorView::of_bytes(megabyte);
  const std::array<std::byte, 8> head{};
  const auto send = [&](Connection& connection) {
    (void)connection.send({.type = FrameType::value, .head = head, .payload = {&payload, 1}});
  };
  talking.on_frame = [&] { send(*far); };
  constexpr int kFrames = 12;
  for (int i = 0; i < kFrames; ++i) send(*near);
  near->close(disconnected("the run is finished"));
  ASSERT_TRUE(pair->run_until([&] { return talking.why.has_value(); }));
  EXPECT_EQ(talking.why->message, "the other side left: the run is finished");
  EXPECT_EQ(talking.frames, kFrames);
  ASSERT_TRUE(pair->run_until([&] { return leaving.why.has_value(); }));
  EXPECT_EQ(leaving.why->message, "the run is finished");
}

INSTANTIATE_TEST_SUITE_P(Streams, GoodbyeTest, testing::ValuesIn(all_stream_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace w5xde
