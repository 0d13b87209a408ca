// What every lossless way of encoding bytes promises, whether a bare codec or a whole section: the suite is
// in lossless_contract.cpp, and each implementation's own test instantiates it with a row of Codings.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "codec/lossless.h"
#include "w5xde/result.h"

namespace w5xde::contract {

// One encode and decode pair. Encoders and decoders come fresh from their makers, so that a test can tell
// what a used one does differently.
struct Coding {
  using Encode = std::function<std::vector<std::byte>(Bytes raw)>;
  using Decode = std::function<Status(Bytes encoded, MutableBytes raw)>;

  std::string name;  // letters, digits and '_': part of the test's name
  std::function<Encode()> make_encoder;
  std::function<Decode()> make_decoder;
};

inline std::ostream& operator<<(std::ostream& out, const Coding& coding) {
  return out << coding.name;
}

class LosslessContract : public testing::TestWithParam<Coding> {};

inline std::string name_of_coding(const testing::TestParamInfo<Coding>& info) {
  return info.param.name;
}

// "lz4-frame:8" as part of a test's name.
std::string identifier_of(LosslessCodec codec);

// Every codec but none, at its ends and its middle.
std::vector<LosslessCodec> compressing_codecs();

std::vector<std::byte> bytes(std::initializer_list<std::uint8_t> values);
std::vector<std::byte> zeros(std::size_t size);
std::vector<std::byte> noise(std::size_t size, std::uint64_t seed = 1);
// Numbers as a gradient has them: signs at random, sizes within a few powers of two.
std::vector<std::byte> floats(std::size_t size);
std::vector<std::byte> words(std::size_t size);

// Memory between two walls, to see that nothing writes past either end of it.
class WalledBytes {
 public:
  explicit WalledBytes(std::size_t size);
  MutableBytes bytes() { return MutableBytes(memory_).subspan(kWallBytes, memory_.size() - 2 * kWallBytes); }
  bool walls_stand() const;

 private:
  static constexpr std::size_t kWallBytes = 256;
  static constexpr std::byte kBrick{0xa5};
  std::vector<std::byte> memory_;
};

}  // namespace w5xde::contract
