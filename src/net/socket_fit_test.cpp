#include "net/socket_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/limits.h"

namespace w5xde {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr double kMegabit = 1e6 / 8;

// What most distributions come with: 4 MiB to send, and 208 KiB for who asks.
constexpr BufferState kUsual{.size = 87'040, .ceiling = 4 * kMiB, .granted = 2 * 212'992};

TEST(FitBufferTest, a_link_that_the_kernel_can_fill_by_itself_is_left_to_it) {
  struct Row {
    double rate;
    Duration round_trip;
  };
  for (const auto& [rate, round_trip] : {Row{40e9 * 0.125, microseconds(20)},      // this machine
                                         Row{1000 * kMegabit, microseconds(300)},  // an office
                                         Row{100 * kMegabit, milliseconds(10)},    // a town
                                         Row{50 * kMegabit, milliseconds(150)},    // an ocean, thinly
                                         Row{0, milliseconds(150)}, Row{1000 * kMegabit, milliseconds(0)}}) {
    EXPECT_EQ(fit_buffer(rate, round_trip, kUsual), BufferFit()) << rate;
  }
}

TEST(FitBufferTest, a_long_fat_link_gets_room_for_two_pipes) {
  // 125 MB/s × 0.1 s × 2 = 25 MB, in whole mebibytes.
  EXPECT_EQ(fit_buffer(1000 * kMegabit, milliseconds(100), kUsual), (BufferFit{24 * kMiB, 0}));
}

TEST(FitBufferTest, what_is_set_is_always_more_than_the_kernel_would_come_to) {
  for (const std::uint64_t ceiling : {256 * kKiB, 3 * kMiB, 4 * kMiB, 6 * kMiB, 32 * kMiB, kGiB}) {
    for (const std::uint64_t granted : {std::uint64_t{0}, 416 * kKiB, 8 * kMiB, kGiB}) {
      for (const std::uint64_t size : {std::uint64_t{0}, 87 * kKiB, 2 * kMiB, 48 * kMiB}) {
        for (double rate = 1e3; rate < 1e12; rate *= 3) {
          const auto [wanted, permitted] = fit_buffer(rate, milliseconds(80), {size, ceiling, granted});
          EXPECT_TRUE(wanted == 0 || 2 * wanted > std::max(size, ceiling));
          EXPECT_TRUE(permitted == 0 || 2 * permitted > std::max(size, ceiling));
          EXPECT_LE(permitted, wanted);
          EXPECT_LE(2 * permitted, granted);
        }
      }
    }
  }
}

TEST(FitBufferTest, who_may_not_pass_the_limits_asks_only_where_that_gains_something) {
  BufferState buffer = kUsual;
  const auto permitted = [&] { return fit_buffer(1000 * kMegabit, milliseconds(100), buffer).permitted; };
  buffer.granted = 4 * kMiB;
  EXPECT_EQ(permitted(), 0u) << "no more than the kernel would choose by itself";
  buffer.granted = 16 * kMiB;
  EXPECT_EQ(permitted(), 8 * kMiB) << "all that there is";
  buffer.granted = 512 * kMiB;
  EXPECT_EQ(permitted(), 24 * kMiB) << "no more than wanted";
  buffer.granted = 0;
  EXPECT_EQ(permitted(), 0u) << "not known";
}

// The buffer that is the bottleneck carries its room each round trip, whatever the link could do.
TEST(FitBufferTest, a_buffer_that_holds_the_link_back_grows_until_it_does_not) {
  constexpr double kLink = 2000 * kMegabit, kRoundTrip = 0.06;  // a pipe of 15 MB
  BufferState buffer = kUsual;
  buffer.size = buffer.ceiling;
  int changes = 0;
  for (int tick = 0; tick < 20; ++tick) {
    const double carried = std::min(kLink, static_cast<double>(buffer.size / 2) / kRoundTrip);
    const auto wanted = fit_buffer(carried, duration_of(kRoundTrip), buffer).wanted;
    if (wanted == 0) continue;
    buffer.size = 2 * wanted;
    ++changes;
  }
  EXPECT_GE(static_cast<double>(buffer.size) / 2, 2 * kLink * kRoundTrip);
  EXPECT_LE(buffer.size, 64 * kMiB);
  EXPECT_LE(changes, 5) << "it doubles";
}

TEST(FitBufferTest, a_size_once_set_is_not_taken_back) {
  BufferState buffer = kUsual;
  buffer.size = 48 * kMiB;
  EXPECT_EQ(fit_buffer(500 * kMegabit, milliseconds(100), buffer), BufferFit());
}

TEST(FitBufferTest, no_measurement_asks_for_more_than_a_bound) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double rate : {1e12, 1e300, infinite}) {
    EXPECT_EQ(fit_buffer(rate, std::chrono::hours(1), kUsual).wanted, 64 * kMiB);
  }
  EXPECT_EQ(fit_buffer(std::nan(""), milliseconds(100), kUsual), BufferFit());
  BufferState full = kUsual;
  full.size = 128 * kMiB;
  EXPECT_EQ(fit_buffer(infinite, std::chrono::hours(1), full), BufferFit()) << "it has that much already";
}

TEST(FitBufferTest, a_kernel_whose_ceiling_is_not_known_is_left_alone) {
  EXPECT_EQ(fit_buffer(1000 * kMegabit, milliseconds(100), {.size = 87'040, .granted = kGiB}), BufferFit());
}

MeasuredLink sending(double rate) {
  return {.send_bytes_per_second = rate, .send_rate_limited_by_link = true};
}

TEST(FitUnsentTest, what_waits_is_a_few_hundredths_of_a_second_of_the_link) {
  EXPECT_EQ(fit_unsent(sending(100 * kMegabit), kUsual), 512 * kKiB);  // 12.5 MB/s × 0.04 s, in steps
  EXPECT_EQ(fit_unsent(sending(200 * kMegabit), kUsual), kMiB);
}

TEST(FitUnsentTest, on_a_slow_link_it_is_what_a_system_call_is_worth) {
  EXPECT_EQ(fit_unsent(sending(1 * kMegabit), kUsual), 128 * kKiB);
  EXPECT_EQ(fit_unsent(sending(0), kUsual), 128 * kKiB);
}

TEST(FitUnsentTest, on_a_fast_link_nothing_is_held_back) {
  EXPECT_EQ(fit_unsent(sending(1000 * kMegabit), kUsual), 0u);
  EXPECT_EQ(fit_unsent(sending(5e9), kUsual), 0u);
  EXPECT_EQ(fit_unsent(sending(std::numeric_limits<double>::infinity()), kUsual), 0u);
  EXPECT_EQ(fit_unsent(sending(std::nan("")), kUsual), 0u);
}

TEST(FitUnsentTest, a_large_buffer_of_a_long_link_does_not_fill_with_what_is_unsent) {
  BufferState large = kUsual;
  large.size = 48 * kMiB;
  EXPECT_EQ(fit_unsent(sending(1000 * kMegabit), large), 5 * kMiB - 128 * kKiB);
}

TEST(FitUnsentTest, a_sender_with_little_to_send_is_not_held_to_its_rate) {
  EXPECT_EQ(fit_unsent({.send_bytes_per_second = 1e6}, kUsual), 0u);
}

TEST(FitUnsentTest, a_kernel_whose_ceiling_is_not_known_is_left_alone) {
  EXPECT_EQ(fit_unsent(sending(1e6), {}), 0u);
}

}  // namespace
}  // namespace w5xde
