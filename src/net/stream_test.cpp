// The contract of Stream, run on every kind of stream there is.
#include "net/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "support/stream_pairs.h"

namespace w5xde {
namespace {

class StreamContract : public testing::TestWithParam<StreamKind> {
 protected:
  void SetUp() override { pair_ = GetParam().make(); }

  Stream& near() { return *pair_->near; }
  Stream& far() { return *pair_->far; }

  std::unique_ptr<StreamPair> pair_;
};

Result<std::size_t> write_text(Stream& stream, std::string_view text) {
  const iovec part{const_cast<char*>(text.data()), text.size()};
  return stream.write({&part, 1});
}

// Reads and writes for one end until `expected` bytes have come and `outgoing` is gone.
class Transfer {
 public:
  Transfer(Stream& stream, std::string outgoing, std::size_t expected, std::uint64_t seed)
      : stream_(stream), outgoing_(std::move(outgoing)), expected_(expected), random_(seed) {}

  void start() {
    read();
    write();
  }
  bool done() const { return sent_ == outgoing_.size() && incoming_.size() == expected_; }
  const std::string& incoming() const { return incoming_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  void read() {
    while (incoming_.size() < expected_) {
      // Two parts of random size, to see scattered reads.
      std::string first(1 + random_.below(5000), '\0'), second(1 + random_.below(70'000), '\0');
      const iovec parts[] = {{first.data(), first.size()}, {second.data(), second.size()}};
      auto count = stream_.read(parts);
      if (!count) {
        error_ = count.error();
        return;
      }
      const std::string all = first + second;
      incoming_ += all.substr(0, *count);
      if (*count < all.size()) break;
    }
    if (incoming_.size() < expected_) stream_.when_readable([this] { read(); });
  }

  void write() {
    while (sent_ < outgoing_.size()) {
      // Two parts of random size again. What was not taken is offered in one part, as the contract asks.
      const std::size_t first =
          std::min<std::size_t>(outgoing_.size() - sent_, std::max(offered_, 1 + random_.below(300)));
      const std::size_t second =
          std::min<std::size_t>(outgoing_.size() - sent_ - first, random_.below(200'000));
      const iovec parts[] = {{outgoing_.data() + sent_, first}, {outgoing_.data() + sent_ + first, second}};
      offered_ = first + second;
      auto count = stream_.write(parts);
      if (!count) {
        error_ = count.error();
        return;
      }
      sent_ += *count;
      offered_ -= *count;
      if (*count == 0) return stream_.when_writable([this] { write(); });
    }
  }

  Stream& stream_;
  std::string outgoing_;
  std::size_t expected_;
  Random random_;
  std::size_t sent_ = 0;
  std::size_t offered_ = 0;  // and not taken
  std::string incoming_;
  std::optional<Error> error_;
};

std::string text_of_size(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random.next());
  return text;
}

TEST_P(StreamContract, bytes_go_both_ways_at_once_in_order_and_whole) {
  const std::string there = text_of_size(5'000'000, 1), back = text_of_size(3'000'000, 2);
  Transfer left(near(), there, back.size(), 3), right(far(), back, there.size(), 4);
  left.start();
  right.start();
  ASSERT_TRUE(
      pair_->run_until([&] { return (left.done() && right.done()) || left.error() || right.error(); }));
  EXPECT_FALSE(left.error()) << left.error()->message;
  EXPECT_FALSE(right.error()) << right.error()->message;
  EXPECT_TRUE(left.incoming() == back);
  EXPECT_TRUE(right.incoming() == there);
}

TEST_P(StreamContract, reading_without_data_gives_nothing_and_does_not_block) {
  char byte = 0;
  const iovec part{&byte, 1};
  const auto count = near().read({&part, 1});
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 0u);
}

TEST_P(StreamContract, a_waiting_reader_is_woken_once_by_data) {
  int woken = 0;
  std::string got;
  const std::function<void()> read = [&] {
    ++woken;
    char bytes[16];
    const iovec part{bytes, sizeof bytes};
    const auto count = near().read({&part, 1});
    if (count.ok()) got.append(bytes, *count);
    if (got.size() < 5) near().when_readable(read);
  };
  near().when_readable(read);
  Transfer sender(far(), "hello", 0, 1);
  sender.start();
  ASSERT_TRUE(pair_->run_until([&] { return got == "hello"; }));
  const int woken_for_hello = woken;
  pair_->loop().post([] {});
  ASSERT_TRUE(pair_->run_until([] { return true; }));
  EXPECT_EQ(woken, woken_for_hello);
}

TEST_P(StreamContract, a_reader_that_asks_after_the_data_came_is_woken_too) {
  // A byte first, so that a handshake is done and the rest lies ready before anyone asks.
  Transfer sender(far(), "x" + std::string(1000, 'y'), 0, 1), receiver(near(), "", 1, 1);
  char first = 0;
  const iovec one{&first, 1};
  sender.start();
  bool got = false;
  const std::function<void()> read_one = [&] {
    const auto count = near().read({&one, 1});
    ASSERT_TRUE(count.ok());
    got = *count == 1;
    if (!got) near().when_readable(read_one);
  };
  near().when_readable(read_one);
  ASSERT_TRUE(pair_->run_until([&] { return got && sender.done(); }));
  bool woken = false;
  near().when_readable([&] { woken = true; });
  EXPECT_TRUE(pair_->run_until([&] { return woken; }));
}

TEST_P(StreamContract, a_writer_meets_a_full_stream_and_is_woken_when_it_drains) {
  const std::string chunk(256 * 1024, 'z');
  std::size_t written = 0;
  bool full = false;
  const std::function<void()> fill = [&] {
    for (;;) {
      const auto count = write_text(near(), chunk);
      ASSERT_TRUE(count.ok());
      ASSERT_LT(written, std::size_t{1} << 30) << "a stream without a bound";
      if (*count == 0) break;
      written += *count;
    }
    full = true;
  };
  // The far side reads until the handshake is over, then stops.
  Transfer start(far(), "", 1, 1);
  start.start();
  const std::function<void()> write_first = [&] {
    const auto count = write_text(near(), "!");
    ASSERT_TRUE(count.ok());
    if (*count == 0) return near().when_writable(write_first);
    written = 1;
  };
  write_first();
  ASSERT_TRUE(pair_->run_until([&] { return start.done(); }));
  fill();
  ASSERT_TRUE(full);
  bool woken = false;
  near().when_writable([&] { woken = true; });
  Transfer drain(far(), "", written - 1, 2);
  drain.start();
  EXPECT_TRUE(pair_->run_until([&] { return woken; }));
}

TEST_P(StreamContract, what_was_written_before_a_close_arrives_and_then_the_end) {
  Transfer sender(far(), std::string(1000, 'a'), 0, 1), receiver(near(), "", 1001, 2);
  receiver.start();
  sender.start();
  ASSERT_TRUE(pair_->run_until([&] { return sender.done(); }));
  far().close();
  ASSERT_TRUE(pair_->run_until([&] { return receiver.error().has_value(); }));
  EXPECT_EQ(receiver.incoming(), std::string(1000, 'a'));
  EXPECT_EQ(receiver.error()->kind, ErrorKind::disconnected);
}

TEST_P(StreamContract, writing_to_a_stream_that_the_other_side_closed_fails) {
  far().close();
  std::optional<Error> error;
  const std::function<void()> write = [&] {
    const auto count = write_text(near(), "hello");
    if (!count) {
      error = count.error();
    } else {
      near().when_writable(write);
    }
  };
  write();
  ASSERT_TRUE(pair_->run_until([&] { return error.has_value(); }));
  EXPECT_EQ(error->kind, ErrorKind::disconnected);
}

TEST_P(StreamContract, a_closed_stream_reads_and_writes_no_more_and_drops_its_waiters) {
  bool woken = false;
  near().when_readable([&] { woken = true; });
  near().when_writable([&] { woken = true; });
  near().close();
  char byte = 0;
  const iovec part{&byte, 1};
  EXPECT_EQ(near().read({&part, 1}).error().kind, ErrorKind::disconnected);
  EXPECT_EQ(near().write({&part, 1}).error().kind, ErrorKind::disconnected);
  bool settled = false;
  pair_->loop().post([&] { pair_->loop().post([&] { settled = true; }); });
  ASSERT_TRUE(pair_->run_until([&] { return settled; }));
  EXPECT_FALSE(woken);
}

TEST_P(StreamContract, a_stream_may_be_destroyed_while_someone_waits_on_it) {
  near().when_readable([] { FAIL() << "a task of a stream that is gone"; });
  pair_->near.reset();
  bool settled = false;
  pair_->loop().post([&] { pair_->loop().post([&] { settled = true; }); });
  ASSERT_TRUE(pair_->run_until([&] { return settled; }));
}

INSTANTIATE_TEST_SUITE_P(every_kind, StreamContract, testing::ValuesIn(all_stream_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace w5xde
