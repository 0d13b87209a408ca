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

bool is_kept(const SampleNumber& sample) {
  return sample.kind == SampleNumber::Kind::kept;
}

}  // namespace

Status SampleCache::keep(CachedSet& cached, std::uint32_t number, Bytes input, Bytes target) {
  if (cached.samples.empty()) cached.sample_bytes = {input.size(), target.size()};
  if (cached.sample_bytes != std::array<std::uint64_t, 2>{input.size(), target.size()})
    return corrupt("samples of another size than those before");
  const std::uint64_t bytes = input.size() + target.size();
  std::vector<std::byte>& sample = cached.samples[number];
  if (sample.empty()) bytes_ += bytes;
  if (bytes_ > bytes_max_) return corrupt("samples to keep of more than {} bytes", bytes_max_);
  sample.assign(input.begin(), input.end());
  sample.insert(sample.end(), target.begin(), target.end());
  return {};
}

Status SampleCache::complete(Lease& lease, std::shared_ptr<AlignedBuffer>& payload, const Limits& limits) {
  if (lease.numbers.empty()) return {};
  CachedSet& cached = sets_[static_cast<std::size_t>(lease.work)];
  const auto arrived = views_of(lease.tensors, {payload->data(), payload_bytes_of(lease.tensors)});
  TensorList tensors(2);
  std::array<std::uint64_t, 2> sample_bytes{};
  for (std::size_t i = 0; i < 2; ++i) {
    W5XDE_TRY(const TensorDescriptor one, with_samples(lease.tensors[i], 1));
    sample_bytes[i] = one.byte_count();
  }
  // Where none arrives, the kept ones prove how large a sample is. A first lease may name one that it brings
  // itself: it is in the lease twice, at the end of one epoch and the start of the next.
  const bool none_arrives = std::ranges::all_of(lease.numbers, is_kept);
  const bool is_first = cached.samples.empty();
  if (is_first ? none_arrives : sample_bytes != cached.sample_bytes)
    return corrupt("samples of another size than those that are kept");
  for (std::size_t i = 0; i < 2; ++i) {
    W5XDE_TRY(tensors[i], with_samples(lease.tensors[i], lease.samples()));
  }
  if (payload_bytes_of(tensors) > limits.payload_bytes_max)
    return overloaded("a lease of {} samples is too large", lease.samples());
  const auto [input_bytes, target_bytes] = sample_bytes;
  auto whole = std::make_shared<AlignedBuffer>(payload_bytes_of(tensors));
  std::byte* inputs = whole->data();
  std::byte* targets = whole->data() + align_up(tensors[0].byte_count(), kPayloadAlignment);
  std::uint64_t next = 0;  // of those that arrived
  for (const SampleNumber& sample : lease.numbers) {
    if (is_kept(sample)) {
      const auto found = cached.samples.find(sample.number);
      if (found == cached.samples.end()) return corrupt("sample {} was never sent", sample.number);
      const Bytes kept = found->second;
      std::ranges::copy(kept.first(input_bytes), inputs);
      std::ranges::copy(kept.subspan(input_bytes), targets);
    } else {
      const Bytes input = arrived[0].bytes().subspan(next * input_bytes, input_bytes);
      const Bytes target = arrived[1].bytes().subspan(next * target_bytes, target_bytes);
      ++next;
      std::ranges::copy(input, inputs);
      std::ranges::copy(target, targets);
      if (sample.kind == SampleNumber::Kind::new_kept)
        W5XDE_CHECK(keep(cached, sample.number, input, target));
    }
    inputs += input_bytes;
    targets += target_bytes;
  }
  lease.tensors = std::move(tensors);
  lease.numbers.clear();
  payload = std::move(whole);
  return {};
}

}  // namespace w5xde
