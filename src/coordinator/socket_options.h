#pragma once

#include "net/tcp.h"
#include "run/transport.h"

namespace w5xde {

// A session's socket as the run's configuration asks for it.
inline SocketOptions socket_options(const Transport& transport) {
  return {.quick_ack = transport.quick_ack,
          .keep_alive = transport.keep_alive,
          .send_buffer_bytes = transport.socket_buffer,
          .receive_buffer_bytes = transport.socket_buffer,
          .receive_chunk_bytes = transport.receive_chunk,
          .combined_send = transport.combined_send};
}

}  // namespace w5xde
