#include "learn/engine_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/errors.h"
#include "base/random.h"
#include "tensor/parameter_block.h"

namespace w5xde {

std::uint64_t fingerprint_of(const ModelDescription& model) {
  return mix(fingerprint_of(*model.parameters) ^ mix(fingerprint_of(*model.buffers)));
}

Result<EngineLibrary> EngineLibrary::load(const std::filesystem::path& path, unsigned threads) {
  // BLAS and OpenMP read these when they are loaded, and never again.
  const std::string count = std::to_string(threads);
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) setenv(name, count.c_str(), 1);
  // OpenBLAS would start its threads right then; an engine asks it for them when it first computes.
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  // Never closed: engines' code must outlive every object that they made, static ones included.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return invalid("cannot load the engine {}: {}", path.string(), dlerror());
  }
  const auto* interface = static_cast<const std::uint32_t*>(dlsym(library, "w5xde_engine_interface"));
  auto* entry = reinterpret_cast<MakeEngine*>(dlsym(library, "w5xde_engine_make"));
  if (interface == nullptr || entry == nullptr) {
    return incompatible("{} is no engine of WIIIIIDE", path.string());
  }
  if (*interface != kEngineInterface) {
    return incompatible("the engine {} speaks interface {}, this program {}; build both from one tree",
                        path.string(), *interface, kEngineInterface);
  }
  return EngineLibrary(entry);
}

}  // namespace w5xde
