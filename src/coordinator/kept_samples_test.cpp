#include "coordinator/kept_samples.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

using Kind = SampleNumber::Kind;

TEST(KeptSamples, a_sample_comes_once_while_there_is_room_for_it) {
  KeptSamples kept;
  kept.set_bytes_max(25);
  EXPECT_EQ(kept.kind_of(Work::train, 7, 10), Kind::new_kept);
  EXPECT_EQ(kept.kind_of(Work::train, 3, 10), Kind::new_kept);
  EXPECT_EQ(kept.kind_of(Work::train, 7, 10), Kind::kept);
  EXPECT_EQ(kept.kind_of(Work::train, 8, 10), Kind::passing) << "there is room for two";
  EXPECT_EQ(kept.kind_of(Work::train, 8, 10), Kind::passing);
  EXPECT_EQ(kept.kind_of(Work::train, 3, 10), Kind::kept);
}

TEST(KeptSamples, training_and_evaluation_are_apart) {
  KeptSamples kept;
  kept.set_bytes_max(100);
  EXPECT_EQ(kept.kind_of(Work::train, 7, 10), Kind::new_kept);
  EXPECT_EQ(kept.kind_of(Work::evaluate, 7, 10), Kind::new_kept);
}

TEST(KeptSamples, a_node_without_room_keeps_nothing) {
  KeptSamples kept;
  EXPECT_EQ(kept.kind_of(Work::train, 0, 10), Kind::passing);
}

}  // namespace
}  // namespace w5xde
