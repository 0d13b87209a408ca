#include "contract/lossless_contract.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace w5xde::contract {

std::string identifier_of(LosslessCodec codec) {
  std::string text = to_string(codec);
  if (const std::size_t minus = text.find(":-"); minus != std::string::npos)
    text.replace(minus, 2, "_minus_");
  std::ranges::replace_if(
      text, [](char c) { return c == '-' || c == ':'; }, '_');
  return text;
}

std::vector<LosslessCodec> compressing_codecs() {
  return {{LosslessKind::zlib, 1},      {LosslessKind::zlib, 6},          {LosslessKind::zlib, 9},
          {LosslessKind::lz4, 1},       {LosslessKind::lz4, 65537},       {LosslessKind::lz4_frame, 1},
          {LosslessKind::lz4_frame, 9}, {LosslessKind::lz4_frame, 65537}, {LosslessKind::zstd, -7},
          {LosslessKind::zstd, 3},      {LosslessKind::zstd, 19}};
}

std::vector<std::byte> bytes(std::initializer_list<std::uint8_t> values) {
  const Bytes view = std::as_bytes(std::span(values.begin(), values.size()));
  return {view.begin(), view.end()};
}

std::vector<std::byte> zeros(std::size_t size) {
  return std::vector<std::byte>(size);
}

std::vector<std::byte> noise(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

std::vector<std::byte> floats(std::size_t size) {
  Random random(size);
  std::vector<std::byte> bytes(align_up(size, sizeof(float)));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    const double magnitude = 0.01 * std::exp2(4 * random.unit());
    store(bytes.data() + at, static_cast<float>(random.below(2) == 0 ? magnitude : -magnitude));
  }
  bytes.resize(size);
  return bytes;
}

std::vector<std::byte> words(std::size_t size) {
  static constexpr std::string_view kWords[] = {"lease ", "slot ", "step ", "node ", "gradient ", "of the "};
  Random random(size);
  std::vector<std::byte> bytes;
  while (bytes.size() < size)
    std::ranges::copy(bytes_of(kWords[random.below(std::size(kWords))]), std::back_inserter(bytes));
  bytes.resize(size);
  return bytes;
}

WalledBytes::WalledBytes(std::size_t size) : memory_(size + 2 * kWallBytes, kBrick) {}

bool WalledBytes::walls_stand() const {
  const auto is_brick = [](std::byte byte) { return byte == kBrick; };
  return std::all_of(memory_.begin(), memory_.begin() + kWallBytes, is_brick) &&
         std::all_of(memory_.end() - kWallBytes, memory_.end(), is_brick);
}

namespace {

constexpr std::size_t kSmallestChunk = 4096;

// Around every edge that an implementation may have: nothing, one vector, one chunk, several chunks.
constexpr std::size_t kSizes[] = {0,
                                  1,
                                  2,
                                  15,
                                  63,
                                  64,
                                  65,
                                  1000,
                                  kSmallestChunk - 1,
                                  kSmallestChunk,
                                  kSmallestChunk + 1,
                                  3 * kSmallestChunk,
                                  5 * kSmallestChunk + 7,
                                  (std::size_t{1} << 18) + 1};

std::vector<std::vector<std::byte>> samples_of(std::size_t size) {
  return {zeros(size), noise(size), floats(size), words(size)};
}

void expect_corrupt(const Status& status) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::corrupt) << status.error().to_string();
  EXPECT_FALSE(status.error().message.empty());
}

TEST_P(LosslessContract, what_was_encoded_comes_back) {
  const auto encode = GetParam().make_encoder();
  const auto decode = GetParam().make_decoder();
  for (const std::size_t size : kSizes) {
    for (const auto& raw : samples_of(size)) {
      WalledBytes decoded(size);
      const Status status = decode(encode(raw), decoded.bytes());
      ASSERT_TRUE(status.ok()) << size << " bytes: " << status.error().to_string();
      EXPECT_TRUE(std::ranges::equal(decoded.bytes(), raw)) << size << " bytes";
      EXPECT_TRUE(decoded.walls_stand()) << size << " bytes";
    }
  }
}

TEST_P(LosslessContract, any_bytes_come_back) {
  const auto encode = GetParam().make_encoder();
  const auto decode = GetParam().make_decoder();
  EXPECT_TRUE(rc::check([&] {
    // Runs of equal bytes, so that there is something to compress and something that is not.
    const auto runs = *rc::gen::container<std::vector<std::pair<std::uint8_t, std::uint16_t>>>(
        rc::gen::pair(rc::gen::arbitrary<std::uint8_t>(), rc::gen::inRange<std::uint16_t>(0, 600)));
    std::vector<std::byte> raw;
    for (const auto& [value, times] : runs) raw.insert(raw.end(), times, std::byte{value});
    std::vector<std::byte> decoded(raw.size());
    const Status status = decode(encode(raw), decoded);
    RC_ASSERT(status.ok());
    RC_ASSERT(decoded == raw);
  }));
}

TEST_P(LosslessContract, the_same_bytes_are_encoded_alike_by_a_fresh_and_a_used_encoder) {
  const auto used = GetParam().make_encoder();
  for (const std::size_t size : kSizes)
    for (const auto& raw : samples_of(size))
      EXPECT_EQ(used(raw), GetParam().make_encoder()(raw)) << size << " bytes";
}

TEST_P(LosslessContract, a_stream_cut_off_anywhere_is_corrupt) {
  const auto decode = GetParam().make_decoder();
  for (const auto& raw : {words(300), noise(40), zeros(kSmallestChunk + 1), zeros(1)}) {
    const auto encoded = GetParam().make_encoder()(raw);
    for (std::size_t length = 0; length < encoded.size(); ++length) {
      WalledBytes decoded(raw.size());
      SCOPED_TRACE(testing::Message() << length << " of " << encoded.size() << " bytes");
      expect_corrupt(decode(Bytes(encoded).first(length), decoded.bytes()));
      EXPECT_TRUE(decoded.walls_stand());
    }
  }
}

TEST_P(LosslessContract, bytes_after_the_stream_are_corrupt) {
  const auto decode = GetParam().make_decoder();
  for (const auto& raw : {words(300), noise(40), zeros(kSmallestChunk), zeros(0)}) {
    const auto encoded = GetParam().make_encoder()(raw);
    for (const auto& garbage : {zeros(1), zeros(100), noise(1), noise(100), encoded}) {
      if (garbage.empty()) continue;
      auto longer = encoded;
      longer.insert(longer.end(), garbage.begin(), garbage.end());
      WalledBytes decoded(raw.size());
      SCOPED_TRACE(testing::Message() << raw.size() << " raw, " << garbage.size() << " bytes more");
      expect_corrupt(decode(longer, decoded.bytes()));
      EXPECT_TRUE(decoded.walls_stand());
    }
  }
}

TEST_P(LosslessContract, another_raw_size_is_corrupt) {
  const auto decode = GetParam().make_decoder();
  for (const auto& raw :
       {words(300), noise(40), zeros(kSmallestChunk), floats(2 * kSmallestChunk), zeros(1)}) {
    const auto encoded = GetParam().make_encoder()(raw);
    for (const std::size_t size :
         {std::size_t{0}, raw.size() - 1, raw.size() + 1, 2 * raw.size(), 10 * raw.size()}) {
      WalledBytes decoded(size);
      SCOPED_TRACE(testing::Message() << raw.size() << " bytes read as " << size);
      if (size != raw.size()) expect_corrupt(decode(encoded, decoded.bytes()));
      EXPECT_TRUE(decoded.walls_stand());
    }
  }
}

// Whether a damaged stream is noticed is the frame checksum's business; here it only must do no harm.
TEST_P(LosslessContract, a_flipped_byte_never_writes_outside) {
  const auto decode = GetParam().make_decoder();
  for (const auto& raw : {words(500), floats(200), zeros(kSmallestChunk + 1)}) {
    const auto encoded = GetParam().make_encoder()(raw);
    for (std::size_t at = 0; at < encoded.size(); ++at) {
      for (const std::byte flip : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
        auto damaged = encoded;
        damaged[at] ^= flip;
        WalledBytes decoded(raw.size());
        const Status status = decode(damaged, decoded.bytes());
        EXPECT_TRUE(decoded.walls_stand()) << "byte " << at << " of " << encoded.size();
        EXPECT_TRUE(status.ok() || !status.error().message.empty());
      }
    }
  }
  // And the decoder is as good as new.
  const auto raw = words(500);
  WalledBytes decoded(raw.size());
  EXPECT_TRUE(decode(GetParam().make_encoder()(raw), decoded.bytes()).ok());
  EXPECT_TRUE(std::ranges::equal(decoded.bytes(), raw));
}

TEST_P(LosslessContract, garbage_never_writes_outside) {
  const auto decode = GetParam().make_decoder();
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    WalledBytes decoded(random.below(2000));
    const Status status = decode(noise(random.below(200), random.next()), decoded.bytes());
    EXPECT_TRUE(status.ok() || !status.error().message.empty());
    EXPECT_TRUE(decoded.walls_stand()) << "round " << round;
  }
}

TEST_P(LosslessContract, a_bomb_does_not_grow_past_its_memory) {
  const auto bomb = GetParam().make_encoder()(zeros(std::size_t{16} << 20));
  const auto decode = GetParam().make_decoder();
  for (const std::size_t size : {0u, 1u, 1000u, 100000u}) {
    WalledBytes decoded(size);
    expect_corrupt(decode(bomb, decoded.bytes()));
    EXPECT_TRUE(decoded.walls_stand()) << size << " bytes";
  }
}

}  // namespace

}  // namespace w5xde::contract
