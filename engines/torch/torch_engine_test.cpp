// The plug-in as a node sees it: loaded at run time, in a program that knows nothing of torch.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "engine_on_test.h"

namespace w5xde {
namespace {

const Shape kEight{8};

Error error_of(const ModelOptions& options, const std::filesystem::path& file = {}) {
  auto made = torch_library().make(options, file);
  EXPECT_FALSE(made.ok()) << options.model;
  return made.ok() ? Error{} : made.error();
}

Error error_of(EngineOnTest& on_test, const SlotSamples& samples) {
  Block block(on_test.engine->description().floats());
  auto computed = on_test.engine->compute(on_test.state.values(), samples, 1, block.values());
  EXPECT_FALSE(computed.ok());
  return computed.ok() ? Error{} : computed.error();
}

bool contains(const Error& error, std::string_view words) {
  return error.message.find(words) != std::string::npos;
}

std::vector<std::string> names_of(const BlockLayout& layout) {
  std::vector<std::string> names;
  for (const auto& entry : layout.entries()) names.push_back(entry.name);
  return names;
}

int threads_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  }
  return -1;
}

// The thread sanitizer has a thread of its own.
#if defined(__SANITIZE_THREAD__)
constexpr int kThreadsBeforeAny = 2;
#else
constexpr int kThreadsBeforeAny = 1;
#endif

using Names = std::vector<std::string>;

TEST(TorchEngine, names_parameters_as_pytorch_does) {
  EngineOnTest mlp("mlp:8,6,5", kEight, 5);
  EXPECT_EQ(names_of(*mlp.engine->description().parameters),
            (Names{"0.weight", "0.bias", "2.weight", "2.bias"}));
  EXPECT_TRUE(mlp.engine->name().starts_with("torch "));
  EXPECT_TRUE(mlp.engine->name().ends_with(" cpu"));
  EngineOnTest lenet("lenet", Shape{28, 28}, 10);
  EXPECT_EQ(lenet.engine->description().parameters->parameters(), 61706u);
  EXPECT_EQ(lenet.engine->description().buffers->floats(), 0u);
}

TEST(TorchEngine, tied_weights_come_once_and_frozen_ones_stay_in_the_model) {
  EngineOnTest mixed("mixed.pt", kEight, 5);
  EXPECT_EQ(names_of(*mixed.engine->description().parameters),
            (Names{"first.weight", "norm.weight", "norm.bias", "middle.weight", "middle.bias", "again.bias",
                   "last.weight", "last.bias"}));
  EXPECT_EQ(names_of(*mixed.engine->description().buffers),
            (Names{"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}));
}

TEST(TorchEngine, initial_state_follows_from_the_seed) {
  EngineOnTest lenet("lenet", Shape{1, 28, 28}, 10);
  Block again(lenet.engine->description().floats());
  ASSERT_TRUE(lenet.engine->initialise(42, again.values()).ok());
  EXPECT_EQ(again, lenet.state);
  ASSERT_TRUE(lenet.engine->initialise(43, again.values()).ok());
  EXPECT_NE(again, lenet.state);
}

// Models and whether they draw random numbers.
struct Case {
  const char* model;
  Shape shape;
  bool draws;
};

const Case kCases[] = {
    {"mlp:8,6,5", Shape{8}, false},
    {"lenet", Shape{3, 14, 17}, false},
    {"lenet:dropout=0.5", Shape{28, 28}, true},
    {"resnet-small", Shape{9, 9}, false},
    {"mixed.pt", Shape{8}, false},
    {"dropout.pt", Shape{8}, true},
    {"rebinds.pt", Shape{8}, false},
    {"recurrent.pt", Shape{4, 6}, false},
    {"convolution.pt", Shape{8, 8}, false},
};

// Whether a scripted model draws is found out by watching: the slot that shows it is computed again.
TEST(TorchEngine, a_model_that_draws_for_some_slots_only_draws_from_their_seeds) {
  Samples quiet(4, Shape{8}, 5, 1), drawing(4, Shape{8}, 5, 2);
  for (float& value : quiet.inputs) value = -std::abs(value);
  for (float& value : drawing.inputs) value = std::abs(value);
  EngineOnTest fresh("sometimes_drops.pt", Shape{8}, 5);
  const Block first = fresh.contribution(drawing.slot(), 7);
  EXPECT_EQ(fresh.contribution(drawing.slot(), 7), first);
  EXPECT_NE(fresh.contribution(drawing.slot(), 8), first);

  EngineOnTest surprised("sometimes_drops.pt", Shape{8}, 5);
  const Block before = surprised.contribution(quiet.slot(), 3);
  EXPECT_EQ(surprised.contribution(drawing.slot(), 7), first);
  EXPECT_EQ(surprised.contribution(quiet.slot(), 4), before);
}

// The generator is the whole process's: a lane that does not draw yet must not spoil what another one draws.
TEST(TorchEngine, lanes_draw_from_their_own_slots_seeds) {
  Samples drawing(4, Shape{8}, 5, 2);
  for (float& value : drawing.inputs) value = std::abs(value);
  EngineOnTest alone("sometimes_drops.pt", Shape{8}, 5);
  std::vector<Block> expected;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    expected.push_back(alone.contribution(drawing.slot(), seed));
  EngineOnTest one("sometimes_drops.pt", Shape{8}, 5), other("sometimes_drops.pt", Shape{8}, 5);
  std::atomic<int> wrong = 0;
  const auto lane = [&](EngineOnTest& engine, std::uint64_t first) {
    for (std::uint64_t seed = first; seed < expected.size(); seed += 2)
      if (!(engine.contribution(drawing.slot(), seed) == expected[seed])) ++wrong;
  };
  std::thread beside([&] { lane(other, 1); });
  lane(one, 0);
  beside.join();
  EXPECT_EQ(wrong, 0);
}

TEST(TorchEngine, a_contribution_is_added_to_the_sums_of_others_bit_for_bit) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.model);
    EngineOnTest on_test(test.model, test.shape, 5);
    const Samples first(4, test.shape, 5, 1), second(4, test.shape, 5, 2), third(4, test.shape, 5, 3);
    Block near = on_test.contribution(first.slot(), 1), far = on_test.contribution(second.slot(), 2);
    Block expected = on_test.contribution(third.slot(), 3);
    for (std::size_t i = 0; i < expected.values().size(); ++i) {
      expected.values()[i] = far.values()[i] + (near.values()[i] + expected.values()[i]);
    }
    // Into one of the addends, as nodes do.
    const float* addends[] = {near.values().data(), far.values().data()};
    const Slot slot{third.slot(), 3};
    ASSERT_TRUE(on_test.engine->compute(on_test.state.values(), slot, addends, far.values()).ok());
    EXPECT_EQ(far, expected);
  }
}

TEST(TorchEngine, engines_may_compute_at_the_same_time) {
  constexpr int kTimes = 8;
  constexpr std::uint64_t kEngines = 3;
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.model);
    EngineOnTest first(test.model, test.shape, 5);
    std::vector<EngineOnTest> engines;
    std::vector<Samples> samples;
    std::vector<Block> expected;
    for (std::uint64_t i = 0; i < kEngines; ++i) {
      engines.emplace_back(test.model, test.shape, 5);
      samples.emplace_back(6 + static_cast<std::int64_t>(i), test.shape, 5, i + 1);
      expected.push_back(first.contribution(samples.back().slot(), 7 + i));
    }
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (std::uint64_t i = 0; i < kEngines; ++i) {
      threads.emplace_back([&, i] {
        for (int k = 0; k < kTimes; ++k)
          wrong += engines[i].contribution(samples[i].slot(), 7 + i) == expected[i] ? 0 : 1;
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(TorchEngine, a_contribution_is_a_pure_function) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.model);
    EngineOnTest on_test(test.model, test.shape, 5);
    const Samples samples(6, test.shape, 5, 1);
    const Samples others(9, test.shape, 5, 2);
    Sums sums;
    const Block first = on_test.contribution(samples.slot(), 7, &sums);
    EXPECT_EQ(sums.samples, 6u);
    EXPECT_TRUE(std::isfinite(sums.loss) && sums.loss > 0);
    for (int i = 0; i < 4; ++i) {
      EXPECT_NE(on_test.contribution(others.slot(), 8), first);
      ASSERT_TRUE(on_test.engine->evaluate(on_test.state.values(), others.slot()).ok());
      Sums again;
      EXPECT_EQ(on_test.contribution(samples.slot(), 7, &again), first);
      EXPECT_EQ(again.loss, sums.loss);
    }
    EXPECT_EQ(on_test.contribution(samples.slot(), 9) != first, test.draws);
    // A seed counts with all of its bits.
    EXPECT_EQ(on_test.contribution(samples.slot(), 7 + (std::uint64_t{1} << 40)) != first, test.draws);
    EngineOnTest fresh(test.model, test.shape, 5);
    EXPECT_EQ(fresh.contribution(samples.slot(), 7), first);
  }
}

TEST(TorchEngine, states_may_take_turns_and_change_between_calls) {
  for (const char* model : {"mlp:8,6,5", "mixed.pt"}) {
    EngineOnTest on_test(model, kEight, 5);
    const Samples samples(6, kEight, 5, 1);
    const Block first = on_test.contribution(samples.slot());
    std::vector<Block> states;
    for (int i = 0; i < 7; ++i) {
      Block& state = states.emplace_back(on_test.engine->description().floats());
      std::ranges::copy(on_test.state.values(), state.values().begin());
      state.values()[0] += static_cast<float>(i);
    }
    Block block(on_test.engine->description().floats());
    for (int round = 0; round < 2; ++round) {
      for (const Block& state : states) {
        ASSERT_TRUE(on_test.engine->compute(state.values(), samples.slot(), 1, block.values()).ok());
        EXPECT_EQ(block == first, &state == states.data());
      }
    }
    // At the same place, something else.
    on_test.state.values()[0] += 1;
    ASSERT_TRUE(on_test.engine->compute(states[1].values(), samples.slot(), 1, block.values()).ok());
    EXPECT_EQ(on_test.contribution(samples.slot()), block);
  }
}

TEST(TorchEngine, padding_of_a_contribution_is_zero) {
  EngineOnTest mixed("mixed.pt", kEight, 5);
  Block block = mixed.contribution(Samples(6, kEight, 5, 1).slot());
  const ModelDescription& description = mixed.engine->description();
  float* base = block.values().data();
  for (const auto& layout : {description.parameters, description.buffers}) {
    for (const auto& entry : layout->entries())
      std::fill_n(base + entry.offset, entry.shape.elements(), 0.0F);
    base += layout->floats();
  }
  EXPECT_TRUE(std::ranges::all_of(block.values(), [](float value) { return value == 0; }));
}

// What the other tests cannot see: whether autograd knows every place where a parameter is used.
TEST(TorchEngine, gradients_of_scripted_models_agree_with_central_differences) {
  for (const char* model : {"recurrent.pt", "mixed.pt"}) {
    const Shape shape = std::string(model) == "mixed.pt" ? kEight : Shape{4, 6};
    EngineOnTest on_test(model, shape, 5);
    const Samples samples(16, shape, 5, 3);
    const Block gradient = on_test.contribution(samples.slot());
    for (const auto& entry : on_test.engine->description().parameters->entries()) {
      SCOPED_TRACE(std::string(model) + " " + entry.name);
      // Along the gradient itself, where the slope is its norm.
      const auto slope = gradient.values().subspan(entry.offset, entry.shape.elements());
      double norm = 0;
      for (const float value : slope) norm += double{value} * value;
      norm = std::sqrt(norm);
      Sums sums[2];
      for (const int side : {0, 1}) {
        EngineOnTest moved(model, shape, 5);
        const double step = (side == 0 ? -1e-2 : 1e-2) / norm;
        for (std::size_t i = 0; i < slope.size(); ++i) {
          moved.state.values()[entry.offset + i] += static_cast<float>(step * slope[i]);
        }
        moved.contribution(samples.slot(), 1, &sums[side]);
      }
      EXPECT_NEAR((sums[1].loss - sums[0].loss) / 2e-2, norm, 1e-2 * norm + 1e-3);
    }
  }
}

TEST(TorchEngine, a_counter_of_batches_travels_as_a_float) {
  EngineOnTest mixed("mixed.pt", kEight, 5);
  const Block block = mixed.contribution(Samples(6, kEight, 5, 1).slot());
  EXPECT_EQ(mixed.of(block, "norm.num_batches_tracked")[0], 6.0F);  // samples × 1
}

TEST(TorchEngine, a_buffer_that_the_model_replaces_is_followed) {
  EngineOnTest rebinds("rebinds.pt", kEight, 5);
  const Samples samples(6, kEight, 5, 1);
  const Block block = rebinds.contribution(samples.slot());
  const auto change = rebinds.of(block, "average");
  for (std::size_t i = 0; i < change.size(); ++i) {
    double mean = 0;
    for (std::size_t k = 0; k < 6; ++k) mean += samples.inputs[k * 8 + i] / 6.0;
    EXPECT_NEAR(change[i], 6 * (0.5 * 1 + 0.5 * mean - 1), 1e-5);
  }
}

TEST(TorchEngine, evaluation_changes_nothing_and_counts_the_correct) {
  EngineOnTest dropout("dropout.pt", kEight, 5);
  const Samples samples(50, kEight, 5, 1);
  const auto first = dropout.engine->evaluate(dropout.state.values(), samples.slot());
  const auto second = dropout.engine->evaluate(dropout.state.values(), samples.slot());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->loss_sum, second->loss_sum);
  EXPECT_EQ(first->samples, 50u);
  // Labels set to what the model says are all correct: try each class for each sample.
  std::uint64_t correct = 0;
  for (std::int64_t label = 0; label < 5; ++label) {
    Samples all = samples;
    std::ranges::fill(all.targets, label);
    correct += dropout.engine->evaluate(dropout.state.values(), all.slot())->correct;
  }
  EXPECT_EQ(correct, 50u);
  EXPECT_EQ(first->counted, 50u);
}

TEST(TorchEngine, bytes_stand_for_their_255th_and_any_alignment_will_do) {
  EngineOnTest mlp("mlp:8,6,5", kEight, 5);
  Samples samples(6, kEight, 5, 1);
  std::vector<std::byte> bytes(1 + 48), labels(6), shifted(1 + 48 * 4), wide(1 + 6 * 4);
  for (std::size_t i = 0; i < 48; ++i) {
    bytes[1 + i] = static_cast<std::byte>(i * 5);
    samples.inputs[i] = static_cast<float>(i * 5) / 255.0F;
  }
  std::memcpy(shifted.data() + 1, samples.inputs.data(), 48 * 4);
  for (std::size_t i = 0; i < 6; ++i) {
    labels[i] = static_cast<std::byte>(samples.targets[i]);
    store(wide.data() + 1 + 4 * i, static_cast<std::int32_t>(samples.targets[i]));
  }
  const Block expected = mlp.contribution(samples.slot());
  const Shape shape{6, 8};
  EXPECT_EQ(expected, mlp.contribution({.inputs = {{Bytes(bytes).subspan(1), DType::u8, shape}},
                                        .targets = {Bytes(labels), DType::u8, Shape{6}}}));
  EXPECT_EQ(expected, mlp.contribution({.inputs = {{Bytes(shifted).subspan(1), DType::f32, shape}},
                                        .targets = {Bytes(wide).subspan(1), DType::i32, Shape{6}}}));
}

TEST(TorchEngine, a_slot_without_samples_contributes_nothing) {
  EngineOnTest mixed("mixed.pt", kEight, 5);
  Sums sums{.loss = 1, .samples = 1};
  const Block block = mixed.contribution(Samples(0, kEight, 5, 1).slot(), 1, &sums);
  EXPECT_EQ(sums.samples, 0u);
  EXPECT_TRUE(std::ranges::all_of(block.values(), [](float value) { return value == 0; }));
}

TEST(TorchEngine, what_does_not_fit_is_refused_with_what_to_type_instead) {
  const auto with = [](const char* model, Shape shape, std::uint32_t classes,
                       const char* loss = "cross-entropy") {
    return options_of(model, shape, classes, loss);
  };
  EXPECT_TRUE(contains(error_of(with("mlp:10,20,10", kEight, 5)), "type mlp:8,20,5"));
  EXPECT_TRUE(contains(error_of(with("mlp:8,20,10", kEight, 5)), "type mlp:8,20,5"));
  for (const char* model :
       {"mlp", "mlp:", "mlp:8", "mlp:8,x,5", "mlp:8,-1,5", "mlp:8,99999999999,5", "mlp:8,,5"}) {
    EXPECT_TRUE(contains(error_of(with(model, kEight, 5)), "type mlp:8,128,5")) << model;
  }
  for (const char* model : {"lenet", "resnet-small"}) {
    const auto error = error_of(with(model, Shape{28, 28}, UINT32_MAX));
    EXPECT_EQ(error.kind, ErrorKind::overloaded) << model;
  }
  EXPECT_EQ(error_of(with("lenet", Shape{1 << 20, 1 << 20}, 5)).kind, ErrorKind::overloaded);
  EXPECT_EQ(error_of(with("mlp:8,100000000,100000000,5", kEight, 5)).kind, ErrorKind::overloaded);
  EXPECT_TRUE(contains(error_of(with("alexnet", kEight, 5)), "lenet:dropout=0.25, resnet-small"));
  EXPECT_TRUE(contains(error_of(with("lenet", kEight, 5)), "type mlp:8,128,5"));
  EXPECT_TRUE(contains(error_of(with("lenet", Shape{8, 8}, 5)), "12 by 12"));
  EXPECT_TRUE(contains(error_of(with("lenet:dropout=1.5", Shape{28, 28}, 5)), "lenet:dropout=0.25"));
  EXPECT_TRUE(contains(error_of(with("resnet-small", Shape{28, 28}, 0, "mse")), "no classes"));
  EXPECT_TRUE(contains(error_of(with("mlp:8,5", kEight, 0)), "--loss mse"));
  EXPECT_TRUE(contains(error_of(with("mlp:8,5", kEight, 5, "mse")), "--loss cross-entropy"));
  EXPECT_TRUE(contains(error_of(with("mlp:8,5", kEight, 5, "own")), "no loss of its own"));
  EXPECT_TRUE(contains(error_of(with("mlp:8,5", kEight, 5, "hinge")), "bce, cross-entropy, mse and own"));
  ModelOptions elsewhere = with("mlp:8,5", kEight, 5);
  for (const char* device : {"cuda", "mps"}) {
    elsewhere.device = device;
    EXPECT_TRUE(contains(error_of(elsewhere), "--device cpu")) << device;
  }
  elsewhere.device = "tpu";
  EXPECT_TRUE(contains(error_of(elsewhere), "auto, cpu, cuda and mps"));
}

TEST(TorchEngine, files_that_cannot_be_trained_are_refused) {
  const auto refused = [](const char* file, Shape shape, const char* loss = "cross-entropy",
                          std::uint32_t classes = 5) {
    return error_of(options_of(file, shape, classes, loss), model_file(file));
  };
  EXPECT_TRUE(contains(refused("text.pt", kEight), "torch.jit.script(model).save"));
  EXPECT_TRUE(contains(refused("missing.pt", kEight), "missing.pt"));
  EXPECT_EQ(refused("double.pt", kEight).kind, ErrorKind::incompatible);
  EXPECT_TRUE(contains(refused("double.pt", kEight), "model.float()"));
  EXPECT_TRUE(contains(refused("own_loss.pt", Shape{6}), "--loss own"));
  EXPECT_TRUE(contains(refused("mixed.pt", kEight, "own"), "forward(inputs, targets)"));
  const Error shapes = refused("mixed.pt", Shape{9});
  EXPECT_TRUE(contains(shapes, "does not take samples of 'inputs' of [9]"));
  // What is wrong is in the first line, the way there through the model's own code is below it.
  const std::size_t line = shapes.message.find('\n');
  EXPECT_LT(shapes.message.find("mat1 and mat2 shapes cannot be multiplied"), line) << shapes.message;
  EXPECT_NE(shapes.message.find("make_models.py\", line ", line), std::string::npos) << shapes.message;
  EXPECT_TRUE(contains(refused("mixed.pt", kEight, "cross-entropy", 6), "needs [2, 6]"));
}

TEST(TorchEngine, bad_samples_are_refused_and_the_next_slot_is_as_ever) {
  EngineOnTest mlp("mlp:8,6,5", kEight, 5);
  const Samples good(6, kEight, 5, 1);
  const Block expected = mlp.contribution(good.slot());
  for (const std::int64_t label :
       {std::int64_t{5}, std::int64_t{-1}, std::int64_t{-100}, std::int64_t{1} << 40}) {
    Samples bad = good;
    bad.targets[3] = label;
    const Error error = error_of(mlp, bad.slot());
    EXPECT_EQ(error.kind, ErrorKind::invalid);
    EXPECT_TRUE(contains(error, "label " + std::to_string(label)));
  }
  const Bytes bytes = std::as_bytes(std::span(good.inputs));
  const SlotSamples slot = good.slot();
  error_of(mlp, {.inputs = {{bytes, DType::f32, Shape{8, 6}}}, .targets = slot.targets});
  error_of(mlp, {.inputs = {{bytes, DType::f32, Shape{48}}}, .targets = slot.targets});
  error_of(mlp, {.inputs = {{bytes, DType::i32, Shape{6, 8}}}, .targets = slot.targets});
  error_of(mlp, {.inputs = slot.inputs, .targets = {bytes.first(24), DType::f32, Shape{6}}});
  error_of(mlp, {.inputs = slot.inputs, .targets = {bytes.first(40), DType::i64, Shape{5}}});
  error_of(mlp, {.inputs = slot.inputs, .targets = {bytes.first(96), DType::i64, Shape{6, 2}}});
  error_of(mlp, {.inputs = {}, .targets = {}});
  Block small(16);
  EXPECT_FALSE(mlp.engine->compute(mlp.state.values(), slot, 1, small.values()).ok());
  EXPECT_FALSE(mlp.engine->compute(small.values(), slot, 1, mlp.state.values()).ok());
  EXPECT_FALSE(mlp.engine->initialise(1, small.values()).ok());
  EXPECT_EQ(mlp.contribution(good.slot()), expected);

  // One sample is too few for a BatchNorm to train on: torch throws in the middle of forward().
  EngineOnTest mixed("mixed.pt", kEight, 5);
  const Block before = mixed.contribution(good.slot());
  EXPECT_TRUE(contains(error_of(mixed, Samples(1, kEight, 5, 1).slot()), "more than 1 value per channel"));
  EXPECT_EQ(mixed.contribution(good.slot()), before);
}

// Local nodes are forked from a process that has the engine ready.
TEST(TorchEngine, starts_no_thread_before_a_fork_and_children_agree) {
  for (const char* model : {"mlp:8,6,5", "mixed.pt", "resnet-small"}) {
    const Shape shape = std::string(model) == "resnet-small" ? Shape{9, 9} : kEight;
    EngineOnTest on_test(model, shape, 5);
    EXPECT_EQ(threads_of_this_process(), kThreadsBeforeAny);
    std::uint64_t hashes[2] = {};
    for (std::uint64_t& hash : hashes) {
      int ends[2];
      ASSERT_EQ(pipe(ends), 0);
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        const Block block = on_test.contribution(Samples(6, shape, 5, 1).slot());
        const std::uint64_t mine = hash64(std::as_bytes(block.values()));
        _exit(write(ends[1], &mine, sizeof mine) == sizeof mine ? 0 : 1);
      }
      close(ends[1]);
      EXPECT_EQ(read(ends[0], &hash, sizeof hash), static_cast<ssize_t>(sizeof hash));
      close(ends[0]);
      int status = -1;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(hashes[0], hashes[1]);
    const Block block = on_test.contribution(Samples(6, shape, 5, 1).slot());
    EXPECT_EQ(hash64(std::as_bytes(block.values())), hashes[0]);
  }
}

}  // namespace
}  // namespace w5xde
