#include "run/presets.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace w5xde {
namespace {

TEST(Presets, are_what_the_original_w5xde_s_history_says) {
  struct Row {
    std::string_view name;
    std::uint64_t buffer, chunk;
    bool keep_alive, quick_ack, combined;
    std::string_view serialization, down, up;
    std::uint64_t threshold;
    std::string_view gradients;
  };
  const Row rows[] = {
      {"early", 512 * kKiB, 0, false, false, false, "generic", "none", "none", 0, "none"},
      {"standard", kMiB, 0, true, false, false, "generic", "zlib:9", "zlib:1", 0, "none"},
      {"current", 8 * kMiB, 256 * kKiB, true, true, false, "generic", "zlib:9", "zlib:1", kMiB, "none"},
      {"enhanced", 16 * kMiB, kMiB, true, true, true, "generic", "lz4-frame:1", "lz4-frame:1", 512 * kKiB,
       "none"},
      {"lz4-block", 16 * kMiB, kMiB, true, true, true, "generic", "lz4:65537", "lz4:65537", 512 * kKiB,
       "none"},
      {"direct-tensor", 16 * kMiB, kMiB, true, true, true, "direct", "lz4:65537", "lz4:65537", 512 * kKiB,
       "none"},
      {"gradient-compression", kMiB, 0, true, false, false, "generic", "zlib:9", "zlib:1", 0, "int8"},
      {"adaptive", 0, 0, true, true, true, "direct", "auto", "auto", 0, "none"},
      {"adaptive-lossy", 0, 0, true, true, true, "direct", "auto", "auto", 0, "auto"},
  };
  ASSERT_EQ(preset_names().size(), std::size(rows));
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto made = preset(row.name);
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(made->check().ok());
    EXPECT_EQ(made->preset, row.name);
    EXPECT_EQ(made->socket_buffer, row.buffer);
    EXPECT_EQ(made->receive_chunk, row.chunk);
    EXPECT_EQ(made->keep_alive, row.keep_alive);
    EXPECT_EQ(made->quick_ack, row.quick_ack);
    EXPECT_EQ(made->combined_send, row.combined);
    EXPECT_EQ(name_of(made->serialization), row.serialization);
    EXPECT_EQ(to_string(made->codec), row.down);
    EXPECT_EQ(to_string(made->codec_up(kGiB)), row.up);
    EXPECT_EQ(made->codec_threshold, row.threshold);
    EXPECT_EQ(to_string(made->gradient_codec), row.gradients);
    const bool adaptive = row.name.starts_with("adaptive");
    EXPECT_EQ(made->part_bytes, adaptive ? kPartBytesUsual : 0);
    EXPECT_EQ(made->sample_cache, adaptive ? SampleCaching::automatic : SampleCaching::off);
    EXPECT_EQ(made->shared_memory, adaptive ? MemorySharing::automatic : MemorySharing::off);
    EXPECT_EQ(made->who_works, adaptive ? WhoWorks::fastest : WhoWorks::all);
    EXPECT_EQ(made->contribution_codec.has_value(), !adaptive && row.name != "early");
    EXPECT_EQ(to_string(made->parameter_codec), row.name == "adaptive-lossy" ? "auto" : "none");
  }
}

TEST(Presets, a_name_that_is_none_is_answered_with_all_names) {
  EXPECT_EQ(preset("late").error().message,
            "'late' is no preset; take one of early, standard, current, enhanced, lz4-block, direct-tensor, "
            "gradient-compression, adaptive, adaptive-lossy");
}

}  // namespace
}  // namespace w5xde
