#include "learn/sample_preparation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/errors.h"
#include "tensor/half.h"

namespace w5xde {

namespace {

// A sample's memory is this many planes of rows; channels are planes, or the numbers of one row.
struct Planes {
  std::size_t planes = 1;
  std::size_t height = 1;
  std::size_t width = 1;
};

bool is_image(const SampleField& field) {
  return field.shape.rank() == 2 || field.shape.rank() == 3;
}

// `channels`: of the numbers in a row, each has its own.
Planes planes_of(const SampleField& field, bool channels) {
  const auto dims = field.shape.dims();
  const auto dim = [&](std::size_t i) { return static_cast<std::size_t>(dims[i]); };
  if (dims.size() == 3) return {dim(0), dim(1), dim(2)};
  if (dims.size() == 2) return {1, dim(0), dim(1)};
  if (dims.size() == 1 && channels) return {dim(0), 1, 1};
  return {1, 1, static_cast<std::size_t>(field.shape.elements())};
}

// How many numbers of mean and deviation there may be, other than one.
std::size_t channels_of(const SampleField& field) {
  const auto dims = field.shape.dims();
  return dims.size() == 1 || dims.size() == 3 ? static_cast<std::size_t>(dims[0]) : 1;
}

// Where the pixels of a crop come from: row y of it is row y + down, column x is column x + right.
struct Move {
  std::ptrdiff_t down = 0;
  std::ptrdiff_t right = 0;
  bool flip = false;
};

Move draw_move(const SamplePreparation& preparation, Random& draws) {
  const std::uint64_t places = 2 * std::uint64_t{preparation.crop_pixels} + 1;
  const auto offset = [&] {
    return static_cast<std::ptrdiff_t>(draws.below(places)) -
           static_cast<std::ptrdiff_t>(preparation.crop_pixels);
  };
  Move move;
  if (preparation.crop_pixels > 0) {
    move.down = offset();
    move.right = offset();
  }
  if (preparation.flip) move.flip = draws.below(2) == 1;
  return move;
}

// One plane. `convert` makes a number of what lies in memory; memory of zeros is what a crop adds.
template <class From, class To, class Convert>
void move_plane(const std::byte* from, std::byte* to, const Planes& size, const Move& move,
                const Convert& convert) {
  const auto height = static_cast<std::ptrdiff_t>(size.height),
             width = static_cast<std::ptrdiff_t>(size.width);
  const auto set = [](std::byte* at, To value) { std::memcpy(at, &value, sizeof value); };
  const To zero = convert(From{});
  const std::ptrdiff_t begin = std::max<std::ptrdiff_t>(0, -move.right),
                       end = std::min(width, width - move.right);
  for (std::ptrdiff_t y = 0; y < height; ++y, to += width * static_cast<std::ptrdiff_t>(sizeof(To))) {
    const auto place = [&](std::ptrdiff_t x) {
      return to + (move.flip ? width - 1 - x : x) * static_cast<std::ptrdiff_t>(sizeof(To));
    };
    const bool inside = y + move.down >= 0 && y + move.down < height;
    for (std::ptrdiff_t x = 0; x < (inside ? begin : width); ++x) set(place(x), zero);
    if (!inside) continue;
    const std::byte* row =
        from + ((y + move.down) * width + move.right) * static_cast<std::ptrdiff_t>(sizeof(From));
    for (std::ptrdiff_t x = begin; x < end; ++x)
      set(place(x), convert(load<From>(row + x * static_cast<std::ptrdiff_t>(sizeof(From)))));
    for (std::ptrdiff_t x = end; x < width; ++x) set(place(x), zero);
  }
}

class Preparing {
 public:
  Preparing(const SamplePreparation& preparation, const SampleField& field, const SampleTensor& from,
            Random* draws, std::byte* to)
      : preparation_(preparation),
        size_(planes_of(field, preparation.mean.size() > 1)),
        from_(from),
        draws_(draws),
        to_(to) {}

  // `value` makes the number of it that a model would be given.
  template <class From, class Value>
  void normalize(const Value& value) const {
    each_plane<From, float>([&](std::size_t plane, const std::byte* from, std::byte* to, const Move& move) {
      const std::size_t channel = channel_of(plane);
      move_plane<From, float>(from, to, size_, move,
                              [&](From number) { return normalized(value(number), channel); });
    });
  }

  // A byte is one of few: each is normalised once.
  void normalize_pixels() const {
    std::vector<std::array<float, 256>> tables(preparation_.mean.size());
    for (std::size_t channel = 0; channel < tables.size(); ++channel) {
      for (std::size_t i = 0; i < tables[channel].size(); ++i)
        tables[channel][i] = normalized(static_cast<float>(i) / 255.0F, channel);
    }
    using Pixel = std::uint8_t;
    each_plane<Pixel, float>([&](std::size_t plane, const std::byte* from, std::byte* to, const Move& move) {
      const std::array<float, 256>& table = tables[channel_of(plane)];
      move_plane<Pixel, float>(from, to, size_, move, [&](Pixel pixel) { return table[pixel]; });
    });
  }

  template <class Number>
  void move_only() const {
    each_plane<Number, Number>([&](std::size_t, const std::byte* from, std::byte* to, const Move& move) {
      move_plane<Number, Number>(from, to, size_, move, [](Number number) { return number; });
    });
  }

 private:
  std::size_t channel_of(std::size_t plane) const { return preparation_.mean.size() == 1 ? 0 : plane; }
  // As PyTorch's (x - mean) / deviation rounds it.
  float normalized(float value, std::size_t channel) const {
    return (value - preparation_.mean[channel]) / preparation_.deviation[channel];
  }

  template <class From, class To, class Plane>
  void each_plane(const Plane& plane_of_sample) const {
    const std::size_t numbers = size_.height * size_.width;
    const std::byte* from = from_.bytes.data();
    std::byte* to = to_;
    for (std::int64_t sample = 0; sample < from_.shape[0]; ++sample) {
      const Move move = draws_ == nullptr ? Move{} : draw_move(preparation_, *draws_);
      for (std::size_t plane = 0; plane < size_.planes; ++plane) {
        plane_of_sample(plane, from, to, move);
        from += numbers * sizeof(From);
        to += numbers * sizeof(To);
      }
    }
  }

  const SamplePreparation& preparation_;
  Planes size_;
  const SampleTensor& from_;
  Random* draws_;
  std::byte* to_;
};

void normalize(const Preparing& preparing, DType dtype) {
  switch (dtype) {
    case DType::u8:
      return preparing.normalize_pixels();
    case DType::f64:
      return preparing.normalize<double>([](double number) { return static_cast<float>(number); });
    case DType::f16:
      return preparing.normalize<std::uint16_t>(f32_from_f16);
    case DType::bf16:
      return preparing.normalize<std::uint16_t>(f32_from_bf16);
    default:
      return preparing.normalize<float>([](float number) { return number; });
  }
}

void move_only(const Preparing& preparing, std::size_t bytes) {
  if (bytes == 1) return preparing.move_only<std::uint8_t>();
  if (bytes == 2) return preparing.move_only<std::uint16_t>();
  if (bytes == 4) return preparing.move_only<std::uint32_t>();
  return preparing.move_only<std::uint64_t>();
}

Status check_channels(const SamplePreparation& preparation, const SampleField& field) {
  const auto good = [](float number) { return std::isfinite(number); };
  const std::size_t numbers = preparation.mean.size();
  if (numbers != preparation.deviation.size() || numbers > kChannelsMax)
    return invalid("normalize: {} means and {} deviations; as many of both, {} at most", numbers,
                   preparation.deviation.size(), kChannelsMax);
  if (!std::ranges::all_of(preparation.mean, good) || !std::ranges::all_of(preparation.deviation, good) ||
      !std::ranges::all_of(preparation.deviation, [](float number) { return number > 0; }))
    return invalid("normalize: means are numbers, and deviations are more than 0");
  const std::size_t channels = channels_of(field);
  if (numbers <= 1 || numbers == channels) return {};
  return invalid(
      "normalize: {} means and deviations for '{}' of {}, which has {}; give {}one of each for all", numbers,
      field.name, field.shape.to_string(),
      channels == 1 ? "one channel" : fmt::format("{} channels", channels),
      channels == 1 ? "" : fmt::format("{} of each, or ", channels));
}

Status check_augmentation(const SamplePreparation& preparation, const SampleField& field,
                          const SampleField& targets) {
  if (!preparation.augments()) return {};
  if (!is_image(field))
    return invalid(
        "augment: '{}' of {} is no image, which is [height, width] or [channels, height, width]; leave it "
        "out",
        field.name, field.shape.to_string());
  if (targets.shape.rank() >= 2)
    return invalid(
        "augment: the targets of a sample are {}, which would have to be cropped and flipped as the image "
        "is; "
        "leave it out",
        targets.shape.to_string());
  const Planes size = planes_of(field, false);
  const std::size_t side = std::min(size.height, size.width);
  if (preparation.crop_pixels == 0 || preparation.crop_pixels < side) return {};
  return invalid("augment: crop:{} of images of {}; it must be less than {}, or nothing is left",
                 preparation.crop_pixels, field.shape.to_string(), side);
}

}  // namespace

Result<std::size_t> prepared_input(const SamplePreparation& preparation, std::span<const SampleField> inputs,
                                   const SampleField& targets) {
  std::optional<std::size_t> found;
  std::size_t numbers = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() != SampleField::Kind::number) continue;
    found = i;
    ++numbers;
  }
  if (numbers != 1)
    return invalid("{}: it is done to the one input that is numbers, and these samples have {}; leave it out",
                   preparation.augments() ? "augment" : "normalize",
                   numbers == 0 ? "none: ids and flags stay as they are" : fmt::format("{}", numbers));
  W5XDE_CHECK(check_channels(preparation, inputs[*found]));
  W5XDE_CHECK(check_augmentation(preparation, inputs[*found], targets));
  return *found;
}

SampleField prepared_field(const SamplePreparation& preparation, SampleField field) {
  if (!preparation.normalizes()) return field;
  field.dtype = DType::f32;
  field.pixels = false;
  return field;
}

SampleTensor prepare_samples(const SamplePreparation& preparation, const SampleField& field,
                             const SampleTensor& from, Random* draws, std::vector<std::byte>& memory) {
  const DType dtype = preparation.normalizes() ? DType::f32 : from.dtype;
  memory.resize(from.shape.elements() * size_of(dtype));
  const Preparing preparing(preparation, field, from, draws, memory.data());
  if (preparation.normalizes()) {
    normalize(preparing, from.dtype);
  } else {
    move_only(preparing, size_of(from.dtype));
  }
  return {memory, dtype, from.shape};
}

}  // namespace w5xde
