// What the two directions of lossless.h share; private to this folder.
#pragma once

#include <lz4frame.h>

#include <cstddef>
#include <memory>
#include <new>

#include "codec/lossless.h"

namespace w5xde {

int nearest_level(LosslessCodec codec);

template <auto release>
struct Release {
  template <class Context>
  void operator()(Context* context) const {
    release(context);
  }
};

// A C library's context that frees itself.
template <class Context, auto release>
using Owned = std::unique_ptr<Context, Release<release>>;

// The libraries answer null where C++ throws.
template <class Context>
Context* allocated(Context* context) {
  if (context == nullptr) throw std::bad_alloc();
  return context;
}

// The smallest lz4 frame block that holds `raw_bytes`, or the largest there is. A frame declares its block
// size and the library allocates by it, so the compressor declares no more than this and the decompressor
// accepts no more.
inline LZ4F_blockSizeID_t lz4_block_for(std::size_t raw_bytes) {
  if (raw_bytes <= 64 * 1024) return LZ4F_max64KB;
  if (raw_bytes <= 256 * 1024) return LZ4F_max256KB;
  if (raw_bytes <= 1024 * 1024) return LZ4F_max1MB;
  return LZ4F_max4MB;
}

}  // namespace w5xde
