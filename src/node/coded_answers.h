#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "codec/gradient.h"

namespace w5xde {

// A node's answers through a codec with error feedback, until it hears whether they count. One that does not
// was said to nobody: its gradient must not count, and what it carried of earlier gradients is still to be
// said. So what encoding it did to the feedback is undone.
//
// The newest answer costs no memory. Each one before it that is not judged yet costs a block as large as the
// feedback; there are kKeptMax at most, and an older one is taken to count.
class CodedAnswers {
 public:
  static constexpr std::size_t kKeptMax = 8;

  explicit CodedAnswers(GradientEncoder& encoder) : encoder_(encoder) {}

  // Before an answer to this lease is encoded; true: it is of the same step as the last one that was.
  bool begin(std::uint64_t lease, std::uint64_t step);
  // The coordinator's verdict. One on an answer that is not kept changes nothing.
  void judge(std::uint64_t lease, bool counted);
  // Hands `ready` the feedback as it is now, less what answers so far did to it that turn out not to count:
  // at once, or when the last of them is judged. Answers that are encoded meanwhile are not in it. One copy
  // at a time; false: another is still waiting.
  bool copy_feedback(std::function<void(std::span<const float>)> ready);
  // Some answer is not judged yet: what the encoder has still to say may change.
  bool unjudged() const { return !answers_.empty(); }

 private:
  struct Answer {
    std::uint64_t lease = 0;
    std::optional<std::uint64_t> step_before;  // that the answer before it was of
    std::vector<float> change;                 // none of the newest: the encoder has it
  };
  struct Copy {
    std::vector<float> feedback;
    std::set<std::uint64_t> unjudged;  // leases whose answers are in it
    std::function<void(std::span<const float>)> ready;
  };

  void settle_in_copy(std::uint64_t lease, std::span<const float> undone);

  GradientEncoder& encoder_;
  std::deque<Answer> answers_;  // the newest last
  bool newest_open_ = false;    // the last of them is what was encoded last
  std::optional<std::uint64_t> step_;
  std::optional<Copy> copy_;
};

}  // namespace w5xde
