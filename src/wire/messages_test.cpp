#include "wire/messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/message_bytes.h"
#include "w5xde/sample_field.h"
#include "wire/value.h"

namespace w5xde {
namespace {

using nlohmann::json;

const TensorList kTensors = {{DType::f32, Shape{430}, false, "w"}};
const std::string kTensorsHex = "010141ae030177";  // as tensor_list_test.cpp spells it out

TEST(MessagesTest, a_heartbeat_has_these_bytes) {
  EXPECT_EQ(hex_of(encoded(Heartbeat{0x0807060504030201})), "0102030405060708");
}

TEST(MessagesTest, tensors_have_these_bytes) {
  EXPECT_EQ(hex_of(encoded(Tensors{kTensors})), kTensorsHex);
}

TEST(MessagesTest, a_lease_has_these_bytes) {
  const Lease lease{.lease_id = 1,
                    .step = 2,
                    .version = 3,
                    .seed = 4,
                    .block = {8, 2},
                    .work = Work::evaluate,
                    .lanes = 5,
                    .answer = {Form::gradient, 6, 4, 1.0F, 3, -2, 4, 300},
                    .slot_samples = {429, 1},
                    .tensors = {{DType::f32, Shape{430}, false, "w"}, {DType::u8, Shape{430}, false, ""}}};
  EXPECT_EQ(hex_of(encoded(lease)),
            "0100000000000000"  // lease
            "0200000000000000"  // step
            "0300000000000000"  // version
            "0400000000000000"  // seed
            "08000000"          // first slot
            "02000000"          // slot count
            "01"                // work
            "05"                // lanes
            "02"                // answer: form
            "06"                // gradient codec
            "04"                // rank
            "0000803f"          // density
            "03"                // lossless codec
            "feffffff"          // level
            "04"                // shuffle width
            "ac02"              // floats a part
            "ad03"              // samples of the first slot
            "01"                // samples of the second slot
            "00"                // samples have no numbers
            "00"                // the payload is direct
            "02"                // tensors
            "0141ae030177"      // as tensor_list_test.cpp spells it out
            "0901ae03");
}

TEST(MessagesTest, a_lease_has_the_samples_that_its_slots_say) {
  Lease lease{.block = {0, 2}, .slot_samples = {32, 8}};
  const TensorDescriptor inputs{DType::f32, Shape{40, 10}, false, ""},
      targets{DType::u8, Shape{40}, false, ""};
  for (const TensorList& right :
       {TensorList{inputs, targets}, {inputs, inputs, targets}, TensorList(kInputsMax + 1, targets)}) {
    lease.tensors = right;
    EXPECT_EQ(refusal_of(lease), "accepted");
  }
  for (const TensorList& wrong : {TensorList{},
                                  {inputs},
                                  {inputs, {DType::u8, Shape{}}},
                                  TensorList(kInputsMax + 2, targets),
                                  {inputs, {DType::u8, Shape{39}}, targets},
                                  {inputs, {DType::u8, Shape{39}}},
                                  {{DType::f32, Shape{32, 10}}, targets}}) {
    lease.tensors = wrong;
    EXPECT_EQ(refusal_of(lease),
              "corrupt: a lease of 40 samples has other tensors than their inputs and targets");
  }
}

TEST(MessagesTest, a_lease_has_the_samples_that_the_node_has_not) {
  using Kind = SampleNumber::Kind;
  Lease lease{.block = {0, 1},
              .slot_samples = {3},
              .numbers = {{5, Kind::kept}, {6, Kind::new_kept}, {300, Kind::passing}}};
  lease.tensors = {{DType::f32, Shape{2, 10}}, {DType::u8, Shape{2}}};
  EXPECT_EQ(refusal_of(lease), "accepted");
  EXPECT_NE(hex_of(encoded(lease))
                .find("03"      // three numbers
                      "14"      // 5, which it has
                      "19"      // 6, which comes and stays
                      "b209"),  // 300, which comes and goes
            std::string::npos);
  lease.tensors = {{DType::f32, Shape{3, 10}}, {DType::u8, Shape{3}}};
  EXPECT_EQ(refusal_of(lease),
            "corrupt: a lease of 2 samples has other tensors than their inputs and targets");
  lease.numbers.pop_back();
  EXPECT_EQ(refusal_of(lease), "corrupt: 2 numbers for 3 samples");
  lease.numbers.push_back({7, static_cast<Kind>(3)});
  EXPECT_EQ(refusal_of(lease), "corrupt: 31 is no number of a sample");
}

TEST(MessagesTest, a_lease_of_unknown_work_is_refused) {
  Lease lease{.slot_samples = {0}, .tensors = {{DType::f32, Shape{0}}, {DType::f32, Shape{0}}}};
  lease.work = static_cast<Work>(2);
  EXPECT_EQ(refusal_of(lease), "corrupt: a lease of work 2");
}

TEST(MessagesTest, a_lease_of_more_slots_than_its_head_could_hold_takes_no_memory) {
  Lease lease{.block = {0, 0x80000000u}};
  EXPECT_EQ(refusal_of(lease), "corrupt: the slots of a lease are cut short");
}

TEST(MessagesTest, a_contribution_has_these_bytes) {
  const Contribution contribution{.lease_id = 1,
                                  .step = 2,
                                  .version = 3,
                                  .block = {8, 4},
                                  .samples = 5,
                                  .loss_sum = -2.0,
                                  .counted = 300,
                                  .correct = 6,
                                  .compute_ns = 7,
                                  .lanes = 3,
                                  .wait_ns = 8,
                                  .codec_ns = 9,
                                  .loop_ns = 10,
                                  .first_float = 300,
                                  .tensors = kTensors};
  EXPECT_EQ(hex_of(encoded(contribution)),
            "0100000000000000"  // lease
            "0200000000000000"  // step
            "0300000000000000"  // version
            "08000000"          // first slot
            "04000000"          // slot count
            "0500000000000000"  // samples
            "00000000000000c0"  // loss sum
            "ac02"              // targets that count
            "06"                // correct
            "0700000000000000"  // nanoseconds computing
            "03"                // lanes
            "0800000000000000"  // waiting
            "0900000000000000"  // in codecs
            "0a00000000000000"  // on the loop
            "ac02"              // first float
            "00" +              // the payload is direct
                kTensorsHex);
}

TEST(MessagesTest, a_coded_payload_says_how_and_how_long_it_is) {
  const Contribution contribution{
      .block = {0, 1}, .coding = {Form::gradient, 6, 4, 300}, .tensors = kTensors};
  EXPECT_TRUE(hex_of(encoded(contribution))
                  .ends_with("02"      // through a gradient codec
                             "06"      // which one
                             "04"      // its rank
                             "ac02" +  // bytes
                             kTensorsHex));
  Contribution longer = contribution;
  longer.coding.bytes = 1721;
  EXPECT_EQ(refusal_of(longer, {.payload_bytes_max = 1721}), "accepted");
  EXPECT_EQ(refusal_of(longer, {.payload_bytes_max = 1720}),
            "overloaded: a payload of 1721 bytes; at most 1720");
  Contribution unknown;
  unknown.coding.form = static_cast<Form>(4);
  EXPECT_EQ(refusal_of(unknown), "corrupt: a payload of form 4");
  Contribution steep = contribution;
  steep.coding.rank = 65536;
  EXPECT_EQ(refusal_of(steep), "corrupt: a gradient of rank 65536");
}

constexpr SharedBlock::Address kMemory{.process = 258, .descriptor = 7, .bytes = 2000, .id = 9};
constexpr const char* kMemoryHex =
    "02010000"           // process
    "07000000"           // descriptor
    "d007000000000000"   // bytes
    "0900000000000000";  // id

TEST(MessagesTest, a_lease_says_where_a_shared_answer_belongs_and_the_answer_that_it_is_there) {
  const Lease lease{.block = {0, 1},
                    .answer = {.form = Form::shared, .memory = kMemory},
                    .slot_samples = {1},
                    .tensors = {{DType::u8, Shape{1}}, {DType::u8, Shape{1}}}};
  EXPECT_NE(hex_of(encoded(lease))
                .find(std::string("03"        // answer: in shared memory
                                  "00"        // gradient codec
                                  "00"        // rank
                                  "00000000"  // density
                                  "00"        // lossless codec
                                  "00000000"  // level
                                  "00"        // shuffle width
                                  "00") +     // floats a part
                      kMemoryHex),
            std::string::npos);
  EXPECT_EQ(refusal_of(lease), "accepted");
  Lease samples = lease;
  samples.coding.form = Form::shared;
  EXPECT_EQ(refusal_of(samples), "corrupt: a lease whose samples are in shared memory");
  const Contribution contribution{.block = {0, 1}, .coding = {.form = Form::shared}, .tensors = kTensors};
  EXPECT_TRUE(hex_of(encoded(contribution)).ends_with(std::string("03") + kTensorsHex));
}

TEST(MessagesTest, shared_parameters_are_whole_and_say_where_they_are) {
  const Parameters shared{.version = 1,
                          .floats_total = 500,
                          .coding = {.form = Form::shared},
                          .memory = kMemory,
                          .tensors = {{DType::f32, Shape{500}}}};
  EXPECT_TRUE(hex_of(encoded(shared)).ends_with(std::string("03") + kMemoryHex + "01" + "0101f403"));
  EXPECT_EQ(refusal_of(shared), "accepted");
  const std::string refusal = "corrupt: parameters in shared memory that are not a whole version";
  Parameters part = shared;
  part.tensors[0].shape = Shape{400};
  EXPECT_EQ(refusal_of(part), refusal);
  part.first_float = 100;
  EXPECT_EQ(refusal_of(part), refusal);
  Parameters difference = shared;
  difference.base = 0;
  EXPECT_EQ(refusal_of(difference), refusal);
}

TEST(MessagesTest, feedback_has_these_bytes) {
  EXPECT_EQ(
      hex_of(encoded(Feedback{.leaving = true, .taken_over = 2, .tensors = {{DType::f32, Shape{430}}}})),
      "01"          // leaving
      "02000000"    // handed over to it, and in this
      "01"          // one tensor
      "0101ae03");  // f32, one dimension, 430
  EXPECT_EQ(refusal_of(Feedback{.tensors = {{DType::f16, Shape{2}}}}),
            "corrupt: feedback is not one flat tensor of f32");
}

TEST(MessagesTest, a_verdict_has_these_bytes) {
  EXPECT_EQ(hex_of(encoded(Verdict{.lease_id = 258, .counted = true})),
            "0201000000000000"  // lease
            "01");              // counted
  Head twice = encoded(Verdict{});
  twice.back() = std::byte{2};
  EXPECT_EQ(decode_verdict(twice).error().to_string(), "corrupt: a contribution that counts 2 times");
}

TEST(MessagesTest, parameters_have_these_bytes) {
  const Parameters parameters{.version = 1, .first_float = 2, .floats_total = 500, .tensors = kTensors};
  EXPECT_EQ(hex_of(encoded(parameters)),
            "0100000000000000"  // version
            "ffffffffffffffff"  // to be added to none
            "0200000000000000"  // first float
            "f401000000000000"  // floats in all
            "00" +              // the payload is direct
                kTensorsHex);
}

TEST(MessagesTest, a_goodbye_has_these_bytes) {
  EXPECT_EQ(hex_of(encoded(Goodbye{ErrorKind::corrupt, "why"})),
            "82"                // a map of two
            "a46b696e64"        // "kind"
            "a7636f7272757074"  // "corrupt"
            "a6726561736f6e"    // "reason"
            "a3776879");        // "why"
}

TEST(MessagesTest, a_loss_that_is_not_a_number_arrives_as_it_is) {
  Contribution contribution;
  contribution.loss_sum = std::nan("");
  const auto decoded = decode_contribution(encoded(contribution), Limits{});
  ASSERT_TRUE(decoded.ok());
  EXPECT_TRUE(std::isnan(decoded->loss_sum));
}

TEST(MessagesTest, the_refusal_names_the_message_and_what_is_wrong_with_its_length) {
  EXPECT_EQ(decode_heartbeat({}).error().message, "the head of a heartbeat is cut short");
  EXPECT_EQ(decode_heartbeat(Head(11)).error().message, "3 bytes too many in the head of a heartbeat");
  EXPECT_EQ(decode_tensors(Head(2), Limits{}).error().message, "1 bytes too many in the head of a tensors");
  EXPECT_EQ(decode_lease(Head(39), Limits{}).error().message, "a block of slots is cut short");
}

TEST(MessagesTest, slots_that_are_not_an_aligned_block_are_refused) {
  const std::vector<SlotBlock> aligned = {{0, 1}, {7, 1}, {0, 8}, {24, 8}, {0, 3}, {8, 7}, {0, 1u << 31}};
  for (const SlotBlock& block : aligned) {
    EXPECT_EQ(refusal_of(Contribution{.block = block, .tensors = {}}), "accepted")
        << block.first_slot << " + " << block.slot_count;
  }
  const std::vector<SlotBlock> unaligned = {{0, 0},
                                            {3, 3},
                                            {2, 3},
                                            {1, 2},
                                            {4, 8},
                                            {0, UINT32_MAX},
                                            // One past the last would be 2^32, which is no number of a slot.
                                            {UINT32_MAX, 1},
                                            {1u << 31, 1u << 31}};
  for (const SlotBlock& block : unaligned) {
    const std::string refusal =
        fmt::format("corrupt: slots {} + {} are not an aligned block", block.first_slot, block.slot_count);
    EXPECT_EQ(refusal_of(Lease{.block = block, .tensors = {}}), refusal);
    EXPECT_EQ(refusal_of(Contribution{.block = block, .tensors = {}}), refusal);
  }
}

Parameters parameters_of(std::uint64_t first, std::int64_t count, std::uint64_t total) {
  return {.first_float = first, .floats_total = total, .tensors = {{DType::f32, Shape{count}, false, ""}}};
}

TEST(MessagesTest, parameters_that_reach_past_their_block_are_refused) {
  EXPECT_EQ(refusal_of(parameters_of(0, 430, 430)), "accepted");
  EXPECT_EQ(refusal_of(parameters_of(400, 30, 430)), "accepted");
  EXPECT_EQ(refusal_of(parameters_of(430, 0, 430)), "accepted");
  EXPECT_EQ(refusal_of(parameters_of(400, 31, 430)), "corrupt: parameters 400 + 31 reach past 430");
  EXPECT_EQ(refusal_of(parameters_of(431, 0, 430)), "corrupt: parameters 431 + 0 reach past 430");
  // The sum would be 29 in 64 bits.
  EXPECT_EQ(refusal_of(parameters_of(UINT64_MAX, 30, 430)),
            "corrupt: parameters 18446744073709551615 + 30 reach past 430");
}

TEST(MessagesTest, parameters_that_are_not_one_flat_tensor_are_refused) {
  const std::string refusal = "corrupt: parameters are not one flat tensor of f32";
  const TensorDescriptor flat{DType::f32, Shape{1}, false, ""}, scalar{DType::f32, Shape{}, false, ""},
      square{DType::f32, Shape{1, 1}, false, ""};
  EXPECT_EQ(refusal_of(Parameters{.floats_total = 9, .tensors = {flat}}), "accepted");
  EXPECT_EQ(refusal_of(Parameters{.floats_total = 9, .tensors = {}}), refusal);
  EXPECT_EQ(refusal_of(Parameters{.floats_total = 9, .tensors = {flat, flat}}), refusal);
  EXPECT_EQ(refusal_of(Parameters{.floats_total = 9, .tensors = {scalar}}), refusal);
  EXPECT_EQ(refusal_of(Parameters{.floats_total = 9, .tensors = {square}}), refusal);
  EXPECT_EQ(refusal_of(Parameters{.floats_total = 9, .tensors = {{DType::f16, Shape{1}}}}), refusal);
}

Result<Goodbye> goodbye_of(const json& map) {
  Head head;
  encode_value(map, head);
  return decode_goodbye(head, Limits{});
}

TEST(MessagesTest, a_goodbye_of_a_newer_version_is_understood_as_far_as_possible) {
  EXPECT_EQ(goodbye_of({{"kind", "overloaded"}, {"reason", "full"}, {"retry_s", 5}}).value(),
            (Goodbye{ErrorKind::overloaded, "full"}));
  EXPECT_EQ(goodbye_of({{"kind", "diverged"}, {"reason", "r"}}).value(), (Goodbye{ErrorKind::diverged, "r"}));
  EXPECT_EQ(goodbye_of({{"kind", "unavailable"}, {"reason", "r"}}).value(),
            (Goodbye{ErrorKind::unavailable, "r"}));
  EXPECT_EQ(goodbye_of({{"kind", "bored"}, {"reason", "r"}}).value(),
            (Goodbye{ErrorKind::disconnected, "r"}));
  EXPECT_EQ(goodbye_of({{"kind", 7}, {"reason", {1, 2}}}).value(), (Goodbye{ErrorKind::disconnected, ""}));
  EXPECT_EQ(goodbye_of(json::object()).value(), (Goodbye{ErrorKind::disconnected, ""}));
}

TEST(MessagesTest, a_goodbye_that_is_not_a_map_is_refused) {
  EXPECT_EQ(goodbye_of({1, 2}).error().to_string(), "corrupt: a goodbye is not a map");
  EXPECT_EQ(goodbye_of(nullptr).error().to_string(), "corrupt: a goodbye is not a map");
}

}  // namespace
}  // namespace w5xde
