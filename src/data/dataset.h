#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "tensor/dtype.h"
#include "w5xde/result.h"
#include "w5xde/shape.h"

namespace w5xde {

// Samples by number: an input and a target each. Files are mapped. Any thread may read.
class Dataset {
 public:
  virtual ~Dataset() = default;

  struct Field {
    DType dtype = DType::f32;
    Shape shape;  // of one sample
    std::uint64_t sample_bytes() const { return shape.elements() * size_of(dtype); }
  };

  virtual std::uint64_t samples() const = 0;
  virtual const Field& inputs() const = 0;
  virtual const Field& targets() const = 0;
  // How many classes the targets number, 0 … classes - 1; 0 where targets are no classes.
  virtual std::uint32_t classes() const = 0;

  // Copies the samples of these numbers, each below samples(), into memory of exactly their size.
  virtual void gather(std::span<const std::uint32_t> numbers, MutableBytes inputs,
                      MutableBytes targets) const = 0;

  // This sample's number in its files: another one where this set is a part of a larger one.
  virtual std::uint32_t number_in_whole(std::uint32_t number) const { return number; }
};

enum class Split { train, test };

// Opens what --data names:
//
//   synthetic               the original's workload: 1,000 samples of 10 features in 10 classes
//   idx:FOLDER              MNIST and its kin, raw or gz; also idx:IMAGES,LABELS
//   npy:INPUTS,TARGETS      two .npy files
//   safetensors:FILE        tensors "inputs" and "targets"
//   random:FEATURES,CLASSES noise, for benchmarks; 4096 samples, or random:FEATURES,CLASSES,SAMPLES
//
// Inputs are f32, or u8, which stands for value / 255; targets are classes as u8, i32 or i64, one a sample,
// or f32 of any shape. Everything is checked here, every label too.
//
// `test` is null where there is no such split: npy, safetensors, random, idx with two files, and an idx
// folder without t10k-* files. `seed` is for what is generated: synthetic and random.
Result<std::shared_ptr<const Dataset>> open_dataset(std::string_view spec, Split split, std::uint64_t seed);

}  // namespace w5xde
