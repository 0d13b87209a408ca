#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "net/stream.h"

namespace w5xde {

// Two ends of a stream inside the process, each direction holding at most `capacity` bytes. Both live on one
// loop. With a SimLoop, whole pools run in it deterministically.
std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> make_memory_streams(Loop& loop,
                                                                                std::size_t capacity);

}  // namespace w5xde
