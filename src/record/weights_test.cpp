#include "record/weights.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <limits>

#include "base/bytes.h"
#include "record/run_folder.h"
#include "support/temporary_folder.h"
#include "tensor/half.h"

namespace w5xde {
namespace {

template <class T>
NamedTensor tensor(const std::string& name, const std::vector<T>& values, DType dtype, const Shape& shape) {
  return {name, TensorView(std::as_bytes(std::span(values)), dtype, shape)};
}

class WeightsTest : public testing::Test {
 protected:
  std::span<float> of(const std::string& name) {
    for (const auto& [layout, first] :
         {std::pair{parameters_.get(), std::uint64_t{0}}, std::pair{buffers_.get(), parameters_->floats()}}) {
      if (const auto* entry = layout->find(name))
        return std::span(state_).subspan(first + entry->offset, entry->shape.elements());
    }
    return {};
  }
  // Writes the file without, or with another, of the model's tensors.
  std::filesystem::path file(const std::function<void(std::vector<NamedTensor>&)>& change = {}) {
    std::vector<NamedTensor> tensors = {
        tensor("w", w_, DType::f32, Shape{2, 3}), tensor("b", b_, DType::f32, Shape{3}),
        tensor("norm.mean", mean_, DType::f32, Shape{3}), tensor("norm.seen", seen_, DType::i64, Shape{})};
    if (change) change(tensors);
    EXPECT_TRUE(write_safetensors(folder_ / "w.safetensors", tensors, {}).ok());
    return folder_ / "w.safetensors";
  }
  std::string take(const std::filesystem::path& from) {
    const auto weights = open_weights(from);
    if (!weights.ok()) return weights.error().to_string();
    const Status status = take_weights(*weights, *parameters_, *buffers_, state_);
    return status.ok() ? "taken" : status.error().to_string();
  }
  void expect_refused(const std::filesystem::path& from, const std::vector<std::string>& parts) {
    const std::vector<float> before = state_;
    const std::string said = take(from);
    EXPECT_TRUE(said.starts_with("invalid: ")) << said;
    for (const std::string& part : parts)
      EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
    EXPECT_EQ(state_, before);
  }
  // A run with a checkpoint of this step whose weight is all `value`.
  void save(const RunFolder& run, std::uint64_t step, float value, bool best) {
    std::vector<float> state(state_.size(), value);
    const std::span<const float> all = state;
    const std::vector<NamedBlock> blocks = {
        {"parameters", parameters_.get(), all.first(parameters_->floats())},
        {"buffers", buffers_.get(), all.subspan(parameters_->floats())},
        {"optimizer.momentum", parameters_.get(), all.first(parameters_->floats())}};
    ASSERT_TRUE(write_checkpoint(run.checkpoint_path(step), {.step = step}, blocks).ok());
    ASSERT_TRUE(run.retain(step, best, 9).ok());
  }

  TemporaryFolder folder_;
  std::shared_ptr<const BlockLayout> parameters_ =
      BlockLayout::make({{"b", Shape{3}}, {"w", Shape{2, 3}}}, 1000).value();
  std::shared_ptr<const BlockLayout> buffers_ =
      BlockLayout::make({{"norm.mean", Shape{3}}, {"norm.seen", Shape{}}}, 1000).value();
  std::vector<float> state_ = std::vector<float>(parameters_->floats() + buffers_->floats(), -1.0F);
  std::vector<float> w_ = {1, 2, 3, 4, 5, 6}, b_ = {7, 8, 9}, mean_ = {10, 11, 12};
  std::vector<std::int64_t> seen_ = {40};
};

TEST_F(WeightsTest, of_a_file_go_where_their_names_say) {
  ASSERT_EQ(take(file()), "taken");
  EXPECT_TRUE(std::ranges::equal(of("w"), w_));
  EXPECT_TRUE(std::ranges::equal(of("b"), b_));
  EXPECT_TRUE(std::ranges::equal(of("norm.mean"), mean_));
  EXPECT_EQ(of("norm.seen")[0], 40.0F);
  EXPECT_EQ(state_[3], -1.0F) << "what lies between tensors is left alone";
}

TEST_F(WeightsTest, of_other_float_types_are_converted) {
  const std::vector<double> wide = {0.5, -2, 4};
  const std::vector<std::uint16_t> half = {f16_from_f32(0.5F), f16_from_f32(-2), f16_from_f32(4)};
  const std::vector<std::uint16_t> brain = {bf16_from_f32(0.5F), bf16_from_f32(-2), bf16_from_f32(4)};
  for (const NamedTensor& b :
       {tensor("b", wide, DType::f64, Shape{3}), tensor("b", half, DType::f16, Shape{3}),
        tensor("b", brain, DType::bf16, Shape{3})}) {
    ASSERT_EQ(take(file([&](auto& tensors) { tensors[1] = b; })), "taken");
    EXPECT_TRUE(std::ranges::equal(of("b"), std::vector<float>{0.5, -2, 4})) << name_of(b.tensor.dtype());
  }
}

TEST_F(WeightsTest, that_are_missing_or_left_over_or_of_another_shape_are_all_named) {
  expect_refused(file([&](auto& tensors) {
                   tensors[0] = tensor("w", w_, DType::f32, Shape{3, 2});
                   tensors[1].name = "bias";
                 }),
                 {"w.safetensors do not fit", "'b' is missing", "'w' is [3, 2] there and [2, 3] in the model",
                  "'bias' is not among what the model trains", "w5xde export"});
}

TEST_F(WeightsTest, of_another_model_are_named_up_to_a_few) {
  expect_refused(file([&](auto& tensors) {
                   tensors.clear();
                   for (int i = 0; i < 20; ++i)
                     tensors.push_back(tensor("x" + std::to_string(i), b_, DType::f32, Shape{3}));
                 }),
                 {"'b' is missing", "and 18 more"});
}

TEST_F(WeightsTest, counters_that_the_model_does_not_have_are_left_out) {
  const std::vector<std::int32_t> positions = {0, 1, 2};
  EXPECT_EQ(take(file([&](auto& tensors) {
              tensors.push_back(tensor("norm.num_batches_tracked", seen_, DType::i64, Shape{}));
              tensors.push_back(tensor("positions", positions, DType::i32, Shape{3}));
            })),
            "taken");
}

TEST_F(WeightsTest, that_are_not_finite_are_refused) {
  b_[1] = std::numeric_limits<float>::infinity();
  mean_[0] = std::numeric_limits<float>::quiet_NaN();
  expect_refused(file(), {"'b' has NaN or infinity", "'norm.mean' has NaN or infinity"});
}

TEST_F(WeightsTest, may_have_infinities_in_buffers_which_are_masks) {
  mean_[0] = -std::numeric_limits<float>::infinity();
  ASSERT_EQ(take(file()), "taken");
  EXPECT_TRUE(std::ranges::equal(of("norm.mean"), mean_));
}

TEST_F(WeightsTest, of_a_run_are_those_of_its_best_checkpoint_or_else_of_its_newest) {
  const RunFolder run = RunFolder::open(folder_ / "run").value();
  save(run, 3, 3, false);
  save(run, 7, 7, false);
  ASSERT_EQ(take(folder_ / "run"), "taken");
  EXPECT_EQ(of("w")[0], 7);
  save(run, 5, 5, true);
  ASSERT_EQ(take(folder_ / "run"), "taken");
  EXPECT_EQ(of("w")[0], 5);
  EXPECT_EQ(of("norm.mean")[2], 5);
  ASSERT_EQ(take(run.checkpoint_path(3)), "taken") << "a checkpoint's own file";
  EXPECT_EQ(of("b")[0], 3);
}

TEST_F(WeightsTest, that_are_not_there_are_named) {
  expect_refused(folder_ / "gone", {"there is no file", "gone"});
  std::filesystem::create_directory(folder_ / "empty");
  expect_refused(folder_ / "empty", {"empty is not the folder of a run"});
}

TEST_F(WeightsTest, that_torch_save_wrote_are_refused_with_what_to_do) {
  const std::string archive = "PK\x03\x04 and pickles";
  const Bytes bytes = bytes_of(archive);
  ASSERT_TRUE(write_file_atomically(folder_ / "net.pth", {&bytes, 1}).ok());
  expect_refused(folder_ / "net.pth", {"net.pth is what torch.save writes", "safetensors.torch.save_file",
                                       "load_state_dict(torch.load(\"net.pth\"))"});
}

}  // namespace
}  // namespace w5xde
