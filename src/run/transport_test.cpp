#include "run/transport.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace w5xde {
namespace {

// The seeds' history, generation by generation.
TEST(Transport, presets_are_what_the_history_says) {
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
      {"enhanced", 16 * kMiB, kMiB, true, true, true, "generic", "lz4-frame", "lz4-frame", 512 * kKiB,
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
    EXPECT_EQ(made->serialization, row.serialization);
    EXPECT_EQ(made->codec, row.down);
    EXPECT_EQ(made->codec_up(), row.up);
    EXPECT_EQ(made->codec_threshold, row.threshold);
    EXPECT_EQ(made->gradient_codec, row.gradients);
    EXPECT_EQ(made->part_bytes, row.name.starts_with("adaptive") ? kPartBytesUsual : 0);
    EXPECT_EQ(made->parameter_codec, row.name == "adaptive-lossy" ? "auto" : "none");
  }
}

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

TEST(Transport, says_what_is_wrong_with_a_setting) {
  const auto refusal = [](auto change) {
    Transport transport;
    change(transport);
    const Status status = transport.check();
    return status.ok() ? "accepted" : status.error().message;
  };
  EXPECT_EQ(refusal([](Transport&) {}), "accepted");
  EXPECT_NE(refusal([](Transport& t) { t.codec = "snappy"; }).find("snappy"), std::string::npos);
  EXPECT_NE(refusal([](Transport& t) { t.contribution_codec = "zlib:12"; }).find("zlib"), std::string::npos);
  EXPECT_NE(refusal([](Transport& t) { t.gradient_codec = "topk:2"; }).find("topk:2"), std::string::npos);
  EXPECT_NE(refusal([](Transport& t) { t.parameter_codec = "int4"; }).find("int4"), std::string::npos);
  EXPECT_EQ(refusal([](Transport& t) { t.serialization = "pickle"; }),
            "--serialization pickle: direct or generic");
  EXPECT_EQ(refusal([](Transport& t) { t.crew = "some"; }), "--crew some: auto or all");
  EXPECT_EQ(refusal([](Transport& t) { t.sample_cache = "maybe"; }), "--sample-cache maybe: auto, on or off");
  EXPECT_EQ(refusal([](Transport& t) { t.gradient_codec = "auto"; }), "accepted");
}

}  // namespace
}  // namespace w5xde
