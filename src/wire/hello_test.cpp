#include "wire/hello.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "wire/value.h"

namespace w5xde {
namespace {

using nlohmann::json;

Hello typical() {
  return {.protocol_min = 1,
          .protocol_max = 2,
          .software = "w5xde 0.1.0",
          .name = "desk",
          .engine = "torch 1.13.1 cpu",
          .tls = true,
          .model_fingerprint = 0xfedcba9876543210};
}

Hello speaking(std::uint32_t protocol_min, std::uint32_t protocol_max, std::string software = {}) {
  Hello hello;
  hello.protocol_min = protocol_min;
  hello.protocol_max = protocol_max;
  hello.software = std::move(software);
  return hello;
}

Hello with_tls(std::string software, bool tls) {
  Hello hello;
  hello.software = std::move(software);
  hello.tls = tls;
  return hello;
}

Hello with_model(std::uint64_t fingerprint) {
  Hello hello;
  hello.model_fingerprint = fingerprint;
  return hello;
}

Head encoded(const Hello& hello) {
  Head head;
  encode(hello, head);
  return head;
}

// Letters as they are, other bytes as <hex>.
std::string readable(Bytes bytes) {
  std::string text;
  for (const char c : text_of(bytes)) {
    text += c > ' ' && c <= 'z' ? std::string(1, c) : fmt::format("<{:02x}>", static_cast<unsigned char>(c));
  }
  return text;
}

json map_of(const Hello& hello) {
  return decode_value(encoded(hello), Limits{}).value();
}

std::string refusal_of(const json& map, const Limits& limits = {}) {
  Head head;
  encode_value(map, head);
  const auto hello = decode_hello(head, limits);
  return hello.ok() ? "accepted" : hello.error().to_string();
}

std::string refusal_of(const Hello& mine, const Hello& theirs, LinkFacts link = {.encrypted = true}) {
  const auto protocol = negotiate(mine, theirs, link);
  return protocol.ok() ? "agreed" : protocol.error().to_string();
}

rc::Gen<Hello> any_hello() {
  return rc::gen::exec([] {
    // Small numbers, so that two hellos often have something in common and often not.
    Hello hello;
    hello.protocol_min = *rc::gen::inRange<std::uint32_t>(1, 5);
    hello.protocol_max = *rc::gen::inRange<std::uint32_t>(hello.protocol_min, 6);
    hello.software = printable(*rc::gen::string<std::string>());
    hello.name = printable(*rc::gen::string<std::string>());
    hello.engine = printable(*rc::gen::string<std::string>());
    hello.tls = *rc::gen::arbitrary<bool>();
    hello.model_fingerprint = *rc::gen::element<std::uint64_t>(0, 1, UINT64_MAX);
    return hello;
  });
}

TEST(HelloTest, is_a_map_with_these_keys) {
  EXPECT_EQ(map_of(typical()), json({{"protocol_min", 1},
                                     {"protocol_max", 2},
                                     {"software", "w5xde 0.1.0"},
                                     {"name", "desk"},
                                     {"engine", "torch 1.13.1 cpu"},
                                     {"role", "node"},
                                     {"tls", true},
                                     {"model_fingerprint", 0xfedcba9876543210}}));
}

TEST(HelloTest, has_these_bytes) {
  Hello hello;
  hello.software = "w";
  hello.name = "n";
  hello.model_fingerprint = 0x0102030405060708;
  EXPECT_EQ(readable(encoded(hello)),
            "<88>"  // a map of eight
            "<a6>engine<a0>"
            "<b1>model_fingerprint<cf><01><02><03><04><05><06><07><08>"
            "<a4>name<a1>n"
            "<ac>protocol_max<03>"
            "<ac>protocol_min<01>"
            "<a4>role<a4>node"
            "<a8>software<a1>w"
            "<a3>tls<c2>");
}

RC_GTEST_PROP(HelloTest, what_is_encoded_is_decoded, ()) {
  const Hello hello = *any_hello();
  const auto decoded = decode_hello(encoded(hello), Limits::stranger());
  RC_ASSERT(decoded.ok());
  RC_ASSERT(decoded.value() == hello);
}

TEST(HelloTest, keys_that_are_not_known_are_ignored) {
  json map = map_of(typical());
  map["colour"] = {{"of", {"the", "future", 7}}};
  Head head;
  encode_value(map, head);
  EXPECT_EQ(decode_hello(head, Limits{}).value(), typical());
}

// What could be learnt from such a list, the protocol says already.
TEST(HelloTest, an_older_hello_that_lists_codecs_is_taken) {
  json map = map_of(typical());
  map["codecs"] = {"zstd", "lz4"};
  map["gradient_codecs"] = 7;
  Head head;
  encode_value(map, head);
  EXPECT_EQ(decode_hello(head, Limits{}).value(), typical());
}

TEST(HelloTest, only_the_protocols_have_to_be_there) {
  Head head;
  encode_value({{"protocol_min", 3}, {"protocol_max", 4}}, head);
  EXPECT_EQ(decode_hello(head, Limits{}).value(), speaking(3, 4));
}

TEST(HelloTest, a_range_of_protocols_is_not_empty_and_does_not_start_at_zero) {
  const std::string refusal = "corrupt: a hello without a range of protocols";
  EXPECT_EQ(refusal_of(json::object()), refusal);
  EXPECT_EQ(refusal_of({{"protocol_min", 1}}), refusal);
  EXPECT_EQ(refusal_of({{"protocol_max", 1}}), refusal);
  EXPECT_EQ(refusal_of({{"protocol_min", 0}, {"protocol_max", 1}}), refusal);
  EXPECT_EQ(refusal_of({{"protocol_min", 3}, {"protocol_max", 2}}), refusal);
}

TEST(HelloTest, a_key_of_another_type_is_refused_by_its_name) {
  const std::vector<std::pair<std::string, std::vector<json>>> wrong = {
      {"protocol_min", {"1", -1, 1.0, nullptr, 0x1'0000'0000}},
      {"protocol_max", {"1", -1, 1.0, nullptr, 0x1'0000'0000}},
      {"software", {1, nullptr, json::array(), std::string(257, 's')}},
      {"name", {1, nullptr, json::array(), std::string(257, 's')}},
      {"engine", {1, nullptr, json::array(), std::string(257, 's')}},
      {"tls", {1, 0, nullptr, "true"}},
      {"model_fingerprint", {-1, 0.5, nullptr, "1"}}};
  for (const auto& [key, values] : wrong) {
    for (const json& value : values) {
      json map = map_of(typical());
      map[key] = value;
      EXPECT_EQ(refusal_of(map), fmt::format("corrupt: '{}' in a hello is not what it should be", key))
          << value;
    }
  }
}

TEST(HelloTest, what_is_not_a_map_is_refused) {
  EXPECT_EQ(refusal_of(json::array()), "corrupt: a hello is not a map");
  EXPECT_EQ(refusal_of(nullptr), "corrupt: a hello is not a map");
  EXPECT_EQ(decode_hello({}, Limits{}).error().message, "no MessagePack at byte 1");
}

TEST(HelloTest, a_hello_cut_short_anywhere_or_with_bytes_after_it_is_refused) {
  Head head = encoded(typical());
  for (std::size_t size = 0; size < head.size(); ++size) {
    EXPECT_EQ(decode_hello(Bytes(head).first(size), Limits{}).error().kind, ErrorKind::corrupt) << size;
  }
  head.push_back(std::byte{0});
  EXPECT_EQ(decode_hello(head, Limits{}).error().kind, ErrorKind::corrupt);
}

TEST(NegotiateTest, the_highest_protocol_that_both_speak_is_taken) {
  const Hello mine = speaking(1, 3), theirs = speaking(2, 5);
  EXPECT_EQ(*negotiate(mine, theirs, {}), 3u);
  EXPECT_EQ(*negotiate(theirs, mine, {}), 3u);
  EXPECT_EQ(*negotiate(mine, speaking(3, 3), {}), 3u);
}

TEST(NegotiateTest, protocols_that_do_not_meet_are_refused_with_both_ranges) {
  const Hello old = speaking(1, 2, "w5xde 0.1.0");
  const Hello recent = speaking(3, 4, "w5xde 0.9.0");
  EXPECT_EQ(
      refusal_of(old, recent),
      "incompatible: w5xde 0.1.0 speaks protocol 1 to 2, w5xde 0.9.0 speaks 3 to 4; update the older one");
  EXPECT_EQ(
      refusal_of(recent, old),
      "incompatible: w5xde 0.9.0 speaks protocol 3 to 4, w5xde 0.1.0 speaks 1 to 2; update the older one");
}

TEST(NegotiateTest, who_insists_on_tls_does_not_talk_without) {
  const Hello strict = with_tls("strict", true), open = with_tls("open", false);
  EXPECT_EQ(refusal_of(strict, open, {.encrypted = true}), "agreed");
  EXPECT_EQ(refusal_of(open, open, {.encrypted = false}), "agreed");
  const std::string refusal =
      "incompatible: strict insists on TLS and this connection has none; connect with TLS";
  EXPECT_EQ(refusal_of(strict, open, {.encrypted = false}), refusal);
  EXPECT_EQ(refusal_of(open, strict, {.encrypted = false}), refusal);
}

TEST(NegotiateTest, different_models_are_refused_with_both_fingerprints) {
  const Hello one = with_model(0x1), other = with_model(0xabc), none = with_model(0);
  EXPECT_EQ(
      refusal_of(one, other),
      "incompatible: the models differ: fingerprint 0000000000000001 here, 0000000000000abc there; join with "
      "the same model");
  EXPECT_EQ(refusal_of(one, one), "agreed");
  EXPECT_EQ(refusal_of(one, none), "agreed");
  EXPECT_EQ(refusal_of(none, other), "agreed");
}

RC_GTEST_PROP(NegotiateTest, both_sides_agree_on_whether_they_agree, ()) {
  const Hello mine = *any_hello(), theirs = *any_hello();
  const LinkFacts link{.encrypted = *rc::gen::arbitrary<bool>()};
  const auto here = negotiate(mine, theirs, link), there = negotiate(theirs, mine, link);
  RC_CLASSIFY(here.ok(), "agreed");
  RC_ASSERT(here.ok() == there.ok());
  if (!here.ok()) {
    RC_ASSERT(here.error().kind == ErrorKind::incompatible);
    RC_ASSERT(there.error().kind == ErrorKind::incompatible);
    return;
  }
  RC_ASSERT(*here == *there);
}

}  // namespace
}  // namespace w5xde
