#include "commands/data_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/printable.h"
#include "commands/figure_text.h"
#include "tensor/half.h"

namespace w5xde {

namespace {

// Classes are counted where that reads no more than this.
constexpr std::uint64_t kCountedBytesMax = 512 * kMiB;
constexpr std::uint32_t kCountedAtOnce = 1024;
constexpr std::uint32_t kClassesShown = 20;
constexpr std::size_t kNumbersShown = 8;
constexpr std::size_t kTextShown = 60;

// The memory of some samples, as Dataset::gather fills it.
struct Gathered {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::byte> targets;
};

Result<Gathered> gather(const Dataset& data, std::span<const std::uint32_t> numbers) {
  Gathered made;
  std::vector<MutableBytes> inputs;
  for (const SampleField& field : data.inputs()) {
    made.inputs.emplace_back(numbers.size() * field.sample_bytes());
  }
  for (auto& memory : made.inputs) inputs.emplace_back(memory);
  made.targets.resize(numbers.size() * data.targets().sample_bytes());
  W5XDE_CHECK(data.gather(numbers, inputs, made.targets));
  return made;
}

double number_at(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f32:
      return load<float>(at);
    case DType::f64:
      return load<double>(at);
    case DType::f16:
      return f32_from_f16(load<std::uint16_t>(at));
    case DType::bf16:
      return f32_from_bf16(load<std::uint16_t>(at));
    case DType::i64:
      return static_cast<double>(load<std::int64_t>(at));
    case DType::i32:
      return load<std::int32_t>(at);
    case DType::i16:
      return load<std::int16_t>(at);
    case DType::i8:
      return load<std::int8_t>(at);
    case DType::u8:
    case DType::boolean:
      return load<std::uint8_t>(at);
    case DType::c64:
    case DType::c128:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> numbers_of(const SampleField& field, std::span<const std::byte> sample) {
  std::vector<double> numbers;
  for (std::size_t at = 0; at < sample.size(); at += size_of(field.dtype))
    numbers.push_back(number_at(field.dtype, sample.data() + at));
  return numbers;
}

std::string meaning_of(const SampleField& field) {
  switch (field.kind()) {
    case SampleField::Kind::flag:
      return "true or false";
    case SampleField::Kind::whole:
      return field.ids > 0 ? fmt::format("whole numbers from 0 to {}", field.ids - 1) : "whole numbers";
    case SampleField::Kind::number:
      break;
  }
  return field.pixels ? "pixels: value / 255" : "numbers";
}

// Bytes of a language model's sample read as text.
bool is_text(const SampleField& field) {
  return field.dtype == DType::u8 && !field.pixels && field.shape.rank() == 1;
}

std::string sample_text(const SampleField& field, std::span<const std::byte> sample) {
  if (is_text(field)) {
    const std::string_view text(reinterpret_cast<const char*>(sample.data()), sample.size());
    return fmt::format("\"{}\"", printable(text, kTextShown));
  }
  const std::vector<double> numbers = numbers_of(field, sample);
  std::string text;
  for (const double number : std::span(numbers).first(std::min(numbers.size(), kNumbersShown)))
    text += fmt::format("{}{:.6g}", text.empty() ? "" : " ", number);
  if (numbers.size() <= kNumbersShown) return text;
  const auto [least, most] = std::ranges::minmax(numbers);
  const double mean =
      std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
  return fmt::format("{} …  ({:.4g} to {:.4g}, mean {:.4g})", text, least, most, mean);
}

// How many samples each class has, where a sample has one class.
Result<std::string> classes_text(const Dataset& data) {
  const SampleField& targets = data.targets();
  const std::uint64_t bytes = data.samples() * data.sample_bytes();
  if (data.classes() == 0 || targets.shape.rank() > 0 || bytes > kCountedBytesMax) return std::string();
  std::vector<std::uint64_t> counts(data.classes());
  std::uint64_t without_class = 0;  // targets that --ignore-index names
  std::vector<std::uint32_t> numbers;
  for (std::uint64_t first = 0; first < data.samples(); first += numbers.size()) {
    numbers.resize(std::min<std::uint64_t>(kCountedAtOnce, data.samples() - first));
    std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(first));
    W5XDE_TRY(const Gathered some, gather(data, numbers));
    for (const double label : numbers_of(targets, some.targets))
      ++(label >= 0 && label < data.classes() ? counts[static_cast<std::size_t>(label)] : without_class);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(counts.size(), kClassesShown); ++i)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", i, grouped(counts[i]));
  if (counts.size() > kClassesShown) text += ", …";
  const auto [least, most] = std::ranges::minmax(counts);
  const std::string rest = without_class > 0 ? fmt::format("; ignored: {}", grouped(without_class)) : "";
  return fmt::format("  samples of each class  {}{}\n", least == most ? grouped(least) : text, rest);
}

}  // namespace

Result<std::string> data_report(const std::string& split, const Dataset& data, std::uint32_t shown) {
  std::string text = fmt::format("{}: {} samples, {}\n", split, grouped(data.samples()),
                                 size_text(static_cast<double>(data.samples() * data.sample_bytes())));
  const auto field_line = [&](const char* role, const SampleField& field, const std::string& meaning) {
    text += fmt::format("  {:<8} {:<12} {} {}  {}\n", role, field.name, name_of(field.dtype),
                        field.shape.to_string(), meaning);
  };
  for (const SampleField& field : data.inputs()) field_line("input", field, meaning_of(field));
  const SampleField& targets = data.targets();
  field_line("targets", targets,
             data.classes() > 0 ? fmt::format("{} classes", grouped(data.classes())) : meaning_of(targets));
  for (const std::string& line : data.legend()) text += fmt::format("  in order {}\n", line);
  W5XDE_TRY(const std::string classes, classes_text(data));
  text += classes;
  std::vector<std::uint32_t> numbers(std::min<std::uint64_t>(shown, data.samples()));
  std::iota(numbers.begin(), numbers.end(), 0);
  W5XDE_TRY(const Gathered first, gather(data, numbers));
  for (const std::uint32_t number : numbers) {
    const auto line = [&](const SampleField& field, const std::vector<std::byte>& memory) {
      const std::uint64_t bytes = field.sample_bytes();
      text += fmt::format("    {:<12} {}\n", field.name,
                          sample_text(field, std::span(memory).subspan(number * bytes, bytes)));
    };
    text += fmt::format("  sample {}\n", number);
    for (std::size_t i = 0; i < first.inputs.size(); ++i) line(data.inputs()[i], first.inputs[i]);
    line(targets, first.targets);
  }
  return text;
}

}  // namespace w5xde
