// Every lossless codec on real gradients, zeros and noise; and lz4 against the library called bare.
#include <fmt/format.h>
#include <lz4.h>

#include <cstring>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "codec/section.h"
#include "tensor/safetensors.h"
#include "wire_groups.h"

namespace w5xde::bench {

namespace {

constexpr std::size_t kDataBytes = 4 * kMiB;

struct Data {
  std::string name;
  std::vector<std::byte> bytes;
};

Data noise() {
  Data data{"noise", std::vector<std::byte>(kDataBytes)};
  Random random(11);
  for (std::size_t at = 0; at < kDataBytes; at += sizeof(std::uint64_t))
    store(data.bytes.data() + at, random.next());
  return data;
}

double megabytes_per_second(double seconds) {
  return static_cast<double>(kDataBytes) / seconds / 1e6;
}

void measure(const Data& data, const SectionCodec& codec, std::size_t threads, int rounds, Report& report) {
  ThreadPool pool(threads - 1);  // the caller is a lane too
  SectionEncoder encoder;
  SectionDecoder decoder;
  std::vector<std::byte> decoded(kDataBytes);
  std::vector<double> encode_rates, decode_rates;
  Bytes encoded;
  for (int round = -1; round < rounds; ++round) {
    const double encode_seconds = seconds_for([&] { encoded = encoder.encode(data.bytes, codec, &pool); });
    const double decode_seconds = seconds_for([&] {
      if (!decoder.decode(encoded, codec.lossless.kind, codec.shuffle_width, decoded, &pool).ok())
        std::abort();
    });
    if (round < 0) continue;
    encode_rates.push_back(megabytes_per_second(encode_seconds));
    decode_rates.push_back(megabytes_per_second(decode_seconds));
  }
  if (decoded != data.bytes) std::abort();
  const std::string name =
      fmt::format("{} {}{} {} thread{}", data.name, to_string(codec.lossless),
                  codec.shuffle_width != 0 ? " shuffled" : "", threads, threads == 1 ? "" : "s");
  report.add({name + ": in", median(encode_rates), "MB/s", {}, {}});
  report.add({name + ": out", median(decode_rates), "MB/s", {}, {}});
  if (threads == 1) {
    report.add({name + ": size",
                static_cast<double>(kDataBytes) / static_cast<double>(encoded.size()),
                "x smaller",
                {},
                {}});
  }
}

// Our block codec and the library's own function, chunk by chunk over the same bytes.
void against_the_library(const Data& data, int rounds, Report& report) {
  constexpr std::size_t kChunk = std::size_t{1} << kChunkLog2Default;
  SectionEncoder encoder;
  const SectionCodec codec{.lossless = {LosslessKind::lz4, 1}};
  std::vector<char> state(static_cast<std::size_t>(LZ4_sizeofState()));
  std::vector<char> out(kDataBytes);
  const auto ours = [&] {
    return megabytes_per_second(seconds_for([&] { (void)encoder.encode(data.bytes, codec, nullptr); }));
  };
  const auto bare = [&] {
    return megabytes_per_second(seconds_for([&] {
      for (std::size_t at = 0; at < kDataBytes; at += kChunk) {
        const int size = LZ4_compress_fast_extState(
            state.data(), reinterpret_cast<const char*>(data.bytes.data() + at), out.data() + at,
            static_cast<int>(kChunk), static_cast<int>(kChunk), 1);
        // What does not get smaller has to be sent all the same; the section stores it, so must the bare
        // caller.
        if (size == 0) std::memcpy(out.data() + at, data.bytes.data() + at, kChunk);
      }
    }));
  };
  report.add("lz4 block against the bare library, " + data.name, "MB/s", interleave(4 * rounds, ours, bare));
}

}  // namespace

std::vector<std::byte> captured_gradients(std::size_t bytes) {
  const auto file = SafetensorsFile::open(W5XDE_GRADIENTS);
  if (!file) {
    fmt::print(stderr, "bench: {}\n", file.error().message);
    std::exit(1);
  }
  std::vector<std::byte> gradients;
  while (gradients.size() < bytes) {
    for (const auto& [name, tensor] : file->contents().tensors)
      gradients.insert(gradients.end(), tensor.bytes().begin(), tensor.bytes().end());
  }
  gradients.resize(bytes);
  return gradients;
}

void bench_codecs(int rounds, Report& report) {
  const std::vector<Data> all = {
      {"gradients", captured_gradients(kDataBytes)}, {"zeros", std::vector<std::byte>(kDataBytes)}, noise()};
  report.heading("lz4 block against the library called bare");
  for (const Data& data : all) against_the_library(data, rounds, report);
  for (const Data& data : all) {
    report.heading("lossless codecs on " + data.name);
    for (const char* name :
         {"zlib:1", "zlib:6", "zlib:9", "lz4:1", "lz4:65537", "lz4-frame", "zstd:1", "zstd:3", "zstd:9"}) {
      for (const std::uint8_t shuffle_width : {std::uint8_t{0}, std::uint8_t{4}}) {
        for (const std::size_t threads : {std::size_t{1}, std::size_t{2}}) {
          measure(data, {parse_lossless(name).value(), shuffle_width}, threads, rounds, report);
        }
      }
    }
  }
}

}  // namespace w5xde::bench
