#include "node/coded_answers.h"

#include <algorithm>
#include <utility>

namespace w5xde {

bool CodedAnswers::begin(std::uint64_t lease, std::uint64_t step) {
  if (newest_open_) answers_.back().change = encoder_.last_change();
  if (answers_.size() == kKeptMax) answers_.pop_front();
  answers_.push_back({lease, step_, {}});
  newest_open_ = true;
  return std::exchange(step_, step) == step;
}

void CodedAnswers::judge(std::uint64_t lease, bool counted) {
  const auto found = std::ranges::find(answers_, lease, &Answer::lease);
  if (found == answers_.end()) return;
  const bool newest = newest_open_ && found + 1 == answers_.end();
  if (!counted && newest) {
    encoder_.take_back();
    step_ = found->step_before;
  } else if (!counted) {
    encoder_.add_feedback(found->change);
  }
  if (newest) newest_open_ = false;
  answers_.erase(found);
}

}  // namespace w5xde
