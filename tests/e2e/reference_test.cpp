// Real models, scripted by Debian's Python, in a pool and in a plain PyTorch loop (reference.py): the same
// batches, the same random draws, and in the end the same parameters and outputs.
#include <gtest/gtest.h>

#include <fstream>
#include <ostream>

#include "data/sampler.h"
#include "learn/seeds.h"
#include "pool.h"

namespace w5xde {
namespace {

constexpr std::uint64_t kSamples = 240, kSeed = 3;
constexpr std::uint32_t kBatch = 8, kSlots = 3, kSteps = 50, kNodes = 3;

struct Course {
  std::string name;
  std::string learning_rate;
  std::string momentum = "0.9";
};
void PrintTo(const Course& course,
             std::ostream* out) {  // NOLINT(readability-identifier-naming): gtest's name
  *out << course.name;
}

// Which samples each slot of a step has, and what PyTorch's generator is seeded with before it.
nlohmann::json steps() {
  Sampler sampler({.samples = kSamples, .batch = kBatch, .seed = kSeed});
  auto all = nlohmann::json::array();
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    auto slots = nlohmann::json::array();
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
      const auto samples = sampler.samples_of(step * kSlots + slot);
      slots.push_back({{"samples", std::vector<std::uint32_t>(samples.begin(), samples.end())},
                       {"seed", mix(slot_seed(step_seed(kSeed, step), slot))}});
    }
    all.push_back(slots);
  }
  return all;
}

class ReferenceTest : public testing::TestWithParam<Course> {
 protected:
  void python(const std::string& what) const {
    expect_well({{"/usr/bin/python3", W5XDE_REFERENCE, what, GetParam().name}, {.folder = pool_.folder()}});
  }
  static void expect_well(Process process) { ASSERT_EQ(process.wait(), 0) << process.said(); }

  Pool pool_{{.name = "reference",
              .flags = {"--model", "net.pt", "--data", "npy:inputs.npy,targets.npy", "--seed",
                        std::to_string(kSeed), "--batch", std::to_string(kBatch), "--slots",
                        std::to_string(kSlots), "--steps", std::to_string(kSteps), "--momentum",
                        GetParam().momentum, "--learning-rate", GetParam().learning_rate}}};
};

TEST_P(ReferenceTest, fifty_steps_of_three_nodes_are_fifty_steps_of_a_plain_python_loop) {
  python("make");
  expect_well(pool_.train(kNodes, {"--turns", "false"}));
  EXPECT_EQ(pool_.summary().at("nodes"), kNodes);
  EXPECT_EQ(pool_.summary().at("samples"), kSteps * kSlots * kBatch);
  expect_well(
      pool_.start({"eval", "run", "--data", "npy:inputs.npy,targets.npy", "--outputs", "outputs.npy"}));
  expect_well(pool_.start({"export", "run", "trained.pt"}));
  std::ofstream(pool_.folder() / "course.json")
      << nlohmann::json{{"learning_rate", std::stod(GetParam().learning_rate)},
                        {"momentum", std::stod(GetParam().momentum)},
                        {"steps", steps()}};
  python("check");
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceTest,
                         testing::Values(Course{"resnet18", "0.0005"}, Course{"transformer", "0.01"},
                                         Course{"lstm", "0.01"}),
                         [](const auto& course) { return course.param.name; });

}  // namespace
}  // namespace w5xde
