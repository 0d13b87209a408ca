#include "coordinator/feedback.h"

#include <algorithm>

namespace w5xde {

void FeedbackStore::add(std::vector<float>& sum, std::span<const float> feedback) {
  sum.resize(std::max(sum.size(), feedback.size()));
  for (std::size_t i = 0; i < feedback.size(); ++i) sum[i] += feedback[i];
}

void FeedbackStore::take_over(NodeId node, std::span<const float> feedback, std::uint32_t taken_over) {
  std::vector<float> left(feedback.begin(), feedback.end());
  if (const auto handed = handed_.find(node); handed != handed_.end() && taken_over < handed->second.number)
    add(left, handed->second.piece);
  handed_.erase(node);
  if (awaited_.erase(node) > 0) add(gathered_, left);
  moved_on_.erase(node);
  kept_.erase(node);
  add(orphan_, left);
}

bool FeedbackStore::may_hand_over_to(NodeId heir) const {
  const auto handed = handed_.find(heir);
  return handed == handed_.end() || handed->second.piece.empty();
}

std::span<const float> FeedbackStore::hand_over(NodeId heir) {
  changed(heir);
  Handed& handed = handed_[heir];
  ++handed.number;
  return handed.piece = std::exchange(orphan_, {});
}

void FeedbackStore::gather(const std::set<NodeId>& nodes, Instant now) {
  gathered_ = orphan_;
  for (const auto& [node, copy] : kept_) add(gathered_, copy);
  std::map<NodeId, Instant> awaited;
  for (const NodeId node : nodes) awaited[node] = awaits(node) ? awaited_.at(node) : now;
  awaited_ = std::move(awaited);
}

void FeedbackStore::gathered(NodeId node, std::span<const float> feedback, bool kept) {
  if (awaited_.erase(node) == 0) return;
  // It was asked after it was handed anything.
  if (const auto handed = handed_.find(node); handed != handed_.end()) handed->second.piece = {};
  add(gathered_, feedback);
  if (moved_on_.erase(node) == 0 && kept) kept_[node].assign(feedback.begin(), feedback.end());
}

void FeedbackStore::changed(NodeId node) {
  kept_.erase(node);
  if (awaits(node)) moved_on_.insert(node);
}

void FeedbackStore::gone(NodeId node) {
  awaited_.erase(node);
  moved_on_.erase(node);
  kept_.erase(node);
  handed_.erase(node);
}

std::vector<NamedBlock> FeedbackStore::blocks() const {
  std::vector<NamedBlock> blocks;
  const std::span<const float> all(gathered_);
  const std::size_t floats = layout_->floats();
  if (all.size() >= floats && floats > 0) blocks.push_back({"feedback", layout_.get(), all.first(floats)});
  if (all.size() >= 2 * floats && floats > 0)
    blocks.push_back({"feedback.velocity", layout_.get(), all.subspan(floats)});
  return blocks;
}

Status FeedbackStore::restore(const CheckpointFile& checkpoint) {
  if (!checkpoint.layout_of("feedback")) return {};
  const std::size_t floats = layout_->floats();
  const bool velocity = checkpoint.layout_of("feedback.velocity") != nullptr;
  orphan_.assign(velocity ? 2 * floats : floats, 0.0F);
  W5XDE_CHECK(checkpoint.read("feedback", *layout_, std::span(orphan_).first(floats)));
  if (!velocity) return {};
  return checkpoint.read("feedback.velocity", *layout_, std::span(orphan_).subspan(floats));
}

}  // namespace w5xde
