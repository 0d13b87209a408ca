#include "coordinator/leases_out.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

LeasesOut::Out lease(LeaseId id, std::uint64_t version, Reduction::Buffer memory = nullptr) {
  return {.grant = {.lease = id}, .version = version, .memory = std::move(memory)};
}

Learner::State state() {
  return std::make_shared<AlignedBuffer>(64);
}

TEST(LeasesOutTest, a_version_is_held_until_every_lease_of_it_is_answered) {
  LeasesOut leases;
  const Learner::State first = state(), second = state();
  leases.sent_version(1, first);
  EXPECT_EQ(first.use_count(), 1) << "no lease needs it yet";
  leases.add(lease(10, 1));
  leases.add(lease(11, 1));
  leases.sent_version(1, first);
  EXPECT_EQ(first.use_count(), 2);
  leases.add(lease(12, 2));  // ahead
  (void)leases.erase(10);
  leases.sent_version(2, second);
  EXPECT_EQ(first.use_count(), 2) << "lease 11 may be computed still";
  (void)leases.erase(11);
  EXPECT_EQ(first.use_count(), 1);
  EXPECT_EQ(second.use_count(), 2);
  (void)leases.erase(12);
  EXPECT_EQ(second.use_count(), 1) << "a node without leases reads nothing";
}

TEST(LeasesOutTest, versions_newer_than_the_oldest_lease_are_held_too) {
  LeasesOut leases;
  const Learner::State newer = state();
  leases.add(lease(10, 1));
  leases.sent_version(1, state());
  leases.sent_version(5, newer);
  EXPECT_EQ(newer.use_count(), 2) << "async: it trains with the newest that it has";
  (void)leases.erase(10);
  EXPECT_EQ(newer.use_count(), 1);
}

TEST(LeasesOutTest, the_memory_of_an_answer_comes_back_once) {
  LeasesOut leases;
  auto memory = std::make_unique<AlignedBuffer>(64);
  const std::byte* const data = memory->data();
  leases.add(lease(10, 1, std::move(memory)));
  EXPECT_EQ(leases.erase(11), nullptr);
  EXPECT_EQ(leases.erase(10)->data(), data);
  EXPECT_EQ(leases.erase(10), nullptr);
}

TEST(LeasesOutTest, of_a_node_that_is_gone_nothing_is_held_and_its_leases_are_known) {
  LeasesOut leases;
  const Learner::State read = state();
  leases.add(lease(10, 1, std::make_unique<AlignedBuffer>(64)));
  leases.sent_version(1, read);
  leases.let_go_of_memory();
  EXPECT_EQ(read.use_count(), 1);
  EXPECT_TRUE(leases.oldest().has_value());
  EXPECT_EQ(leases.erase(10), nullptr);
}

}  // namespace
}  // namespace w5xde
