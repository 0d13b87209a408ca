#include "data/gzip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/limits.h"

namespace w5xde {

namespace {

constexpr std::size_t kPieceBytesMax = kGiB;  // fits zlib's 32-bit counts
constexpr int kGzipOnly = 16 + MAX_WBITS;

}  // namespace

bool is_gzip(Bytes file) {
  return file.size() >= 2 && file[0] == std::byte{0x1f} && file[1] == std::byte{0x8b};
}

void GzipReader::Close::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

GzipReader::GzipReader(Bytes file) : rest_(file) {
  auto stream = std::make_unique<z_stream>();
  // It can only fail for want of memory, a kilobyte or so.
  if (inflateInit2(stream.get(), kGzipOnly) != Z_OK) throw std::bad_alloc();
  stream_.reset(stream.release());
}

Result<std::size_t> GzipReader::inflate_some(MutableBytes out) {
  if (stream_->avail_in == 0) {
    const Bytes piece = rest_.first(std::min(rest_.size(), kPieceBytesMax));
    rest_ = rest_.subspan(piece.size());
    // zlib only reads there, but says so only when built with ZLIB_CONST.
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));
    stream_->avail_in = static_cast<uInt>(piece.size());
  }
  const std::size_t room = std::min(out.size(), kPieceBytesMax);
  stream_->next_out = reinterpret_cast<Bytef*>(out.data());
  stream_->avail_out = static_cast<uInt>(room);
  const int code = inflate(stream_.get(), Z_NO_FLUSH);
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  if (code == Z_BUF_ERROR) return corrupt("the gzip file is cut short; get it again");
  if (code != Z_OK && code != Z_STREAM_END)
    return corrupt("the gzip file is damaged ({}); get it again",
                   stream_->msg != nullptr ? stream_->msg : "unknown reason");
  ended_ = code == Z_STREAM_END;
  return room - stream_->avail_out;
}

Status GzipReader::read(MutableBytes out) {
  const std::size_t wanted = out.size();
  while (!out.empty() && !ended_) {
    W5XDE_TRY(const std::size_t made, inflate_some(out));
    out = out.subspan(made);
  }
  if (out.empty()) return {};
  return corrupt("unpacked, the gzip file ends {} bytes into a piece of {}", wanted - out.size(), wanted);
}

Status GzipReader::finish() {
  while (!ended_) {
    std::array<std::byte, 1> surplus{};
    W5XDE_TRY(const std::size_t made, inflate_some(surplus));
    if (made != 0) return corrupt("unpacked, the gzip file has more bytes than its contents say");
  }
  if (stream_->avail_in != 0 || !rest_.empty())
    return corrupt(
        "bytes follow the end of the gzip file's data; unpack it with gunzip to see what they are");
  return {};
}

}  // namespace w5xde
