#include "node/sample_cache.h"

#include <algorithm>

#include "base/errors.h"

namespace w5xde {

namespace {

// The tensor's shape for another number of samples.
Result<TensorDescriptor> with_samples(const TensorDescriptor& tensor, std::uint64_t samples) {
  std::array<std::int64_t, kRankMax> dims{};
  std::ranges::copy(tensor.shape.dims(), dims.begin());
  dims[0] = static_cast<std::int64_t>(samples);
  TensorDescriptor made = tensor;
  W5XDE_TRY(made.shape, Shape::make({dims.data(), tensor.shape.rank()}));
  return made;
}

Result<TensorList> with_samples(const TensorList& tensors, std::uint64_t samples) {
  TensorList made;
  for (const TensorDescriptor& tensor : tensors) {
    W5XDE_TRY(made.emplace_back(), with_samples(tensor, samples));
  }
  return made;
}

bool is_kept(const SampleNumber& sample) {
  return sample.kind == SampleNumber::Kind::kept;
}

// Where each tensor begins in the payload.
std::vector<std::byte*> places_of(const TensorList& tensors, std::byte* payload) {
  std::vector<std::byte*> places;
  std::uint64_t end = 0;
  for (const TensorDescriptor& tensor : tensors) {
    places.push_back(payload + align_up(end, kPayloadAlignment));
    end = align_up(end, kPayloadAlignment) + tensor.byte_count();
  }
  return places;
}

// A sample's part of each tensor, one after the other.
std::vector<std::byte> sample_of(std::span<const TensorView> tensors, std::uint64_t sample,
                                 std::span<const std::uint64_t> sample_bytes) {
  std::vector<std::byte> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Bytes part = tensors[i].bytes().subspan(sample * sample_bytes[i], sample_bytes[i]);
    parts.insert(parts.end(), part.begin(), part.end());
  }
  return parts;
}

}  // namespace

Status SampleCache::keep(CachedSet& cached, std::uint32_t number, Bytes sample) {
  std::vector<std::byte>& kept = cached.samples[number];
  if (kept.empty()) bytes_ += sample.size();
  if (bytes_ > bytes_max_) return corrupt("samples to keep of more than {} bytes", bytes_max_);
  kept.assign(sample.begin(), sample.end());
  return {};
}

Status SampleCache::complete(Lease& lease, std::shared_ptr<AlignedBuffer>& payload, const Limits& limits) {
  if (lease.numbers.empty()) return {};
  CachedSet& cached = sets_[static_cast<std::size_t>(lease.work)];
  const auto arrived = views_of(lease.tensors, {payload->data(), payload_bytes_of(lease.tensors)});
  W5XDE_TRY(const TensorList one, with_samples(lease.tensors, 1));
  std::vector<std::uint64_t> sample_bytes;
  for (const TensorDescriptor& tensor : one) sample_bytes.push_back(tensor.byte_count());
  // Where none arrives, the kept ones prove how large a sample is. A first lease may name one that it brings
  // itself: it is in the lease twice, at the end of one epoch and the start of the next.
  const bool none_arrives = std::ranges::all_of(lease.numbers, is_kept);
  const bool is_first = cached.samples.empty();
  if (is_first ? none_arrives : sample_bytes != cached.sample_bytes)
    return corrupt("samples of another size than those that are kept");
  W5XDE_TRY(TensorList tensors, with_samples(lease.tensors, lease.samples()));
  if (payload_bytes_of(tensors) > limits.payload_bytes_max)
    return overloaded("a lease of {} samples is too large", lease.samples());
  cached.sample_bytes = sample_bytes;
  auto whole = std::make_shared<AlignedBuffer>(payload_bytes_of(tensors));
  std::vector<std::byte*> places = places_of(tensors, whole->data());
  std::vector<std::byte> sample;
  std::uint64_t next = 0;  // of those that arrived
  for (const SampleNumber& number : lease.numbers) {
    Bytes bytes;
    if (is_kept(number)) {
      const auto found = cached.samples.find(number.number);
      if (found == cached.samples.end()) return corrupt("sample {} was never sent", number.number);
      bytes = found->second;
    } else {
      sample = sample_of(arrived, next++, sample_bytes);
      if (number.kind == SampleNumber::Kind::new_kept) W5XDE_CHECK(keep(cached, number.number, sample));
      bytes = sample;
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::ranges::copy(bytes.first(sample_bytes[i]), places[i]);
      bytes = bytes.subspan(sample_bytes[i]);
      places[i] += sample_bytes[i];
    }
  }
  lease.tensors = std::move(tensors);
  lease.numbers.clear();
  payload = std::move(whole);
  return {};
}

}  // namespace w5xde
