#include "data/generated.h"

#include <charconv>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/limits.h"
#include "base/random.h"

namespace w5xde {

namespace {

constexpr std::int64_t kSyntheticSamples = 1000;
constexpr std::int64_t kSyntheticFeatures = 10;
constexpr std::uint32_t kSyntheticClasses = 10;

constexpr std::uint64_t kRandomSamples = 4096;
constexpr std::uint64_t kRandomNumbersMax = kGiB;  // features and labels, four bytes each

// Keeps these draws apart from others that start from the run's seed, such as the sampler's.
constexpr std::uint64_t kDataStream = 0x64617461;

// Row-major [samples, features].
std::vector<float> draw_features(Random& random, std::size_t count) {
  std::vector<float> features(count);
  for (float& feature : features) feature = static_cast<float>(random.normal());
  return features;
}

std::uint8_t synthetic_class(std::span<const float> row) {
  double sum = 0.0;
  for (const float feature : row) sum += double{feature};
  const double floor = std::floor(sum);
  // Not std::fmod: the class of -1 is 9.
  return static_cast<std::uint8_t>(floor - kSyntheticClasses * std::floor(floor / kSyntheticClasses));
}

template <class T>
Array array_of(std::vector<T> values, DType dtype, const Shape& shape, std::string name) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  const TensorView view(std::as_bytes(std::span(*owner)), dtype, shape);
  return {std::move(name), view, std::move(owner)};
}

struct RandomOptions {
  std::uint64_t features = 0;
  std::uint64_t classes = 0;
  std::uint64_t samples = kRandomSamples;
};

// One number, up to the next comma, taken off the front; 0 where there is none.
std::uint64_t take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || (length < text.size() && text[length] != ',')) return 0;
  // A comma at the very end stays, and is then no number.
  text.remove_prefix(length + 1 < text.size() ? length + 1 : length);
  return number;
}

Result<RandomOptions> parse_random(std::string_view place) {
  RandomOptions options;
  std::string_view rest = place;
  options.features = take_number(rest);
  options.classes = take_number(rest);
  if (!rest.empty()) options.samples = take_number(rest);
  const bool numbers = options.features > 0 && options.classes > 0 && options.samples > 0 && rest.empty();
  if (!numbers)
    return invalid(
        "'{}' is not FEATURES,CLASSES or FEATURES,CLASSES,SAMPLES in whole numbers "
        "from 1 on, such as random:784,10 or random:784,10,60000",
        place);
  if (options.classes > kClassesMax)
    return invalid("{} classes; {} is the most", options.classes, kClassesMax);
  // Divided, because a product of what somebody typed may overflow.
  if (options.features >= kRandomNumbersMax || options.samples > kRandomNumbersMax / (options.features + 1))
    return invalid(
        "{} samples of {} features are more than the {} numbers that random data may "
        "have; ask for fewer samples",
        options.samples, options.features, kRandomNumbersMax);
  return options;
}

}  // namespace

Result<SharedDataset> make_synthetic(Split split, std::uint64_t seed) {
  Random random(mix(mix(seed, kDataStream), split == Split::train ? 0 : 1));
  std::vector<float> features = draw_features(random, kSyntheticSamples * kSyntheticFeatures);
  std::vector<std::uint8_t> classes;
  for (std::size_t i = 0; i < features.size(); i += kSyntheticFeatures) {
    classes.push_back(synthetic_class(std::span(features).subspan(i, kSyntheticFeatures)));
  }
  return make_array_dataset(
      {array_of(std::move(features), DType::f32, {kSyntheticSamples, kSyntheticFeatures}, "features")},
      array_of(std::move(classes), DType::u8, {kSyntheticSamples}, "classes"),
      {.at_least = kSyntheticClasses, .at_most = kSyntheticClasses});
}

Result<SharedDataset> make_random(std::string_view place, std::uint64_t seed) {
  W5XDE_TRY(const RandomOptions options, parse_random(place));
  Random random(mix(seed, kDataStream));
  std::vector<float> features = draw_features(random, options.samples * options.features);
  std::vector<std::int32_t> labels(options.samples);
  for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random.below(options.classes));
  const auto classes = static_cast<std::uint32_t>(options.classes);
  const auto rows = static_cast<std::int64_t>(options.samples);
  const auto columns = static_cast<std::int64_t>(options.features);
  return make_array_dataset({array_of(std::move(features), DType::f32, {rows, columns}, "features")},
                            array_of(std::move(labels), DType::i32, {rows}, "classes"),
                            {.at_least = classes, .at_most = classes});
}

}  // namespace w5xde
