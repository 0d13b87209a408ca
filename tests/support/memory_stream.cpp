#include "support/memory_stream.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/bytes.h"

namespace w5xde {

namespace {

// One direction: a ring of bytes, and who waits for it.
struct Pipe {
  explicit Pipe(std::size_t capacity) : ring(capacity) {}

  std::size_t put(Bytes bytes) {
    const std::size_t count = std::min(bytes.size(), ring.size() - size);
    for (std::size_t done = 0; done < count;) {
      const std::size_t at = (first + size) % ring.size();
      const std::size_t run = std::min(count - done, ring.size() - at);
      std::memcpy(ring.data() + at, bytes.data() + done, run);
      size += run;
      done += run;
    }
    return count;
  }

  std::size_t take(MutableBytes out) {
    const std::size_t count = std::min(out.size(), size);
    for (std::size_t done = 0; done < count;) {
      const std::size_t run = std::min(count - done, ring.size() - first);
      std::memcpy(out.data() + done, ring.data() + first, run);
      first = (first + run) % ring.size();
      size -= run;
      done += run;
    }
    return count;
  }

  std::vector<std::byte> ring;
  std::size_t first = 0;
  std::size_t size = 0;
  bool writer_gone = false;
  bool reader_gone = false;
  Loop::Task on_readable;
  Loop::Task on_writable;
};

class MemoryStream final : public Stream {
 public:
  MemoryStream(Loop& loop, std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : loop_(loop), in_(std::move(in)), out_(std::move(out)) {}
  ~MemoryStream() override { close(); }
  MemoryStream(const MemoryStream&) = delete;
  MemoryStream& operator=(const MemoryStream&) = delete;

  Result<std::size_t> read(std::span<const iovec> parts) override {
    if (in_->reader_gone) return disconnected("this side has closed the stream");
    std::size_t total = 0;
    for (const iovec& part : parts) {
      total += in_->take({static_cast<std::byte*>(part.iov_base), part.iov_len});
    }
    if (total != 0) wake(*in_, &Pipe::on_writable);
    if (total == 0 && in_->writer_gone) return disconnected("the other side has closed the stream");
    return total;
  }

  Result<std::size_t> write(std::span<const iovec> parts) override {
    if (out_->writer_gone) return disconnected("this side has closed the stream");
    if (out_->reader_gone) return disconnected("the other side has closed the stream");
    std::size_t total = 0;
    for (const iovec& part : parts)
      total += out_->put({static_cast<const std::byte*>(part.iov_base), part.iov_len});
    if (total != 0) wake(*out_, &Pipe::on_readable);
    return total;
  }

  void when_readable(Loop::Task task) override {
    in_->on_readable = std::move(task);
    if (in_->size != 0 || in_->writer_gone) wake(*in_, &Pipe::on_readable);
  }

  void when_writable(Loop::Task task) override {
    out_->on_writable = std::move(task);
    if (out_->size != out_->ring.size() || out_->reader_gone) wake(*out_, &Pipe::on_writable);
  }

  void finish_writing() override {
    out_->writer_gone = true;
    wake(*out_, &Pipe::on_readable);
  }

  void close() override {
    if (in_->reader_gone) return;
    in_->reader_gone = true;
    out_->writer_gone = true;
    in_->on_readable = nullptr;
    out_->on_writable = nullptr;
    wake(*in_, &Pipe::on_writable);
    wake(*out_, &Pipe::on_readable);
  }

  Loop& loop() override { return loop_; }
  std::string peer() const override { return "memory"; }

 private:
  // The pipe outlives both streams while the task is on its way; a waiter that is gone by then is not called.
  void wake(Pipe& pipe, Loop::Task Pipe::*waiter) {
    if (!(pipe.*waiter)) return;
    loop_.post([pipe = &pipe == in_.get() ? in_ : out_, waiter] {
      if (auto task = std::exchange((*pipe).*waiter, nullptr)) task();
    });
  }

  Loop& loop_;
  std::shared_ptr<Pipe> in_;
  std::shared_ptr<Pipe> out_;
};

}  // namespace

std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> make_memory_streams(Loop& loop,
                                                                                std::size_t capacity) {
  auto there = std::make_shared<Pipe>(capacity);
  auto back = std::make_shared<Pipe>(capacity);
  return {std::make_unique<MemoryStream>(loop, back, there),
          std::make_unique<MemoryStream>(loop, there, back)};
}

}  // namespace w5xde
