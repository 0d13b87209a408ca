#include "data/windows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "support/data_files.h"

namespace w5xde {
namespace {

// Ids 0, 1, 2, … in memory that goes with the row.
template <class Id>
IdRow row_of(std::uint64_t count, IdRow::Type type) {
  std::vector<Id> ids;
  for (std::uint64_t i = 0; i < count; ++i) ids.push_back(static_cast<Id>(i));
  const auto owner = std::make_shared<const std::vector<Id>>(std::move(ids));
  return {.name = "row",
          .type = type,
          .bytes = std::as_bytes(std::span(*owner)),
          .owner = owner,
          .vocabulary = static_cast<std::uint32_t>(count)};
}

template <class Id>
std::string ids_from(std::uint64_t first, std::uint64_t count) {
  std::vector<Id> ids;
  for (std::uint64_t i = 0; i < count; ++i) ids.push_back(static_cast<Id>(first + i));
  return memory_of(ids);
}

TEST(WindowsTest, a_window_s_targets_are_the_ids_after_its_inputs) {
  const auto train = make_windows(row_of<std::uint8_t>(100, IdRow::Type::u8), 8, Split::train).value();
  EXPECT_EQ(train->samples(), 11u);  // 90 ids: eleven windows take 89
  EXPECT_EQ(train->classes(), 100u);
  EXPECT_EQ(train->inputs()[0].ids, 100u);
  EXPECT_EQ(train->inputs()[0].kind(), SampleField::Kind::whole);
  EXPECT_EQ(train->inputs()[0].shape, Shape{8});
  EXPECT_TRUE(is_sequence(train->targets()));
  const Gathered gathered = gather_from(*train, {10, 0});
  EXPECT_EQ(gathered.inputs, ids_from<std::uint8_t>(80, 8) + ids_from<std::uint8_t>(0, 8));
  EXPECT_EQ(gathered.targets, ids_from<std::uint8_t>(81, 8) + ids_from<std::uint8_t>(1, 8));

  const auto test = make_windows(row_of<std::uint8_t>(100, IdRow::Type::u8), 8, Split::test).value();
  EXPECT_EQ(test->samples(), 1u);
  EXPECT_EQ(gather_from(*test, {0}).inputs, ids_from<std::uint8_t>(90, 8));
}

TEST(WindowsTest, ids_of_every_width_are_gathered_as_the_wire_has_them) {
  const std::vector<std::uint32_t> numbers = {2, 0};
  const auto gathered = [&](const IdRow& row, DType dtype) {
    const auto data = make_windows(row, 3, Split::train).value();
    EXPECT_EQ(data->inputs()[0].dtype, dtype);
    EXPECT_EQ(data->targets().dtype, dtype);
    return gather_from(*data, numbers).targets;
  };
  EXPECT_EQ(gathered(row_of<std::uint16_t>(70, IdRow::Type::u16), DType::i32),
            ids_from<std::int32_t>(7, 3) + ids_from<std::int32_t>(1, 3));
  EXPECT_EQ(gathered(row_of<std::int32_t>(70, IdRow::Type::i32), DType::i32),
            ids_from<std::int32_t>(7, 3) + ids_from<std::int32_t>(1, 3));
  EXPECT_EQ(gathered(row_of<std::int64_t>(70, IdRow::Type::i64), DType::i64),
            ids_from<std::int64_t>(7, 3) + ids_from<std::int64_t>(1, 3));
}

RC_GTEST_PROP(WindowsTest, an_epoch_sees_each_id_of_its_split_once_but_what_makes_no_window, ()) {
  const auto count = *rc::gen::inRange<std::uint64_t>(2, 400);
  const auto context = *rc::gen::inRange<std::uint32_t>(1, 40);
  const std::uint64_t train = count - count / 10;
  for (const auto& [split, first, ids] :
       {std::tuple(Split::train, std::uint64_t{0}, train), std::tuple(Split::test, train, count / 10)}) {
    const auto data = make_windows(row_of<std::int32_t>(count, IdRow::Type::i32), context, split);
    if (ids <= context) {
      const bool right = split == Split::train ? !data.ok() : data.ok() && *data == nullptr;
      RC_ASSERT(right);
      continue;
    }
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < (*data)->samples(); ++i) numbers.push_back(i);
    const std::uint64_t seen = numbers.size() * std::uint64_t{context};
    RC_ASSERT(seen < ids && seen + context >= ids);
    const Gathered gathered = gather_from(**data, numbers);
    RC_ASSERT(gathered.inputs == ids_from<std::int32_t>(first, seen));
    RC_ASSERT(gathered.targets == ids_from<std::int32_t>(first + 1, seen));
  }
}

TEST(WindowsTest, a_row_that_is_named_to_evaluate_on_is_used_as_a_whole) {
  const IdRow row = row_of<std::uint8_t>(100, IdRow::Type::u8);
  const auto data = make_windows(row, 9, Split::evaluation).value();
  EXPECT_EQ(data->samples(), 11u);  // 99 of 100 ids, and the one after them
  EXPECT_EQ(gather_from(*data, {0, 10}).inputs, ids_from<std::uint8_t>(0, 9) + ids_from<std::uint8_t>(90, 9));
  EXPECT_TRUE(says(refusal_of(make_windows(row, 100, Split::evaluation)), "of which 100 are for evaluation"));
}

TEST(WindowsTest, a_row_that_is_shorter_than_a_window_is_refused_with_both_lengths) {
  EXPECT_TRUE(
      says(refusal_of(make_windows(row_of<std::uint8_t>(100, IdRow::Type::u8), 90, Split::train)),
           "invalid: row has 100 ids, of which 90 are for training, and a window with context=90 takes 91"));
  EXPECT_TRUE(
      says(refusal_of(make_windows(row_of<std::uint8_t>(0, IdRow::Type::u8), 1, Split::train)), "has 0 ids"));
  EXPECT_EQ(make_windows(row_of<std::uint8_t>(100, IdRow::Type::u8), 10, Split::test).value(), nullptr);
}

TEST(WindowsTest, a_place_may_say_its_context) {
  const auto plain = parse_window_place("a,b.txt").value();
  EXPECT_EQ(plain.file, "a,b.txt");
  EXPECT_EQ(plain.context, 128u);
  const auto said = parse_window_place("a,b.txt,context=64").value();
  EXPECT_EQ(said.file, "a,b.txt");
  EXPECT_EQ(said.context, 64u);
  for (const char* wrong : {"a,context=0", "a,context=", "a,context=-1", "a,context=8x", "a,context=9999999"})
    EXPECT_TRUE(says(refusal_of(parse_window_place(wrong)), "is not a context")) << wrong;
}

}  // namespace
}  // namespace w5xde
