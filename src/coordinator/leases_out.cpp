#include "coordinator/leases_out.h"

#include <algorithm>

namespace w5xde {

namespace {

Status check_coding(const Contribution& contribution, const Encoding& asked, const BlockShape& shape) {
  if (contribution.tensors.empty()) return {};
  const FloatRange part = part_at(contribution.first_float, asked.part_floats, shape);
  if (!follows(contribution.coding, asked) || contribution.tensors[0].shape.elements() != part.count)
    return corrupt("a contribution in another coding than its lease asks for");
  return {};
}

}  // namespace

Reduction::Buffer LeasesOut::erase(LeaseId lease) {
  const auto found = std::ranges::find(out_, lease, [](const Out& out) { return out.grant.lease; });
  if (found == out_.end()) return nullptr;
  Reduction::Buffer memory = std::move(found->memory);
  out_.erase(found);
  forget_versions();
  return memory;
}

void LeasesOut::sent_version(std::uint64_t version, Learner::State state) {
  if (versions_.empty() || versions_.back().version != version) versions_.push_back({.version = version});
  versions_.back().state = std::move(state);
  forget_versions();
}

// The newest stays: its next lease may be computed with it. Its memory need not: a node computes one lease at
// a time, each with its lease's version or a newer one, so it reads nothing older than its oldest lease asks
// for, and nothing while it has none.
void LeasesOut::forget_versions() {
  const auto oldest = std::ranges::min_element(out_, {}, &Out::version);
  const std::uint64_t needed = oldest == out_.end() ? UINT64_MAX : oldest->version;
  while (versions_.size() > 1 && versions_.front().version < needed) versions_.pop_front();
  if (!versions_.empty() && versions_.front().version < needed) versions_.front().state = nullptr;
}

void LeasesOut::let_go_of_memory() {
  for (Out& out : out_) out.memory = nullptr;
  for (Sent& sent : versions_) sent.state = nullptr;
}

// In async a node trains with the newest parameters that it has: one of those that it was sent, and not older
// than what came just before its lease.
bool LeasesOut::may_have_computed_with(std::uint64_t version, const Out& lease, bool newest) const {
  if (version == lease.version) return true;
  return newest && lease.grant.work == Work::train && version > lease.version &&
         std::ranges::find(versions_, version, &Sent::version) != versions_.end();
}

// What is wrong in here would be wrong in the sum, the audit, or the order of things.
Status LeasesOut::check(const Contribution& contribution, const BlockShape& shape, bool newest) const {
  const auto found =
      std::ranges::find(out_, contribution.lease_id, [](const Out& out) { return out.grant.lease; });
  if (found == out_.end()) return corrupt("a contribution to a lease that it does not have");
  const Out& lease = *found;
  const bool is_void = contribution.samples == 0;
  const bool has_floats = !contribution.tensors.empty();
  if (contribution.block != lease.grant.block || contribution.step != lease.grant.step ||
      !may_have_computed_with(contribution.version, lease, newest) ||
      has_floats != (lease.grant.work == Work::train && !is_void) ||
      (!is_void && contribution.samples != lease.samples) || contribution.correct > contribution.counted) {
    return corrupt("a contribution that is no answer to its lease");
  }
  return check_coding(contribution, lease.answer, shape);
}

std::optional<LeasesOut::Slots> LeasesOut::oldest() const {
  if (out_.empty()) return std::nullopt;
  return Slots{out_.front().grant.step, out_.front().grant.block};
}

bool LeasesOut::await(std::uint64_t version) const {
  return std::ranges::any_of(out_, [&](const Out& lease) { return lease.version <= version; });
}

bool LeasesOut::has_one_of(std::uint64_t version) const {
  return std::ranges::find(out_, version, &Out::version) != out_.end();
}

}  // namespace w5xde
