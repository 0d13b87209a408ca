// A peer that says anything: raw bytes, and frames with right checksums around wrong contents, to a whole
// Connection.
#include "net/connection.h"

#include <algorithm>
#include <vector>

#include "support/memory_stream.h"
#include "support/sim_loop.h"
#include "wire_input.h"

namespace {

using namespace w5xde;

class Owner final : public Connection::Owner {
 public:
  Result<MutableBytes> place(const FrameHeader& header, Bytes) override {
    fuzz::must_hold(header.payload_bytes <= fuzz::kLimits.payload_bytes_max);
    landing_.resize(header.payload_bytes);
    return MutableBytes(landing_);
  }
  Status received(const FrameHeader& header, Bytes head, MutableBytes payload) override {
    fuzz::must_hold(closings == 0);
    fuzz::must_hold(head.size() == header.head_bytes && payload.size() == header.payload_bytes);
    return {};
  }
  void closed(const Error& reason) override { fuzz::must_hold(++closings == 1 && !reason.message.empty()); }

  int closings = 0;

 private:
  std::vector<std::byte> landing_;
};

// The input as instructions: how to cut the stream, then frames and raw pieces.
std::vector<std::byte> stream_of(ByteReader& reader) {
  std::vector<std::byte> stream;
  while (!reader.rest().empty()) {
    const auto kind = reader.read<std::uint8_t>();
    const auto first =
        reader.read_bytes(std::min<std::size_t>(reader.read<std::uint8_t>(), reader.rest().size()));
    if (kind % 4 == 0) {
      stream.insert(stream.end(), first.begin(), first.end());
      continue;
    }
    const auto payload =
        reader.read_bytes(std::min<std::size_t>(reader.read<std::uint8_t>(), reader.rest().size()));
    const TensorView view = TensorView::of_bytes(payload);
    FrameWriter writer(fuzz::kLimits);
    const OutgoingFrame frame{.type = static_cast<FrameType>(kind / 4 % 16),
                              .codec = static_cast<std::uint8_t>(kind % 4 == 3 ? 9 : 0),
                              .head = first,
                              .payload = {&view, payload.empty() ? 0u : 1u}};
    if (!writer.push(frame).ok()) continue;
    for (auto pieces = writer.stage(); !pieces.empty(); pieces = writer.stage()) {
      const auto* piece = static_cast<const std::byte*>(pieces[0].iov_base);
      stream.insert(stream.end(), piece, piece + pieces[0].iov_len);
      writer.consume(pieces[0].iov_len);
    }
  }
  return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteReader reader(fuzz::input_of(data, size));
  const std::size_t cut = 1 + reader.read<std::uint8_t>();
  std::vector<std::byte> stream = stream_of(reader);

  SimLoop loop;
  Owner owner;
  auto [near, far] = make_memory_streams(loop, 64 * 1024);
  const auto connection = Connection::start(std::move(near), owner, fuzz::kLimits);
  for (std::size_t at = 0; at < stream.size(); at += cut) {
    const iovec part{stream.data() + at, std::min(cut, stream.size() - at)};
    if (!far->write({&part, 1}).ok()) break;
    loop.run_ready();
  }
  far->close();
  loop.run_for(std::chrono::minutes(1));
  fuzz::must_hold(owner.closings == 1);
  return 0;
}
