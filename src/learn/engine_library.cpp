#include "learn/engine_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "base/errors.h"
#include "base/random.h"
#include "learn/prepared_engine.h"
#include "tensor/parameter_block.h"

namespace w5xde {

namespace {

// The loader gives addresses as numbers.
template <class T>
T* at_address(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Whether loading it wrote into segments that are read-only afterwards.
bool has_text_relocations(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const std::uintptr_t at = object.dlpi_addr + object.dlpi_phdr[i].p_vaddr;
    const auto* entry = at_address<const ElfW(Dyn)>(at);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_TEXTREL) return true;
      if (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0) return true;
    }
  }
  return false;
}

// Loading a library reads all of its symbols and relocations, and never again: of libtorch, 80 MB that would
// stay mapped. What was never written comes back from the file when it is wanted.
void let_go_of_read_only_pages() {
  const auto let_go = [](dl_phdr_info* object, std::size_t, void*) {
    if (has_text_relocations(*object)) return 0;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = object->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
      const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
      const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
      (void)madvise(at_address<void>(begin), end - begin, MADV_DONTNEED);
    }
    return 0;
  };
  dl_iterate_phdr(let_go, nullptr);
}

}  // namespace

std::uint64_t fingerprint_of(const ModelDescription& model) {
  return mix(fingerprint_of(*model.parameters) ^ mix(fingerprint_of(*model.buffers)));
}

Result<std::unique_ptr<Engine>> EngineLibrary::make(const ModelOptions& options,
                                                    const std::filesystem::path& model_file) const {
  if (!options.preparation.any()) return make_(options, model_file);
  return PreparedEngine::make(options, [&](const ModelOptions& then) { return make_(then, model_file); });
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
  let_go_of_read_only_pages();
  return EngineLibrary(entry);
}

}  // namespace w5xde
