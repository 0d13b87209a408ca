#include "coordinator/socket_options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "run/presets.h"
#include "support/kernel_buffers.h"
#include "support/stream_pairs.h"

namespace w5xde {
namespace {

TEST(SocketOptionsTest, every_preset_s_socket_is_as_it_says) {
  const auto kinds = all_stream_kinds();
  const auto tcp = std::ranges::find(kinds, "tcp", &StreamKind::name);
  ASSERT_NE(tcp, kinds.end());
  for (const std::string_view name : preset_names()) {
    SCOPED_TRACE(name);
    const Transport transport = preset(name).value();
    const auto pair = tcp->make();
    const TcpReport before = pair->near->tcp_report().value();
    pair->near->tune(socket_options(transport));
    const TcpReport after = pair->near->tcp_report().value();
    EXPECT_TRUE(after.no_delay);
    EXPECT_EQ(after.keep_alive, transport.keep_alive);
    EXPECT_EQ(after.quick_ack, transport.quick_ack);
    if (transport.socket_buffer == 0) {
      EXPECT_EQ(after.send_buffer_bytes, before.send_buffer_bytes) << "left to the kernel";
      EXPECT_EQ(after.receive_buffer_bytes, before.receive_buffer_bytes);
      continue;
    }
    // What anyone is granted at least; all of it, and as much again for its bookkeeping, at most.
    const KernelBuffers granted = granted_to_anyone(transport.socket_buffer);
    EXPECT_GE(after.send_buffer_bytes, granted.send);
    EXPECT_LE(after.send_buffer_bytes, 2 * transport.socket_buffer);
    EXPECT_GE(after.receive_buffer_bytes, granted.receive);
    EXPECT_LE(after.receive_buffer_bytes, 2 * transport.socket_buffer);
  }
}

}  // namespace
}  // namespace w5xde
