#include "wire/hello.h"

#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const auto decoded = decode_hello(fuzz::input_of(data, size), Limits::stranger());
  if (!decoded.ok()) return 0;
  const auto again = decode_hello(fuzz::head_of(decoded.value()), Limits::stranger());
  fuzz::must_hold(again.ok() && again.value() == decoded.value());

  Hello mine;
  mine.model_fingerprint = 1;
  for (const bool encrypted : {false, true}) {
    const auto here = negotiate(mine, decoded.value(), {.encrypted = encrypted});
    const auto there = negotiate(decoded.value(), mine, {.encrypted = encrypted});
    fuzz::must_hold(here.ok() == there.ok());
    if (here.ok()) fuzz::must_hold(*here == *there);
  }
  return 0;
}
