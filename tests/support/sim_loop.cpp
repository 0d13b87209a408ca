#include "support/sim_loop.h"

#include <algorithm>
#include <utility>

namespace w5xde {

Loop::TimerId SimLoop::after(Duration delay, Task task) {
  const TimerId id = ++last_timer_;
  tasks_.emplace(Key(now_ + delay, id), std::move(task));
  due_.emplace(id, now_ + delay);
  return id;
}

void SimLoop::cancel(TimerId timer) {
  const auto found = due_.find(timer);
  if (found == due_.end()) return;
  tasks_.erase(Key(found->second, timer));
  due_.erase(found);
}

namespace {

class SimBackground final : public Background {
 public:
  explicit SimBackground(SimLoop& loop) : loop_(loop) {}

  void run(Task work, Task then) override {
    loop_.post([work = std::move(work), then = std::move(then), alive = std::weak_ptr(alive_)] {
      if (alive.expired()) return;
      work();
      if (then) then();
    });
  }

 private:
  SimLoop& loop_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Background> SimLoop::background() {
  return std::make_unique<SimBackground>(*this);
}

void SimLoop::run_for(Duration duration) {
  const Instant end = now_ + duration;
  while (!tasks_.empty() && tasks_.begin()->first.first <= end) {
    auto next = tasks_.extract(tasks_.begin());
    due_.erase(next.key().second);
    now_ = std::max(now_, next.key().first);
    next.mapped()();
  }
  now_ = std::max(now_, end);
}

}  // namespace w5xde
