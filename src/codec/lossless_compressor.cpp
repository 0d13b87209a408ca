#include "codec/lossless_libraries.h"

#include <libdeflate.h>
#include <lz4.h>
#include <lz4frame.h>
#include <zstd.h>

#include <array>
#include <cstring>

#include "codec/lossless.h"

namespace w5xde {

struct LosslessCompressor::Contexts {
  std::size_t zlib(int level, Bytes raw, MutableBytes out);
  std::size_t lz4(int acceleration, Bytes raw, MutableBytes out);
  std::size_t lz4_frame(int acceleration, Bytes raw, MutableBytes out);
  std::size_t zstd(int level, Bytes raw, MutableBytes out);

 private:
  // libdeflate fixes the level when it allocates; the others take it per call.
  std::array<Owned<libdeflate_compressor, libdeflate_free_compressor>, 10> zlib_at_level_;
  Owned<LZ4_stream_t, LZ4_freeStream> lz4_;
  Owned<LZ4F_cctx, LZ4F_freeCompressionContext> lz4_frame_;
  AlignedBuffer lz4_frame_out_;
  Owned<ZSTD_CCtx, ZSTD_freeCCtx> zstd_;
};

LosslessCompressor::LosslessCompressor() : contexts_(std::make_unique<Contexts>()) {}
LosslessCompressor::~LosslessCompressor() = default;
LosslessCompressor::LosslessCompressor(LosslessCompressor&&) noexcept = default;
LosslessCompressor& LosslessCompressor::operator=(LosslessCompressor&&) noexcept = default;

std::size_t LosslessCompressor::compress(LosslessCodec codec, Bytes raw, MutableBytes out) {
  if (out.empty() || !is_known(static_cast<std::uint8_t>(codec.kind))) return 0;
  // The libraries want an address even for nothing.
  if (raw.empty()) raw = Bytes(out.data(), 0);
  const int level = nearest_level(codec);
  switch (codec.kind) {
    case LosslessKind::none:
      if (raw.size() > out.size()) return 0;
      std::memcpy(out.data(), raw.data(), raw.size());
      return raw.size();
    case LosslessKind::zlib:
      return contexts_->zlib(level, raw, out);
    case LosslessKind::lz4:
      return contexts_->lz4(level, raw, out);
    case LosslessKind::lz4_frame:
      return contexts_->lz4_frame(level, raw, out);
    case LosslessKind::zstd:
      return contexts_->zstd(level, raw, out);
  }
  return 0;
}

std::size_t LosslessCompressor::Contexts::zlib(int level, Bytes raw, MutableBytes out) {
  auto& context = zlib_at_level_[static_cast<std::size_t>(level)];
  if (!context) context.reset(allocated(libdeflate_alloc_compressor(level)));
  return libdeflate_zlib_compress(context.get(), raw.data(), raw.size(), out.data(), out.size());
}

std::size_t LosslessCompressor::Contexts::lz4(int acceleration, Bytes raw, MutableBytes out) {
  if (raw.size() > LZ4_MAX_INPUT_SIZE) return 0;
  if (!lz4_) lz4_.reset(allocated(LZ4_createStream()));
  const int room = static_cast<int>(std::min<std::size_t>(out.size(), LZ4_COMPRESSBOUND(LZ4_MAX_INPUT_SIZE)));
  const int written = LZ4_compress_fast_extState(lz4_.get(), reinterpret_cast<const char*>(raw.data()),
                                                 reinterpret_cast<char*>(out.data()),
                                                 static_cast<int>(raw.size()), room, acceleration);
  return static_cast<std::size_t>(written);
}

std::size_t LosslessCompressor::Contexts::lz4_frame(int acceleration, Bytes raw, MutableBytes out) {
  if (!lz4_frame_) {
    LZ4F_cctx* context = nullptr;
    LZ4F_createCompressionContext(&context, LZ4F_VERSION);
    lz4_frame_.reset(allocated(context));
  }
  LZ4F_preferences_t preferences = LZ4F_INIT_PREFERENCES;
  preferences.frameInfo.blockSizeID = lz4_block_for(raw.size());
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;
  preferences.frameInfo.contentSize = raw.size();
  preferences.compressionLevel = 1 - acceleration;  // LZ4F counts acceleration downwards from level 0
  preferences.autoFlush = 1;

  // LZ4F refuses to start unless the worst case fits, so it works in a buffer where that is so.
  const MutableBytes work = lz4_frame_out_.take(LZ4F_compressFrameBound(raw.size(), &preferences));
  std::size_t written = 0;
  const auto advance = [&](std::size_t step) {
    if (LZ4F_isError(step)) return false;
    written += step;
    return true;
  };
  LZ4F_cctx* const context = lz4_frame_.get();
  const bool done = advance(LZ4F_compressBegin(context, work.data(), work.size(), &preferences)) &&
                    advance(LZ4F_compressUpdate(context, work.data() + written, work.size() - written,
                                                raw.data(), raw.size(), nullptr)) &&
                    advance(LZ4F_compressEnd(context, work.data() + written, work.size() - written, nullptr));
  if (!done || written > out.size()) return 0;
  std::memcpy(out.data(), work.data(), written);
  return written;
}

std::size_t LosslessCompressor::Contexts::zstd(int level, Bytes raw, MutableBytes out) {
  if (!zstd_) zstd_.reset(allocated(ZSTD_createCCtx()));
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel, level);
  const std::size_t written = ZSTD_compress2(zstd_.get(), out.data(), out.size(), raw.data(), raw.size());
  return ZSTD_isError(written) ? 0 : written;
}

}  // namespace w5xde
