#include "wire/enrolment.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "wire/value.h"

namespace w5xde {
namespace {

using nlohmann::json;

template <class Message>
Head encoded(const Message& message) {
  Head head;
  encode(message, head);
  return head;
}

Head map(const json& value) {
  Head head;
  encode_value(value, head);
  return head;
}

TEST(Enrolment, an_offer_arrives_as_it_was_sent) {
  const Offer offer{
      .run = "fashion",
      .model = "net.pt",
      .model_hash = "00112233445566778899aabbccddeeff",
      .model_bytes = 1u << 20,
      .loss = "cross-entropy",
      .inputs = {{.name = "images", .dtype = DType::u8, .shape = {1, 28, 28}, .pixels = true},
                 {.name = "tokens", .dtype = DType::i32, .shape = {7}, .ids = 1ull << 33}},
      .targets = {.name = "labels", .dtype = DType::i64, .shape = {}},
      .classes = 10,
      .ignore_index = -100,
      .preparation = {.mean = {0.4914F, 0.1F}, .deviation = {0.25F, 3e-7F}, .crop_pixels = 4, .flip = true},
      .threads = 2,
      .compute = DType::bf16,
      .model_fingerprint = UINT64_MAX,
      .newest_parameters = true,
      .momentum = 0.9,
      .socket_buffer = 8u << 20,
      .keep_alive = false,
      .quick_ack = false,
      .receive_chunk = 1u << 18,
      .combined_send = false,
      .memory_probe = "0000abcd"};
  EXPECT_EQ(decode_offer(encoded(offer), {}).value(), offer);
}

TEST(Enrolment, a_ready_arrives_as_it_was_sent) {
  const Ready ready{.model_fingerprint = 7,
                    .compute = DType::bf16,
                    .engine = "torch 1.13.1 cpu",
                    .processor = "abacus",
                    .sample_cache_bytes = 1u << 30,
                    .machine = "cellar",
                    .lanes = 3,
                    .memory_token = "00ff"};
  EXPECT_EQ(decode_ready(encoded(ready), {}).value(), ready);
}

TEST(Enrolment, a_model_part_has_a_head_of_sixteen_bytes) {
  const ModelPart part{.offset = 1u << 20, .bytes = 4096};
  const Head head = encoded(part);
  EXPECT_EQ(head.size(), 16u);
  EXPECT_EQ(decode_model_part(head, {}).value(), part);
  EXPECT_FALSE(decode_model_part(Bytes(head).first(15), {}).ok());
  EXPECT_EQ(decode_model_part(head, {.payload_bytes_max = 4095}).error().kind, ErrorKind::overloaded);
}

TEST(Enrolment, keys_of_a_newer_version_are_ignored) {
  EXPECT_EQ(decode_offer(map({{"model", "lenet"}, {"colour", "blue"}}), {})->model, "lenet");
  EXPECT_TRUE(decode_ready(map({{"colour", "blue"}}), {}).ok());
}

TEST(Enrolment, values_of_another_type_are_refused_by_name) {
  const auto refusal = [](const json& value) { return decode_offer(map(value), {}).error().to_string(); };
  EXPECT_EQ(refusal({{"model", 7}}), "corrupt: 'model' in an offer is not what it should be");
  for (const json& bad :
       {json{{"classes", 1ull << 32}}, json{{"classes", -1}}, json{{"newest_parameters", 1}},
        json{{"run", std::string(257, 'x')}}, json{{"ignore_index", "none"}},
        json{{"ignore_index", 1ull << 63}}, json{{"targets", 7}}, json{{"inputs", json::object()}},
        json{{"preparation", 7}}, json{{"preparation", {{"mean", {"1"}}}}},
        json{{"preparation", {{"mean", {1e99}}}}}, json{{"preparation", {{"crop_pixels", -1}}}},
        json{{"preparation", {{"deviation", std::vector<double>(kChannelsMax + 1, 1.0)}}}},
        json{{"preparation", {{"flip", 1}}}}, json{{"inputs", {7}}},
        json{{"inputs", std::vector<json>(kInputsMax + 1, json::object())}}}) {
    EXPECT_FALSE(decode_offer(map(bad), {}).ok()) << bad;
  }
}

TEST(Enrolment, a_field_of_the_samples_that_is_none_is_refused) {
  const auto with = [](const json& field) { return decode_offer(map({{"inputs", {field}}}), {}); };
  EXPECT_TRUE(with({{"name", "x"}, {"dtype", "u8"}, {"shape", {1, 2}}, {"ids", 3}, {"colour", 1}}).ok());
  for (const json& bad :
       {json{{"name", 7}}, json{{"name", std::string(257, 'x')}}, json{{"dtype", 9}}, json{{"dtype", "u16"}},
        json{{"shape", {1, -1}}}, json{{"shape", "28"}}, json{{"shape", std::vector<int>(kRankMax + 1, 1)}},
        json{{"shape", {1ull << 40, 1ull << 40}}}, json{{"pixels", 1}}, json{{"ids", -1}}}) {
    EXPECT_FALSE(with(bad).ok()) << bad;
  }
  EXPECT_EQ(decode_offer(map(json::array()), {}).error().to_string(), "corrupt: an offer is not a map");
}

}  // namespace
}  // namespace w5xde
