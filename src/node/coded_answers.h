#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/limits.h"
#include "codec/gradient.h"

namespace w5xde {

// A node's answers through a codec with error feedback, until the coordinator says whether they count. If one
// does not, what encoding it did to the feedback is undone: what it carried must be sent again.
//
// The newest answer costs no memory, each earlier one without a verdict a block as large as the feedback. At
// most kKeptMax are kept; an older one is assumed to count.
class CodedAnswers {
 public:
  static constexpr std::size_t kKeptMax = Limits::kAnswersKept + 1;

  explicit CodedAnswers(GradientEncoder& encoder) : encoder_(encoder) {}

  // Call it before an answer to this lease is encoded. True: the last encoded answer was of the same step.
  bool begin(std::uint64_t lease, std::uint64_t step);
  // The coordinator's verdict. A verdict on an answer that is not kept changes nothing.
  void judge(std::uint64_t lease, bool counted);
  // Calls `ready` with the feedback as it is now, without answers that turn out not to count: at once, or
  // when the last of them has its verdict. One copy at a time; false: another is still waiting.
  bool copy_feedback(std::function<void(std::span<const float>)> ready);
  // Some answer has no verdict yet, so the feedback may still change.
  bool unjudged() const { return !answers_.empty(); }

 private:
  struct Answer {
    std::uint64_t lease = 0;
    std::optional<std::uint64_t> step_before;  // of the answer before it
    std::vector<float> change;                 // empty for the newest: the encoder has it
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
