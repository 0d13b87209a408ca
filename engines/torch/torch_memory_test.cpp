// What an engine holds of a model: nothing of its size.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "engine_on_test.h"

namespace w5xde {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep memory that was freed

// This process's memory in bytes, now ("VmRSS") or at most since it was last reset ("VmHWM").
std::uint64_t memory_in_use(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(what + ":")) return std::stoull(line.substr(what.size() + 1)) * 1024;
  }
  ADD_FAILURE() << what;
  return 0;
}
void reset_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

// 16 layers of 4 MB each.
const char* const kLargeModel =
    "mlp:1024,1024,1024,1024,1024,1024,1024,1024,1024,1024,1024,1024,1024,1024,1024,1024,1024";
const Shape kLargeShape{1024};

TEST(TorchMemory, an_engine_holds_no_parameters_of_its_own_and_never_all_gradients_of_a_slot) {
  const ModelOptions options = options_of(kLargeModel, kLargeShape, 1024);
  const Samples samples(2, kLargeShape, 1024, 1);
  {  // what the library allocates once
    EngineOnTest small("mlp:8,6,5", Shape{8}, 5);
    small.contribution(Samples(2, Shape{8}, 5, 1).slot());
  }
  const std::uint64_t before = memory_in_use("VmRSS");
  const auto engine = torch_library().make(options, {}).value();
  const std::uint64_t floats = engine->description().floats();
  const std::uint64_t model_bytes = floats * sizeof(float);
  EXPECT_LT(memory_in_use("VmRSS"), before + model_bytes / 8);

  Block state(floats), contribution(floats);
  std::ranges::fill(state.values(), 0.001F);
  reset_peak_memory();
  const std::uint64_t touched = memory_in_use("VmRSS");
  ASSERT_TRUE(engine->compute(state.values(), samples.slot(), 1, contribution.values()).ok());
  const float* const addends[] = {contribution.values().data()};
  ASSERT_TRUE(engine->compute(state.values(), {samples.slot(), 2}, addends, contribution.values()).ok());
  EXPECT_LT(memory_in_use("VmHWM"), touched + model_bytes / 2);
}

#endif

}  // namespace
}  // namespace w5xde
