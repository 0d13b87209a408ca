#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/tell_progress.h"
#include "w5xde/result.h"
#include "w5xde/sample_field.h"

namespace w5xde {

// Samples by number: one or more named inputs and targets each. Files are mapped. Any thread may read.
//
// A new source of data is a file of its own in this folder, with its test, and a line of kSources in
// dataset.cpp; docs/models_and_data.md says how a user writes it. There are two ways to make one:
//
//   - what fits in memory or in a mapped file becomes arrays, and make_array_dataset (array_dataset.h) does
//   the
//     rest: fields, classes, every check. npy.cpp is an example, generated.cpp a short one
//   - what is decoded sample by sample (a folder of image files) is a class of its own. windows.cpp is an
//     example. Its fields say the dtype that it gathers: u8 with `pixels` for images, so that a byte travels
//     and not a float. `ids` is largest + 1 where that is known, so that a model with too small a vocabulary
//     is refused before a run begins
//
// Whoever opens a source checks all that can be checked at once, and says which file and which sample is
// wrong, and what to do. What shows only in gather() is its error, which ends the run: after it is mended the
// run goes on from its last checkpoint. gather() gives the same bytes for the same number every time.
class Dataset {
 public:
  virtual ~Dataset() = default;

  using Field = SampleField;

  virtual std::uint64_t samples() const = 0;  // 1 … 2^32 - 1
  // 1 … kInputsMax of them, each with a name of its own. Their order is that of their memory in gather().
  virtual std::span<const Field> inputs() const = 0;
  virtual const Field& targets() const = 0;
  // How many classes the targets number, 0 … classes - 1: labels, or a vocabulary. 0 where targets are no
  // classes.
  virtual std::uint32_t classes() const = 0;

  // What its numbers stand for, where its files say it in words: the columns in their order, then a line for
  // each class or category, "kind: flat, house, villa". Sets with different lines are not alike.
  virtual std::vector<std::string> legend() const { return {}; }

  // Whether gather() takes milliseconds a sample, because it decodes. Such samples are gathered beside the
  // coordinator's loop, on several threads and ahead of their lease.
  virtual bool gathers_slowly() const { return false; }

  // Copies the samples of these numbers, each below samples(), into memory of exactly their size: one piece
  // for each input, and the targets'. Numbers come in any order, and more than once.
  virtual Status gather(std::span<const std::uint32_t> numbers, std::span<const MutableBytes> inputs,
                        MutableBytes targets) const = 0;

  // Of one sample, all inputs and targets.
  std::uint64_t sample_bytes() const {
    std::uint64_t bytes = targets().sample_bytes();
    for (const Field& input : inputs()) bytes += input.sample_bytes();
    return bytes;
  }
  std::uint64_t sample_numbers() const {
    std::uint64_t numbers = targets().shape.elements();
    for (const Field& input : inputs()) numbers += input.shape.elements();
    return numbers;
  }

  // This sample's number in its files: another one where this set is a part of a larger one.
  virtual std::uint32_t number_in_whole(std::uint32_t number) const { return number; }
};

// `evaluation`: of a data set that was named to evaluate on. Its test split where it has one, else all of it;
// of text and tokens, whose test split is only the end of their file, all.
enum class Split { train, test, evaluation };

// Opens what --data names:
//
//   synthetic               the original's workload: 1,000 samples of 10 features in 10 classes
//   idx:FOLDER              MNIST and its kin, raw or gz; also idx:IMAGES,LABELS
//   npy:X[,MORE],Y          .npy files: inputs, then targets
//   safetensors:FILE        tensors "targets" and all others, which are inputs
//   cifar10:FOLDER          its binary files
//   csv:FILE?label=COLUMN   a table (csv.h)
//   images:FOLDER[,size=N]  a folder a class, with PNG and JPEG files (images.h)
//   text:FILE[,context=N]   a language model's: bytes, and the byte after each
//   tokens:FILE[,context=N] the same of ids
//   random:FEATURES,CLASSES noise, for benchmarks; 4096 samples, or random:FEATURES,CLASSES,SAMPLES
//
// Everything is checked here, every label too. `ignored`: targets may be this, which is no class.
//
// `test` is null where there is no such split: csv, npy, safetensors, random, idx with two files, an idx
// folder without t10k-* files, an images folder without train and test, and a text that is short. `seed` is
// for what is generated: synthetic and random. What has to be read whole, or has many files, tells
// `progress`.
Result<std::shared_ptr<const Dataset>> open_dataset(std::string_view spec, Split split, std::uint64_t seed,
                                                    std::optional<std::int64_t> ignored = std::nullopt,
                                                    const TellProgress& progress = {});

// Where targets are classes: a row of them for each sample, as language models have it.
inline bool is_sequence(const SampleField& targets) {
  return targets.shape.rank() == 1;
}

// Whether a model that is trained on the one can be evaluated on the other.
Status check_alike(const Dataset& training, const Dataset& evaluation);

}  // namespace w5xde
