#include "coordinator/gathered_slots.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/errors.h"

namespace w5xde {

namespace {

// Samples for each thread that are gathered in one go; in between, the pool's threads do what else there is.
constexpr std::size_t kSamplesPerThread = 4;

const Dataset::Field& field_of(const Dataset& data, std::size_t tensor) {
  return tensor < data.inputs().size() ? data.inputs()[tensor] : data.targets();
}

// Sample `at` of a slot. A picture may be large: memory may run out, and this is a thread that must not
// throw.
Status gather_one(const Dataset& data, std::uint32_t number, std::size_t at, GatheredSlots::Slot& slot) try {
  std::vector<MutableBytes> places;
  for (std::size_t i = 0; i < slot.tensors.size(); ++i) {
    const std::uint64_t bytes = field_of(data, i).sample_bytes();
    places.push_back(MutableBytes(slot.tensors[i]).subspan(at * bytes, bytes));
  }
  return data.gather({&number, 1}, std::span(places).first(places.size() - 1), places.back());
} catch (const std::bad_alloc&) {
  return Error{ErrorKind::system, fmt::format("out of memory while sample {} was read", number)};
}

Status gather(const Dataset& data, std::span<const std::uint32_t> numbers, ThreadPool* pool,
              GatheredSlots::Slot& slot) {
  for (std::size_t i = 0; i < slot.tensors.size(); ++i)
    slot.tensors[i].resize(numbers.size() * field_of(data, i).sample_bytes());
  const std::size_t threads = 1 + (pool == nullptr ? 0 : pool->size());
  std::vector<Status> statuses(kSamplesPerThread * threads);
  for (std::size_t first = 0; first < numbers.size(); first += statuses.size()) {
    const auto one = [&](std::size_t i) {
      statuses[i] = gather_one(data, numbers[first + i], first + i, slot);
    };
    const std::size_t count = std::min(statuses.size(), numbers.size() - first);
    if (pool != nullptr) {
      pool->for_each(count, one);
    } else {
      for (std::size_t i = 0; i < count; ++i) one(i);
    }
    for (const Status& status : statuses) W5XDE_CHECK(Status(status));
  }
  return {};
}

}  // namespace

GatheredSlots::GatheredSlots(std::shared_ptr<const Dataset> dataset, const Sampler::Options& options,
                             Loop& loop, ThreadPool* pool, std::function<void()> gathered)
    : dataset_(std::move(dataset)),
      sampler_(options),
      pool_(pool),
      gathered_(std::move(gathered)),
      background_(loop.background()) {}

bool GatheredSlots::want(std::uint64_t slot) {
  Entry& entry = touch(slot);
  entry.wanted = true;
  const bool here = entry.stage == Stage::here;
  if (!here) gather_next();
  return here;
}

void GatheredSlots::prepare(std::uint64_t first, std::uint64_t end) {
  std::uint64_t bytes = 0;
  for (std::uint64_t slot = first; slot < std::min(end, first + kSlotsMax / 2); ++slot) {
    bytes += sampler_.count_of(slot) * dataset_->sample_bytes();
    if (bytes > kBytesMax / 2) break;
    touch(slot);
  }
  gather_next();
}

std::shared_ptr<const GatheredSlots::Slot> GatheredSlots::take(std::uint64_t slot) {
  const auto at = entries_.find(slot);
  if (at == entries_.end()) return nullptr;
  at->second.wanted = false;
  if (at->second.stage != Stage::here) return nullptr;
  std::shared_ptr<const Slot> taken = at->second.slot;
  // It may be mended meanwhile.
  if (!taken->status.ok()) bytes_ -= entries_.extract(at).mapped().bytes;
  return taken;
}

GatheredSlots::Entry& GatheredSlots::touch(std::uint64_t slot) {
  Entry& entry = entries_[slot];
  entry.touched = ++touches_;
  if (entry.slot) return entry;
  const auto numbers = sampler_.samples_of(slot);
  entry.numbers.assign(numbers.begin(), numbers.end());
  entry.bytes = numbers.size() * dataset_->sample_bytes();
  entry.slot = std::make_shared<Slot>();
  entry.slot->tensors.resize(dataset_->inputs().size() + 1);
  bytes_ += entry.bytes;
  return entry;
}

void GatheredSlots::gather_next() {
  if (gathering_) return;
  const auto queued = [](const auto& entry) { return entry.second.stage == Stage::queued; };
  auto next =
      std::ranges::find_if(entries_, [&](const auto& entry) { return queued(entry) && entry.second.wanted; });
  if (next == entries_.end()) next = std::ranges::find_if(entries_, queued);
  if (next == entries_.end()) return;
  make_room();
  gathering_ = true;
  Entry& entry = next->second;
  entry.stage = Stage::gathering;
  const auto work = [dataset = dataset_, pool = pool_, slot = entry.slot, numbers = entry.numbers] {
    try {
      slot->status = gather(*dataset, numbers, pool, *slot);
    } catch (const std::bad_alloc&) {
      slot->status = Error{ErrorKind::system, fmt::format("out of memory for {} samples", numbers.size())};
    }
  };
  background_->run(work, [this, number = next->first] {
    entries_.at(number).stage = Stage::here;
    gathering_ = false;
    gather_next();
    gathered_();
  });
}

// What was asked for longest ago goes first.
void GatheredSlots::make_room() {
  while (bytes_ > kBytesMax || entries_.size() > kSlotsMax) {
    auto oldest = entries_.end();
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      const bool may_go = at->second.stage == Stage::here && !at->second.wanted;
      if (may_go && (oldest == entries_.end() || at->second.touched < oldest->second.touched)) oldest = at;
    }
    if (oldest == entries_.end()) return;
    bytes_ -= oldest->second.bytes;
    entries_.erase(oldest);
  }
}

}  // namespace w5xde
