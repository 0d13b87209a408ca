#include "models/image_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace w5xde::torch_engine {

Result<Image> image_of(const ModelOptions& options, std::int64_t side_min) {
  W5XDE_CHECK(check_numbers(options));
  const Shape& shape = options.inputs[0].shape;
  if (options.classes == 0) {
    return invalid(fmt::format("'{}' classifies, and this data has no classes", options.model));
  }
  W5XDE_CHECK(outputs_of(options));
  if (shape.rank() != 2 && shape.rank() != 3) {
    return invalid(
        fmt::format("'{}' takes images, [height, width] or [channels, height, width], and these samples are "
                    "{}; type mlp:{},128,{}",
                    options.model, shape.to_string(), shape.elements(), options.classes));
  }
  const std::size_t first = shape.rank() - 2;
  const Image image{first == 1 ? shape[0] : 1, shape[first], shape[first + 1]};
  if (image.channels < 1 || std::min(image.height, image.width) < side_min) {
    return invalid(fmt::format("'{}' needs images of {} by {} or more, and these samples are {}",
                               options.model, side_min, side_min, shape.to_string()));
  }
  return image;
}

}  // namespace w5xde::torch_engine
