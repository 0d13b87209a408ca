#include "payload/receiver.h"

#include "base/errors.h"

namespace w5xde {

static_assert(is_known(kFrameCodecs - 1) && !is_known(kFrameCodecs));

Result<MutableBytes> PayloadReceiver::place(const FrameHeader& header, const Coding& coding,
                                            const Target& target) {
  if (coding.form == Form::shared) return corrupt("a payload beside shared memory");
  const bool direct = coding.form == Form::direct;
  const std::uint64_t bytes = direct ? target.raw.size() : coding.bytes;
  if (bytes > formed_bytes_max(coding, target))
    return corrupt("a {} frame with {} bytes for {}", name_of(header.type), bytes, target.raw.size());
  if (header.codec == 0) {
    if (header.payload_bytes == bytes) return direct ? target.raw : formed_.take(bytes);
  } else if (header.payload_bytes <= section_bytes_max(bytes)) {
    return encoded_.take(header.payload_bytes);
  }
  return corrupt("a {} frame has {} bytes for a payload of {}", name_of(header.type), header.payload_bytes,
                 bytes);
}

Status PayloadReceiver::finish(const FrameHeader& header, Bytes payload, const Coding& coding,
                               const Target& target) {
  stats_.raw_bytes += target.raw.size();
  stats_.wire_bytes += payload.size();
  const bool direct = coding.form == Form::direct;
  if (header.codec == 0 && direct) return {};
  const Instant begun = clock_.now();
  Status status;
  Bytes formed = payload;
  if (header.codec != 0) {
    const MutableBytes decoded = direct ? target.raw : formed_.take(coding.bytes);
    status = decoder_.decode(payload, static_cast<LosslessKind>(header.codec), header.shuffle_width, decoded,
                             pool_);
    formed = decoded;
  }
  if (status.ok() && !direct) status = unform(formed, coding, target);
  stats_.busy += clock_.now() - begun;
  return status;
}

}  // namespace w5xde
