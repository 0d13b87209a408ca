#include "net/sim_loop.h"

#include <algorithm>

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
