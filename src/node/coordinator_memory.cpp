#include "node/coordinator_memory.h"

#include <algorithm>

#include "base/errors.h"

namespace w5xde {

Result<CoordinatorMemory::Block> CoordinatorMemory::map(const SharedBlock::Address& address,
                                                        SharedBlock::Access access, std::uint64_t bytes) {
  if (address.bytes != bytes)
    return corrupt("a shared block of {} bytes for a model of {}", address.bytes, bytes);
  const auto known = std::ranges::find_if(mapped_, [&](const Mapped& mapped) {
    return mapped.block->address() == address && mapped.access == access;
  });
  if (known != mapped_.end()) return known->block;
  // A new one comes where another was let go of, as a rule.
  sweep();
  auto opened = SharedBlock::open(address, access);
  if (!opened.ok()) return corrupt(opened.error().message);
  mapped_.push_back({std::move(*opened), access});
  return mapped_.back().block;
}

void CoordinatorMemory::sweep() {
  std::erase_if(mapped_, [](const Mapped& mapped) { return !mapped.block->is_used(); });
}

}  // namespace w5xde
