#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "wire/messages.h"

namespace w5xde {

// Which samples a node has been told to keep. What is said here is sent: a number is asked about once a
// lease.
class KeptSamples {
 public:
  void set_bytes_max(std::uint64_t bytes) { bytes_max_ = bytes; }

  // Whether it has been told to keep this one.
  bool has(Work work, std::uint32_t number) const {
    const std::vector<bool>& kept = kept_[static_cast<std::size_t>(work)];
    return number < kept.size() && kept[number];
  }

  SampleNumber::Kind kind_of(Work work, std::uint32_t number, std::uint64_t sample_bytes) {
    std::vector<bool>& kept = kept_[static_cast<std::size_t>(work)];
    if (kept.size() <= number) kept.resize(number + std::size_t{1});
    if (kept[number]) return SampleNumber::Kind::kept;
    if (bytes_ + sample_bytes > bytes_max_) return SampleNumber::Kind::passing;
    bytes_ += sample_bytes;
    kept[number] = true;
    return SampleNumber::Kind::new_kept;
  }

 private:
  std::uint64_t bytes_max_ = 0;
  std::uint64_t bytes_ = 0;
  std::array<std::vector<bool>, 2> kept_;
};

}  // namespace w5xde
