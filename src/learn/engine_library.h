#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "w5xde/engine.h"

namespace w5xde {

// A plug-in that is loaded. Loading starts no thread, so that a process may fork afterwards.
class EngineLibrary {
 public:
  // `threads` is what the library's own thread pools are told before they come to be; it is the environment
  // of the whole process, so load one library per process.
  static Result<EngineLibrary> load(const std::filesystem::path& path, unsigned threads);

  // With samples prepared as the options say.
  Result<std::unique_ptr<Engine>> make(const ModelOptions& options,
                                       const std::filesystem::path& model_file) const;

 private:
  explicit EngineLibrary(MakeEngine* function) : make_(function) {}
  MakeEngine* make_;
};

// A model from this size on takes time to load and to touch: a node that stands by holds nothing of its size.
inline constexpr std::uint64_t kLargeModelBytes = std::uint64_t{64} << 20;

// What two sides compare before they exchange a model's state.
std::uint64_t fingerprint_of(const ModelDescription& model);

}  // namespace w5xde
