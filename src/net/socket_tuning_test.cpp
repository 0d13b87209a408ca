// Of real sockets only what every kernel grants everyone: its limits differ from machine to machine, and
// whether a test may pass them too. The decisions themselves are in socket_fit_test.cpp.
#include "net/socket_tuning.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "base/limits.h"
#include "support/kernel_buffers.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

using std::chrono::milliseconds;

class SocketTuningTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(fd_, 0); }
  ~SocketTuningTest() override { ::close(fd_); }

  std::uint64_t unsent() const {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(fd_, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &size), 0);
    return static_cast<std::uint64_t>(value);
  }

  const int fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
};

TEST_F(SocketTuningTest, a_socket_that_suits_its_link_is_left_as_it_is) {
  const TcpReport before = report_socket(fd_);
  const KernelLimits limits{4 * kMiB, 4 * kMiB, 4 * kMiB, 4 * kMiB};
  fit_socket(fd_, {}, limits);
  fit_socket(fd_, {1e9, true, 1e9, std::chrono::microseconds(50)}, limits);
  fit_socket(fd_, {1e9, true, 1e9, milliseconds(100)}, {});
  const TcpReport after = report_socket(fd_);
  EXPECT_EQ(after.send_buffer_bytes, before.send_buffer_bytes);
  EXPECT_EQ(after.receive_buffer_bytes, before.receive_buffer_bytes);
  EXPECT_EQ(unsent(), 0u);
}

TEST_F(SocketTuningTest, a_long_fat_link_gets_as_much_as_the_kernel_grants) {
  // As if the kernel stopped at 64 KiB: two pipes are 1 MiB, whatever its real limits.
  const KernelBuffers anyone = granted_to_anyone(kMiB);
  const KernelLimits limits{.send_ceiling = 64 * kKiB,
                            .send_granted = anyone.send,
                            .receive_ceiling = 64 * kKiB,
                            .receive_granted = anyone.receive};
  const TcpReport before = report_socket(fd_);
  fit_socket(fd_,
             {.send_bytes_per_second = 5e6, .receive_bytes_per_second = 5e6, .round_trip = milliseconds(100)},
             limits);
  const TcpReport after = report_socket(fd_);
  EXPECT_GE(after.send_buffer_bytes, std::max(before.send_buffer_bytes, anyone.send));
  EXPECT_LE(after.send_buffer_bytes, std::max(before.send_buffer_bytes, 2 * kMiB));
  EXPECT_GE(after.receive_buffer_bytes, std::max(before.receive_buffer_bytes, anyone.receive));
  EXPECT_LE(after.receive_buffer_bytes, std::max(before.receive_buffer_bytes, 2 * kMiB));
}

TEST_F(SocketTuningTest, what_waits_unsent_is_bounded_until_the_link_is_fast_or_the_options_say_otherwise) {
  const KernelLimits limits{.send_ceiling = kGiB};
  fit_socket(fd_, {.send_bytes_per_second = 12.5e6, .send_rate_limited_by_link = true}, limits);
  EXPECT_EQ(unsent(), 512 * kKiB);
  fit_socket(fd_, {.send_bytes_per_second = 125e9, .send_rate_limited_by_link = true}, limits);
  EXPECT_EQ(unsent(), 0u);
  fit_socket(fd_, {.send_bytes_per_second = 12.5e6, .send_rate_limited_by_link = true}, limits);
  tune_socket(fd_, {.send_buffer_bytes = kMiB});
  EXPECT_EQ(unsent(), 0u);
}

TEST(KernelLimitsTest, are_read_where_the_kernel_shows_them) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "ipv4");
  std::filesystem::create_directories(folder / "core");
  std::ofstream(folder / "ipv4/tcp_wmem") << "4096\t16384\t4194304\n";
  std::ofstream(folder / "ipv4/tcp_rmem") << "4096\t131072\t6291456\n";
  std::ofstream(folder / "core/wmem_max") << "212992\n";
  std::ofstream(folder / "core/rmem_max") << "524288\n";
  EXPECT_EQ(read_kernel_limits(folder.path()), (KernelLimits{4194304, 425984, 6291456, 1048576}));
}

TEST(KernelLimitsTest, that_cannot_be_read_are_not_known) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_kernel_limits(folder / "nowhere"), KernelLimits());
  std::filesystem::create_directories(folder / "ipv4");
  std::ofstream(folder / "ipv4/tcp_wmem") << "unlimited\n";
  EXPECT_EQ(read_kernel_limits(folder.path()), KernelLimits());
}

}  // namespace
}  // namespace w5xde
