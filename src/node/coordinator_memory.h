#pragma once

#include <memory>
#include <vector>

#include "base/shared_memory.h"
#include "w5xde/result.h"

namespace w5xde {

// The blocks of the coordinator's memory that a node has mapped. Each is mapped once, and let go of when the
// coordinator does not have it any more. Loop thread only.
class CoordinatorMemory {
 public:
  using Block = std::shared_ptr<SharedBlock>;

  // A block of this many bytes. corrupt when there is none.
  Result<Block> map(const SharedBlock::Address& address, SharedBlock::Access access, std::uint64_t bytes);
  // Lets go of what the coordinator has let go of.
  void sweep();
  std::size_t blocks() const { return mapped_.size(); }

 private:
  struct Mapped {
    Block block;
    SharedBlock::Access access;
  };
  std::vector<Mapped> mapped_;
};

}  // namespace w5xde
