// A model's weights by the names of its state dict: what `w5xde export` writes, and what --init reads.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "record/checkpoint.h"
#include "tensor/safetensors.h"
#include "w5xde/block_layout.h"
#include "w5xde/result.h"

namespace w5xde {

struct Weights {
  std::string source;  // for errors
  std::vector<NamedTensor> tensors;
  std::shared_ptr<const void> memory;  // where the tensors are
};

// A checkpoint's parameters and buffers; and the parameters that its run does not train, which are in
// `frozen` if that file is there (RunFolder::frozen_file).
Result<Weights> weights_of(const CheckpointFile& checkpoint, const std::filesystem::path& frozen);

// `source` is a safetensors file by the names of a state dict, a checkpoint's file, or the folder of a run:
// its best checkpoint if there is one, else its newest.
Result<Weights> open_weights(const std::filesystem::path& source);

// Writes them where the layouts have them; `state` has the parameters, then the buffers. Whole numbers that
// the model does not have (PyTorch's counters) are left out. When anything else is missing or left over, has
// another shape or is not finite, that is `invalid`, names it, and leaves the state as it was.
Status take_weights(const Weights& weights, const BlockLayout& parameters, const BlockLayout& buffers,
                    std::span<float> state);

}  // namespace w5xde
