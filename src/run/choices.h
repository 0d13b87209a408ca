// What a setting may be, as types. This is the one place that reads and prints them: the command line,
// run.toml and --json spell a choice as these functions do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codec/gradient.h"
#include "codec/lossless.h"
#include "learn/global_batch.h"
#include "w5xde/result.h"

namespace w5xde {

enum class Loss : std::uint8_t {
  automatic,  // what the model and the data ask for (ModelOptions::loss)
  cross_entropy,
  mse,
  own,  // a TorchScript file's forward(inputs, targets) gives it
};

enum class Serialization : std::uint8_t {
  direct,   // tensors travel as their own bytes
  generic,  // number by number
};

// Whether nodes keep the samples that they were sent, so that each sample crosses their link once.
enum class SampleCaching : std::uint8_t { automatic, on, off };  // automatic: on behind slow links

// Who takes part in a step.
enum class WhoWorks : std::uint8_t {
  fastest,  // as many nodes as make a step faster
  all,
};

// A codec that was named, or automatic: the run measures and chooses.
template <class Codec>
struct Choice {
  Codec codec = {};  // none where the choice is automatic: a run begins with that
  bool automatic = false;

  bool operator==(const Choice&) const = default;
};
using LosslessChoice = Choice<LosslessCodec>;
using GradientChoice = Choice<GradientCodec>;

Result<Loss> parse_loss(std::string_view text);
Result<Serialization> parse_serialization(std::string_view text);
Result<SampleCaching> parse_sample_cache(std::string_view text);
Result<WhoWorks> parse_who_works(std::string_view text);
Result<BatchPolicy> parse_batch_policy(std::string_view text);
Result<RateScaling> parse_rate_scaling(std::string_view text);
Result<LosslessChoice> parse_lossless_choice(std::string_view text);
// nullopt: the same as in the other direction.
Result<std::optional<LosslessChoice>> parse_lossless_or_same(std::string_view text);
Result<GradientChoice> parse_gradient_choice(std::string_view text);

// What the functions above read back as the same choice.
std::string_view name_of(Loss loss);
std::string_view name_of(Serialization serialization);
std::string_view name_of(SampleCaching caching);
std::string_view name_of(WhoWorks who);
std::string_view name_of(BatchPolicy policy);
std::string_view name_of(RateScaling scaling);
std::string to_string(const LosslessChoice& choice);
std::string to_string(const std::optional<LosslessChoice>& choice);
std::string to_string(const GradientChoice& choice);

}  // namespace w5xde
