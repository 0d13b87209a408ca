#include "codec/lossless.h"

#include <fmt/format.h>
#include <libdeflate.h>
#include <lz4.h>
#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>

#include "base/errors.h"

namespace w5xde {

namespace {

struct KindTraits {
  LosslessKind kind;
  std::string_view name;
  int level_min;
  int level_max;
  int level_default;
};

constexpr KindTraits kKinds[] = {
    {LosslessKind::none, "none", 0, 0, 0},   {LosslessKind::zlib, "zlib", 1, 9, 6},
    {LosslessKind::lz4, "lz4", 1, 65537, 1}, {LosslessKind::lz4_frame, "lz4-frame", 1, 65537, 1},
    {LosslessKind::zstd, "zstd", -7, 19, 3},
};

constexpr bool each_kind_is_at_its_number() {
  for (std::size_t i = 0; i < std::size(kKinds); ++i)
    if (static_cast<std::size_t>(kKinds[i].kind) != i || !is_known(static_cast<std::uint8_t>(i)))
      return false;
  return !is_known(std::size(kKinds));
}
static_assert(each_kind_is_at_its_number());

const KindTraits& traits_of(LosslessKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string levels_of(const KindTraits& traits) {
  if (traits.kind == LosslessKind::none) return "none takes no level";
  // Zero is nobody's level: to zstd it means "the default", which is written out here.
  if (traits.level_min < 0)
    return fmt::format("{} takes {} to -1 and 1 to {}", traits.name, traits.level_min, traits.level_max);
  return fmt::format("{} takes {} to {}", traits.name, traits.level_min, traits.level_max);
}

Result<LosslessCodec> with_level(const KindTraits& traits, std::string_view digits) {
  int level = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), level);
  const bool is_number = failure == std::errc() && end == digits.data() + digits.size();
  if (!is_number || level == 0 || level < traits.level_min || level > traits.level_max)
    return invalid("'{}' is not a level of lossless codec {}: {}", digits, traits.name, levels_of(traits));
  return LosslessCodec{traits.kind, level};
}

}  // namespace

std::string_view name_of(LosslessKind kind) {
  return is_known(static_cast<std::uint8_t>(kind)) ? traits_of(kind).name : "unknown";
}

Result<LosslessCodec> parse_lossless(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto* traits = std::ranges::find(kKinds, name, &KindTraits::name);
  if (traits == std::end(kKinds))
    return invalid(
        "'{}' is not a lossless codec: use none, zlib, lz4, lz4-frame or zstd, with a level as in zstd:3",
        name);
  if (colon == std::string_view::npos) return LosslessCodec{traits->kind, traits->level_default};
  return with_level(*traits, text.substr(colon + 1));
}

std::string to_string(LosslessCodec codec) {
  if (codec.kind == LosslessKind::none) return "none";
  return fmt::format("{}:{}", name_of(codec.kind), codec.level);
}

namespace {

int nearest_level(LosslessCodec codec) {
  const KindTraits& traits = traits_of(codec.kind);
  return std::clamp(codec.level, traits.level_min, traits.level_max);
}

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
LZ4F_blockSizeID_t lz4_block_for(std::size_t raw_bytes) {
  if (raw_bytes <= 64 * 1024) return LZ4F_max64KB;
  if (raw_bytes <= 256 * 1024) return LZ4F_max256KB;
  if (raw_bytes <= 1024 * 1024) return LZ4F_max1MB;
  return LZ4F_max4MB;
}

Error too_short(LosslessKind kind, std::size_t raw_bytes) {
  return corrupt("{} stream holds fewer than the {} bytes expected", name_of(kind), raw_bytes);
}

Error too_long(LosslessKind kind, std::size_t raw_bytes) {
  return corrupt("{} stream holds more than the {} bytes expected", name_of(kind), raw_bytes);
}

Error trailing(LosslessKind kind, std::size_t bytes) {
  return corrupt("{} stream is followed by {} bytes that are not part of it", name_of(kind), bytes);
}

Error declares(LosslessKind kind, unsigned long long declared, std::size_t raw_bytes) {
  return corrupt("{} stream declares {} bytes where {} are expected", name_of(kind), declared, raw_bytes);
}

Error damaged(LosslessKind kind, std::string_view why) {
  return corrupt("{} stream is damaged: {}", name_of(kind), why);
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

struct LosslessCompressor::Contexts {
  std::size_t zlib(int level, Bytes raw, MutableBytes out) {
    auto& context = zlib_at_level_[static_cast<std::size_t>(level)];
    if (!context) context.reset(allocated(libdeflate_alloc_compressor(level)));
    return libdeflate_zlib_compress(context.get(), raw.data(), raw.size(), out.data(), out.size());
  }

  std::size_t lz4(int acceleration, Bytes raw, MutableBytes out) {
    if (raw.size() > LZ4_MAX_INPUT_SIZE) return 0;
    if (!lz4_) lz4_.reset(allocated(LZ4_createStream()));
    const int room =
        static_cast<int>(std::min<std::size_t>(out.size(), LZ4_COMPRESSBOUND(LZ4_MAX_INPUT_SIZE)));
    const int written = LZ4_compress_fast_extState(lz4_.get(), reinterpret_cast<const char*>(raw.data()),
                                                   reinterpret_cast<char*>(out.data()),
                                                   static_cast<int>(raw.size()), room, acceleration);
    return static_cast<std::size_t>(written);
  }

  std::size_t lz4_frame(int acceleration, Bytes raw, MutableBytes out) {
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
    const bool done =
        advance(LZ4F_compressBegin(context, work.data(), work.size(), &preferences)) &&
        advance(LZ4F_compressUpdate(context, work.data() + written, work.size() - written, raw.data(),
                                    raw.size(), nullptr)) &&
        advance(LZ4F_compressEnd(context, work.data() + written, work.size() - written, nullptr));
    if (!done || written > out.size()) return 0;
    std::memcpy(out.data(), work.data(), written);
    return written;
  }

  std::size_t zstd(int level, Bytes raw, MutableBytes out) {
    if (!zstd_) zstd_.reset(allocated(ZSTD_createCCtx()));
    ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel, level);
    const std::size_t written = ZSTD_compress2(zstd_.get(), out.data(), out.size(), raw.data(), raw.size());
    return ZSTD_isError(written) ? 0 : written;
  }

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

struct LosslessDecompressor::Contexts {
  Status zlib(Bytes encoded, MutableBytes raw) {
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

  Status lz4_frame(Bytes encoded, MutableBytes raw) {
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

  Status zstd(Bytes encoded, MutableBytes raw) {
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

    // In one call, matches are copied from `raw` itself: a declared window, whatever its size, costs no
    // memory.
    if (!zstd_) zstd_.reset(allocated(ZSTD_createDCtx()));
    const std::size_t written =
        ZSTD_decompressDCtx(zstd_.get(), raw.data(), raw.size(), encoded.data(), encoded.size());
    if (ZSTD_isError(written)) return damaged(kKind, ZSTD_getErrorName(written));
    if (written != raw.size()) return too_short(kKind, raw.size());
    return {};
  }

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
  return incompatible("lossless codec number {} is not known here", static_cast<int>(kind));
}

}  // namespace w5xde
