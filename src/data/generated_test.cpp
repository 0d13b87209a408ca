#include "data/generated.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "base/hash.h"
#include "support/data_files.h"

namespace w5xde {
namespace {

Gathered all_of(const Dataset& data) {
  std::vector<std::uint32_t> numbers(data.samples());
  std::iota(numbers.begin(), numbers.end(), 0u);
  return gather_from(data, numbers);
}

std::vector<float> floats_of(const std::string& memory) {
  std::vector<float> floats(memory.size() / sizeof(float));
  std::memcpy(floats.data(), memory.data(), memory.size());
  return floats;
}

RC_GTEST_PROP(GeneratedTest, a_synthetic_class_is_the_floor_of_the_sum_modulo_ten, (std::uint64_t seed)) {
  const auto split = *rc::gen::element(Split::train, Split::test);
  const auto data = make_synthetic(split, seed).value();
  RC_ASSERT(data->samples() == 1000u);
  RC_ASSERT(data->inputs()[0].shape == Shape{10});
  RC_ASSERT(data->inputs()[0].dtype == DType::f32);
  RC_ASSERT(data->classes() == 10u);
  const Gathered all = all_of(*data);
  const auto features = floats_of(all.inputs);
  for (std::size_t i = 0; i < 1000; ++i) {
    double sum = 0.0;
    for (std::size_t j = 0; j < 10; ++j) sum += double{features[i * 10 + j]};
    const int floor = static_cast<int>(std::floor(sum));
    RC_ASSERT(static_cast<int>(all.targets[i]) == (floor % 10 + 10) % 10);
  }
}

// A run is repeatable from its seed for as long as these hold.
TEST(GeneratedTest, is_the_same_on_every_machine_for_ever) {
  const auto hash_of = [](const Result<SharedDataset>& data) {
    const Gathered all = all_of(**data);
    return fmt::format("{:016x}", hash64(bytes_of(all.inputs + all.targets)));
  };
  EXPECT_EQ(hash_of(make_synthetic(Split::train, 42)), "e22210a45cce6a0c");
  EXPECT_EQ(hash_of(make_synthetic(Split::test, 42)), "eca94939979b325d");
  EXPECT_EQ(hash_of(make_random("3,300,50", 42)), "2fe65aa8dc3df8f0");
}

TEST(GeneratedTest, splits_and_seeds_differ) {
  std::set<std::string> inputs;
  for (const std::uint64_t seed : {0u, 1u}) {
    for (const Split split : {Split::train, Split::test}) {
      inputs.insert(all_of(**make_synthetic(split, seed)).inputs);
    }
  }
  EXPECT_EQ(inputs.size(), 4u);
}

TEST(GeneratedTest, random_data_has_the_size_asked_for) {
  const auto data = make_random("784,47", 1);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ((*data)->samples(), 4096u);
  EXPECT_EQ((*data)->inputs()[0].shape, Shape{784});
  EXPECT_EQ((*data)->targets().dtype, DType::i32);
  EXPECT_EQ((*data)->classes(), 47u);
  EXPECT_EQ((*make_random("1,1,7", 1))->samples(), 7u);
  EXPECT_EQ((*make_random("1,1000000,7", 1))->classes(), 1'000'000u);  // though seven samples have few
}

TEST(GeneratedTest, random_data_that_makes_no_sense_is_refused) {
  for (const char* place : {"", "5", "5,", "5,5,", "5,5,5,5", ",5", "5,,5", "0,5", "5,0", "5,5,0", "-5,5",
                            "5,x", "5 ,5", "5,5,5,", "99999999999999999999,1"}) {
    EXPECT_TRUE(says(refusal_of(make_random(place, 1)), "such as random:784,10")) << place;
  }
  EXPECT_TRUE(says(refusal_of(make_random("5,16777217", 1)), "16777216 is the most"));
  EXPECT_TRUE(says(refusal_of(make_random("1000000,10,1000000", 1)), "ask for fewer samples"));
  EXPECT_TRUE(says(refusal_of(make_random("18446744073709551615,1,1", 1)), "ask for fewer samples"));
}

}  // namespace
}  // namespace w5xde
