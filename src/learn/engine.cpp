#include "learn/engine.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "base/random.h"

namespace w5xde {

std::uint64_t ModelDescription::fingerprint() const {
  return mix(parameters->fingerprint() ^ mix(buffers->fingerprint()));
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
    return invalid(fmt::format("cannot load the engine {}: {}", path.string(), dlerror()));
  }
  const auto* interface = static_cast<const std::uint32_t*>(dlsym(library, kEngineInterfaceSymbol));
  auto* entry = reinterpret_cast<Make>(dlsym(library, kEngineMakeSymbol));
  if (interface == nullptr || entry == nullptr) {
    return incompatible(fmt::format("{} is no engine of WIIIIIDE", path.string()));
  }
  if (*interface != kEngineInterface) {
    return incompatible(
        fmt::format("the engine {} speaks interface {}, this program {}; build both from one tree",
                    path.string(), *interface, kEngineInterface));
  }
  return EngineLibrary(entry);
}

Result<std::unique_ptr<Engine>> EngineLibrary::make(const ModelOptions& options,
                                                    const std::filesystem::path& model_file) const {
  return make_(options, model_file);
}

}  // namespace w5xde
