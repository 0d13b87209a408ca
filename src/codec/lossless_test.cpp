#include "codec/lossless.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "contract/lossless_contract.h"

namespace w5xde {

namespace {

using contract::bytes;
using contract::Coding;

Coding coding_of(LosslessCodec codec) {
  return {.name = contract::identifier_of(codec),
          .make_encoder =
              [codec] {
                auto compressor = std::make_shared<LosslessCompressor>();
                return [codec, compressor](Bytes raw) {
                  std::vector<std::byte> out(raw.size() + raw.size() / 8 + 64);
                  out.resize(compressor->compress(codec, raw, out));
                  return out;
                };
              },
          .make_decoder =
              [kind = codec.kind] {
                auto decompressor = std::make_shared<LosslessDecompressor>();
                return [kind, decompressor](Bytes encoded, MutableBytes raw) {
                  return decompressor->decompress(kind, encoded, raw);
                };
              }};
}

std::vector<Coding> bare_codings() {
  std::vector<Coding> codings = {coding_of({LosslessKind::none, 0})};
  for (const LosslessCodec codec : contract::compressing_codecs()) codings.push_back(coding_of(codec));
  return codings;
}

// What malloc has handed out; 0 under a sanitizer that replaces it.
std::size_t heap_bytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// What comes of `encoded` as `raw_bytes` of raw bytes: the text, or the error. Nothing decoded here justifies
// a megabyte of working memory.
std::string decoded_text(LosslessKind kind, Bytes encoded, std::size_t raw_bytes) {
  contract::WalledBytes raw(raw_bytes);
  const std::size_t heap_before = heap_bytes();
  LosslessDecompressor decompressor;
  const Status status = decompressor.decompress(kind, encoded, raw.bytes());
  EXPECT_LT(heap_bytes(), heap_before + (1 << 20));
  EXPECT_TRUE(raw.walls_stand());
  return status.ok() ? std::string(text_of(raw.bytes())) : status.error().to_string();
}

}  // namespace

namespace contract {
INSTANTIATE_TEST_SUITE_P(Bare, LosslessContract, testing::ValuesIn(bare_codings()), name_of_coding);
}  // namespace contract

TEST(Lossless, a_codec_s_text_reads_back_as_the_same_codec) {
  EXPECT_EQ(*parse_lossless("none"), (LosslessCodec{LosslessKind::none, 0}));
  EXPECT_EQ(*parse_lossless("zlib:9"), (LosslessCodec{LosslessKind::zlib, 9}));
  EXPECT_EQ(*parse_lossless("lz4:65537"), (LosslessCodec{LosslessKind::lz4, 65537}));
  EXPECT_EQ(*parse_lossless("lz4-frame:2"), (LosslessCodec{LosslessKind::lz4_frame, 2}));
  EXPECT_EQ(*parse_lossless("zstd:-7"), (LosslessCodec{LosslessKind::zstd, -7}));
  EXPECT_EQ(to_string({LosslessKind::none, 0}), "none");
  EXPECT_EQ(to_string({LosslessKind::zstd, -7}), "zstd:-7");
  for (const LosslessCodec codec : contract::compressing_codecs())
    EXPECT_EQ(*parse_lossless(to_string(codec)), codec) << to_string(codec);
}

TEST(Lossless, without_a_level_a_codec_has_its_usual_one) {
  EXPECT_EQ(to_string(*parse_lossless("zlib")), "zlib:6");
  EXPECT_EQ(to_string(*parse_lossless("lz4")), "lz4:1");
  EXPECT_EQ(to_string(*parse_lossless("lz4-frame")), "lz4-frame:1");
  EXPECT_EQ(to_string(*parse_lossless("zstd")), "zstd:3");
}

TEST(Lossless, an_unknown_codec_or_level_is_told_what_is_allowed) {
  const auto message_of = [](std::string_view text) {
    const auto parsed = parse_lossless(text);
    return parsed.ok() ? "parsed " + std::string(text) : parsed.error().to_string();
  };
  EXPECT_EQ(
      message_of("gzip:6"),
      "invalid: 'gzip' is not a lossless codec: use none, zlib, lz4, lz4-frame or zstd, with a level as in "
      "zstd:3");
  EXPECT_EQ(message_of("zlib:10"), "invalid: '10' is not a level of lossless codec zlib: zlib takes 1 to 9");
  EXPECT_EQ(message_of("zstd:0"),
            "invalid: '0' is not a level of lossless codec zstd: zstd takes -7 to -1 and 1 to 19");
  EXPECT_EQ(message_of("none:0"), "invalid: '0' is not a level of lossless codec none: none takes no level");
  for (const std::string_view text :
       {"", ":", "zlib:", "zlib:0", "zlib:-1", "zlib:6 ", " zlib", "zlib:6x", "ZLIB", "lz4:0", "lz4:65538",
        "lz4-frame:0", "zstd:20", "zstd:-8", "zstd:+3", "zstd:99999999999999999999", "none:1", "zlib:6:6"})
    EXPECT_FALSE(parse_lossless(text).ok()) << text;
}

TEST(Lossless, parsing_any_text_gives_a_codec_or_an_error) {
  EXPECT_TRUE(rc::check([](const std::string& tail, int level) {
    for (const std::string name : {"", "none", "zlib", "lz4", "lz4-frame", "zstd"}) {
      for (const std::string& text : {name + tail, name + ":" + tail, name + ":" + std::to_string(level)}) {
        const auto parsed = parse_lossless(text);
        if (parsed.ok()) RC_ASSERT(*parse_lossless(to_string(*parsed)) == *parsed);
      }
    }
  }));
}

TEST(Lossless, codec_numbers_are_what_the_wire_says) {
  EXPECT_EQ(static_cast<int>(LosslessKind::none), 0);
  EXPECT_EQ(static_cast<int>(LosslessKind::zlib), 1);
  EXPECT_EQ(static_cast<int>(LosslessKind::lz4), 2);
  EXPECT_EQ(static_cast<int>(LosslessKind::lz4_frame), 3);
  EXPECT_EQ(static_cast<int>(LosslessKind::zstd), 4);
  for (int number = 0; number < 256; ++number)
    EXPECT_EQ(is_known(static_cast<std::uint8_t>(number)), number <= 4) << number;
}

TEST(Lossless, an_unknown_codec_number_is_incompatible) {
  std::vector<std::byte> raw(8);
  const auto unknown = static_cast<LosslessKind>(5);
  const Status status = LosslessDecompressor().decompress(unknown, raw, raw);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().to_string(), "incompatible: lossless codec number 5 is not known here");
  EXPECT_EQ(LosslessCompressor().compress({unknown, 1}, raw, raw), 0u);
  EXPECT_EQ(name_of(unknown), "unknown");
}

TEST(Lossless, a_stream_that_does_not_fit_is_not_written) {
  for (const LosslessCodec codec : contract::compressing_codecs()) {
    LosslessCompressor compressor;
    const auto noise = contract::noise(5000);
    contract::WalledBytes out(noise.size() - 1);
    EXPECT_EQ(compressor.compress(codec, noise, out.bytes()), 0u) << to_string(codec);
    EXPECT_TRUE(out.walls_stand()) << to_string(codec);

    const auto words = contract::words(5000);
    std::vector<std::byte> room(6000);
    const std::size_t size = compressor.compress(codec, words, room);
    ASSERT_GT(size, 0u);
    for (std::size_t less = 1; less < 20; ++less) {
      contract::WalledBytes tight(size - less);
      EXPECT_EQ(compressor.compress(codec, words, tight.bytes()), 0u) << to_string(codec);
      EXPECT_TRUE(tight.walls_stand()) << to_string(codec);
    }
    EXPECT_EQ(compressor.compress(codec, words, {}), 0u) << to_string(codec);
  }
}

TEST(Lossless, a_level_out_of_range_counts_as_the_nearest) {
  const auto raw = contract::words(5000);
  const auto compressed = [&](LosslessCodec codec) {
    std::vector<std::byte> out(6000);
    out.resize(LosslessCompressor().compress(codec, raw, out));
    return out;
  };
  constexpr int kLow = std::numeric_limits<int>::min();
  constexpr int kHigh = std::numeric_limits<int>::max();
  EXPECT_EQ(compressed({LosslessKind::zlib, kLow}), compressed({LosslessKind::zlib, 1}));
  EXPECT_EQ(compressed({LosslessKind::zlib, kHigh}), compressed({LosslessKind::zlib, 9}));
  EXPECT_EQ(compressed({LosslessKind::lz4, kLow}), compressed({LosslessKind::lz4, 1}));
  EXPECT_EQ(compressed({LosslessKind::lz4_frame, kHigh}), compressed({LosslessKind::lz4_frame, 65537}));
  EXPECT_EQ(compressed({LosslessKind::zstd, kHigh}), compressed({LosslessKind::zstd, 19}));
}

TEST(Lossless, a_level_changes_what_is_written) {
  const auto raw = contract::words(50000);
  const auto size_of = [&](LosslessCodec codec) {
    std::vector<std::byte> out(60000);
    return LosslessCompressor().compress(codec, raw, out);
  };
  EXPECT_LT(size_of({LosslessKind::zlib, 9}), size_of({LosslessKind::zlib, 1}));
  EXPECT_LT(size_of({LosslessKind::lz4, 1}), size_of({LosslessKind::lz4, 64}));
  EXPECT_LT(size_of({LosslessKind::lz4_frame, 1}), size_of({LosslessKind::lz4_frame, 64}));
  EXPECT_LT(size_of({LosslessKind::zstd, 19}), size_of({LosslessKind::zstd, 1}));
  EXPECT_LT(size_of({LosslessKind::zstd, 1}), size_of({LosslessKind::zstd, -7}));
}

// Streams written by the formats' own tools or by hand from their specifications: what is spoken is the
// public format.
constexpr std::string_view kHellos = "hello hello hello hello";

TEST(Lossless, a_zlib_stream_of_zlib_s_is_read) {
  const auto stream =
      bytes({0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0x01, 0x68, 0x03, 0x08, 0xb1});
  EXPECT_EQ(decoded_text(LosslessKind::zlib, stream, kHellos.size()), kHellos);
}

TEST(Lossless, a_hand_made_lz4_block_is_read) {
  const auto six_literals_twelve_from_six_back_five_literals =
      bytes({0x68, 'h', 'e', 'l', 'l', 'o', ' ', 6, 0, 0x50, 'h', 'e', 'l', 'l', 'o'});
  EXPECT_EQ(decoded_text(LosslessKind::lz4, six_literals_twelve_from_six_back_five_literals, kHellos.size()),
            kHellos);
}

TEST(Lossless, an_lz4_frame_of_the_lz4_tool_s_is_read) {
  const auto with_content_size =
      bytes({0x04, 0x22, 0x4d, 0x18, 0x6c, 0x40, 0x17, 0,   0,   0,   0,    0,    0,    0,
             0x07, 0x0f, 0,    0,    0,    0x68, 'h',  'e', 'l', 'l', 'o',  ' ',  6,    0,
             0x50, 'h',  'e',  'l',  'l',  'o',  0,    0,   0,   0,   0xf2, 0x6b, 0x94, 0x0b});
  EXPECT_EQ(decoded_text(LosslessKind::lz4_frame, with_content_size, kHellos.size()), kHellos);
  const auto without =
      bytes({0x04, 0x22, 0x4d, 0x18, 0x64, 0x40, 0xa7, 0x0f, 0,   0, 0, 0x68, 'h', 'e',  'l',  'l',  'o',
             ' ',  6,    0,    0x50, 'h',  'e',  'l',  'l',  'o', 0, 0, 0,    0,   0xf2, 0x6b, 0x94, 0x0b});
  EXPECT_EQ(decoded_text(LosslessKind::lz4_frame, without, kHellos.size()),
            "corrupt: lz4-frame stream declares 0 bytes where 23 are expected");
}

TEST(Lossless, a_zstd_frame_of_the_zstd_tool_s_is_read) {
  const auto stream = bytes({0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x17, 0x65, 0,    0,    0x30, 'h',  'e', 'l',
                             'l',  'o',  ' ',  1,    0,    0x99, 0x4b, 0x11, 0x17, 0x5e, 0xae, 0x0d});
  EXPECT_EQ(decoded_text(LosslessKind::zstd, stream, kHellos.size()), kHellos);
}

TEST(Lossless, a_bomb_is_refused_before_it_grows) {
  const auto zstd_of_1_gib =
      bytes({0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 0x02, 0, 0x10, 0, 0x03, 0, 0x10, 0});
  EXPECT_EQ(decoded_text(LosslessKind::zstd, zstd_of_1_gib, 1000),
            "corrupt: zstd stream declares 1073741824 bytes where 1000 are expected");
  const auto lz4_frame_of_1_gib =
      bytes({0x04, 0x22, 0x4d, 0x18, 0x68, 0x70, 0, 0, 0, 0x40, 0, 0, 0, 0, 0xe5});
  EXPECT_EQ(decoded_text(LosslessKind::lz4_frame, lz4_frame_of_1_gib, 1000),
            "corrupt: lz4-frame stream declares 1073741824 bytes where 1000 are expected");
  // The right size, but blocks of 4 MiB to buffer it in.
  const auto lz4_frame_of_large_blocks =
      bytes({0x04, 0x22, 0x4d, 0x18, 0x68, 0x70, 0x17, 0, 0, 0, 0, 0, 0, 0, 0x0c});
  EXPECT_EQ(decoded_text(LosslessKind::lz4_frame, lz4_frame_of_large_blocks, 23),
            "corrupt: lz4-frame stream is damaged: its blocks are larger than 23 bytes can need");
  const auto zlib_of_16_mib = [] {
    std::vector<std::byte> out(1 << 20);
    out.resize(LosslessCompressor().compress({LosslessKind::zlib, 9}, contract::zeros(16 << 20), out));
    return out;
  }();
  EXPECT_EQ(decoded_text(LosslessKind::zlib, zlib_of_16_mib, 1000),
            "corrupt: zlib stream holds more than the 1000 bytes expected");
}

TEST(Lossless, a_declared_zstd_window_of_2_gib_takes_no_memory) {
  const auto stream = bytes({0x28, 0xb5, 0x2f, 0xfd, 0x80, 0xa8, 0x17, 0, 0, 0, 0xbb, 0, 0, 'x'});
  EXPECT_EQ(decoded_text(LosslessKind::zstd, stream, 23), std::string(23, 'x'));
}

TEST(Lossless, only_one_whole_frame_with_its_size_is_a_stream) {
  const auto zstd_without_size = bytes({0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x00, 0x0b, 0, 0, 'x'});
  EXPECT_EQ(decoded_text(LosslessKind::zstd, zstd_without_size, 1),
            "corrupt: zstd stream is damaged: it does not declare how many bytes it holds");
  const auto two_zstd_frames =
      bytes({0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 0x0b, 0, 0, 'x', 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 0x01, 0, 0});
  EXPECT_EQ(decoded_text(LosslessKind::zstd, two_zstd_frames, 1),
            "corrupt: zstd stream is followed by 9 bytes that are not part of it");
  const auto skippable = bytes({0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0});
  EXPECT_EQ(decoded_text(LosslessKind::zstd, skippable, 0),
            "corrupt: zstd stream is damaged: it does not start with a frame");
  EXPECT_EQ(decoded_text(LosslessKind::lz4_frame, skippable, 0),
            "corrupt: lz4-frame stream is damaged: a skippable frame holds no data");
}

}  // namespace w5xde
