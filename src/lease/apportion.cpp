#include "lease/apportion.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <utility>

#include "lease/tuning.h"

namespace w5xde {

namespace {

double finish_seconds(const std::vector<Share>& shares, std::uint32_t open_slots) {
  double speed = 0, spent = 0;
  for (const Share& share : shares) {
    speed += 1 / share.seconds_per_slot;
    spent += share.ready_seconds / share.seconds_per_slot;
  }
  return (open_slots + spent) / speed;
}

void take_until(Share& share, double finish) {
  // The bit more keeps 3.9999 a 4.
  share.slots = static_cast<std::uint32_t>((finish - share.ready_seconds) / share.seconds_per_slot + 1e-6);
}

// True if blocks were dropped. A node that holds nothing keeps its largest block in any case.
bool drop_small_blocks(Share& share) {
  const std::uint32_t before = share.slots;
  while (share.slots > 0) {
    const std::uint32_t smallest = share.slots & -share.slots;
    if (smallest >= share.slots_min || (smallest == share.slots && !share.holds_some)) break;
    share.slots -= smallest;
  }
  return share.slots < before;
}

// One by one; of those who would be done at the same time, to the first.
void give_to_first_done(std::vector<Share>& shares, std::uint32_t slots) {
  if (slots == 0 || shares.empty()) return;
  using Done = std::pair<double, std::size_t>;
  const auto done = [&](std::size_t index) {
    const Share& share = shares[index];
    // A first answer, with everything cold, says little: the node gets a second chance.
    const double seconds =
        share.cold && share.slots == 0
            ? 0
            : share.ready_seconds + (share.slots + share.slots_min) * share.seconds_per_slot;
    return Done(seconds, index);
  };
  std::priority_queue<Done, std::vector<Done>, std::greater<>> next;
  for (std::size_t i = 0; i < shares.size(); ++i) next.push(done(i));
  for (; slots > 0; --slots) {
    const std::size_t first = next.top().second;
    next.pop();
    ++shares[first].slots;
    next.push(done(first));
  }
}

}  // namespace

std::uint32_t async_lease_slots(double seconds_per_slot, std::uint32_t slots_max, std::uint32_t grain) {
  if (grain > 0) return grain;
  const double wanted = seconds_per_slot == 0 ? 1 : kAsyncLeaseSeconds / seconds_per_slot;
  return std::bit_floor(static_cast<std::uint32_t>(std::clamp<double>(wanted, 1, slots_max)));
}

std::vector<Share> apportion(std::vector<Share> shares, std::uint32_t open_slots) {
  if (shares.empty()) return shares;
  double finish = finish_seconds(shares, open_slots);
  // What differs by less than noise counts as equal, or noise would cut steps unevenly.
  const auto [least, most] = std::ranges::minmax(shares, {}, &Share::ready_seconds);
  if (most.ready_seconds - least.ready_seconds < kSmallPart * finish) {
    for (Share& share : shares) share.ready_seconds = least.ready_seconds;
  }
  std::vector<Share> fixed;  // of whole blocks
  for (finish = finish_seconds(shares, open_slots); shares.size() > 1;
       finish = finish_seconds(shares, open_slots)) {
    const auto too_late = [&](const Share& share) { return share.ready_seconds >= finish; };
    if (std::erase_if(shares, too_late) > 0) continue;
    const auto cut = std::ranges::find_if(shares, [&](Share& share) {
      take_until(share, finish);
      return drop_small_blocks(share);
    });
    if (cut == shares.end()) break;
    open_slots -= cut->slots;
    fixed.push_back(*cut);
    shares.erase(cut);
  }
  for (Share& share : shares) {
    take_until(share, finish);
    open_slots -= share.slots;
  }
  give_to_first_done(shares, open_slots);
  shares.insert(shares.end(), fixed.begin(), fixed.end());
  return shares;
}

}  // namespace w5xde
