#include "sim/world/process.h"

#include <algorithm>
#include <deque>

namespace w5xde {

SimTime::EventId SimTime::at(Instant time, SimProcess* process, Task task) {
  const EventId id = ++last_event_;
  const Instant due = std::max(time, now_);
  events_.emplace(Key(due, id), Event{process, std::move(task)});
  due_.emplace(id, due);
  return id;
}

void SimTime::cancel(EventId event) {
  const auto found = due_.find(event);
  if (found == due_.end()) return;
  events_.erase(Key(found->second, event));
  due_.erase(found);
}

void SimTime::forget(const SimProcess* process) {
  // A task's memory may be the last that holds a connection, whose end may cancel other events.
  std::deque<Event> gone;
  for (auto at = events_.begin(); at != events_.end();) {
    if (at->second.process != process) {
      ++at;
      continue;
    }
    due_.erase(at->first.second);
    gone.push_back(std::move(at->second));
    at = events_.erase(at);
  }
}

bool SimTime::step() {
  while (!events_.empty()) {
    auto next = events_.extract(events_.begin());
    const auto [time, id] = next.key();
    now_ = std::max(now_, time);
    SimProcess* process = next.mapped().process;
    if (process != nullptr && process->frozen_until() > now_) {
      next.key().first = process->frozen_until();
      due_[id] = process->frozen_until();
      events_.insert(std::move(next));
      continue;
    }
    due_.erase(id);
    ++events_run_;
    next.mapped().task();
    return true;
  }
  return false;
}

Loop::TimerId SimProcess::after(Duration delay, Task task) {
  return time_.at(time_.now() + std::max(delay, Duration::zero()), this, std::move(task));
}

namespace {

// Does its work when it is begun or when it is over, by chance: what it reads must not change in between.
class SimBackground final : public Background {
 public:
  explicit SimBackground(SimProcess& process) : process_(process) {}

  void run(Task work, Task then) override {
    waiting_.push_back({std::move(work), std::move(then)});
    if (waiting_.size() == 1) begin();
  }

 private:
  struct Piece {
    Task work, then;
  };

  void begin() {
    Duration cost = process_.work_begins ? process_.work_begins() : Duration::zero();
    const bool at_once = process_.work_done || process_.random().below(2) == 0;
    if (at_once) {
      waiting_.front().work();
      if (process_.work_done) cost += process_.work_done();
    }
    process_.after(cost, [this, at_once, alive = std::weak_ptr(alive_)] {
      if (alive.expired()) return;
      const Piece piece = std::move(waiting_.front());
      if (!at_once) piece.work();
      waiting_.pop_front();
      if (!waiting_.empty()) begin();
      if (piece.then) piece.then();  // may destroy this
    });
  }

  SimProcess& process_;
  std::deque<Piece> waiting_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Background> SimProcess::background() {
  return std::make_unique<SimBackground>(*this);
}

}  // namespace w5xde
