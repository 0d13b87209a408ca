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
  const Offer offer{.run = "fashion",
                    .model = "net.pt",
                    .model_hash = "00112233445566778899aabbccddeeff",
                    .model_bytes = 1u << 20,
                    .loss = "cross-entropy",
                    .sample_shape = {1, 28, 28},
                    .classes = 10,
                    .threads = 2,
                    .model_fingerprint = UINT64_MAX,
                    .newest_parameters = true,
                    .momentum = 0.9,
                    .socket_buffer = 8u << 20,
                    .keep_alive = false,
                    .quick_ack = false,
                    .receive_chunk = 1u << 18,
                    .combined_send = false};
  EXPECT_EQ(decode_offer(encoded(offer), {}).value(), offer);
}

TEST(Enrolment, a_ready_arrives_as_it_was_sent) {
  const Ready ready{.model_fingerprint = 7,
                    .engine = "torch 1.13.1 cpu",
                    .processor = "abacus",
                    .sample_cache_bytes = 1u << 30,
                    .machine = "cellar",
                    .lanes = 3};
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
       {json{{"classes", 1ull << 32}}, json{{"classes", -1}}, json{{"sample_shape", {1, -1}}},
        json{{"sample_shape", "28"}}, json{{"newest_parameters", 1}}, json{{"run", std::string(257, 'x')}}}) {
    EXPECT_FALSE(decode_offer(map(bad), {}).ok()) << bad;
  }
  EXPECT_EQ(decode_offer(map(json::array()), {}).error().to_string(), "corrupt: an offer is not a map");
}

}  // namespace
}  // namespace w5xde
