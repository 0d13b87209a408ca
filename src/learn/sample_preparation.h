// What a run does with its samples before a model sees them (w5xde/sample_preparation.h), as functions of
// bytes and seeds: the same for every engine, and whoever computes a slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "w5xde/engine.h"
#include "w5xde/result.h"
#include "w5xde/sample_preparation.h"

namespace w5xde {

// The number of the input that it is done to: the only one that is numbers. `invalid`, with what to do, where
// there is none or several, where a crop or a flip is asked for and the input is no image or the targets are
// one too, and where there are other channels than numbers for them.
Result<std::size_t> prepared_input(const SamplePreparation& preparation, std::span<const SampleField> inputs,
                                   const SampleField& targets);

// What a model is given in place of that input.
SampleField prepared_field(const SamplePreparation& preparation, SampleField field);

// The draws of a slot's crops and flips. Not the stream of the slot's seed itself, which is the model's.
inline Random preparation_draws(std::uint64_t slot_seed) {
  constexpr std::uint64_t kPart = 0x6e7365;
  return Random(mix(slot_seed, kPart));
}

// Prepares the samples `from`, each of `field`'s shape, of any dtype that is numbers there, into `memory`,
// and gives what they are then. `draws`: of the slot, in training; null in evaluation, which has no crop and
// no flip. The draws of a sample depend on the slot's seed and on its place in the slot alone.
SampleTensor prepare_samples(const SamplePreparation& preparation, const SampleField& field,
                             const SampleTensor& from, Random* draws, std::vector<std::byte>& memory);

}  // namespace w5xde
