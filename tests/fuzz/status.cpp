#include "wire/status.h"

#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const auto decoded = decode_status(fuzz::input_of(data, size), fuzz::kLimits);
  if (!decoded.ok()) return 0;
  fuzz::must_hold(decoded->nodes.size() + decoded->departures.size() <= fuzz::kLimits.value_items_max);
  // Compared as bytes: a loss may be NaN, which equals nothing.
  const Head head = fuzz::head_of(decoded.value());
  const auto again = decode_status(head, Limits{});
  fuzz::must_hold(again.ok() && fuzz::head_of(again.value()) == head);
  fuzz::must_hold(to_json(decoded.value()).ends_with("}\n"));
  return 0;
}
