#include "sim/world/hostile.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "support/frames.h"
#include "wire/messages.h"

namespace w5xde {

namespace {

class HostileStream final : public Stream {
 public:
  HostileStream(std::unique_ptr<Stream> stream, Hostility kind)
      : stream_(std::move(stream)), kind_(kind), reader_(Limits{}, sink_) {}

  Result<std::size_t> read(std::span<const iovec> parts) override {
    if (deaf()) return std::size_t{0};
    return stream_->read(parts);
  }
  void when_readable(Loop::Task task) override {
    if (!deaf()) stream_->when_readable(std::move(task));
  }

  // Takes all there is, and says in its place what it likes.
  Result<std::size_t> write(std::span<const iovec> parts) override {
    std::size_t count = 0;
    for (const iovec& part : parts) {
      W5XDE_CHECK(feed(reader_, {static_cast<const std::byte*>(part.iov_base), part.iov_len}, part.iov_len));
      count += part.iov_len;
    }
    for (; !sink_.frames.empty(); sink_.frames.pop_front()) say(sink_.frames.front());
    W5XDE_CHECK(flush());
    return count;
  }
  void when_writable(Loop::Task task) override { stream_->when_writable(std::move(task)); }
  void finish_writing() override { stream_->finish_writing(); }
  void close() override { stream_->close(); }
  Loop& loop() override { return stream_->loop(); }
  std::string peer() const override { return stream_->peer(); }

 private:
  bool deaf() const { return kind_ == Hostility::never_reads && is_in_; }

  void say(ReceivedFrame& frame) {
    if (frame.header.type == FrameType::ready) is_in_ = true;
    if (frame.header.type != FrameType::contribution) return put(frame);
    Contribution contribution = decode_contribution(frame.head, Limits{}).value();
    switch (kind_) {
      case Hostility::voids:
        contribution.samples = 0;
        contribution.coding = {};
        contribution.tensors = {};
        frame.payload.clear();
        frame.header.codec = frame.header.shuffle_width = 0;
        break;
      case Hostility::not_finite:
        contribution.loss_sum = std::numeric_limits<double>::quiet_NaN();
        break;
      case Hostility::wrong_block:
        contribution.block.first_slot ^= contribution.block.tree_slots();
        break;
      case Hostility::wrong_step:
        ++contribution.step;
        break;
      case Hostility::replays:
        put(frame);
        break;
      case Hostility::replays_late: {
        const auto last = std::exchange(last_, frame);
        if (last) put(*last);
        return;
      }
      case Hostility::too_long:
        if (contribution.tensors.empty() || frame.header.codec != 0) break;
        contribution.tensors[0].shape = Shape{2 * contribution.tensors[0].shape[0]};
        frame.payload.resize(2 * frame.payload.size());
        break;
      case Hostility::silent:
        return;
      default:
        break;
    }
    Head head;
    encode(contribution, head);
    frame.head = head;
    put(frame);
  }

  void put(const ReceivedFrame& frame) {
    const TensorView view = TensorView::of_bytes(frame.payload);
    const auto bytes = bytes_of_frame({.type = frame.header.type,
                                       .codec = frame.header.codec,
                                       .shuffle_width = frame.header.shuffle_width,
                                       .head = frame.head,
                                       .payload = {&view, frame.payload.empty() ? 0u : 1u}});
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }

  // What does not go now goes with what is said next.
  Status flush() {
    const iovec part{out_.data(), out_.size()};
    if (out_.empty()) return {};
    W5XDE_TRY(const std::size_t count, stream_->write({&part, 1}));
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(count));
    return {};
  }

  std::unique_ptr<Stream> stream_;
  Hostility kind_;
  KeepingSink sink_;
  FrameReader reader_;
  std::vector<std::byte> out_;
  std::optional<ReceivedFrame> last_;
  bool is_in_ = false;
};

}  // namespace

std::string_view name_of(Hostility kind) {
  switch (kind) {
    case Hostility::none:
      return "honest";
    case Hostility::voids:
      return "answers with nothing";
    case Hostility::not_finite:
      return "answers with NaN";
    case Hostility::wrong_block:
      return "answers for other slots";
    case Hostility::wrong_step:
      return "answers for another step";
    case Hostility::replays:
      return "says everything twice";
    case Hostility::replays_late:
      return "repeats its last answer";
    case Hostility::too_long:
      return "answers with too much";
    case Hostility::silent:
      return "answers nothing";
    case Hostility::never_reads:
      return "never reads";
    case Hostility::count_:
      break;
  }
  return "?";
}

std::unique_ptr<Stream> make_hostile(std::unique_ptr<Stream> stream, Hostility kind) {
  if (kind == Hostility::none) return stream;
  return std::make_unique<HostileStream>(std::move(stream), kind);
}

}  // namespace w5xde
