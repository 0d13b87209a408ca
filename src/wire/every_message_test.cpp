// What holds for every message, whatever is in it.
#include "support/message_bytes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "base/printable.h"
#include "w5xde/sample_field.h"

namespace w5xde {
namespace {

rc::Gen<TensorList> any_tensors() {
  return rc::gen::container<TensorList>(rc::gen::exec([] {
    const auto dims = *rc::gen::container<std::vector<std::int64_t>>(*rc::gen::inRange<std::size_t>(0, 5),
                                                                     rc::gen::inRange<std::int64_t>(0, 10));
    return TensorDescriptor{*rc::gen::elementOf(std::vector<DType>(kDTypes.begin(), kDTypes.end())),
                            Shape::make(dims).value(), *rc::gen::arbitrary<bool>(),
                            *rc::gen::string<std::string>()};
  }));
}

rc::Gen<SlotBlock> any_block() {
  return rc::gen::exec([] {
    const auto log2_count = *rc::gen::inRange(0u, 32u);
    return SlotBlock{*rc::gen::arbitrary<std::uint32_t>() >> log2_count << log2_count, 1u << log2_count};
  });
}

Coding any_coding() {
  const auto form = *rc::gen::element(Form::direct, Form::generic, Form::gradient, Form::shared);
  if (form == Form::direct || form == Form::shared) return {.form = form};
  return {form, *rc::gen::arbitrary<std::uint8_t>(), *rc::gen::inRange(0u, 65536u),
          *rc::gen::inRange<std::uint64_t>(0, Limits{}.payload_bytes_max + 1)};
}

SharedBlock::Address any_memory() {
  return {*rc::gen::arbitrary<std::uint32_t>(), *rc::gen::arbitrary<std::uint32_t>(),
          *rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>()};
}

AnswerCoding any_answer() {
  const auto form = *rc::gen::element(Form::direct, Form::generic, Form::gradient, Form::shared);
  return {form,
          *rc::gen::arbitrary<std::uint8_t>(),
          *rc::gen::inRange(0u, 65536u),
          *rc::gen::arbitrary<float>(),
          *rc::gen::arbitrary<std::uint8_t>(),
          *rc::gen::arbitrary<std::int32_t>(),
          *rc::gen::arbitrary<std::uint8_t>(),
          *rc::gen::arbitrary<std::uint64_t>(),
          form == Form::shared ? any_memory() : SharedBlock::Address()};
}

template <class Message>
Message any();
template <>
Heartbeat any() {
  return {*rc::gen::arbitrary<std::uint64_t>()};
}
template <>
Tensors any() {
  return {*any_tensors()};
}
template <>
Lease any() {
  const auto number = rc::gen::arbitrary<std::uint64_t>();
  Lease lease{*number, *number, *number, *number, *any_block()};
  lease.block.slot_count = std::min(lease.block.slot_count, 16u);
  lease.work = *rc::gen::element(Work::train, Work::evaluate);
  lease.lanes = *rc::gen::arbitrary<std::uint32_t>();
  std::int64_t samples = 0;
  for (std::uint32_t slot = 0; slot < lease.block.slot_count; ++slot) {
    lease.slot_samples.push_back(*rc::gen::inRange(0u, 300u));
    samples += lease.slot_samples.back();
  }
  lease.answer = any_answer();
  do {
    lease.coding = any_coding();
  } while (lease.coding.form == Form::shared);  // samples are not
  if (*rc::gen::arbitrary<bool>()) {
    using Kind = SampleNumber::Kind;
    for (std::int64_t i = samples; i > 0; --i) {
      lease.numbers.push_back({*rc::gen::arbitrary<std::uint32_t>(),
                               *rc::gen::element(Kind::kept, Kind::new_kept, Kind::passing)});
      if (lease.numbers.back().kind == Kind::kept) --samples;
    }
  }
  lease.tensors.assign(*rc::gen::inRange<std::size_t>(1, kInputsMax + 1),
                       {DType::u8, Shape{samples, 3}, false, ""});
  lease.tensors.push_back({DType::i64, Shape{samples}, false, ""});
  return lease;
}
template <>
Contribution any() {
  const auto number = rc::gen::arbitrary<std::uint64_t>();
  return {*number,      *number,
          *number,      *any_block(),
          *number,      *rc::gen::arbitrary<double>(),
          *number,      *number,
          *number,      *rc::gen::arbitrary<std::uint32_t>(),
          *number,      *number,
          *number,      *number,
          any_coding(), *any_tensors()};
}
template <>
Parameters any() {
  const auto count = *rc::gen::inRange<std::uint32_t>(0, 1 << 20);
  const Coding coding = any_coding();
  const bool shared = coding.form == Form::shared;  // whole, then
  const auto before = shared ? 0 : *rc::gen::arbitrary<std::uint32_t>();
  const auto after = shared ? 0 : *rc::gen::arbitrary<std::uint32_t>();
  return {*rc::gen::arbitrary<std::uint64_t>(),
          shared ? kNoVersion : *rc::gen::arbitrary<std::uint64_t>(),
          before,
          std::uint64_t{before} + count + after,
          coding,
          shared ? any_memory() : SharedBlock::Address(),
          {{DType::f32, Shape{count}, false, ""}}};
}
template <>
Feedback any() {
  Feedback feedback{.leaving = *rc::gen::arbitrary<bool>(),
                    .taken_over = *rc::gen::arbitrary<std::uint32_t>()};
  const auto floats = *rc::gen::inRange<std::int64_t>(0, 1 << 20);
  if (*rc::gen::arbitrary<bool>()) feedback.tensors = {{DType::f32, Shape{floats}, false, ""}};
  return feedback;
}
template <>
Verdict any() {
  return {*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<bool>()};
}
template <>
Goodbye any() {
  return {*rc::gen::element(ErrorKind::invalid, ErrorKind::corrupt, ErrorKind::incompatible,
                            ErrorKind::disconnected, ErrorKind::overloaded, ErrorKind::system,
                            ErrorKind::diverged),
          printable(*rc::gen::arbitrary<std::string>())};
}

template <class Message>
class EveryMessage : public testing::Test {};
using Messages =
    testing::Types<Heartbeat, Tensors, Lease, Contribution, Parameters, Feedback, Verdict, Goodbye>;
TYPED_TEST_SUITE(EveryMessage, Messages);

TYPED_TEST(EveryMessage, that_is_encoded_is_decoded) {
  EXPECT_TRUE(rc::check([] {
    const TypeParam message = any<TypeParam>();
    const auto decoded = Decode<TypeParam>::from(encoded(message), Limits{});
    RC_ASSERT(decoded.ok());
    RC_ASSERT(decoded.value() == message);
  }));
}

TYPED_TEST(EveryMessage, cut_short_anywhere_is_refused) {
  EXPECT_TRUE(rc::check([] {
    const Head head = encoded(any<TypeParam>());
    for (std::size_t size = 0; size < head.size(); ++size) {
      const auto decoded = Decode<TypeParam>::from(Bytes(head).first(size), Limits{});
      RC_ASSERT(!decoded.ok());
      RC_ASSERT(decoded.error().kind == ErrorKind::corrupt);
    }
  }));
}

TYPED_TEST(EveryMessage, with_bytes_after_it_is_refused) {
  EXPECT_TRUE(rc::check([] {
    Head head = encoded(any<TypeParam>());
    head.push_back(static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>()));
    const auto decoded = Decode<TypeParam>::from(head, Limits{});
    RC_ASSERT(!decoded.ok());
    RC_ASSERT(decoded.error().kind == ErrorKind::corrupt);
  }));
}

TYPED_TEST(EveryMessage, is_appended_to_what_is_there) {
  EXPECT_TRUE(rc::check([] {
    const TypeParam message = any<TypeParam>();
    Head head = {std::byte{9}};
    encode(message, head);
    RC_ASSERT(hex_of(head) == "09" + hex_of(encoded(message)));
  }));
}

}  // namespace
}  // namespace w5xde
