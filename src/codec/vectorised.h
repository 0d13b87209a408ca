// Loops compiled twice, for any machine and for AVX2, and chosen at run time. Not by target_clones: its
// resolvers run before the sanitizers are ready for them. Both give the same bits, since a loop's sums go
// into lanes of a fixed number and no multiply-add is fused (see cmake/build.cmake). Private to this folder.
#pragma once

#define W5XDE_KERNEL [[gnu::always_inline]] inline

namespace w5xde {

#if defined(__x86_64__)

template <auto kernel, class... Arguments>
[[gnu::target("avx2")]] auto with_avx2(Arguments... arguments) {
  return kernel(arguments...);
}

// Calls a W5XDE_KERNEL, which is a function that the compiler copies into each place it is called from.
template <auto kernel, class... Arguments>
auto vectorised(Arguments... arguments) {
  return __builtin_cpu_supports("avx2") != 0 ? with_avx2<kernel>(arguments...) : kernel(arguments...);
}

#else

template <auto kernel, class... Arguments>
auto vectorised(Arguments... arguments) {
  return kernel(arguments...);
}

#endif

}  // namespace w5xde
