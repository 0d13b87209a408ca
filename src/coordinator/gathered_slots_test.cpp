#include "coordinator/gathered_slots.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/errors.h"
#include "coordinator/batches.h"
#include "support/sim_loop.h"

namespace w5xde {
namespace {

// Samples of a single number, which is their own, of `bytes` bytes. Sample 13 cannot be read at first.
class Pictures final : public Dataset {
 public:
  explicit Pictures(std::int64_t bytes = 3)
      : input_{.name = "image", .dtype = DType::u8, .shape = {bytes}, .pixels = true} {}

  std::uint64_t samples() const override { return 4000; }
  std::span<const Field> inputs() const override { return {&input_, 1}; }
  const Field& targets() const override { return target_; }
  std::uint32_t classes() const override { return 0; }
  bool gathers_slowly() const override { return true; }
  Status gather(std::span<const std::uint32_t> numbers, std::span<const MutableBytes> inputs,
                MutableBytes targets) const override {
    gathered += numbers.size();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] == 13 && !mended) return corrupt("13.png is damaged");
      const std::uint64_t bytes = input_.sample_bytes();
      std::ranges::fill(inputs[0].subspan(i * bytes, bytes), static_cast<std::byte>(numbers[i]));
      store(targets.data() + i * sizeof(std::int32_t), static_cast<std::int32_t>(numbers[i]));
    }
    return {};
  }

  mutable std::atomic<std::uint64_t> gathered = 0;
  bool mended = false;

 private:
  Field input_;
  Field target_{.name = "targets", .dtype = DType::i32, .shape = {}};
};

class GatheredSlotsTest : public testing::Test {
 protected:
  GatheredSlots slots_of(const std::shared_ptr<Pictures>& data) {
    return GatheredSlots(data, options_, loop_, nullptr, [this] { ++told_; });
  }

  const Sampler::Options options_{.samples = 4000, .batch = 4, .shuffle = false};
  SimLoop loop_;
  std::shared_ptr<Pictures> data_ = std::make_shared<Pictures>();
  int told_ = 0;
};

TEST_F(GatheredSlotsTest, a_slot_is_gathered_once_and_beside_the_loop) {
  GatheredSlots slots = slots_of(data_);
  EXPECT_FALSE(slots.want(5));
  EXPECT_EQ(data_->gathered, 0u);
  EXPECT_EQ(slots.take(5), nullptr);
  loop_.run_ready();
  EXPECT_EQ(told_, 1);
  EXPECT_TRUE(slots.want(5));
  const auto slot = slots.take(5);
  EXPECT_EQ(slot->tensors[0],
            std::vector<std::byte>({std::byte{20}, std::byte{20}, std::byte{20}, std::byte{21}, std::byte{21},
                                    std::byte{21}, std::byte{22}, std::byte{22}, std::byte{22}, std::byte{23},
                                    std::byte{23}, std::byte{23}}));
  EXPECT_EQ(slots.take(5), slot);
  EXPECT_EQ(data_->gathered, 4u);
}

TEST_F(GatheredSlotsTest, what_a_lease_waits_for_comes_before_what_is_wanted_next) {
  GatheredSlots slots = slots_of(data_);
  slots.prepare(0, 100);
  EXPECT_FALSE(slots.want(200));
  while (told_ < 2) loop_.run_for(Duration(1));
  EXPECT_TRUE(slots.want(200)) << "after the one that was begun with";
  loop_.run_ready();
  EXPECT_EQ(told_, 101);
  EXPECT_TRUE(slots.want(99));
}

TEST_F(GatheredSlotsTest, memory_is_bounded_and_what_a_lease_waits_for_stays) {
  const auto data = std::make_shared<Pictures>(1 << 20);  // 4 MiB a slot
  GatheredSlots slots = slots_of(data);
  EXPECT_FALSE(slots.want(100));
  for (std::uint64_t slot = 0; slot < 99; slot += 9) {
    slots.prepare(slot, slot + 1000);
    loop_.run_ready();
    EXPECT_LE(slots.bytes(), GatheredSlots::kBytesMax + 5 * kMiB);
  }
  EXPECT_EQ(slots.take(0), nullptr) << "what was asked for longest ago went first";
  EXPECT_NE(slots.take(100), nullptr);
}

TEST_F(GatheredSlotsTest, a_slot_that_cannot_be_read_has_its_error_and_can_be_read_once_it_is_mended) {
  Batches batches(data_, options_);
  batches.gather_beside(loop_, [] {});
  EXPECT_FALSE(batches.ready(3, 1, Work::train, nullptr));
  loop_.run_ready();
  EXPECT_TRUE(batches.ready(3, 1, Work::train, nullptr));
  EXPECT_EQ(batches.make(3, 1).error().message, "13.png is damaged");
  data_->mended = true;
  EXPECT_FALSE(batches.ready(3, 1, Work::train, nullptr));
  loop_.run_ready();
  EXPECT_TRUE(batches.make(3, 1).ok());
}

TEST_F(GatheredSlotsTest, batches_are_the_same_as_those_that_are_gathered_at_once) {
  data_->mended = true;
  Batches beside(data_, options_), at_once(data_, options_);
  beside.gather_beside(loop_, [] {});
  KeptSamples kept, kept_at_once;
  for (KeptSamples* one : {&kept, &kept_at_once}) {
    one->set_bytes_max(1000);
    (void)one->kind_of(Work::train, 15, 7);
  }
  for (const std::uint32_t count : {1u, 3u}) {
    EXPECT_FALSE(beside.ready(count * 3, count, Work::train, &kept));
    loop_.run_ready();
    ASSERT_TRUE(beside.ready(count * 3, count, Work::train, &kept));
    const std::uint64_t gathered = data_->gathered;
    const Batch all = beside.make(count * 3, count).value(),
                some = beside.make_lacking(count * 3, count, Work::train, kept).value();
    EXPECT_EQ(data_->gathered, gathered);
    const Batch all_expected = at_once.make(count * 3, count).value(),
                some_expected = at_once.make_lacking(count * 3, count, Work::train, kept_at_once).value();
    for (const auto& [batch, expected] : {std::pair(&all, &all_expected), std::pair(&some, &some_expected)}) {
      EXPECT_EQ(batch->tensors, expected->tensors);
      EXPECT_EQ(batch->slot_samples, expected->slot_samples);
      for (std::size_t i = 0; i < 2; ++i)
        EXPECT_TRUE(std::ranges::equal(batch->payload[i].bytes(), expected->payload[i].bytes()));
    }
    EXPECT_TRUE(beside.ready(count * 3, count, Work::train, &kept)) << "the node has all of them";
  }
}

}  // namespace
}  // namespace w5xde
