// The lossless policy on real gradients, with codecs that are timed and links that are only counted: what a
// run of payloads takes, as a part of what raw would.
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "base/limits.h"
#include "codec/policy.h"
#include "wire_groups.h"

namespace w5xde::bench {

namespace {

constexpr std::size_t kPayloadBytes = 4 * kMiB;

class CountedLink {
 public:
  explicit CountedLink(double bytes_per_second) : link_(bytes_per_second) {}

  void send(const std::vector<std::byte>& raw) {
    const SectionCodec codec = policy_.choose(raw.size(), link_);
    const double raw_seconds = static_cast<double>(raw.size()) / link_;
    raw_seconds_ += raw_seconds;
    if (codec.lossless.kind == LosslessKind::none) {
      seconds_ += raw_seconds;
      return;
    }
    Bytes section;
    back_.resize(raw.size());
    const double encode_seconds =
        seconds_for([&] { section = encoder_.encode(raw, codec, nullptr, policy_.chunks_to_try()); });
    const double decode_seconds = seconds_for([&] {
      if (!decoder_.decode(section, codec.lossless.kind, codec.shuffle_width, back_, nullptr).ok())
        std::abort();
    });
    seconds_ += encode_seconds + static_cast<double>(section.size()) / link_ + decode_seconds;
    policy_.measured(codec, raw.size(), section.size(), encode_seconds, decode_seconds,
                     encoder_.chunk_bytes());
  }

  double part_of_raw() const { return seconds_ / raw_seconds_; }
  std::string describe() const { return policy_.describe(); }

 private:
  double link_;
  LosslessPolicy policy_;
  SectionEncoder encoder_;
  SectionDecoder decoder_;
  std::vector<std::byte> back_;
  double seconds_ = 0, raw_seconds_ = 0;
};

}  // namespace

void bench_policy(int rounds, Report& report) {
  const auto gradients = captured_gradients(kPayloadBytes);
  report.heading("lossless policy on gradients, seconds as a part of raw's");
  for (const double megabytes : {1.0, 10.0, 50.0, 100.0, 300.0, 1000.0, 5000.0}) {
    CountedLink link(megabytes * 1e6);
    for (int i = 0; i < 40 * rounds; ++i) link.send(gradients);
    report.add(
        {fmt::format("{} MB/s: {}", megabytes, link.describe()), link.part_of_raw(), "of raw", {}, {}});
  }
}

}  // namespace w5xde::bench
