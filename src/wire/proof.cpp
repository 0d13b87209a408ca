#include "wire/proof.h"

#include <algorithm>

#include "base/errors.h"

namespace w5xde {

void encode(const Proof& message, Head& head) {
  ByteWriter writer(head);
  writer.write_bytes(message.invitation);
  writer.write_bytes(message.machine);
  writer.write_bytes(message.code);
}

Result<Proof> decode_proof(Bytes head) {
  Proof message;
  if (head.size() != sizeof(Proof)) return corrupt("the head of a proof is not {} bytes", sizeof(Proof));
  ByteReader reader(head);
  std::ranges::copy(reader.read_bytes(message.invitation.size()), message.invitation.begin());
  std::ranges::copy(reader.read_bytes(message.machine.size()), message.machine.begin());
  std::ranges::copy(reader.read_bytes(message.code.size()), message.code.begin());
  return message;
}

}  // namespace w5xde
