#include "data/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/hash.h"

namespace w5xde {

namespace {

constexpr std::uint64_t kBytesMax = 16u << 20;
constexpr std::uint64_t kSamplesAtOnce = 256;

std::string describe(const Dataset& data) {
  const auto describe_field = [](const Dataset::Field& field) {
    return fmt::format("{} {} {} {} {}\n", field.name, name_of(field.dtype), field.shape.to_string(),
                       field.pixels, field.ids);
  };
  std::string text = fmt::format("{} samples, {} classes\n", data.samples(), data.classes());
  for (const Dataset::Field& input : data.inputs()) text += describe_field(input);
  text += describe_field(data.targets());
  for (const std::string& line : data.legend()) text += line + "\n";
  return text;
}

// Memory of its own for each input, and for the targets.
class Pieces {
 public:
  explicit Pieces(const Dataset& data) : data_(data), pieces_(data.inputs().size() + 1) {}

  Status add(std::span<const std::uint32_t> numbers, Hash64& hash) {
    std::vector<MutableBytes> places;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const bool last = i + 1 == pieces_.size();
      const Dataset::Field& field = last ? data_.targets() : data_.inputs()[i];
      pieces_[i].resize(numbers.size() * field.sample_bytes());
      places.emplace_back(pieces_[i]);
    }
    W5XDE_CHECK(data_.gather(numbers, std::span(places).first(places.size() - 1), places.back()));
    for (const MutableBytes place : places) hash.update(place);
    return {};
  }

 private:
  const Dataset& data_;
  std::vector<std::vector<std::byte>> pieces_;
};

}  // namespace

Result<std::string> fingerprint_of(const Dataset& data) {
  Hash64 hash;
  hash.update(bytes_of(describe(data)));
  const std::uint64_t samples = data.samples();
  const std::uint64_t sample_bytes = std::max<std::uint64_t>(data.sample_bytes(), 1);
  const std::uint64_t count = std::clamp<std::uint64_t>(kBytesMax / sample_bytes, 1, samples);
  const std::uint64_t at_once = std::clamp<std::uint64_t>(kBytesMax / sample_bytes, 1, kSamplesAtOnce);
  Pieces pieces(data);
  std::vector<std::uint32_t> numbers;
  for (std::uint64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<std::uint32_t>(i * samples / count));
    if (numbers.size() < at_once && i + 1 < count) continue;
    W5XDE_CHECK(pieces.add(numbers, hash));
    numbers.clear();
  }
  return fmt::format("{:016x}", hash.digest());
}

}  // namespace w5xde
