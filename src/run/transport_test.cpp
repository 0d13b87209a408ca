#include "run/transport.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace w5xde {
namespace {

TEST(Transport, parts_are_never_too_many_and_whole_chunks) {
  for (const std::uint64_t floats :
       {2'048ull, 131'072ull, 1'863'690ull, 67'200'000ull, 100'000'000ull, 7'000'000'000ull}) {
    for (const std::uint64_t bytes : {64ull, 1024ull, 4096ull, 262'144ull, 16'777'216ull}) {
      const std::uint64_t part = part_floats(floats, bytes);
      if (part == 0) {
        EXPECT_LT(floats, 2 * (bytes / 4 + kGradientChunk)) << floats << " in " << bytes;
        continue;
      }
      EXPECT_GE(part, bytes / 4);
      EXPECT_LE((floats + part - 1) / part, kPartsMax) << floats << " in " << bytes;
      EXPECT_TRUE(part < kGradientChunk || part % kGradientChunk == 0) << floats << " in " << bytes;
    }
    EXPECT_EQ(part_floats(floats, 0), 0u);
  }
  EXPECT_EQ(part_floats(1'863'690, kPartBytesUsual), 65'536u);
  EXPECT_EQ(part_floats(131'072, kPartBytesUsual), 65'536u) << "two parts";
  EXPECT_EQ(part_floats(131'071, kPartBytesUsual), 0u);
}

TEST(Transport, a_socket_buffer_has_a_limit) {
  EXPECT_TRUE(Transport().check().ok());
  EXPECT_EQ(Transport{.socket_buffer = 2 * kGiB}.check().error().message,
            "--socket-buffer 2147483648 is too much; use 1073741824 or less");
}

TEST(Transport, samples_are_kept_behind_slow_links_unless_the_setting_says_otherwise) {
  Transport transport;
  EXPECT_TRUE(transport.keeps_samples(false, 0));
  EXPECT_FALSE(transport.keeps_samples(true, 0));
  EXPECT_FALSE(transport.keeps_samples(true, 1e9));
  EXPECT_TRUE(transport.keeps_samples(true, 1e6));
  transport.sample_cache = SampleCaching::off;
  EXPECT_FALSE(transport.keeps_samples(false, 1e6));
  transport.sample_cache = SampleCaching::on;
  EXPECT_TRUE(transport.keeps_samples(true, 1e9));
}

TEST(Transport, what_nodes_send_has_the_codec_of_what_they_receive_unless_another_is_named) {
  Transport transport;
  EXPECT_TRUE(transport.codec_up(0).automatic);
  transport.contribution_codec = LosslessChoice{{LosslessKind::zlib, 1}};
  transport.codec_threshold = 1000;
  EXPECT_EQ(to_string(transport.codec_up(1000)), "zlib:1");
  EXPECT_EQ(to_string(transport.codec_up(999)), "none") << "too small to be worth it";
}

}  // namespace
}  // namespace w5xde
