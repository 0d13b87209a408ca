// IDX, the format of MNIST and its kin: two zero bytes, a byte for the type, a byte for the rank, the
// dimensions as big-endian u32, the elements. Only the type u8, which all of them have, is read.
#pragma once

#include <string_view>

#include "base/bytes.h"
#include "data/array_dataset.h"
#include "data/dataset.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"

namespace w5xde {

// A raw file in memory; the view points into it. The elements must fill the file exactly.
Result<TensorView> parse_idx(Bytes file);

// The same for a gzip file, unpacked into `memory`. Allocates no more than the file can hold.
Result<TensorView> unpack_idx(Bytes gzip_file, AlignedBuffer& memory);

// `place` is FOLDER or IMAGES,LABELS. Null for a test split of two files or a folder without t10k-* files.
//
// There are at least 10 classes, as in every set of the family. The test split has those of the train split.
Result<SharedDataset> open_idx(std::string_view place, Split split);

}  // namespace w5xde
