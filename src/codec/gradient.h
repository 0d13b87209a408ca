// Lossy codecs for gradients: floats in, far fewer bytes out, nearly the same floats back. What a stage
// drops is kept as error feedback: the encoder adds it to the next gradient, so that over time everything
// arrives.
//
//   codec          bytes of n floats       loses, of a chunk whose largest magnitude is M
//   fp16           2n                      2^-11 of each value, or 2^-25 M
//   bf16           2n                      2^-8 of each value
//   int8           n                       M / 254
//   onebit         n / 8                   all but signs and the two means; feedback
//   topk:DENSITY   about 6 DENSITY n       all but the largest; feedback, with momentum correction
//   powersgd:RANK  4 RANK (rows + columns) all but the RANK main directions of each matrix; feedback
//
// fp16 and bf16 have no state: the same floats give the same bytes, whoever encodes them. A gradient with
// NaN or infinity also arrives with one, and does not change the feedback. Decoding never
// trusts its input.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "tensor/parameter_block.h"
#include "w5xde/result.h"

namespace w5xde {

enum class GradientKind : std::uint8_t {
  none = 0,
  fp16 = 1,
  bf16 = 2,
  int8 = 3,
  onebit = 4,
  topk = 5,
  powersgd = 6,
};
inline constexpr GradientKind kGradientKindLast = GradientKind::powersgd;

inline constexpr std::uint64_t kGradientChunk = 1024;

struct GradientCodec {
  GradientKind kind = GradientKind::none;
  double density = 0;      // topk: the part of all floats that travels
  std::uint32_t rank = 0;  // powersgd

  bool stateless() const {
    return kind == GradientKind::none || kind == GradientKind::fp16 || kind == GradientKind::bf16;
  }
  // Codes kGradientChunk floats after the other, each chunk by itself: a part of a block that begins with a
  // chunk is a part of its bytes.
  bool by_chunks() const { return stateless() || kind == GradientKind::int8; }
  bool operator==(const GradientCodec&) const = default;
};

// "none", "fp16", "bf16", "int8", "onebit", "topk:0.01", "powersgd:4"; topk alone is 0.01, powersgd alone 4.
Result<GradientCodec> parse_gradient_codec(std::string_view text);
// What parse_gradient_codec reads back as the same codec.
std::string to_string(const GradientCodec& codec);

// No encoding of a block of that layout is longer: a receiver's limit before it takes memory.
std::uint64_t encoded_bytes_max(const GradientCodec& codec, const BlockLayout& layout);

// How long it usually is. For topk, as if the largest floats were spread evenly; the others have one length.
std::uint64_t encoded_bytes_usual(const GradientCodec& codec, const BlockLayout& layout);

// The bytes that `floats` floats take with a codec that works by chunks.
std::uint64_t chunked_bytes(const GradientCodec& codec, std::uint64_t floats);
// Fills `out`, which has that many bytes. Without error feedback: what is lost is the caller's business.
void encode_chunks(std::span<const float> values, const GradientCodec& codec, MutableBytes out);
Status decode_chunks(Bytes encoded, const GradientCodec& codec, std::span<float> values);

// Encodes the gradients of one node, one after the other, with the error feedback between them. Allocates
// nothing once warm. One thread at a time.
class GradientEncoder {
 public:
  // `momentum` is the run's, for topk: it acts on what is held back as it would have in the optimizer. 0
  // where the optimizer has none, or applies it itself.
  GradientEncoder(const GradientCodec& codec, std::shared_ptr<const BlockLayout> layout, float momentum = 0);
  ~GradientEncoder();
  GradientEncoder(GradientEncoder&&) noexcept;
  GradientEncoder& operator=(GradientEncoder&&) noexcept;

  // The bytes of a block of the layout's floats; valid until the next call. Momentum decays once a step: a
  // second gradient of the same step (`same_step`) does not decay it.
  Bytes encode(std::span<const float> gradient, bool same_step = false);

  // The same into the caller's memory, which has encoded_bytes_max() bytes and does not overlap `gradient`.
  // Returns the part that was filled.
  Bytes encode_into(MutableBytes out, std::span<const float> gradient, bool same_step = false);

  // Continues with another codec. The feedback is kept, and waits while the codec is stateless;
  // velocity has a meaning for topk with momentum only.
  void set_codec(const GradientCodec& codec);

  // The error feedback, to be saved or handed over: the residual, a block of the layout's floats,
  // and after it the velocity, another one, where there is one. Empty where nothing is kept. Valid until the
  // next call.
  std::span<const float> feedback() const;

  // Adds the feedback of another encoder of this layout, or a checkpoint's; a single block is a residual.
  // Both are sums, so nothing is lost. A float whose sum is not finite stays as it was.
  void add_feedback(std::span<const float> feedback);

  // Undoes the last encode(): the feedback is as before it, plus what was added since.
  void take_back();
  // What take_back() would add to the feedback. Taken before the next encode(), it can undo this one later,
  // with add_feedback(): exact for the residual except for rounding, while velocity stays faded. Empty where
  // there is nothing to undo.
  std::vector<float> last_change() const;

  // Each gradient by itself, without feedback, for callers that keep what is lost in another way. An encoder
  // is used either like this or with feedback.
  Bytes encode_fresh_into(MutableBytes out, std::span<const float> gradient);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Fills `gradient`, a block of the layout's floats, its padding with zeros. Corrupt when the bytes are not
// such a block's; what `gradient` then holds is undefined.
Status decode_gradient(Bytes encoded, const GradientCodec& codec, const BlockLayout& layout,
                       std::span<float> gradient);

}  // namespace w5xde
