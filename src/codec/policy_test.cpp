#include "codec/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/limits.h"
#include "base/random.h"

namespace w5xde {
namespace {

constexpr std::uint64_t kPayloadBytes = 8 * kMiB;
constexpr double kMegabyte = 1e6;

// How fast a codec is and how small it makes data that can be made smaller, as measured on one core.
struct Speed {
  double encode_rate, decode_rate, ratio;
};
const std::map<std::string, Speed> kSpeeds = {
    {"lz4:1", {450e6, 1500e6, 0.93}}, {"zstd:1", {330e6, 900e6, 0.80}}, {"zstd:3", {180e6, 900e6, 0.74}}};

// A link and a sender that does what the policy says, in seconds that are only counted.
class World {
 public:
  double link = 0;
  std::uint64_t payload_bytes = kPayloadBytes;
  double call_seconds = 20e-6;  // what compressing at all costs
  // How compressible a chunk is: 0 as the table says, 1 not at all.
  std::function<double(std::size_t chunk)> hardness = [](std::size_t) { return 0.0; };
  std::function<double()> slowdown = [] { return 1.0; };

  std::string send() {
    const SectionCodec codec = policy.choose(payload_bytes, link);
    const std::string name = to_string(codec.lossless);
    const auto raw = static_cast<double>(payload_bytes);
    raw_seconds += raw / link;
    if (name == "none") {
      seconds += raw / link;
      policy.measured(codec, payload_bytes, payload_bytes, 0, 0);
      return name;
    }
    const Speed& speed = kSpeeds.at(name);
    const auto tried = policy.chunks_to_try();
    std::vector<std::uint32_t> chunk_bytes;
    double wire = 1, encode_seconds = call_seconds, decode_seconds = call_seconds;
    for (std::uint64_t at = 0; at < payload_bytes; at += std::uint64_t{1} << codec.chunk_log2) {
      const std::size_t chunk = chunk_bytes.size();
      const auto bytes =
          static_cast<double>(std::min(payload_bytes - at, std::uint64_t{1} << codec.chunk_log2));
      const bool tries = tried.empty() || tried[chunk] != 0;
      const double ratio = tries ? speed.ratio + (1 - speed.ratio) * hardness(chunk) : 1;
      chunk_bytes.push_back(static_cast<std::uint32_t>(bytes * ratio));
      wire += bytes * ratio + 4;
      encode_seconds += tries ? bytes / speed.encode_rate : 0;
      decode_seconds += tries ? bytes / speed.decode_rate : 0;
      tries_of_last = chunk == 0 ? (tries ? 1 : 0) : tries_of_last + (tries ? 1 : 0);
    }
    const double slow = slowdown();
    encode_seconds *= slow;
    decode_seconds *= slow;
    seconds += encode_seconds + wire / link + decode_seconds;
    policy.measured(codec, payload_bytes, static_cast<std::uint64_t>(wire), encode_seconds, decode_seconds,
                    chunk_bytes);
    return name;
  }

  // What most of `payloads` went as.
  std::string mostly(int payloads) {
    std::map<std::string, int> counts;
    for (int i = 0; i < payloads; ++i) ++counts[send()];
    return std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first;
  }

  void forget_totals() { seconds = raw_seconds = 0; }

  LosslessPolicy policy;
  double seconds = 0, raw_seconds = 0;
  int tries_of_last = 0;
};

void all_compressible(World& world) {
  world.hardness = [](std::size_t) { return 0.0; };
}
void none_compressible(World& world) {
  world.hardness = [](std::size_t) { return 1.0; };
}

TEST(LosslessPolicy, sends_raw_while_the_link_is_not_known) {
  LosslessPolicy policy;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(policy.choose(kPayloadBytes, 0), SectionCodec());
  EXPECT_EQ(policy.describe(), "uncompressed (link rate unknown)");
}

TEST(LosslessPolicy, does_not_even_try_on_a_link_faster_than_any_codec) {
  World world;
  world.link = 10e9;
  for (int i = 0; i < 500; ++i) EXPECT_EQ(world.send(), "none");
  EXPECT_EQ(world.policy.describe(), "uncompressed (the link is faster than compressing)");
}

TEST(LosslessPolicy, comes_to_the_best_codec_for_each_link) {
  struct Case {
    double link;
    std::string best;
  };
  for (const auto& [link, best] : {Case{1 * kMegabyte, "zstd:3"}, Case{5 * kMegabyte, "zstd:3"},
                                   Case{40 * kMegabyte, "zstd:1"}, Case{300 * kMegabyte, "none"}}) {
    World world;
    world.link = link;
    (void)world.mostly(40);
    EXPECT_EQ(world.mostly(50), best) << link << ": " << world.policy.describe();
    EXPECT_LT(world.seconds, 1.02 * world.raw_seconds) << link;
  }
}

TEST(LosslessPolicy, says_what_it_does) {
  World world;
  world.link = 1 * kMegabyte;
  (void)world.mostly(60);
  EXPECT_EQ(world.policy.describe(), "zstd:3 (1.35x smaller)");
  none_compressible(world);
  (void)world.mostly(60);
  EXPECT_EQ(world.policy.describe(), "uncompressed (does not compress enough)");
}

// Invariant 7 of the design, over links from a modem's to a switch's.
TEST(LosslessPolicy, is_never_slower_than_raw_beyond_a_little) {
  for (double link = 1e5; link < 2e10; link *= 1.7) {
    for (const double hardness : {0.0, 0.5, 0.9, 1.0}) {
      World world;
      world.link = link;
      world.hardness = [=](std::size_t) { return hardness; };
      for (int i = 0; i < 400; ++i) {
        (void)world.send();
        EXPECT_LE(world.seconds, 1.03 * world.raw_seconds + 1e-9) << link << ", " << hardness << ", " << i;
      }
    }
  }
}

TEST(LosslessPolicy, is_never_slower_than_raw_when_everything_changes_all_the_time) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    World world;
    double hardness = 0;
    world.hardness = [&](std::size_t chunk) { return chunk % 3 == 0 ? 1 : hardness; };
    world.slowdown = [&] { return random.below(20) == 0 ? 5.0 : 0.9 + 0.2 * random.unit(); };
    world.link = 10e6;
    for (int i = 0; i < 2000; ++i) {
      if (random.below(50) == 0) world.link = 1e6 * std::exp2(10 * random.unit());
      if (random.below(30) == 0) hardness = random.unit();
      if (random.below(40) == 0) world.payload_bytes = 1000 + random.below(kPayloadBytes);
      (void)world.send();
    }
    EXPECT_LE(world.seconds, 1.03 * world.raw_seconds);
  }
}

// What was good of the last payload is bad of this one: the choices that this makes wrong count as excess
// too.
TEST(LosslessPolicy, is_never_slower_than_raw_on_data_that_turns_with_every_payload) {
  for (const double link : {2e6, 20e6, 40e6, 60e6, 100e6}) {
    for (const int period : {1, 2, 3, 5}) {
      World world;
      world.link = link;
      int payload = 0;
      world.hardness = [&](std::size_t) { return payload / period % 2 == 0 ? 0.0 : 1.0; };
      for (; payload < 1000; ++payload) (void)world.send();
      EXPECT_LE(world.seconds, 1.03 * world.raw_seconds) << link << ", " << period;
    }
  }
}

TEST(LosslessPolicy, follows_the_data) {
  World world;
  world.link = 5 * kMegabyte;
  none_compressible(world);
  EXPECT_EQ(world.mostly(300), "none");
  all_compressible(world);
  (void)world.mostly(300);  // the longest back-off, and some
  EXPECT_EQ(world.mostly(50), "zstd:3");
  none_compressible(world);
  (void)world.mostly(2);
  EXPECT_EQ(world.mostly(50), "none");
  EXPECT_LT(world.seconds, world.raw_seconds);
}

TEST(LosslessPolicy, follows_the_link) {
  World world;
  world.link = 1000 * kMegabyte;
  EXPECT_EQ(world.mostly(100), "none");
  world.link = 2 * kMegabyte;
  (void)world.mostly(20);
  EXPECT_EQ(world.mostly(50), "zstd:3");
  world.link = 1000 * kMegabyte;
  EXPECT_EQ(world.send(), "none");
  world.link = 40 * kMegabyte;
  (void)world.mostly(10);
  EXPECT_EQ(world.mostly(50), "zstd:1");
}

TEST(LosslessPolicy, leaves_the_chunks_raw_that_do_not_compress) {
  World world;
  world.link = 20 * kMegabyte;
  world.hardness = [](std::size_t chunk) { return chunk < 16 ? 0.0 : 1.0; };  // of 32
  (void)world.mostly(60);
  std::map<int, int> tries;
  world.forget_totals();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(world.send() == "none", false);
    ++tries[world.tries_of_last];
  }
  EXPECT_GT(tries[16], 90);
  EXPECT_LT(world.seconds, 0.96 * world.raw_seconds);
  // Another half now.
  world.hardness = [](std::size_t chunk) { return chunk < 16 ? 1.0 : 0.0; };
  (void)world.mostly(300);
  world.forget_totals();
  (void)world.mostly(100);
  EXPECT_LT(world.seconds, 0.96 * world.raw_seconds);
}

TEST(LosslessPolicy, probes_ever_more_rarely) {
  World world;
  world.link = 20 * kMegabyte;
  none_compressible(world);
  const auto probes_in = [&](int payloads) {
    int probes = 0;
    for (int i = 0; i < payloads; ++i) probes += world.send() != "none" ? 1 : 0;
    return probes;
  };
  EXPECT_GT(probes_in(500), 3);
  (void)probes_in(1500);
  EXPECT_LE(probes_in(1000), 3 * 4);
  EXPECT_GT(probes_in(1000), 0);
}

TEST(LosslessPolicy, an_interruption_changes_nothing) {
  World world;
  world.link = 40 * kMegabyte;
  (void)world.mostly(100);
  world.slowdown = [] { return 10.0; };
  (void)world.send();
  world.slowdown = [] { return 1.0; };
  EXPECT_EQ(world.mostly(3), "zstd:1");
}

TEST(LosslessPolicy, a_codec_that_was_slow_when_first_measured_gets_another_chance) {
  World world;
  world.link = 40 * kMegabyte;
  world.slowdown = [] { return 8.0; };
  EXPECT_EQ(world.mostly(100), "none");
  world.slowdown = [] { return 1.0; };
  (void)world.mostly(400);
  EXPECT_EQ(world.mostly(50), "zstd:1");
}

TEST(LosslessPolicy, small_payloads_travel_raw_below_a_size_that_is_learnt) {
  World world;
  world.link = 10 * kMegabyte;
  (void)world.mostly(40);
  world.payload_bytes = 1000;
  EXPECT_EQ(world.send(), "none");
  world.payload_bytes = 5000;
  EXPECT_NE(world.mostly(5), "none");
  world.call_seconds = 1e-3;  // more than thirty kilobytes save
  for (const std::uint64_t bytes : {5000u, 11000u, 30000u}) {
    world.payload_bytes = bytes;
    (void)world.mostly(5);
    EXPECT_EQ(world.send(), "none") << bytes;
  }
  world.payload_bytes = kPayloadBytes;
  EXPECT_NE(world.mostly(10), "none");
}

TEST(LosslessPolicy, the_same_calls_give_the_same_choices) {
  World one, other;
  one.link = other.link = 7 * kMegabyte;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(one.send(), other.send());
    EXPECT_EQ(one.policy.describe(), other.policy.describe());
  }
}

TEST(LosslessPolicy, takes_a_guess_at_decoding_that_nobody_measured) {
  LosslessPolicy policy;
  // Encoding alone would pay, encoding and decoding do not.
  const double link = 50 * kMegabyte, bytes = static_cast<double>(kPayloadBytes);
  for (int i = 0; i < 300; ++i) {
    const SectionCodec codec = policy.choose(kPayloadBytes, link);
    if (codec == SectionCodec()) continue;
    const double saved = 0.2 * bytes / link;
    policy.measured(codec, kPayloadBytes, static_cast<std::uint64_t>(0.8 * bytes), 0.9 * saved, 0);
  }
  EXPECT_EQ(policy.describe(), "uncompressed (does not compress enough)");
}

}  // namespace
}  // namespace w5xde
