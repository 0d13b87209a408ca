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

// A raw file that is in memory; the view points into it. The header is checked, and that the elements fill
// the file exactly.
Result<TensorView> parse_idx(Bytes file);

// The same for a gzip file, unpacked into `memory`. No more is allocated than the header says and the file
// can hold.
Result<TensorView> unpack_idx(Bytes gzip_file, AlignedBuffer& memory);

// `place` is FOLDER or IMAGES,LABELS. Null for a test split that is not there: with two files, and in a
// folder that has no t10k-* files.
//
// There are at least 10 classes: every set of the family has that many, also if the last class does not occur
// in a part of it. The test split has the classes of the train split.
Result<SharedDataset> open_idx(std::string_view place, Split split);

}  // namespace w5xde
