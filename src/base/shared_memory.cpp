#include "base/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <random>

#include "base/errors.h"
#include "base/file.h"

namespace w5xde {

namespace {

constexpr unsigned kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::size_t kTokenBytes = 16;
// Linux 5.14; older C libraries do not name it.
constexpr int kPopulateWrite = 23;

std::string path_of(const SharedBlock::Address& address) {
  return fmt::format("/proc/{}/fd/{}", address.process, address.descriptor);
}

bool is_file_of(const struct stat& file, const SharedBlock::Address& address) {
  return S_ISREG(file.st_mode) && file.st_ino == address.id &&
         static_cast<std::uint64_t>(file.st_size) == address.bytes;
}

// The kernel may have added more of its own.
bool has_seals(int file) {
  const int seals = ::fcntl(file, F_GET_SEALS);
  return seals >= 0 && (static_cast<unsigned>(seals) & kSeals) == kSeals;
}

std::byte* map(int file, std::uint64_t bytes, int protection) {
  void* const mapped = ::mmap(nullptr, bytes, protection, MAP_SHARED, file, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

std::string hex(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// Of fixed length, so that messages that carry it have one too.
std::string to_text(const SharedBlock::Address& address) {
  return fmt::format("{:08x}{:08x}{:016x}{:016x}", address.process, address.descriptor, address.bytes,
                     address.id);
}

template <class T>
bool read_hex(std::string_view& text, T& to) {
  constexpr std::size_t kDigits = 2 * sizeof(T);
  if (text.size() < kDigits) return false;
  const char* const end = text.data() + kDigits;
  const auto [at, error] = std::from_chars(text.data(), end, to, 16);
  text.remove_prefix(kDigits);
  return at == end && error == std::errc();
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::shared_ptr<SharedBlock> block)
    : memory_(block->data()), capacity_(block->address().bytes) {
  memory_.get_deleter().block = std::move(block);
}

Result<std::shared_ptr<SharedBlock>> SharedBlock::create(std::uint64_t bytes) {
  const int file = ::memfd_create("w5xde", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return system_error("making a shared block", errno);
  struct stat about = {};
  std::byte* data = nullptr;
  if (::ftruncate(file, static_cast<off_t>(bytes)) == 0 && ::fcntl(file, F_ADD_SEALS, kSeals) == 0 &&
      ::fstat(file, &about) == 0)
    data = map(file, bytes, PROT_READ | PROT_WRITE);
  if (data == nullptr) {
    const int reason = errno;
    ::close(file);
    return system_error(fmt::format("making a shared block of {} bytes", bytes), reason);
  }
  const Address address{static_cast<std::uint32_t>(::getpid()), static_cast<std::uint32_t>(file), bytes,
                        about.st_ino};
  return std::shared_ptr<SharedBlock>(new SharedBlock(address, file, data));
}

Result<std::shared_ptr<SharedBlock>> SharedBlock::open(const Address& address, Access access) {
  const std::string path = path_of(address);
  const Error none = invalid("no shared block of {} bytes at {}", address.bytes, path);
  struct stat about = {};
  // Looked at first: to open what is no block may do something.
  if (::stat(path.c_str(), &about) != 0 || !is_file_of(about, address)) return none;
  const bool writes = access == Access::write;
  const int file = ::open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return none;
  std::byte* data = nullptr;
  // Only a file in memory has seals; these say that it keeps its size.
  if (::fstat(file, &about) == 0 && is_file_of(about, address) && has_seals(file))
    data = map(file, address.bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ);
  ::close(file);
  if (data == nullptr) return none;
  return std::shared_ptr<SharedBlock>(new SharedBlock(address, -1, data));
}

SharedBlock::~SharedBlock() {
  ::munmap(data_, address_.bytes);
  if (file_ >= 0) ::close(file_);
}

bool SharedBlock::is_used() const {
  struct stat about = {};
  return file_ >= 0 || (::stat(path_of(address_).c_str(), &about) == 0 && is_file_of(about, address_));
}

void SharedBlock::populate() const {
  // Where the kernel cannot, pages come as they are touched.
  (void)::madvise(data_, address_.bytes, kPopulateWrite);
}

AlignedBuffer make_shared_buffer(std::uint64_t bytes) {
  auto block = SharedBlock::create(bytes);
  return block.ok() ? AlignedBuffer(std::move(*block)) : AlignedBuffer(bytes);
}

Result<SharedProbe> SharedProbe::make() {
  W5XDE_TRY(auto block, SharedBlock::create(kTokenBytes));
  std::random_device random;
  for (std::size_t at = 0; at < kTokenBytes; at += sizeof(unsigned)) store(block->data() + at, random());
  return SharedProbe(std::move(block));
}

std::string SharedProbe::question() const {
  return to_text(block_->address());
}

bool SharedProbe::is_answered_by(std::string_view answer) const {
  return answer == hex({block_->data(), kTokenBytes});
}

std::string SharedProbe::answer_to(std::string_view question) {
  SharedBlock::Address address;
  if (!read_hex(question, address.process) || !read_hex(question, address.descriptor) ||
      !read_hex(question, address.bytes) || !read_hex(question, address.id) || !question.empty() ||
      address.bytes != kTokenBytes)
    return {};
  const auto block = SharedBlock::open(address, SharedBlock::Access::read);
  return block.ok() ? hex({(*block)->data(), kTokenBytes}) : std::string();
}

}  // namespace w5xde
