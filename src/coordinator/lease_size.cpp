#include "coordinator/lease_size.h"

#include <algorithm>
#include <bit>

#include "wire/tensor_list.h"

namespace w5xde {

namespace {

// Of a lease's head, all but what grows with its slots: fixed fields, tensors, and room to spare.
constexpr std::uint64_t kHeadBytes = 4 * kKiB;
constexpr std::uint64_t kHeadBytesMax = Limits{}.head_bytes_max - kHeadBytes;
// A slot's number of samples.
constexpr std::uint64_t kCountBytes = 5;
// MessagePack says a number in nine bytes at most.
constexpr std::uint64_t kGenericNumberBytes = 9;

// A sample's number, with two bits beside it, seven bits a byte.
std::uint64_t number_bytes(std::uint64_t samples) {
  return (static_cast<std::uint64_t>(std::bit_width(samples)) + 2 + 6) / 7;
}

std::uint64_t sample_bytes(const Dataset& data, bool generic) {
  const std::uint64_t direct = data.sample_bytes();
  return generic ? std::max(direct, kGenericNumberBytes * data.sample_numbers()) : direct;
}

// What aligning a lease's tensors may cost.
std::uint64_t padding_bytes(const Dataset& data) {
  return (data.inputs().size() + 1) * kPayloadAlignment;
}

}  // namespace

LeaseSize LeaseSize::of(const Dataset& data, std::uint32_t batch, bool generic) {
  return {.head_bytes_per_slot = kCountBytes + batch * number_bytes(data.samples()),
          .payload_bytes_per_slot = batch * sample_bytes(data, generic) + padding_bytes(data)};
}

bool LeaseSize::fits_with_numbers() const {
  return fits() && head_bytes_per_slot <= kHeadBytesMax;
}

std::uint32_t LeaseSize::slots_max(bool numbers) const {
  const std::uint64_t by_head = kHeadBytesMax / (numbers ? head_bytes_per_slot : kCountBytes);
  const std::uint64_t by_payload = kPayloadBytesMax / payload_bytes_per_slot;
  return static_cast<std::uint32_t>(
      std::bit_floor(std::clamp<std::uint64_t>(std::min(by_head, by_payload), 1, 1u << 31)));
}

std::uint32_t batch_that_fits(const Dataset& data, std::uint32_t wanted, bool generic) {
  const std::uint64_t most = (LeaseSize::kPayloadBytesMax - padding_bytes(data)) /
                             std::max<std::uint64_t>(1, sample_bytes(data, generic));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most, 1, wanted));
}

}  // namespace w5xde
