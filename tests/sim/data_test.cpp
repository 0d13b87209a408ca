// What a pool does when its data cannot be read while it trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/errors.h"
#include "sim/sim_pool.h"

namespace w5xde {
namespace {

// `synthetic`, of which sample 500 can be read `times` times, until it is mended.
class Damaged final : public Dataset {
 public:
  Damaged(std::uint64_t seed, int times)
      : whole_(open_dataset("synthetic", Split::train, seed).value()), times_(times) {}

  std::uint64_t samples() const override { return whole_->samples(); }
  std::span<const Field> inputs() const override { return whole_->inputs(); }
  const Field& targets() const override { return whole_->targets(); }
  std::uint32_t classes() const override { return whole_->classes(); }
  Status gather(std::span<const std::uint32_t> numbers, std::span<const MutableBytes> inputs,
                MutableBytes targets) const override {
    if (std::ranges::find(numbers, 500u) != numbers.end() && times_-- <= 0)
      return corrupt("500.png is damaged");
    return whole_->gather(numbers, inputs, targets);
  }
  void mend() { times_ = 1 << 30; }

 private:
  std::shared_ptr<const Dataset> whole_;
  mutable std::atomic<int> times_;
};

TEST(DataTest, a_sample_that_cannot_be_read_ends_the_run_with_its_error_and_nothing_is_lost) {
  // A node that caches samples is sent each once: there it fails the first time.
  for (const auto& [caching, times] : {std::pair(SampleCaching::off, 2), std::pair(SampleCaching::on, 0)}) {
    RunConfig config = sim_config();
    config.transport.sample_cache = caching;
    const auto data = std::make_shared<Damaged>(config.seed, times);
    SimPool pool(config);
    pool.train_on(data);
    pool.add_nodes(3);
    EXPECT_EQ(pool.run(), "corrupt: reading the data: 500.png is damaged");
    const std::uint64_t steps = pool.coordinator().summary().steps;
    EXPECT_LT(steps, 30u);
    EXPECT_TRUE(times == 0 || steps > 3) << steps;
    EXPECT_EQ(pool.newest_checkpoint().info().step, steps) << "what was committed is saved";
    data->mend();
    pool.restart_coordinator();
    EXPECT_EQ(pool.run(), "ok");
    EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(config));
    EXPECT_TRUE(pool.coordinator().summary().audit.passed());
  }
}

TEST(DataTest, data_to_evaluate_on_that_cannot_be_read_ends_the_run_as_well) {
  RunConfig config = sim_config();
  config.evaluate_every = 10;
  SimPool pool(config);
  pool.evaluate_on(std::make_shared<Damaged>(config.seed, 1));
  pool.add_nodes(2);
  EXPECT_EQ(pool.run(), "corrupt: reading the data: 500.png is damaged");
  EXPECT_GE(pool.newest_checkpoint().info().step, 10u);
}

// `synthetic`, which says that it takes long.
class Slow final : public Dataset {
 public:
  explicit Slow(std::uint64_t seed) : whole_(open_dataset("synthetic", Split::train, seed).value()) {}

  std::uint64_t samples() const override { return whole_->samples(); }
  std::span<const Field> inputs() const override { return whole_->inputs(); }
  const Field& targets() const override { return whole_->targets(); }
  std::uint32_t classes() const override { return whole_->classes(); }
  bool gathers_slowly() const override { return true; }
  Status gather(std::span<const std::uint32_t> numbers, std::span<const MutableBytes> inputs,
                MutableBytes targets) const override {
    if (std::this_thread::get_id() == loop_thread_) on_loop_ = true;
    return whole_->gather(numbers, inputs, targets);
  }
  bool was_gathered_on_loop() const { return on_loop_; }

 private:
  std::shared_ptr<const Dataset> whole_;
  const std::thread::id loop_thread_ = std::this_thread::get_id();
  mutable std::atomic<bool> on_loop_ = false;
};

TEST(DataTest, samples_that_take_long_never_hold_up_the_loop_and_a_run_has_the_same_bits) {
  for (const auto& [mode, caching] :
       {std::pair(Mode::sync, SampleCaching::off), std::pair(Mode::sync, SampleCaching::on),
        std::pair(Mode::async, SampleCaching::off)}) {
    RunConfig config = sim_config();
    config.mode = mode;
    config.transport.sample_cache = caching;
    config.evaluate_every = 5;
    const auto data = std::make_shared<Slow>(config.seed), evaluation = std::make_shared<Slow>(config.seed);
    SimPool pool(config);
    pool.train_on(data);
    pool.evaluate_on(evaluation);
    pool.add_nodes(3);
    std::uint64_t turns = 0;
    pool.on_turn = [&] {
      if (++turns % 200 == 0) (void)pool.kill_node(turns / 200 % 3);
    };
    EXPECT_EQ(pool.run(), "ok");
    EXPECT_FALSE(data->was_gathered_on_loop());
    EXPECT_FALSE(evaluation->was_gathered_on_loop());
    EXPECT_TRUE(pool.coordinator().summary().audit.passed());
    if (mode == Mode::sync) {
      EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(config));
    }
  }
}

TEST(DataTest, an_async_run_ends_so_too_and_goes_on_once_the_data_is_mended) {
  RunConfig config = sim_config();
  config.mode = Mode::async;
  const auto data = std::make_shared<Damaged>(config.seed, 2);
  SimPool pool(config);
  pool.train_on(data);
  pool.add_nodes(2);
  EXPECT_EQ(pool.run(), "corrupt: reading the data: 500.png is damaged");
  data->mend();
  pool.restart_coordinator();
  EXPECT_EQ(pool.run(), "ok");
  EXPECT_TRUE(pool.coordinator().summary().audit.passed());
}

}  // namespace
}  // namespace w5xde
