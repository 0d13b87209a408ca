#include "base/bytes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace w5xde {
namespace {

std::vector<std::byte> bytes_from(const std::vector<std::uint8_t>& values) {
  std::vector<std::byte> bytes;
  for (const std::uint8_t value : values) bytes.push_back(std::byte{value});
  return bytes;
}

std::vector<std::byte> varint_of(std::uint64_t value) {
  std::vector<std::byte> bytes;
  ByteWriter(bytes).write_varint(value);
  return bytes;
}

bool refuses_varint(const std::vector<std::uint8_t>& encoded) {
  const auto bytes = bytes_from(encoded);
  ByteReader reader(bytes);
  return reader.read_varint() == 0 && reader.exhausted() && reader.rest().empty();
}

bool is_aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % kAlignment == 0;
}

TEST(AlignUp, goes_to_the_next_multiple_and_stays_on_one) {
  EXPECT_EQ(align_up(0, 64), 0u);
  EXPECT_EQ(align_up(1, 64), 64u);
  EXPECT_EQ(align_up(64, 64), 64u);
  EXPECT_EQ(align_up(65, 64), 128u);
  EXPECT_EQ(align_up(7, 3), 9u);
}

TEST(Numbers, are_little_endian_in_memory) {
  std::byte memory[4];
  store<std::uint32_t>(memory, 0x04030201u);
  EXPECT_EQ(memory[0], std::byte{1});
  EXPECT_EQ(memory[3], std::byte{4});
  EXPECT_EQ(load<std::uint16_t>(memory + 1), 0x0302u);
}

TEST(Text, becomes_bytes_and_text_again) {
  const std::string_view text("a\0b", 3);
  EXPECT_EQ(bytes_of(text).size(), 3u);
  EXPECT_EQ(bytes_of(text)[2], std::byte{'b'});
  EXPECT_EQ(text_of(bytes_of(text)), text);
  EXPECT_EQ(text_of({}), "");
}

RC_GTEST_PROP(ByteReader, reads_back_numbers_of_every_width, ()) {
  const auto small = *rc::gen::arbitrary<std::uint8_t>();
  const auto narrow = *rc::gen::arbitrary<std::int16_t>();
  const auto wide = *rc::gen::arbitrary<std::int64_t>();
  const auto real = *rc::gen::arbitrary<double>();
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.write(small);
  writer.write(narrow);
  writer.write(wide);
  writer.write(real);
  RC_ASSERT(bytes.size() == 1u + 2u + 8u + 8u);

  ByteReader reader(bytes);
  RC_ASSERT(reader.read<std::uint8_t>() == small);
  RC_ASSERT(reader.read<std::int16_t>() == narrow);
  RC_ASSERT(reader.read<std::int64_t>() == wide);
  RC_ASSERT(!reader.finished());
  RC_ASSERT(reader.read<double>() == real);
  RC_ASSERT(reader.finished());
}

RC_GTEST_PROP(ByteReader, reads_back_varints_one_after_the_other,
              (const std::vector<std::uint64_t>& values)) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  for (const std::uint64_t value : values) writer.write_varint(value);
  ByteReader reader(bytes);
  for (const std::uint64_t value : values) RC_ASSERT(reader.read_varint() == value);
  RC_ASSERT(reader.finished());
}

RC_GTEST_PROP(ByteReader, refuses_a_varint_cut_short_anywhere, (std::uint64_t value)) {
  const auto whole = varint_of(value);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ByteReader reader(Bytes(whole).first(size));
    RC_ASSERT(reader.read_varint() == 0u);
    RC_ASSERT(reader.exhausted());
  }
}

// One number, one encoding: whatever bytes a peer sends, what was accepted is what a writer would have
// written.
RC_GTEST_PROP(ByteReader, accepts_only_the_varint_that_a_writer_writes,
              (const std::vector<std::uint8_t>& noise)) {
  const auto bytes = bytes_from(noise);
  ByteReader reader(bytes);
  const std::uint64_t value = reader.read_varint();
  RC_PRE(!reader.exhausted());
  const auto expected = varint_of(value);
  RC_ASSERT(bytes.size() - reader.rest().size() == expected.size());
  RC_ASSERT(std::equal(expected.begin(), expected.end(), bytes.begin()));
}

TEST(ByteReader, reads_the_varints_at_the_edges_of_each_length) {
  EXPECT_EQ(varint_of(0), bytes_from({0x00}));
  EXPECT_EQ(varint_of(127), bytes_from({0x7f}));
  EXPECT_EQ(varint_of(128), bytes_from({0x80, 0x01}));
  const std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();
  const auto longest = varint_of(greatest);
  EXPECT_EQ(longest, bytes_from({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}));
  for (unsigned shift = 7; shift < 64; shift += 7) {
    for (const std::uint64_t value : {(std::uint64_t{1} << shift) - 1, std::uint64_t{1} << shift}) {
      const auto bytes = varint_of(value);
      EXPECT_EQ(bytes.size(), value >> shift == 0 ? shift / 7 : shift / 7 + 1);
      EXPECT_EQ(ByteReader(bytes).read_varint(), value);
    }
  }
  EXPECT_EQ(ByteReader(longest).read_varint(), greatest);
}

TEST(ByteReader, refuses_overlong_varints) {
  EXPECT_TRUE(refuses_varint({0x80, 0x00}));
  EXPECT_TRUE(refuses_varint({0xff, 0x00}));
  EXPECT_TRUE(refuses_varint({0x81, 0x80, 0x00}));
}

TEST(ByteReader, refuses_varints_of_more_than_64_bits) {
  EXPECT_TRUE(refuses_varint({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}));
  EXPECT_TRUE(refuses_varint({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}));
  EXPECT_TRUE(refuses_varint({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x81, 0x00}));
  EXPECT_TRUE(refuses_varint({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}));
}

TEST(ByteReader, yields_zeros_past_the_end_and_remembers) {
  const auto bytes = bytes_from({1, 2, 3});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.read<std::uint16_t>(), 0x0201u);
  EXPECT_FALSE(reader.exhausted());
  EXPECT_EQ(reader.read<std::uint32_t>(), 0u);
  EXPECT_TRUE(reader.exhausted());
  // The byte that was left must not turn up in a smaller read: the structure is off its track.
  EXPECT_EQ(reader.read<std::uint8_t>(), 0u);
  EXPECT_TRUE(reader.read_bytes(0).empty());
  EXPECT_TRUE(reader.exhausted());
  EXPECT_FALSE(reader.finished());
}

TEST(ByteReader, hands_out_bytes_in_place_and_none_past_the_end) {
  const auto bytes = bytes_from({1, 2, 3, 4});
  ByteReader reader(bytes);
  const Bytes taken = reader.read_bytes(3);
  EXPECT_EQ(taken.data(), bytes.data());
  EXPECT_EQ(taken.size(), 3u);
  EXPECT_EQ(reader.rest().size(), 1u);
  EXPECT_TRUE(reader.read_bytes(std::numeric_limits<std::uint64_t>::max()).empty());
  EXPECT_TRUE(reader.exhausted());
}

TEST(ByteReader, of_nothing_is_finished_but_has_nothing_to_read) {
  ByteReader reader({});
  EXPECT_TRUE(reader.finished());
  EXPECT_EQ(reader.read<std::uint8_t>(), 0u);
  EXPECT_FALSE(reader.finished());
}

// A peer's byte of 2 in a bool is undefined behaviour, so there is no such read.
static_assert(!Number<bool> && Number<char> && Number<float>);

TEST(ByteWriter, appends_after_what_is_there) {
  auto bytes = bytes_from({9});
  ByteWriter writer(bytes);
  writer.write_bytes(bytes_of("hi"));
  writer.write_bytes({});
  writer.write<std::uint16_t>(0x0102);
  EXPECT_EQ(bytes, bytes_from({9, 'h', 'i', 2, 1}));
}

TEST(AlignedBuffer, is_aligned_at_every_size) {
  for (std::size_t size = 1; size < 300; ++size) {
    AlignedBuffer buffer(size);
    EXPECT_TRUE(is_aligned(buffer.data()));
    EXPECT_EQ(buffer.capacity(), size);
    EXPECT_TRUE(is_aligned(buffer.take(size + 1).data()));
  }
}

TEST(AlignedBuffer, allocates_only_to_grow) {
  AlignedBuffer buffer(100);
  const std::byte* memory = buffer.data();
  EXPECT_EQ(buffer.take(100).data(), memory);
  EXPECT_EQ(buffer.take(1).size(), 1u);
  EXPECT_EQ(buffer.data(), memory);
  const MutableBytes grown = buffer.take(101);
  EXPECT_EQ(grown.size(), 101u);
  EXPECT_EQ(buffer.capacity(), 101u);
  std::fill(grown.begin(), grown.end(), std::byte{7});  // the address sanitizer looks on
}

TEST(AlignedBuffer, that_was_moved_from_is_empty_and_usable) {
  AlignedBuffer first(100);
  AlignedBuffer second(std::move(first));
  EXPECT_EQ(second.capacity(), 100u);
  EXPECT_EQ(first.capacity(), 0u);  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_NE(first.take(100).data(), nullptr);

  AlignedBuffer third;
  third = std::move(second);
  EXPECT_EQ(third.capacity(), 100u);
  EXPECT_NE(second.take(1).data(), nullptr);  // NOLINT(bugprone-use-after-move): what is tested
}

}  // namespace
}  // namespace w5xde
