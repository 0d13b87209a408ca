#include "local_pool/channel_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/errors.h"
#include "learn/sample_preparation.h"

namespace w5xde {

namespace {

constexpr std::uint64_t kSamplesMax = 10'000, kSamplesAtOnce = 64;

// Of what a channel's numbers are: sums from which mean and deviation follow.
struct Moments {
  double count = 0, sum = 0, squares = 0;

  void add(double number) {
    count += 1;
    sum += number;
    squares += number * number;
  }
  double mean() const { return sum / count; }
  double deviation() const { return std::sqrt(std::max(0.0, squares / count - mean() * mean())); }
};

// The samples of these numbers, as they would be given to a model.
class NumberReader {
 public:
  NumberReader(const Dataset& data, std::size_t input) : data_(data), input_(input), as_is_{{0.F}, {1.F}} {}

  Result<std::span<const float>> read(std::span<const std::uint32_t> numbers) {
    gathered_.resize(data_.inputs().size() + 1);
    std::vector<MutableBytes> parts;
    for (std::size_t i = 0; i < gathered_.size(); ++i) {
      const SampleField& field = i < data_.inputs().size() ? data_.inputs()[i] : data_.targets();
      gathered_[i].resize(numbers.size() * field.sample_bytes());
      parts.emplace_back(gathered_[i]);
    }
    W5XDE_CHECK(data_.gather(numbers, std::span(parts).first(parts.size() - 1), parts.back()));
    const SampleField& field = data_.inputs()[input_];
    std::vector<std::int64_t> dims(field.shape.dims().begin(), field.shape.dims().end());
    dims.insert(dims.begin(), static_cast<std::int64_t>(numbers.size()));
    W5XDE_TRY(const Shape shape, Shape::make(dims));
    (void)prepare_samples(as_is_, field, {gathered_[input_], field.dtype, shape}, nullptr, floats_);
    values_.resize(floats_.size() / sizeof(float));
    std::memcpy(values_.data(), floats_.data(), floats_.size());
    return std::span<const float>(values_);
  }

 private:
  const Dataset& data_;
  std::size_t input_;
  SamplePreparation as_is_;
  std::vector<std::vector<std::byte>> gathered_;
  std::vector<std::byte> floats_;
  std::vector<float> values_;
};

}  // namespace

Status measure_normalization(const Dataset& data, SamplePreparation& preparation,
                             const TellProgress& progress) {
  W5XDE_TRY(const std::size_t input, prepared_input(preparation, data.inputs(), data.targets()));
  const auto dims = data.inputs()[input].shape.dims();
  const bool has_channels = dims.size() == 1 || dims.size() == 3;
  const std::size_t channels = has_channels ? static_cast<std::size_t>(dims[0]) : 1;
  if (channels == 0 || channels > kChannelsMax)
    return invalid("--normalize auto: {} channels; {} at most", channels, kChannelsMax);
  std::vector<Moments> moments(channels);
  NumberReader reader(data, input);
  const std::uint64_t samples = std::min(data.samples(), kSamplesMax);
  std::vector<std::uint32_t> numbers;
  for (std::uint64_t i = 0; i < samples; i += numbers.size()) {
    tell(progress, i, samples);
    numbers.clear();
    for (std::uint64_t k = i; k < std::min(samples, i + kSamplesAtOnce); ++k)
      numbers.push_back(static_cast<std::uint32_t>(k * data.samples() / samples));
    W5XDE_TRY(const auto values, reader.read(numbers));
    const std::size_t plane = values.size() / numbers.size() / channels;
    for (std::size_t k = 0; k < values.size(); ++k) moments[k / plane % channels].add(values[k]);
  }
  preparation.mean.clear();
  preparation.deviation.clear();
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const double mean = moments[channel].mean(), deviation = moments[channel].deviation();
    if (!std::isfinite(mean) || !std::isfinite(deviation))
      return invalid("--normalize auto: there is NaN or infinity in channel {}", channel);
    preparation.mean.push_back(static_cast<float>(mean));
    // Below what f32 tells apart it is rounding, in whatever unit the numbers are; and one can be divided by
    // it.
    const double least = std::max<double>(1e-6 * std::abs(mean), std::numeric_limits<float>::min());
    const bool same = deviation <= least;
    preparation.deviation.push_back(same ? 1.F : static_cast<float>(deviation));
  }
  return {};
}

}  // namespace w5xde
