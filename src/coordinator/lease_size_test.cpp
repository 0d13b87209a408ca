#include "coordinator/lease_size.h"

#include <gtest/gtest.h>

#include "coordinator/batches.h"
#include "wire/messages.h"

namespace w5xde {
namespace {

std::shared_ptr<const Dataset> data_of(const std::string& spec) {
  return open_dataset(spec, Split::train, 1).value();
}

TEST(LeaseSize, the_largest_lease_fits_in_a_frame_s_head) {
  const auto data = data_of("random:2,2,100000");
  const std::uint32_t batch = 3000;
  const std::uint32_t slots = LeaseSize::of(*data, batch, false).slots_max(true);
  ASSERT_GT(slots, 16u);
  Batches batches(data, {.samples = data->samples(), .batch = batch, .seed = 1});
  KeptSamples kept;
  const Batch made = batches.make_lacking(0, slots, Work::train, kept).value();
  Head head;
  encode(Lease{.block = {0, slots},
               .slot_samples = made.slot_samples,
               .numbers = made.numbers,
               .tensors = made.tensors},
         head);
  EXPECT_LE(head.size(), Limits{}.head_bytes_max);
  EXPECT_GT(head.size(), Limits{}.head_bytes_max / 4) << "it is not far below what it could be";
}

TEST(LeaseSize, a_lease_without_numbers_is_bounded_by_its_samples) {
  const auto data = data_of("random:1024,2,5000");
  const LeaseSize size = LeaseSize::of(*data, 1024, false);
  EXPECT_TRUE(size.fits());
  EXPECT_EQ(size.slots_max(false), 32u) << "of 4 MiB and some bytes each";
  const LeaseSize generic = LeaseSize::of(*data, 1024, true);
  EXPECT_EQ(generic.slots_max(false), 16u) << "a number is nine bytes then";
}

TEST(LeaseSize, a_slot_may_be_too_large_for_any_lease) {
  const auto data = data_of("random:1024,2,5000");
  EXPECT_FALSE(LeaseSize::of(*data, 100'000, false).fits());
  const LeaseSize many = LeaseSize::of(*data_of("random:2,2,1000000"), 500'000, false);
  EXPECT_TRUE(many.fits());
  EXPECT_FALSE(many.fits_with_numbers());
  EXPECT_EQ(many.slots_max(true), 1u);
}

TEST(LeaseSize, a_batch_is_made_smaller_where_it_would_not_fit) {
  EXPECT_EQ(batch_that_fits(*data_of("random:1024,2,5000"), 256, false), 256u);
  const auto large = data_of("random:2097152,2,2");  // 8 MiB a sample
  EXPECT_EQ(batch_that_fits(*large, 256, false), 31u);
}

}  // namespace
}  // namespace w5xde
