#include "codec/shuffle.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "contract/lossless_contract.h"

namespace w5xde {

namespace {

using contract::WalledBytes;

std::vector<std::byte> counted(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

// The definition, one byte at a time.
std::vector<std::byte> transposed(Bytes from, std::size_t width) {
  std::vector<std::byte> to;
  const std::size_t elements = from.size() / width;
  for (std::size_t plane = 0; plane < width; ++plane)
    for (std::size_t element = 0; element < elements; ++element) to.push_back(from[element * width + plane]);
  const Bytes tail = from.subspan(elements * width);
  to.insert(to.end(), tail.begin(), tail.end());
  return to;
}

}  // namespace

TEST(Shuffle, bytes_of_like_significance_come_together_and_the_tail_stays) {
  const auto from = counted(11);
  std::vector<std::byte> to(11);
  const auto expect = [&](std::initializer_list<int> values) {
    EXPECT_TRUE(std::ranges::equal(to, values, {}, [](std::byte byte) { return static_cast<int>(byte); }));
  };
  shuffle(from, 2, to);
  expect({0, 2, 4, 6, 8, 1, 3, 5, 7, 9, 10});
  shuffle(from, 4, to);
  expect({0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10});
  shuffle(from, 8, to);
  expect({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

TEST(Shuffle, every_size_and_width_is_the_transposition_and_comes_back) {
  for (const std::size_t width : {2u, 4u, 8u}) {
    for (std::size_t size = 0; size < 600; ++size) {
      const auto from = contract::noise(size);
      WalledBytes planes(size);
      shuffle(from, width, planes.bytes());
      ASSERT_TRUE(std::ranges::equal(planes.bytes(), transposed(from, width)))
          << size << " bytes, width " << width;
      WalledBytes back(size);
      unshuffle(planes.bytes(), width, back.bytes());
      ASSERT_TRUE(std::ranges::equal(back.bytes(), from)) << size << " bytes, width " << width;
      EXPECT_TRUE(planes.walls_stand() && back.walls_stand()) << size << " bytes, width " << width;
    }
  }
}

TEST(Shuffle, any_bytes_at_any_alignment_come_back) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& values) {
    const auto width = *rc::gen::element<std::size_t>(2, 4, 8);
    const auto offset = *rc::gen::inRange<std::size_t>(0, 16);
    const auto times = *rc::gen::inRange<std::size_t>(1, 20);
    std::vector<std::byte> memory(offset);
    for (std::size_t time = 0; time < times; ++time)
      for (const auto value : values) memory.push_back(std::byte{value});
    const Bytes from = Bytes(memory).subspan(offset);
    std::vector<std::byte> planes(from.size());
    std::vector<std::byte> back(from.size());
    shuffle(from, width, planes);
    unshuffle(planes, width, back);
    RC_ASSERT(planes == transposed(from, width));
    RC_ASSERT(std::ranges::equal(back, from));
  }));
}

TEST(Shuffle, one_byte_elements_and_no_shuffle_copy) {
  const auto from = counted(100);
  for (const std::size_t width : {0u, 1u}) {
    std::vector<std::byte> to(100);
    shuffle(from, width, to);
    EXPECT_EQ(to, from);
    std::vector<std::byte> back(100);
    unshuffle(to, width, back);
    EXPECT_EQ(back, from);
  }
}

TEST(Shuffle, widths_on_the_wire_are_0_2_4_and_8) {
  std::vector<int> widths;
  for (int width = 0; width < 256; ++width)
    if (is_shuffle_width(static_cast<std::uint8_t>(width))) widths.push_back(width);
  EXPECT_EQ(widths, (std::vector<int>{0, 2, 4, 8}));
}

}  // namespace w5xde
