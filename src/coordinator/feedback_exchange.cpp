#include "coordinator/feedback_exchange.h"

#include <set>

#include "base/errors.h"
#include "learn/learner.h"

namespace w5xde {

namespace {

// What a node has to send its error feedback, beside what its link takes for it.
constexpr double kFeedbackSeconds = 5;
constexpr double kSlowestBytesPerSecond = 125e3;  // where the link is not measured

}  // namespace

Status FeedbackExchange::resume(const CheckpointFile& from, std::shared_ptr<const BlockLayout> layout) {
  bytes_max_ = 2 * layout->floats() * sizeof(float);
  store_.emplace(std::move(layout));
  return store_->restore(from);
}

void FeedbackExchange::gather() {
  std::set<NodeId> asked;
  sessions_.each_ready([&](Session& session) {
    const NodeId id = session.id();
    if (!session.has_feedback() || store_->has_copy(id)) return;
    if (store_->awaits(id) || session.ask_feedback().ok()) asked.insert(id);
  });
  store_->gather(asked, clock_.now());
}

void FeedbackExchange::drop_silent() {
  sessions_.each_ready([this](Session& session) {
    const auto asked = store_->awaited().find(session.id());
    if (asked == store_->awaited().end()) return;
    const double rate = session.connection().incoming_bytes_per_second();
    const double patience =
        kFeedbackSeconds + 4 * static_cast<double>(bytes_max_) / (rate > 0 ? rate : kSlowestBytesPerSecond);
    if (seconds_of(clock_.now() - asked->second) > patience)
      session.close(disconnected("it did not send its error feedback in {:.0f} s", patience));
  });
}

Status FeedbackExchange::received(Session& session, const Feedback& about, std::span<const float> feedback,
                                  bool kept) {
  if (!all_finite(feedback)) return corrupt("feedback with NaN or infinity");
  if (about.leaving) {
    store_->take_over(session.id(), feedback, about.taken_over);
  } else {
    store_->gathered(session.id(), feedback, kept);
  }
  return {};
}

void FeedbackExchange::hand_over(const Roster& roster, const CodecChoice& codecs) {
  // While one is gathered, the heir's copy is on its way, and from before.
  if (!store_->orphaned() || gathering()) return;
  Session* heir = nullptr;
  sessions_.each_ready([&](Session& session) {
    const NodeId id = session.id();
    if (heir == nullptr && !session.is_leaving() && roster.at(id).works() && store_->may_hand_over_to(id) &&
        codecs.answer_form(id).form == Form::gradient)
      heir = &session;
  });
  if (heir != nullptr) heir->close_unless(heir->send_feedback(store_->hand_over(heir->id())));
}

}  // namespace w5xde
