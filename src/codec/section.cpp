#include "codec/section.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <optional>

#include "base/errors.h"
#include "codec/shuffle.h"

namespace w5xde {

namespace {

// How raw bytes fall into chunks.
struct Chunks {
  std::size_t raw_bytes;
  std::uint8_t log2;

  std::size_t chunk_bytes() const { return std::size_t{1} << log2; }
  std::size_t count() const { return chunk_count(raw_bytes, log2); }
  std::size_t table_bytes() const { return count() * sizeof(std::uint32_t); }
  std::size_t start_of(std::size_t chunk) const { return chunk << log2; }
  std::size_t bytes_of(std::size_t chunk) const {
    return std::min(chunk_bytes(), raw_bytes - start_of(chunk));
  }

  template <class Span>
  Span cut(Span whole, std::size_t chunk) const {
    return whole.subspan(start_of(chunk), bytes_of(chunk));
  }
};

std::size_t lanes_for(std::size_t chunks, const ThreadPool* pool) {
  return std::min(chunks, pool == nullptr ? 1 : pool->size() + 1);
}

// Calls body(lane, chunk) for chunks in order, each once, and never twice at a time for one lane, until one
// answers false. Chunks before that one have been started by then, and are finished too.
template <class Body>
void for_each_chunk(std::size_t chunks, std::size_t lanes, ThreadPool* pool, const Body& body) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stopped = false;
  const auto work = [&](std::size_t lane) {
    while (!stopped) {
      const std::size_t chunk = next++;
      if (chunk >= chunks) return;
      if (!body(lane, chunk)) stopped = true;
    }
  };
  // A pool costs a thread hop, which one chunk must not pay.
  if (lanes <= 1) {
    work(0);
  } else {
    pool->for_each(lanes, work);
  }
}

}  // namespace

struct SectionEncoder::Lane {
  // Returns the chunk's encoded size; `slot` is as long as `raw`.
  std::size_t encode(Bytes raw, const SectionCodec& codec, MutableBytes slot) {
    Bytes source = raw;
    if (codec.shuffle_width != 0) {
      const MutableBytes planes = shuffled.take(raw.size());
      shuffle(raw, codec.shuffle_width, planes);
      source = planes;
    }
    // One byte short: a stream as long as its raw bytes would read as stored.
    const std::size_t written = compressor.compress(codec.lossless, source, slot.first(slot.size() - 1));
    return written != 0 ? written : store_raw(raw, slot);
  }

  static std::size_t store_raw(Bytes raw, MutableBytes slot) {
    std::memcpy(slot.data(), raw.data(), raw.size());
    return raw.size();
  }

  LosslessCompressor compressor;
  AlignedBuffer shuffled;
};

SectionEncoder::SectionEncoder() = default;
SectionEncoder::~SectionEncoder() = default;

Bytes SectionEncoder::encode(Bytes raw, const SectionCodec& codec, ThreadPool* pool, Tried tried) {
  return encode_into(out_.take(section_bytes_max(raw.size(), codec.chunk_log2)), raw, codec, pool, tried);
}

Bytes SectionEncoder::encode_into(MutableBytes out, Bytes raw, const SectionCodec& codec, ThreadPool* pool,
                                  Tried tried) {
  assert(codec.chunk_log2 >= kChunkLog2Min && codec.chunk_log2 <= kChunkLog2Max);
  assert(is_shuffle_width(codec.shuffle_width));
  assert(out.size() >= section_bytes_max(raw.size(), codec.chunk_log2));
  const Chunks chunks{raw.size(), codec.chunk_log2};
  assert(tried.empty() || tried.size() == chunks.count());
  const std::size_t lanes = lanes_for(chunks.count(), pool);
  if (lanes_.size() < lanes) lanes_.resize(lanes);
  chunk_bytes_.resize(chunks.count());

  store(out.data(), codec.chunk_log2);
  std::byte* const table = out.data() + 1;
  const MutableBytes slots = out.subspan(1 + chunks.table_bytes());
  for_each_chunk(chunks.count(), lanes, pool, [&](std::size_t lane, std::size_t chunk) {
    const Bytes from = chunks.cut(raw, chunk);
    const MutableBytes slot = chunks.cut(slots, chunk);
    const std::size_t size = tried.empty() || tried[chunk] != 0 ? lanes_[lane].encode(from, codec, slot)
                                                                : Lane::store_raw(from, slot);
    chunk_bytes_[chunk] = static_cast<std::uint32_t>(size);
    return true;
  });

  if (!chunk_bytes_.empty())
    std::memcpy(table, chunk_bytes_.data(), chunk_bytes_.size() * sizeof(std::uint32_t));
  // Each chunk was written where it would start if none had shrunk; close the gaps.
  std::size_t end = 0;
  for (std::size_t chunk = 0; chunk < chunks.count(); ++chunk) {
    if (end != chunks.start_of(chunk))
      std::memmove(slots.data() + end, slots.data() + chunks.start_of(chunk), chunk_bytes_[chunk]);
    end += chunk_bytes_[chunk];
  }
  return out.first(1 + chunks.table_bytes() + end);
}

// What every chunk of one section has in common.
struct SectionDecoder::Job {
  LosslessKind kind;
  std::uint8_t shuffle_width;
  Chunks chunks;
  Bytes encoded;  // the chunks, without the table
  MutableBytes raw;
};

struct SectionDecoder::Lane {
  Status decode(const Job& job, Bytes encoded, MutableBytes raw) {
    if (encoded.size() == raw.size()) {
      std::memcpy(raw.data(), encoded.data(), raw.size());
      return {};
    }
    if (job.shuffle_width == 0) return decompressor.decompress(job.kind, encoded, raw);
    const MutableBytes planes = shuffled.take(raw.size());
    W5XDE_CHECK(decompressor.decompress(job.kind, encoded, planes));
    unshuffle(planes, job.shuffle_width, raw);
    return {};
  }

  LosslessDecompressor decompressor;
  AlignedBuffer shuffled;
  std::size_t failed_chunk = 0;
  std::optional<Error> failure;
};

namespace {

// Proves the table against what is there and what is expected, and turns its sizes into the chunks' ends.
Status read_table(Bytes table, std::size_t encoded_bytes, const Chunks& chunks,
                  std::vector<std::size_t>& ends) {
  ends.resize(chunks.count());
  std::size_t end = 0;
  for (std::size_t chunk = 0; chunk < chunks.count(); ++chunk) {
    const auto size = load<std::uint32_t>(table.data() + chunk * sizeof(std::uint32_t));
    if (size == 0 || size > chunks.bytes_of(chunk))
      return corrupt("chunk {} of {} has an encoded size of {} for {} raw bytes", chunk + 1, chunks.count(),
                     size, chunks.bytes_of(chunk));
    end += size;
    ends[chunk] = end;
  }
  if (end != encoded_bytes)
    return corrupt("section's chunks add up to {} bytes and {} are there", end, encoded_bytes);
  return {};
}

}  // namespace

SectionDecoder::SectionDecoder() = default;
SectionDecoder::~SectionDecoder() = default;

Status SectionDecoder::decode(Bytes encoded, LosslessKind kind, std::uint8_t shuffle_width, MutableBytes raw,
                              ThreadPool* pool) {
  if (kind == LosslessKind::none)
    return invalid("a section needs a lossless codec, and 'none' is not sent as one");
  if (!is_known(static_cast<std::uint8_t>(kind)))
    return incompatible("lossless codec number {} is not known here", static_cast<int>(kind));
  if (!is_shuffle_width(shuffle_width))
    return incompatible("shuffle width {} is not known here", shuffle_width);

  if (encoded.empty()) return corrupt("section is empty");
  const Chunks chunks{raw.size(), load<std::uint8_t>(encoded.data())};
  if (chunks.log2 < kChunkLog2Min || chunks.log2 > kChunkLog2Max)
    return corrupt("section's chunk_log2 is {}, which is not in {} to {}", chunks.log2, kChunkLog2Min,
                   kChunkLog2Max);
  encoded = encoded.subspan(1);
  if (encoded.size() < chunks.table_bytes())
    return corrupt("section of {} chunks ends within its table", chunks.count());
  const Bytes table = encoded.first(chunks.table_bytes());
  encoded = encoded.subspan(chunks.table_bytes());
  W5XDE_CHECK(read_table(table, encoded.size(), chunks, chunk_ends_));
  return decode_chunks({kind, shuffle_width, chunks, encoded, raw}, pool);
}

Status SectionDecoder::decode_chunks(const Job& job, ThreadPool* pool) {
  const std::size_t count = job.chunks.count();
  const std::size_t lanes = lanes_for(count, pool);
  if (lanes_.size() < lanes) lanes_.resize(lanes);
  for (Lane& lane : lanes_) lane.failure.reset();

  for_each_chunk(count, lanes, pool, [&](std::size_t lane_index, std::size_t chunk) {
    Lane& lane = lanes_[lane_index];
    const std::size_t start = chunk == 0 ? 0 : chunk_ends_[chunk - 1];
    const Bytes encoded = job.encoded.subspan(start, chunk_ends_[chunk] - start);
    Status status = lane.decode(job, encoded, job.chunks.cut(job.raw, chunk));
    if (status.ok()) return true;
    lane.failed_chunk = chunk;
    lane.failure = std::move(status).error();
    return false;
  });

  Lane* first = nullptr;
  for (Lane& lane : lanes_)
    if (lane.failure.has_value() && (first == nullptr || lane.failed_chunk < first->failed_chunk))
      first = &lane;
  if (first == nullptr) return {};
  return std::move(*first->failure).within(fmt::format("chunk {} of {}", first->failed_chunk + 1, count));
}

}  // namespace w5xde
