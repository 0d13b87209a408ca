#include "node/sample_cache.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

using Kind = SampleNumber::Kind;

// Sample n has inputs n, n + 0.5 and target n.
class SampleCacheTest : public testing::Test {
 protected:
  SampleCache cache_{1000};

  struct Made {
    Lease lease;
    std::shared_ptr<AlignedBuffer> payload;
  };
  static Made made(const std::vector<SampleNumber>& numbers, Work work = Work::train) {
    std::vector<std::uint32_t> arriving;
    for (const SampleNumber& sample : numbers) {
      if (sample.kind != Kind::kept) arriving.push_back(sample.number);
    }
    const auto count = static_cast<std::int64_t>(arriving.size());
    Made made{.lease = {.work = work,
                        .slot_samples = {static_cast<std::uint32_t>(numbers.size())},
                        .numbers = numbers,
                        .tensors = {{DType::f32, Shape{count, 2}}, {DType::u8, Shape{count}}}}};
    made.payload = std::make_shared<AlignedBuffer>(payload_bytes_of(made.lease.tensors) + 1);
    for (std::size_t i = 0; i < arriving.size(); ++i) {
      auto* inputs = reinterpret_cast<float*>(made.payload->data());
      inputs[2 * i] = static_cast<float>(arriving[i]);
      inputs[2 * i + 1] = static_cast<float>(arriving[i]) + 0.5F;
      made.payload->data()[arriving.size() * 8 + i] = static_cast<std::byte>(arriving[i]);
    }
    return made;
  }
  std::string complete(Made& made) {
    const Status status = cache_.complete(made.lease, made.payload, Limits{});
    return status.ok() ? "ok" : status.error().to_string();
  }
  static void expect_samples(const Made& made, const std::vector<std::uint32_t>& numbers) {
    ASSERT_EQ(made.lease.tensors[0].shape[0], static_cast<std::int64_t>(numbers.size()));
    ASSERT_EQ(made.lease.tensors[1].shape[0], static_cast<std::int64_t>(numbers.size()));
    EXPECT_TRUE(made.lease.numbers.empty());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto* inputs = reinterpret_cast<const float*>(made.payload->data());
      EXPECT_EQ(inputs[2 * i], static_cast<float>(numbers[i]));
      EXPECT_EQ(inputs[2 * i + 1], static_cast<float>(numbers[i]) + 0.5F);
      EXPECT_EQ(made.payload->data()[align_up(numbers.size() * 8, 8) + i],
                static_cast<std::byte>(numbers[i]));
    }
  }
};

TEST_F(SampleCacheTest, what_is_kept_need_not_come_again) {
  Made first = made({{5, Kind::new_kept}, {9, Kind::new_kept}, {7, Kind::passing}});
  ASSERT_EQ(complete(first), "ok");
  expect_samples(first, {5, 9, 7});
  EXPECT_EQ(cache_.bytes(), 18u);
  Made second = made({{9, Kind::kept}, {6, Kind::new_kept}, {6, Kind::kept}, {5, Kind::kept}});
  ASSERT_EQ(complete(second), "ok");
  expect_samples(second, {9, 6, 6, 5});
  Made none = made({{6, Kind::kept}});
  ASSERT_EQ(complete(none), "ok");
  expect_samples(none, {6});
}

TEST_F(SampleCacheTest, a_first_lease_may_name_a_sample_twice) {
  Made first = made({{5, Kind::new_kept}, {9, Kind::new_kept}, {5, Kind::kept}});
  ASSERT_EQ(complete(first), "ok");
  expect_samples(first, {5, 9, 5});
  EXPECT_EQ(cache_.bytes(), 18u);
}

TEST_F(SampleCacheTest, training_and_evaluation_have_their_own) {
  Made first = made({{5, Kind::new_kept}});
  ASSERT_EQ(complete(first), "ok");
  Made other = made({{5, Kind::kept}}, Work::evaluate);
  EXPECT_EQ(complete(other), "corrupt: samples of another size than those that are kept");
}

// Sample n has tensors of 3, 1 and 2 bytes, all of them n.
TEST(SampleCache, samples_of_several_inputs_are_put_together_tensor_by_tensor) {
  SampleCache cache(1000);
  const auto complete = [&](const std::vector<SampleNumber>& numbers,
                            const std::vector<std::uint8_t>& arriving) {
    const auto count = static_cast<std::int64_t>(arriving.size());
    Lease lease{
        .slot_samples = {static_cast<std::uint32_t>(numbers.size())},
        .numbers = numbers,
        .tensors = {{DType::u8, Shape{count, 3}}, {DType::u8, Shape{count}}, {DType::i16, Shape{count}}}};
    auto payload = std::make_shared<AlignedBuffer>(payload_bytes_of(lease.tensors) + 1);
    std::uint64_t at = 0;
    for (const TensorDescriptor& tensor : lease.tensors) {
      at = align_up(at, kPayloadAlignment);
      const std::uint64_t bytes = arriving.empty() ? 0 : tensor.byte_count() / arriving.size();
      for (const std::uint8_t sample : arriving) {
        for (std::uint64_t i = 0; i < bytes; ++i) payload->data()[at++] = static_cast<std::byte>(sample);
      }
    }
    EXPECT_TRUE(cache.complete(lease, payload, Limits{}).ok());
    std::vector<std::string> tensors;
    for (const TensorView& view : views_of(lease.tensors, {payload->data(), payload_bytes_of(lease.tensors)}))
      tensors.emplace_back(text_of(view.bytes()));
    return tensors;
  };
  using Tensors = std::vector<std::string>;
  EXPECT_EQ(complete({{'a', Kind::new_kept}, {'b', Kind::passing}}, {'a', 'b'}),
            (Tensors{"aaabbb", "ab", "aabb"}));
  EXPECT_EQ(complete({{'c', Kind::new_kept}, {'a', Kind::kept}, {'d', Kind::passing}}, {'c', 'd'}),
            (Tensors{"cccaaaddd", "cad", "ccaadd"}));
  EXPECT_EQ(complete({{'a', Kind::kept}, {'c', Kind::kept}}, {}), (Tensors{"aaaccc", "ac", "aacc"}));
  EXPECT_EQ(cache.bytes(), 12u);
}

TEST_F(SampleCacheTest, what_was_never_sent_or_is_too_much_is_refused) {
  Made first = made({{5, Kind::new_kept}});
  ASSERT_EQ(complete(first), "ok");
  Made unknown = made({{6, Kind::kept}});
  EXPECT_EQ(complete(unknown), "corrupt: sample 6 was never sent");
  std::vector<SampleNumber> many;
  for (std::uint32_t i = 0; i < 200; ++i) many.push_back({i, Kind::new_kept});
  Made too_many = made(many);
  EXPECT_EQ(complete(too_many), "corrupt: samples to keep of more than 1000 bytes");
}

TEST_F(SampleCacheTest, samples_of_a_size_that_no_byte_has_proven_are_refused) {
  Made first = made({{5, Kind::new_kept}});
  ASSERT_EQ(complete(first), "ok");
  Made huge = made({{5, Kind::kept}});
  huge.lease.tensors[0].shape = Shape{0, 1LL << 40};
  EXPECT_EQ(complete(huge), "corrupt: samples of another size than those that are kept");
}

}  // namespace
}  // namespace w5xde
