#include "tensor/dtype.h"

#include <fmt/format.h>

#include <array>

namespace w5xde {

namespace {

struct Facts {
  DType dtype;
  std::size_t size;
  std::string_view name;
};

constexpr std::array<Facts, 12> kFacts = {{{DType::f32, 4, "f32"},
                                           {DType::f64, 8, "f64"},
                                           {DType::f16, 2, "f16"},
                                           {DType::bf16, 2, "bf16"},
                                           {DType::i64, 8, "i64"},
                                           {DType::i32, 4, "i32"},
                                           {DType::i16, 2, "i16"},
                                           {DType::i8, 1, "i8"},
                                           {DType::u8, 1, "u8"},
                                           {DType::boolean, 1, "bool"},
                                           {DType::c64, 8, "c64"},
                                           {DType::c128, 16, "c128"}}};

const Facts& facts_of(DType dtype) {
  return kFacts[static_cast<std::size_t>(dtype) - 1];
}

}  // namespace

std::span<const DType> all_dtypes() {
  static constexpr auto kAll = [] {
    std::array<DType, kFacts.size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = kFacts[i].dtype;
    return all;
  }();
  return kAll;
}

std::size_t size_of(DType dtype) {
  return facts_of(dtype).size;
}

std::string_view name_of(DType dtype) {
  return facts_of(dtype).name;
}

Result<DType> parse_dtype(std::string_view name) {
  for (const Facts& facts : kFacts) {
    if (facts.name == name) return facts.dtype;
  }
  return invalid(fmt::format("'{}' is not a dtype", name));
}

Result<DType> dtype_from_wire(std::uint8_t number) {
  if (number == 0 || number > kFacts.size()) return corrupt(fmt::format("dtype {} is not known", number));
  return static_cast<DType>(number);
}

}  // namespace w5xde
