#include "tensor/dtype.h"

#include <algorithm>

#include "base/errors.h"

namespace w5xde {

Result<DType> parse_dtype(std::string_view name) {
  const auto* found = std::ranges::find(kDTypes, name, [](DType dtype) { return name_of(dtype); });
  if (found == kDTypes.end()) return invalid("'{}' is not a dtype", name);
  return *found;
}

Result<DType> dtype_from_wire(std::uint8_t number) {
  if (number == 0 || number > kDTypes.size()) return corrupt("dtype {} is not known", number);
  return static_cast<DType>(number);
}

}  // namespace w5xde
