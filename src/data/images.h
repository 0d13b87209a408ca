// A folder of pictures: each of its folders is a class, in sorted order, with PNG and JPEG files in it.
//
//   images:FOLDER            pictures of one size; FOLDER/train and FOLDER/test are the splits, where there
//   are both images:FOLDER,size=64    pictures of any size: cut to a square in their middle, and scaled to 64
//   × 64
//
// Inputs are u8 pixels, [3, height, width]; [1, height, width] where all pictures of the train split are
// grey. Pictures are decoded when they are wanted, ahead of their lease.
#pragma once

#include <string_view>

#include "data/array_dataset.h"
#include "data/dataset.h"
#include "w5xde/result.h"

namespace w5xde {

Result<SharedDataset> open_images(std::string_view place, Split split, const TellProgress& progress = {});

}  // namespace w5xde
