#include "data/windows.h"

#include <array>
#include <cassert>
#include <charconv>
#include <limits>
#include <utility>

#include "base/errors.h"

namespace w5xde {

namespace {

constexpr std::uint32_t kContextMax = 1u << 20;
constexpr std::uint64_t kTestPart = 10;

DType dtype_of(IdRow::Type type) {
  switch (type) {
    case IdRow::Type::u8:
      return DType::u8;
    case IdRow::Type::i64:
      return DType::i64;
    default:
      return DType::i32;
  }
}

class Windows final : public Dataset {
 public:
  // Of the ids from `first` on.
  Windows(IdRow row, std::uint32_t context, std::uint64_t first, std::uint64_t windows)
      : row_(std::move(row)), context_(context), first_(first), windows_(windows) {
    const DType dtype = dtype_of(row_.type);
    const Shape shape{std::int64_t{context}};
    inputs_[0] = {.name = "inputs", .dtype = dtype, .shape = shape, .ids = row_.vocabulary};
    targets_ = {.name = "targets", .dtype = dtype, .shape = shape};
  }

  std::uint64_t samples() const override { return windows_; }
  std::span<const Field> inputs() const override { return inputs_; }
  const Field& targets() const override { return targets_; }
  std::uint32_t classes() const override { return row_.vocabulary; }

  Status gather(std::span<const std::uint32_t> numbers, std::span<const MutableBytes> inputs,
                MutableBytes targets) const override {
    const std::uint64_t bytes = targets_.sample_bytes();
    assert(inputs.size() == 1 && inputs[0].size() == numbers.size() * bytes);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      assert(numbers[i] < windows_);
      const std::uint64_t at = first_ + std::uint64_t{numbers[i]} * context_;
      copy(at, inputs[0].subspan(i * bytes, bytes));
      copy(at + 1, targets.subspan(i * bytes, bytes));
    }
    return {};
  }

 private:
  void copy(std::uint64_t first, MutableBytes to) const {
    if (row_.type == IdRow::Type::u16) {
      for (std::uint64_t i = 0; i < context_; ++i)
        store(to.data() + i * sizeof(std::int32_t), static_cast<std::int32_t>(row_.at(first + i)));
    } else {
      std::memcpy(to.data(), row_.bytes.data() + first * row_.width(), to.size());
    }
  }

  IdRow row_;
  std::uint32_t context_;
  std::uint64_t first_;
  std::uint64_t windows_;
  std::array<Field, 1> inputs_;
  Field targets_;
};

}  // namespace

std::int64_t IdRow::at(std::uint64_t i) const {
  const std::byte* from = bytes.data() + i * width();
  switch (type) {
    case Type::u8:
      return load<std::uint8_t>(from);
    case Type::u16:
      return load<std::uint16_t>(from);
    case Type::i32:
      return load<std::int32_t>(from);
    case Type::i64:
      return load<std::int64_t>(from);
  }
  return 0;
}

Result<SharedDataset> make_windows(IdRow row, std::uint32_t context, Split split) {
  const std::uint64_t test = split == Split::evaluation ? 0 : row.size() / kTestPart;
  const std::uint64_t train = row.size() - test;
  const std::uint64_t ids = split == Split::test ? test : train;
  const std::uint64_t windows = ids == 0 ? 0 : (ids - 1) / context;  // the last target is one id further
  if (windows == 0 && split == Split::test) return SharedDataset();
  if (windows == 0)
    return invalid(
        "{} has {} ids, of which {} are for {}, and a window with context={} takes {}; give a longer "
        "file, or a smaller context",
        row.name, row.size(), train, split == Split::evaluation ? "evaluation" : "training", context,
        context + 1);
  if (windows > std::numeric_limits<std::uint32_t>::max())
    return invalid("{} has {} windows, 4294967295 is the most; give a larger context", row.name, windows);
  return SharedDataset(
      std::make_shared<Windows>(std::move(row), context, split == Split::test ? train : 0, windows));
}

Result<WindowPlace> parse_window_place(std::string_view place) {
  constexpr std::string_view kContext = ",context=";
  WindowPlace parsed{.file = place};
  const auto at = place.rfind(kContext);
  if (at == std::string_view::npos) return parsed;
  parsed.file = place.substr(0, at);
  const std::string_view number = place.substr(at + kContext.size());
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), parsed.context);
  if (error != std::errc() || end != number.data() + number.size() || parsed.context < 1 ||
      parsed.context > kContextMax)
    return invalid("'{}' is not a context: a whole number from 1 to {}, such as context=128", number,
                   kContextMax);
  return parsed;
}

}  // namespace w5xde
