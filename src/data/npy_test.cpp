#include "data/npy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "support/data_files.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

std::string refusal_of_file(const std::string& file) {
  return refusal_of(parse_npy(bytes_of(file)));
}

std::string refusal_of_header(const std::string& header) {
  return refusal_of_file(npy_file(header, "12345678"));
}

// numpy.save of numpy.array([[1, 2, 3]], dtype='<i4'), byte by byte.
TEST(NpyTest, a_file_as_numpy_writes_it_is_read) {
  std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
  file += "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 3), }";
  file.resize(127, ' ');
  file += '\n';
  file += memory_of(std::vector<std::int32_t>{1, 2, 3});
  const auto tensor = parse_npy(bytes_of(file));
  ASSERT_TRUE(tensor.ok()) << tensor.error().message;
  EXPECT_EQ(tensor->dtype(), DType::i32);
  EXPECT_EQ(tensor->shape(), (Shape{1, 3}));
  EXPECT_EQ(text_of(tensor->bytes()), memory_of(std::vector<std::int32_t>{1, 2, 3}));
}

TEST(NpyTest, version_2_has_a_longer_length) {
  const std::string header = npy_header("|u1", "(2,)");
  std::string file("\x93NUMPY\x02\x00", 8);
  file += memory_of(std::vector<std::uint32_t>{static_cast<std::uint32_t>(header.size())});
  const auto tensor = parse_npy(bytes_of(file += header + "ab"));
  ASSERT_TRUE(tensor.ok()) << tensor.error().message;
  EXPECT_EQ(text_of(tensor->bytes()), "ab");
}

TEST(NpyTest, keys_come_in_any_order_and_with_either_quote) {
  EXPECT_EQ(refusal_of_header(R"({"shape":(2,4),"descr":"|u1","fortran_order":False})"), "accepted");
  EXPECT_EQ(refusal_of_header(npy_header("<f8", "()")), "accepted");
}

RC_GTEST_PROP(NpyTest, every_shape_and_dtype_that_is_written_is_read, ()) {
  const auto [name, dtype] = *rc::gen::element(
      std::pair("<f4", DType::f32), std::pair("<f8", DType::f64), std::pair("<f2", DType::f16),
      std::pair("|u1", DType::u8), std::pair("|i1", DType::i8), std::pair("<i2", DType::i16),
      std::pair("<i4", DType::i32), std::pair("<i8", DType::i64), std::pair("|b1", DType::boolean));
  const auto rank = *rc::gen::inRange<std::size_t>(0, kRankMax + 1);
  const auto dims =
      *rc::gen::container<std::vector<std::int64_t>>(rank, rc::gen::inRange<std::int64_t>(0, 4));
  std::string shape_text = "(";
  for (const std::int64_t dim : dims) shape_text += fmt::format("{}, ", dim);
  const Shape shape = Shape::make(dims).value();
  const std::string elements(shape.elements() * size_of(dtype), 'e');
  const std::string file = npy_file(npy_header(name, shape_text + ")"), elements);
  const auto tensor = parse_npy(bytes_of(file));
  RC_ASSERT(tensor.ok());
  RC_ASSERT(tensor->dtype() == dtype);
  RC_ASSERT(tensor->shape() == shape);
  RC_ASSERT(text_of(tensor->bytes()) == elements);
}

TEST(NpyTest, what_is_well_formed_but_not_read_comes_with_what_to_do) {
  EXPECT_TRUE(says(refusal_of_header("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2)}"),
                   "invalid: the array is in Fortran order. Save it in C order"));
  EXPECT_TRUE(says(refusal_of_header(npy_header(">f4", "(2,)")), "dtype '>f4' is not read. Convert"));
  EXPECT_TRUE(says(refusal_of_header(npy_header("<c8", "(1,)")), "dtype '<c8' is not read"));
  EXPECT_TRUE(says(refusal_of_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
                   "structured records"));
  std::string version_3 = npy_file(npy_header("|u1", "(8,)"), "12345678");
  version_3[6] = '\3';
  EXPECT_TRUE(says(refusal_of_file(version_3), "incompatible: .npy version 3.0 is not read"));
}

TEST(NpyTest, each_way_to_be_wrong_is_refused_with_its_reason) {
  EXPECT_TRUE(says(refusal_of_file(""), "corrupt: this is not a .npy file"));
  EXPECT_TRUE(says(refusal_of_file("\x93NUMPY"), "ends within its header"));
  EXPECT_TRUE(says(refusal_of_file(std::string("\x93NUMPY\x01\x00\x09\x00{", 11)), "ends within"));
  EXPECT_TRUE(
      says(refusal_of_file(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)), "claims 4294967295 bytes"));
  EXPECT_TRUE(says(refusal_of_header("[]"), "is no dictionary"));
  EXPECT_TRUE(says(refusal_of_header("{}"), "lacks 'descr'"));
  EXPECT_TRUE(says(refusal_of_header("{'descr': '|u1', 'shape': (8,)}"), "lacks 'fortran_order'"));
  EXPECT_TRUE(says(refusal_of_header("{'descr': '|u1', 'descr': '|u1'}"), "an unknown key"));
  EXPECT_TRUE(says(refusal_of_header("{'colour': 'red'}"), "an unknown key"));
  EXPECT_TRUE(says(refusal_of_header("{'descr': 5}"), "has no dtype"));
  EXPECT_TRUE(says(refusal_of_header("{'fortran_order': None}"), "does not tell its order"));
  EXPECT_TRUE(says(refusal_of_header("{'shape': 8}"), "has no shape"));
  EXPECT_TRUE(says(refusal_of_header("{'shape': (8, x)}"), "a shape that is none"));
  EXPECT_TRUE(says(refusal_of_header("{'shape': (1,1,1,1,1,1,1,1,8)}"), "a shape that is none"));
  EXPECT_TRUE(says(refusal_of_header("{'shape': (-8,)}"), "an impossible shape"));
  EXPECT_TRUE(says(refusal_of_header("{'shape': (4611686018427387904, 4)}"), "an impossible shape"));
  EXPECT_TRUE(says(refusal_of_header(npy_header("|u1", "(8,)") + "x"), "goes on after its end"));
  EXPECT_TRUE(says(refusal_of_header(npy_header("<f4", "(3,)")), "needs 12 bytes, the file has 8"));
  EXPECT_TRUE(says(refusal_of_header(npy_header("<f4", "(1,)")), "needs 4 bytes, the file has 8"));
}

TEST(NpyTest, two_files_are_a_data_set) {
  const TemporaryFolder folder;
  const std::string inputs = memory_of(std::vector<float>{1, 2, 3, 4});
  write_file(folder / "x.npy", npy_file(npy_header("<f4", "(2, 2)"), inputs));
  write_file(folder / "y.npy",
             npy_file(npy_header("<i8", "(2,)"), memory_of(std::vector<std::int64_t>{4, 0})));
  const std::string x = (folder / "x.npy").string();
  const std::string y = (folder / "y.npy").string();
  const auto data = open_npy(x + "," + y);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ((*data)->classes(), 5u);
  EXPECT_EQ(gather_from(**data, {0, 1}).inputs, inputs);

  EXPECT_TRUE(says(refusal_of(open_npy(x)), "npy: takes two files with one comma"));
  EXPECT_TRUE(says(refusal_of(open_npy(x + "," + y + "," + y)), "npy: takes two files with one comma"));
  EXPECT_TRUE(says(refusal_of(open_npy(x + "," + y + "s")), "there is no file " + y + "s"));
  write_file(folder / "y.npy", "text");
  EXPECT_TRUE(says(refusal_of(open_npy(x + "," + y)), y + ": this is not a .npy file"));
}

}  // namespace
}  // namespace w5xde
