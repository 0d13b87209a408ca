#include "local_pool/run_model.h"

#include <cstdlib>

#include "base/errors.h"
#include "base/file.h"
#include "net/crypto.h"

namespace w5xde {

bool is_named_as_script(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  return ending == ".pt" || ending == ".pth" || ending == ".ts" || ending == ".torchscript";
}

bool is_script(const std::string& model) {
  std::error_code error;  // such a name may be no file's: too long, for one
  return is_named_as_script(model) || std::filesystem::is_regular_file(model, error);
}

ModelOptions model_options(const RunConfig& config, const Dataset& data, const std::string& device) {
  return {.model = config.model,
          .loss = std::string(name_of(config.loss)),
          .inputs = {data.inputs().begin(), data.inputs().end()},
          .targets = data.targets(),
          .classes = data.classes(),
          .ignore_index = config.ignore_index,
          .preparation = config.preparation,
          .threads = config.threads,
          .device = device,
          .compute = config.compute};
}

Result<std::string> hash_of_first(std::initializer_list<std::filesystem::path> files) {
  std::error_code error;
  for (const auto& file : files) {
    if (!std::filesystem::is_regular_file(file, error)) continue;
    W5XDE_TRY(const MappedFile mapped, MappedFile::open(file));
    return sha256_hex(mapped.bytes());
  }
  return std::string();
}

std::filesystem::path default_model_cache() {
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "/tmp" : std::string(home) + "/.cache") / "w5xde/models";
}

Result<std::filesystem::path> find_engine(const std::string& asked_for) {
  if (!asked_for.empty()) return std::filesystem::path(asked_for);
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path places[] = {here / "engines/torch/libw5xde_torch.so",
                                          here / "../lib/w5xde/libw5xde_torch.so"};
  for (const auto& place : places) {
    if (std::filesystem::exists(place, error)) return place;
  }
  return invalid("no engine at {}; build it (scripts/build), or say where it is with --engine",
                 places[0].string());
}

}  // namespace w5xde
