#include "codec/section.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "codec/shuffle.h"
#include "contract/lossless_contract.h"

namespace w5xde {

namespace {

using contract::Coding;
using contract::WalledBytes;

constexpr LosslessCodec kLz4 = {LosslessKind::lz4, 1};
constexpr std::uint8_t kWidths[] = {0, 2, 4, 8};
constexpr LosslessCodec kZstd = {LosslessKind::zstd, 3};

std::vector<std::byte> copy_of(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> encoded(Bytes raw, const SectionCodec& codec) {
  return copy_of(SectionEncoder().encode(raw, codec, nullptr));
}

Status decode(Bytes section, const SectionCodec& codec, MutableBytes raw) {
  return SectionDecoder().decode(section, codec.lossless.kind, codec.shuffle_width, raw, nullptr);
}

// What is wrong with a section of lz4 without shuffle.
std::string complaint(Bytes section, std::size_t raw_bytes) {
  WalledBytes raw(raw_bytes);
  const Status status = decode(section, {.lossless = kLz4}, raw.bytes());
  EXPECT_TRUE(raw.walls_stand());
  return status.ok() ? "nothing" : status.error().to_string();
}

// A section by hand: its first byte, its table, and its chunks in one.
std::vector<std::byte> section_of(std::uint8_t chunk_log2, std::initializer_list<std::uint32_t> table,
                                  Bytes chunks) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.write(chunk_log2);
  for (const std::uint32_t size : table) writer.write(size);
  writer.write_bytes(chunks);
  return bytes;
}

// 4096 zeros as one lz4 block: a literal, 4090 bytes from one back, five literals.
std::vector<std::byte> lz4_of_4096_zeros() {
  // 4090 is 4, and 15 in the token, and 15 times 255, and 246.
  return contract::bytes({0x1f, 0x00, 0x01, 0x00, 255, 255, 255, 255,  255, 255, 255, 255, 255,
                          255,  255,  255,  255,  255, 255, 246, 0x50, 0,   0,   0,   0,   0});
}

std::vector<std::byte> joined(std::vector<std::byte> first, Bytes second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Coding coding_of(SectionCodec codec) {
  // The smallest chunk, so that the contract's inputs fall into several.
  codec.chunk_log2 = kChunkLog2Min;
  return {.name = contract::identifier_of(codec.lossless) + "_width_" + std::to_string(codec.shuffle_width),
          .make_encoder =
              [codec] {
                auto encoder = std::make_shared<SectionEncoder>();
                return [codec, encoder](Bytes raw) { return copy_of(encoder->encode(raw, codec, nullptr)); };
              },
          .make_decoder =
              [codec] {
                auto decoder = std::make_shared<SectionDecoder>();
                return [codec, decoder](Bytes section, MutableBytes raw) {
                  return decoder->decode(section, codec.lossless.kind, codec.shuffle_width, raw, nullptr);
                };
              }};
}

std::vector<Coding> section_codings() {
  std::vector<Coding> codings;
  for (const LosslessCodec lossless : contract::compressing_codecs())
    for (const std::uint8_t width : {kWidths[0], kWidths[2]}) codings.push_back(coding_of({lossless, width}));
  for (const std::string_view usual : {"zlib", "lz4", "lz4-frame", "zstd"})
    for (const std::uint8_t width : {kWidths[1], kWidths[3]})
      codings.push_back(coding_of({*parse_lossless(usual), width}));
  return codings;
}

}  // namespace

namespace contract {
INSTANTIATE_TEST_SUITE_P(Section, LosslessContract, testing::ValuesIn(section_codings()), name_of_coding);
}  // namespace contract

TEST(Section, bytes_that_do_not_shrink_are_stored_as_they_are) {
  const SectionCodec codec = {.lossless = kLz4, .shuffle_width = 2, .chunk_log2 = 12};
  EXPECT_EQ(encoded(bytes_of("hello"), codec), section_of(12, {5}, bytes_of("hello")));

  const auto noise = contract::noise(4096 + 3);
  EXPECT_EQ(encoded(noise, codec), section_of(12, {4096, 3}, noise));
}

TEST(Section, nothing_is_one_byte) {
  EXPECT_EQ(encoded({}, {.lossless = kZstd, .shuffle_width = 4}), section_of(18, {}, {}));
  EXPECT_EQ(complaint(section_of(18, {}, {}), 0), "nothing");
}

TEST(Section, a_hand_made_section_is_read) {
  const auto raw = joined(contract::zeros(4096), bytes_of("hello"));
  const auto block = lz4_of_4096_zeros();
  ASSERT_EQ(block.size(), 26u);
  const auto section = section_of(12, {26, 5}, joined(block, bytes_of("hello")));
  for (const std::uint8_t width : kWidths) {
    WalledBytes decoded(raw.size());
    const Status status = decode(section, {.lossless = kLz4, .shuffle_width = width}, decoded.bytes());
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_TRUE(std::ranges::equal(decoded.bytes(), raw));
  }
}

TEST(Section, a_compressed_chunk_is_the_codec_s_stream_of_the_shuffled_bytes) {
  for (const std::uint8_t width : kWidths) {
    for (const LosslessCodec lossless : contract::compressing_codecs()) {
      const auto raw = contract::floats(4096);
      std::vector<std::byte> planes(4096);
      shuffle(raw, width, planes);
      std::vector<std::byte> stream(4095);
      stream.resize(LosslessCompressor().compress(lossless, planes, stream));
      if (stream.empty()) continue;
      EXPECT_EQ(encoded(raw, {lossless, width, 12}),
                section_of(12, {static_cast<std::uint32_t>(stream.size())}, stream))
          << to_string(lossless) << " width " << +width;
    }
  }
}

TEST(Section, shuffled_floats_get_smaller_than_floats) {
  const auto raw = contract::floats(1 << 20);
  for (const LosslessCodec lossless : {kZstd, LosslessCodec{LosslessKind::zlib, 6}})
    EXPECT_LT(encoded(raw, {lossless, 4}).size(), encoded(raw, {lossless, 0}).size() * 95 / 100)
        << to_string(lossless);
}

TEST(Section, the_bytes_are_the_same_whatever_the_pool) {
  ThreadPool none(0);
  ThreadPool one(1);
  ThreadPool two(2);
  const auto raw =
      joined(joined(contract::floats(100'000), contract::noise(50'000)), contract::zeros(50'001));
  for (const LosslessCodec lossless : contract::compressing_codecs()) {
    SectionEncoder encoder;
    SectionDecoder decoder;
    const SectionCodec codec = {lossless, 4, 12};
    const auto alone = encoded(raw, codec);
    for (ThreadPool* pool : {&none, &one, &two, &two, &none}) {
      EXPECT_EQ(copy_of(encoder.encode(raw, codec, pool)), alone)
          << to_string(lossless) << ", " << pool->size();
      WalledBytes back(raw.size());
      ASSERT_TRUE(decoder.decode(alone, lossless.kind, 4, back.bytes(), pool).ok()) << to_string(lossless);
      EXPECT_TRUE(std::ranges::equal(back.bytes(), raw)) << to_string(lossless);
      EXPECT_TRUE(back.walls_stand());
    }
  }
}

TEST(Section, any_bytes_and_any_codec_come_back) {
  ThreadPool pool(2);
  SectionEncoder encoder;
  SectionDecoder decoder;
  EXPECT_TRUE(rc::check([&] {
    const auto width = *rc::gen::element<std::uint8_t>(0, 2, 4, 8);
    const auto lossless = *rc::gen::elementOf(contract::compressing_codecs());
    const auto chunk_log2 = *rc::gen::inRange<std::uint8_t>(kChunkLog2Min, kChunkLog2Max + 1);
    const auto pieces = *rc::gen::container<std::vector<std::pair<std::size_t, bool>>>(
        rc::gen::pair(rc::gen::inRange<std::size_t>(0, 3000), rc::gen::arbitrary<bool>()));
    std::vector<std::byte> raw;
    for (const auto& [size, smooth] : pieces)
      raw = joined(std::move(raw), smooth ? contract::words(size) : contract::noise(size));
    const SectionCodec codec = {lossless, width, chunk_log2};
    const Bytes section = encoder.encode(raw, codec, &pool);
    RC_ASSERT(section.size() <= section_bytes_max(raw.size(), chunk_log2));
    std::vector<std::byte> back(raw.size());
    RC_ASSERT(decoder.decode(section, lossless.kind, width, back, &pool).ok());
    RC_ASSERT(back == raw);
  }));
}

TEST(Section, the_caller_s_memory_is_filled_like_the_encoder_s_own) {
  const auto raw = contract::words(10'000);
  const SectionCodec codec = {.lossless = kLz4, .shuffle_width = 0, .chunk_log2 = 12};
  WalledBytes out(section_bytes_max(raw.size(), codec.chunk_log2));
  const Bytes filled = SectionEncoder().encode_into(out.bytes(), raw, codec, nullptr);
  EXPECT_EQ(filled.data(), out.bytes().data());
  EXPECT_EQ(copy_of(filled), encoded(raw, codec));
  EXPECT_TRUE(out.walls_stand());
}

TEST(Section, the_longest_section_is_raw_bytes_and_their_table) {
  EXPECT_EQ(section_bytes_max(0), 1u);
  EXPECT_EQ(section_bytes_max(1), 1u + 4 + 1);
  EXPECT_EQ(section_bytes_max(4096), 1u + 4 + 4096);
  EXPECT_EQ(section_bytes_max(4097), 1u + 8 + 4097);
  EXPECT_EQ(section_bytes_max(4097, 18), 1u + 4 + 4097);
  const auto noise = contract::noise(10'000);
  EXPECT_EQ(encoded(noise, {.lossless = kZstd, .chunk_log2 = 12}).size(),
            section_bytes_max(noise.size(), 12));
}

TEST(Section, an_encoder_once_grown_keeps_its_memory) {
  SectionEncoder encoder;
  const auto large = contract::words(100'000);
  const std::byte* const memory = encoder.encode(large, {.lossless = kLz4}, nullptr).data();
  EXPECT_EQ(encoder.encode(contract::words(10), {.lossless = kZstd}, nullptr).data(), memory);
  EXPECT_EQ(encoder.encode(large, {.lossless = kLz4}, nullptr).data(), memory);
}

TEST(Section, a_bad_table_is_refused_whole) {
  const auto zeros = contract::zeros(10'000);
  EXPECT_EQ(complaint({}, 5), "corrupt: section is empty");
  EXPECT_EQ(complaint(section_of(11, {5}, bytes_of("hello")), 5),
            "corrupt: section's chunk_log2 is 11, which is not in 12 to 24");
  EXPECT_EQ(complaint(section_of(25, {5}, bytes_of("hello")), 5),
            "corrupt: section's chunk_log2 is 25, which is not in 12 to 24");
  EXPECT_EQ(complaint(section_of(12, {4096}, {}), 8193),
            "corrupt: section of 3 chunks ends within its table");
  EXPECT_EQ(complaint(section_of(12, {4096, 5}, Bytes(zeros).first(4101)), 4096 + 4),
            "corrupt: chunk 2 of 2 has an encoded size of 5 for 4 raw bytes");
  EXPECT_EQ(complaint(section_of(12, {0, 4}, bytes_of("abcd")), 4096 + 4),
            "corrupt: chunk 1 of 2 has an encoded size of 0 for 4096 raw bytes");
  EXPECT_EQ(complaint(section_of(12, {0xffffffffu, 5}, bytes_of("abcd")), 4096 + 4),
            "corrupt: chunk 1 of 2 has an encoded size of 4294967295 for 4096 raw bytes");
  EXPECT_EQ(complaint(section_of(12, {5}, bytes_of("hell")), 5),
            "corrupt: section's chunks add up to 5 bytes and 4 are there");
  EXPECT_EQ(complaint(section_of(12, {5}, bytes_of("hello!")), 5),
            "corrupt: section's chunks add up to 5 bytes and 6 are there");
  EXPECT_EQ(complaint(section_of(12, {}, bytes_of("hello")), 0),
            "corrupt: section's chunks add up to 0 bytes and 5 are there");
}

TEST(Section, a_bad_table_leaves_the_memory_untouched) {
  const auto section = section_of(12, {4096, 5}, contract::noise(4101));
  std::vector<std::byte> raw(4100, std::byte{7});
  EXPECT_FALSE(decode(section, {.lossless = kLz4}, raw).ok());
  EXPECT_TRUE(std::ranges::all_of(raw, [](std::byte byte) { return byte == std::byte{7}; }));
}

TEST(Section, the_first_bad_chunk_is_told_whichever_fails_sooner) {
  ThreadPool pool(2);
  const auto raw = contract::words(4 << 18);
  const auto good = encoded(raw, {.lossless = {LosslessKind::zlib, 1}, .chunk_log2 = 18});
  // Chunks from the second on are bad: in the first byte, which is seen at once, or in the checksum, which is
  // last.
  for (const std::size_t slow_chunk : {1u, 2u}) {
    std::vector<std::byte> section = good;
    std::size_t at = 1 + 4 * 4;
    for (std::size_t chunk = 0; chunk < 4; ++chunk) {
      const auto size = load<std::uint32_t>(good.data() + 1 + 4 * chunk);
      if (chunk >= 1) section[chunk == slow_chunk ? at + size - 1 : at] ^= std::byte{1};
      at += size;
    }
    SectionDecoder decoder;
    std::vector<std::byte> back(raw.size());
    for (int round = 0; round < 30; ++round) {
      const Status status =
          decoder.decode(section, LosslessKind::zlib, 0, back, round == 0 ? nullptr : &pool);
      ASSERT_FALSE(status.ok());
      ASSERT_EQ(status.error().to_string(),
                "corrupt: chunk 2 of 4: zlib stream is damaged: bad header, code or checksum, or cut off");
    }
  }
}

TEST(Section, a_decoder_is_as_good_as_new_after_a_bad_section) {
  ThreadPool pool(2);
  SectionDecoder decoder;
  const SectionCodec codec = {.lossless = kZstd, .shuffle_width = 2, .chunk_log2 = 12};
  auto damaged = encoded(contract::words(10 * 4096), codec);
  for (std::size_t at = 1 + 4 * 10; at < damaged.size(); at += 50) damaged[at] ^= std::byte{0xff};
  for (std::size_t chunks = 0; chunks < 12; ++chunks) {
    std::vector<std::byte> back(10 * 4096);
    EXPECT_FALSE(decoder.decode(damaged, LosslessKind::zstd, 2, back, &pool).ok());
    const auto raw = contract::words(chunks * 4096);
    back.resize(raw.size());
    const Status status = decoder.decode(encoded(raw, codec), LosslessKind::zstd, 2, back, &pool);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_EQ(back, raw);
  }
}

TEST(Section, a_codec_or_width_that_is_not_one_is_refused) {
  std::vector<std::byte> raw(5);
  const auto section = section_of(12, {5}, bytes_of("hello"));
  const auto told = [&](int kind, std::uint8_t width) {
    const Status status =
        SectionDecoder().decode(section, static_cast<LosslessKind>(kind), width, raw, nullptr);
    return status.ok() ? "nothing" : status.error().to_string();
  };
  EXPECT_EQ(told(2, 4), "nothing");
  EXPECT_EQ(told(0, 4), "invalid: a section needs a lossless codec, and 'none' is not sent as one");
  EXPECT_EQ(told(5, 4), "incompatible: lossless codec number 5 is not known here");
  EXPECT_EQ(told(255, 4), "incompatible: lossless codec number 255 is not known here");
  EXPECT_EQ(told(2, 1), "incompatible: shuffle width 1 is not known here");
  EXPECT_EQ(told(2, 16), "incompatible: shuffle width 16 is not known here");
}

TEST(Section, encoding_with_none_stores) {
  const auto zeros = contract::zeros(5000);
  EXPECT_EQ(encoded(zeros, {.lossless = {}, .shuffle_width = 4, .chunk_log2 = 12}),
            section_of(12, {4096, 904}, zeros));
}

TEST(Section, a_chunk_that_is_not_to_be_tried_is_stored) {
  const SectionCodec codec = {.lossless = kZstd, .shuffle_width = 4, .chunk_log2 = 12};
  const auto raw = contract::zeros(2 * 4096 + 10);
  const std::uint8_t tried[] = {1, 0, 0};
  for (const std::size_t threads : {0u, 2u}) {
    ThreadPool pool(threads);
    SectionEncoder encoder;
    const Bytes section = encoder.encode(raw, codec, &pool, tried);
    ASSERT_EQ(encoder.chunk_bytes().size(), 3u);
    EXPECT_LT(encoder.chunk_bytes()[0], 100u);
    EXPECT_EQ(encoder.chunk_bytes()[1], 4096u);
    EXPECT_EQ(encoder.chunk_bytes()[2], 10u);
    std::vector<std::byte> back(raw.size());
    ASSERT_TRUE(SectionDecoder().decode(section, LosslessKind::zstd, 4, back, nullptr).ok());
    EXPECT_EQ(back, raw);
  }
}

}  // namespace w5xde
