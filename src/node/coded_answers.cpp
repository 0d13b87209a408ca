#include "node/coded_answers.h"

#include <algorithm>
#include <utility>

namespace w5xde {

bool CodedAnswers::begin(std::uint64_t lease, std::uint64_t step) {
  if (newest_open_) answers_.back().change = encoder_.last_change();
  if (answers_.size() == kKeptMax) {
    settle_in_copy(answers_.front().lease, {});
    answers_.pop_front();
  }
  answers_.push_back({lease, step_, {}});
  newest_open_ = true;
  return std::exchange(step_, step) == step;
}

void CodedAnswers::judge(std::uint64_t lease, bool counted) {
  const auto found = std::ranges::find(answers_, lease, &Answer::lease);
  if (found == answers_.end()) return;
  const bool newest = newest_open_ && found + 1 == answers_.end();
  if (counted) {
    settle_in_copy(lease, {});
  } else if (!newest) {
    settle_in_copy(lease, found->change);
  } else if (copy_) {  // last_change() is as large as the model: only if a copy needs it
    settle_in_copy(lease, encoder_.last_change());
  }
  if (!counted && newest) {
    encoder_.take_back();
    step_ = found->step_before;
  } else if (!counted) {
    encoder_.add_feedback(found->change);
  }
  if (newest) newest_open_ = false;
  answers_.erase(found);
}

bool CodedAnswers::copy_feedback(std::function<void(std::span<const float>)> ready) {
  if (copy_) return false;
  const auto feedback = encoder_.feedback();
  if (answers_.empty()) {
    ready(feedback);
    return true;
  }
  copy_.emplace(Copy{.feedback = {feedback.begin(), feedback.end()}, .ready = std::move(ready)});
  for (const Answer& answer : answers_) copy_->unjudged.insert(answer.lease);
  return true;
}

// `undone` is what the answer took from the feedback; empty: the answer counts.
void CodedAnswers::settle_in_copy(std::uint64_t lease, std::span<const float> undone) {
  if (!copy_ || copy_->unjudged.erase(lease) == 0) return;
  for (std::size_t i = 0; i < std::min(undone.size(), copy_->feedback.size()); ++i)
    copy_->feedback[i] += undone[i];
  if (!copy_->unjudged.empty()) return;
  const Copy settled = *std::exchange(copy_, std::nullopt);
  settled.ready(settled.feedback);
}

}  // namespace w5xde
