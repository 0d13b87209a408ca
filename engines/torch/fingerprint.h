#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>

namespace w5xde::torch_engine {

// A hash of all that a TorchScript value holds: numbers, texts, tensors, and whatever lists, tuples, dicts
// and objects hold of those. Modules inside it are left out: they have attributes of their own.
std::uint64_t fingerprint(const c10::IValue& value);

}  // namespace w5xde::torch_engine
