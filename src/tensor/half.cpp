#include "tensor/half.h"

#include <cassert>
#include <cstddef>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace w5xde {

namespace {

#if defined(__x86_64__)

// Not every x86-64 has F16C, so it is asked for at run time. Each returns how many it did.
__attribute__((target("avx,f16c"))) std::size_t f32_to_f16_vector(std::span<const float> from,
                                                                  std::uint16_t* to) {
  std::size_t i = 0;
  for (; i + 8 <= from.size(); i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(&from[i]), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  return i;
}

__attribute__((target("avx,f16c"))) std::size_t f16_to_f32_vector(std::span<const std::uint16_t> from,
                                                                  float* to) {
  std::size_t i = 0;
  for (; i + 8 <= from.size(); i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&from[i]));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  return i;
}

bool has_f16c() {
  // Asked once: a hypervisor answers CPUID slowly. Clang before 15 has no __builtin_cpu_supports("f16c").
  static const bool kSupported = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __builtin_cpu_supports("avx") != 0 && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 &&
           (ecx & bit_F16C) != 0;
  }();
  return kSupported;
}

#endif

}  // namespace

void convert_f32_to_f16(std::span<const float> from, std::span<std::uint16_t> to) {
  assert(from.size() == to.size());
  std::size_t i = 0;
#if defined(__x86_64__)
  if (has_f16c()) i = f32_to_f16_vector(from, to.data());
#endif
  for (; i < from.size(); ++i) to[i] = f16_from_f32(from[i]);
}

void convert_f16_to_f32(std::span<const std::uint16_t> from, std::span<float> to) {
  assert(from.size() == to.size());
  std::size_t i = 0;
#if defined(__x86_64__)
  if (has_f16c()) i = f16_to_f32_vector(from, to.data());
#endif
  for (; i < from.size(); ++i) to[i] = f32_from_f16(from[i]);
}

}  // namespace w5xde
