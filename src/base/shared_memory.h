// Memory that processes of one machine share, so that what is as large as a model need not cross a socket
// between them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "w5xde/result.h"

namespace w5xde {

// One block. It has no name that a crash could leave behind: it is gone with the last process that has it
// mapped. Its size is sealed, so that reading it cannot fail because somebody cut it short.
class SharedBlock {
 public:
  // Where another process of the same user finds a block: it is what `process` has as `descriptor`.
  struct Address {
    std::uint32_t process = 0;
    std::uint32_t descriptor = 0;
    std::uint64_t bytes = 0;
    std::uint64_t id = 0;  // the file's: no two blocks that exist have the same
    bool operator==(const Address&) const = default;
  };
  enum class Access { read, write };

  // `bytes` zeros, which take memory once they are touched.
  static Result<std::shared_ptr<SharedBlock>> create(std::uint64_t bytes);
  // Of another process. `invalid` when there is no such block any more, or it may not be opened from here.
  static Result<std::shared_ptr<SharedBlock>> open(const Address& address, Access access);
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  const Address& address() const { return address_; }
  std::byte* data() const { return data_; }
  // Its owner has it still.
  bool is_used() const;
  // Takes all its memory now, and not page by page while somebody waits. Any thread.
  void populate() const;

 private:
  SharedBlock(const Address& address, int file, std::byte* data)
      : address_(address), file_(file), data_(data) {}

  Address address_;
  int file_;  // the owner's; -1 where it was opened
  std::byte* data_;
};

// A block of its own; memory of this process alone where the kernel gives none.
AlignedBuffer make_shared_buffer(std::uint64_t bytes);

// Finds out whether a peer shares memory with this process: it is told where some random bytes are, and says
// what they are.
class SharedProbe {
 public:
  static Result<SharedProbe> make();
  std::string question() const;
  bool is_answered_by(std::string_view answer) const;
  // The peer's side. Empty: it does not find them.
  static std::string answer_to(std::string_view question);

 private:
  explicit SharedProbe(std::shared_ptr<SharedBlock> block) : block_(std::move(block)) {}

  std::shared_ptr<SharedBlock> block_;
};

}  // namespace w5xde
