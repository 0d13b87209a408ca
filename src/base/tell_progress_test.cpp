#include "base/tell_progress.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace w5xde {
namespace {

TEST(TellProgressTest, who_wants_to_know_is_told_and_nobody_else) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
  const TellProgress wanted = [&](std::uint64_t done, std::uint64_t all) { told.emplace_back(done, all); };
  for (const TellProgress& progress : {wanted, TellProgress()}) tell(progress, 3, 4);
  EXPECT_EQ(told, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{3, 4}}));
}

}  // namespace
}  // namespace w5xde
