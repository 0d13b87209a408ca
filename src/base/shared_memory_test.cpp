#include "base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

namespace w5xde {
namespace {

using Access = SharedBlock::Access;

constexpr std::uint64_t kBytes = 100'000;

std::shared_ptr<SharedBlock> make_block(std::uint64_t bytes = kBytes) {
  return SharedBlock::create(bytes).value();
}

unsigned shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  unsigned count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:w5xde") != std::string::npos;
  return count;
}

TEST(SharedBlockTest, what_one_process_writes_another_reads) {
  const auto block = make_block();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto opened = SharedBlock::open(block->address(), Access::write);
    if (!opened.ok()) _exit(1);
    (*opened)->data()[kBytes - 1] = std::byte{42};
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(block->data()[kBytes - 1], std::byte{42});
}

TEST(SharedBlockTest, what_is_opened_to_be_read_cannot_be_written) {
  const auto block = make_block();
  const auto opened = SharedBlock::open(block->address(), Access::read).value();
  EXPECT_DEATH(opened->data()[0] = std::byte{1}, "");
}

TEST(SharedBlockTest, nobody_can_cut_it_short) {
  const auto block = make_block();
  const auto file = static_cast<int>(block->address().descriptor);
  EXPECT_NE(ftruncate(file, 10), 0);
  EXPECT_NE(ftruncate(file, kBytes + 1), 0);
}

TEST(SharedBlockTest, a_block_is_found_at_its_own_address_only) {
  const auto block = make_block();
  const auto opens = [](const SharedBlock::Address& address) {
    return SharedBlock::open(address, Access::read).ok();
  };
  auto address = block->address();
  EXPECT_TRUE(opens(address));
  address.bytes += 1;
  EXPECT_FALSE(opens(address));
  address = block->address();
  address.id += 1;
  EXPECT_FALSE(opens(address));
  address = block->address();
  address.descriptor += 1000;
  EXPECT_FALSE(opens(address));
  address = block->address();
  address.process = 0;
  EXPECT_FALSE(opens(address));
}

TEST(SharedBlockTest, a_file_that_is_no_block_is_refused) {
  // As large and as sealed as asked for, but for one seal.
  const int file = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  struct stat about = {};
  ASSERT_EQ(fstat(file, &about), 0);
  const SharedBlock::Address address{static_cast<std::uint32_t>(getpid()), static_cast<std::uint32_t>(file),
                                     kBytes, about.st_ino};
  EXPECT_FALSE(SharedBlock::open(address, Access::write).ok());
  ASSERT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_TRUE(SharedBlock::open(address, Access::write).ok());
  close(file);
}

TEST(SharedBlockTest, who_has_it_open_sees_when_its_owner_lets_go) {
  auto block = make_block();
  const auto opened = SharedBlock::open(block->address(), Access::read).value();
  EXPECT_TRUE(opened->is_used());
  const auto address = block->address();
  block.reset();
  EXPECT_FALSE(opened->is_used());
  EXPECT_FALSE(SharedBlock::open(address, Access::read).ok());
  EXPECT_EQ(opened->data()[kBytes - 1], std::byte{0}) << "what is mapped stays";
}

TEST(SharedBlockTest, a_block_takes_memory_when_it_is_touched_or_populated) {
  const auto block = make_block(1 << 22);
  std::array<unsigned char, (1 << 22) / 4096> pages{};
  const auto resident = [&] {
    EXPECT_EQ(mincore(block->data(), 1 << 22, pages.data()), 0);
    std::size_t count = 0;
    for (const unsigned char page : pages) count += page & 1;
    return count;
  };
  EXPECT_EQ(resident(), 0u);
  block->populate();
  EXPECT_EQ(resident(), pages.size());
}

TEST(SharedBlockTest, a_buffer_holds_its_block_and_lets_go_of_it) {
  const unsigned before = shared_mappings();
  {
    AlignedBuffer buffer = make_shared_buffer(kBytes);
    ASSERT_TRUE(buffer.shared());
    EXPECT_EQ(buffer.capacity(), kBytes);
    EXPECT_EQ(buffer.take(kBytes).data(), buffer.shared()->data());
    AlignedBuffer moved = std::move(buffer);
    EXPECT_EQ(moved.data(), moved.shared()->data());
    EXPECT_EQ(shared_mappings(), before + 1);
    (void)moved.take(kBytes + 1);
    EXPECT_FALSE(moved.shared());
    EXPECT_EQ(shared_mappings(), before);
    moved = make_shared_buffer(kBytes);
    EXPECT_EQ(shared_mappings(), before + 1);
  }
  EXPECT_EQ(shared_mappings(), before);
}

TEST(SharedProbeTest, only_who_finds_the_bytes_can_say_what_they_are) {
  const SharedProbe probe = SharedProbe::make().value();
  const std::string answer = SharedProbe::answer_to(probe.question());
  EXPECT_TRUE(probe.is_answered_by(answer));
  EXPECT_FALSE(probe.is_answered_by(""));
  EXPECT_FALSE(probe.is_answered_by(std::string(32, '0')));
  EXPECT_FALSE(SharedProbe::make().value().is_answered_by(answer));
}

TEST(SharedProbeTest, a_question_that_is_none_has_no_answer) {
  const SharedProbe probe = SharedProbe::make().value();
  for (const std::string& question :
       {std::string(), std::string("x"), probe.question() + "0", probe.question().substr(1),
        std::string(48, 'g'), std::string(48, 'f'), std::string(48, '0')})
    EXPECT_EQ(SharedProbe::answer_to(question), "") << question;
}

}  // namespace
}  // namespace w5xde
