#include "wire/enrolment.h"

#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const auto decoded = decode_offer(fuzz::input_of(data, size), fuzz::kLimits);
  if (!decoded.ok()) return 0;
  for (const auto* text : {&decoded->run, &decoded->model, &decoded->model_hash, &decoded->loss}) {
    fuzz::must_hold(text->size() <= fuzz::kLimits.name_bytes_max);
  }
  fuzz::must_hold(decoded->inputs.size() <= kInputsMax);
  for (const SampleField& input : decoded->inputs) {
    fuzz::must_hold(input.name.size() <= fuzz::kLimits.name_bytes_max);
    fuzz::must_hold(input.sample_bytes() < std::uint64_t{1} << 62);
  }
  for (const auto* numbers : {&decoded->preparation.mean, &decoded->preparation.deviation}) {
    fuzz::must_hold(numbers->size() <= kChannelsMax);
  }
  // What is written back may be longer than what was read, so with the limits of a real node.
  const auto again = decode_offer(fuzz::head_of(decoded.value()), Limits{});
  fuzz::must_hold(again.ok() && again.value() == decoded.value());
  return 0;
}
