#include <fmt/format.h>
#include <libdeflate.h>
#include <lz4.h>
#include <lz4frame.h>
#include <zstd.h>

#include <cstring>
#include <limits>

#include "codec/lossless.h"
#include "codec/lossless_libraries.h"

namespace w5xde {

namespace {

Error too_short(LosslessKind kind, std::size_t raw_bytes) {
  return corrupt(fmt::format("{} stream holds fewer than the {} bytes expected", name_of(kind), raw_bytes));
}

Error too_long(LosslessKind kind, std::size_t raw_bytes) {
  return corrupt(fmt::format("{} stream holds more than the {} bytes expected", name_of(kind), raw_bytes));
}

Error trailing(LosslessKind kind, std::size_t bytes) {
  return corrupt(
      fmt::format("{} stream is followed by {} bytes that are not part of it", name_of(kind), bytes));
}

Error declares(LosslessKind kind, unsigned long long declared, std::size_t raw_bytes) {
  return corrupt(
      fmt::format("{} stream declares {} bytes where {} are expected", name_of(kind), declared, raw_bytes));
}

Error damaged(LosslessKind kind, std::string_view why) {
  return corrupt(fmt::format("{} stream is damaged: {}", name_of(kind), why));
}

Status copy(Bytes encoded, MutableBytes raw) {
  if (encoded.size() < raw.size()) return too_short(LosslessKind::none, raw.size());
  if (encoded.size() > raw.size()) return too_long(LosslessKind::none, raw.size());
  std::memcpy(raw.data(), encoded.data(), raw.size());
  return {};
}

Status decompress_lz4(Bytes encoded, MutableBytes raw) {
  if (raw.size() > LZ4_MAX_INPUT_SIZE || encoded.size() > std::numeric_limits<int>::max())
    return damaged(LosslessKind::lz4, "it is larger than a block can be");
  const int written =
      LZ4_decompress_safe(reinterpret_cast<const char*>(encoded.data()), reinterpret_cast<char*>(raw.data()),
                          static_cast<int>(encoded.size()), static_cast<int>(raw.size()));
  // A block carries no length, so one that is too long cannot be told from one that is garbage.
  if (written < 0)
    return damaged(LosslessKind::lz4, fmt::format("it makes no sense, or no room, for {} bytes", raw.size()));
  if (static_cast<std::size_t>(written) < raw.size()) return too_short(LosslessKind::lz4, raw.size());
  return {};
}

}  // namespace

struct LosslessDecompressor::Contexts {
  Status zlib(Bytes encoded, MutableBytes raw);
  Status lz4_frame(Bytes encoded, MutableBytes raw);
  Status zstd(Bytes encoded, MutableBytes raw);

 private:
  Owned<libdeflate_decompressor, libdeflate_free_decompressor> zlib_;
  Owned<LZ4F_dctx, LZ4F_freeDecompressionContext> lz4_frame_;
  Owned<ZSTD_DCtx, ZSTD_freeDCtx> zstd_;
};

LosslessDecompressor::LosslessDecompressor() : contexts_(std::make_unique<Contexts>()) {}
LosslessDecompressor::~LosslessDecompressor() = default;
LosslessDecompressor::LosslessDecompressor(LosslessDecompressor&&) noexcept = default;
LosslessDecompressor& LosslessDecompressor::operator=(LosslessDecompressor&&) noexcept = default;

Status LosslessDecompressor::decompress(LosslessKind kind, Bytes encoded, MutableBytes raw) {
  // The libraries want an address even for nothing.
  std::byte nothing{};
  if (raw.empty()) raw = MutableBytes(&nothing, 0);
  if (encoded.empty()) encoded = Bytes(&nothing, 0);
  switch (kind) {
    case LosslessKind::none:
      return copy(encoded, raw);
    case LosslessKind::zlib:
      return contexts_->zlib(encoded, raw);
    case LosslessKind::lz4:
      return decompress_lz4(encoded, raw);
    case LosslessKind::lz4_frame:
      return contexts_->lz4_frame(encoded, raw);
    case LosslessKind::zstd:
      return contexts_->zstd(encoded, raw);
  }
  return incompatible(fmt::format("lossless codec number {} is not known here", static_cast<int>(kind)));
}

Status LosslessDecompressor::Contexts::zlib(Bytes encoded, MutableBytes raw) {
  constexpr auto kKind = LosslessKind::zlib;
  if (!zlib_) zlib_.reset(allocated(libdeflate_alloc_decompressor()));
  std::size_t used = 0;
  // Without an out-parameter for the bytes written, libdeflate insists on filling `raw`.
  switch (libdeflate_zlib_decompress_ex(zlib_.get(), encoded.data(), encoded.size(), raw.data(), raw.size(),
                                        &used, nullptr)) {
    case LIBDEFLATE_SUCCESS:
      break;
    case LIBDEFLATE_SHORT_OUTPUT:
      return too_short(kKind, raw.size());
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return too_long(kKind, raw.size());
    case LIBDEFLATE_BAD_DATA:
      return damaged(kKind, "bad header, code or checksum, or cut off");
  }
  if (used != encoded.size()) return trailing(kKind, encoded.size() - used);
  return {};
}

Status LosslessDecompressor::Contexts::lz4_frame(Bytes encoded, MutableBytes raw) {
  constexpr auto kKind = LosslessKind::lz4_frame;
  if (!lz4_frame_) {
    LZ4F_dctx* context = nullptr;
    LZ4F_createDecompressionContext(&context, LZ4F_VERSION);
    lz4_frame_.reset(allocated(context));
  }
  LZ4F_dctx* const context = lz4_frame_.get();
  LZ4F_resetDecompressionContext(context);

  LZ4F_frameInfo_t info = LZ4F_INIT_FRAMEINFO;
  std::size_t header_bytes = encoded.size();
  const std::size_t parsed = LZ4F_getFrameInfo(context, &info, encoded.data(), &header_bytes);
  if (LZ4F_isError(parsed)) return damaged(kKind, LZ4F_getErrorName(parsed));
  if (info.frameType != LZ4F_frame) return damaged(kKind, "a skippable frame holds no data");
  if (info.contentSize != raw.size()) return declares(kKind, info.contentSize, raw.size());
  if (info.blockSizeID > lz4_block_for(raw.size()))
    return damaged(kKind, fmt::format("its blocks are larger than {} bytes can need", raw.size()));

  const Bytes blocks = encoded.subspan(header_bytes);
  std::size_t used = blocks.size();
  std::size_t written = raw.size();
  const std::size_t missing = LZ4F_decompress(context, raw.data(), &written, blocks.data(), &used, nullptr);
  if (LZ4F_isError(missing)) return damaged(kKind, LZ4F_getErrorName(missing));
  if (missing != 0)
    return used == blocks.size() ? damaged(kKind, "it is cut off") : too_long(kKind, raw.size());
  if (written != raw.size()) return too_short(kKind, raw.size());
  if (used != blocks.size()) return trailing(kKind, blocks.size() - used);
  return {};
}

Status LosslessDecompressor::Contexts::zstd(Bytes encoded, MutableBytes raw) {
  constexpr auto kKind = LosslessKind::zstd;
  // The library also reads skippable frames, and formats older than 1.0 with decoders of their own where it
  // was built so; neither belongs here.
  if (encoded.size() < sizeof(std::uint32_t) || load<std::uint32_t>(encoded.data()) != ZSTD_MAGICNUMBER)
    return damaged(kKind, "it does not start with a frame");
  const unsigned long long declared = ZSTD_getFrameContentSize(encoded.data(), encoded.size());
  if (declared == ZSTD_CONTENTSIZE_ERROR)
    return damaged(kKind, "its frame header is cut off or makes no sense");
  if (declared == ZSTD_CONTENTSIZE_UNKNOWN)
    return damaged(kKind, "it does not declare how many bytes it holds");
  if (declared != raw.size()) return declares(kKind, declared, raw.size());
  // The library would go on into a second frame.
  const std::size_t frame_bytes = ZSTD_findFrameCompressedSize(encoded.data(), encoded.size());
  if (ZSTD_isError(frame_bytes)) return damaged(kKind, ZSTD_getErrorName(frame_bytes));
  if (frame_bytes != encoded.size()) return trailing(kKind, encoded.size() - frame_bytes);

  // In one call, matches are copied from `raw` itself: a declared window, whatever its size, costs no memory.
  if (!zstd_) zstd_.reset(allocated(ZSTD_createDCtx()));
  const std::size_t written =
      ZSTD_decompressDCtx(zstd_.get(), raw.data(), raw.size(), encoded.data(), encoded.size());
  if (ZSTD_isError(written)) return damaged(kKind, ZSTD_getErrorName(written));
  if (written != raw.size()) return too_short(kKind, raw.size());
  return {};
}

}  // namespace w5xde
