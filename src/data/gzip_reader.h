#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "w5xde/result.h"

struct z_stream_s;

namespace w5xde {

// Deflate cannot make more than this of a byte, so a file that claims more is lying.
inline constexpr std::uint64_t kGzipRatioMax = 1032;

bool is_gzip(Bytes file);

// Reads a gzip file in memory from front to back; the caller says how much it wants, so a small file that
// unpacks to a huge one costs nothing. One thread. Of no use after an error.
class GzipReader {
 public:
  explicit GzipReader(Bytes file);

  // The next out.size() bytes; an error where the file is damaged or has no more.
  Status read(MutableBytes out);
  // Checks that everything was read, and the file's own checksum.
  Status finish();

 private:
  struct Close {
    void operator()(z_stream_s* stream) const;
  };

  // Runs once over what room there is in `out`, and says how many bytes it made.
  Result<std::size_t> inflate_some(MutableBytes out);

  Bytes rest_;  // not yet shown to zlib, which counts in 32 bits
  bool ended_ = false;
  std::unique_ptr<z_stream_s, Close> stream_;
};

}  // namespace w5xde
