#include "tensor/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  store<std::uint64_t>(reinterpret_cast<std::byte*>(file.data()), header.size());
  return file + header + data;
}

std::string refusal_of(const std::string& file) {
  const auto contents = parse_safetensors(bytes_of(file));
  if (contents.ok()) return "accepted";
  EXPECT_NE(contents.error().kind, ErrorKind::system);
  return contents.error().message;
}

std::string one_tensor(const std::string& description) {
  return file_of(R"({"t":)" + description + "}", std::string(8, 'x'));
}

TEST(SafetensorsTest, the_bytes_of_a_small_file_are_pinned) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1.0f, -2.0f};
  const std::vector<NamedTensor> tensors = {
      {"w", TensorView(std::as_bytes(std::span(values)), DType::f32, Shape{2, 1})}};
  ASSERT_TRUE(write_safetensors(folder / "a.safetensors", tensors, {{"step", "7"}}).ok());
  const auto file = MappedFile::open(folder / "a.safetensors");
  const std::string header =
      R"({"__metadata__":{"step":"7"},"w":{"data_offsets":[0,8],"dtype":"F32","shape":[2,1]}})";
  const std::string expected =
      file_of(header + std::string(120 - header.size(), ' '), std::string("\0\0\x80\x3f\0\0\0\xc0", 8));
  EXPECT_EQ(text_of(file->bytes()), expected);
}

TEST(SafetensorsTest, data_starts_aligned) {
  const TemporaryFolder folder;
  const std::vector<double> values = {1.0, 2.0};
  const std::vector<NamedTensor> tensors = {
      {"wide", TensorView(std::as_bytes(std::span(values)), DType::f64, Shape{2})}};
  ASSERT_TRUE(write_safetensors(folder / "a", tensors, {}).ok());
  const auto file = SafetensorsFile::open(folder / "a");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file->contents().find("wide")->bytes().data()) % kAlignment, 0u);
  EXPECT_EQ(file->contents().find("missing"), nullptr);
}

TEST(SafetensorsTest, a_file_of_another_writer_is_read) {
  const std::string header = R"( {"b":{"dtype":"BF16","shape":[],"data_offsets":[4,6]},)"
                             R"("a":{"shape":[1,1],"data_offsets":[0,4],"dtype":"F32"}})";
  const std::string file = file_of(header, "abcdef");
  const auto contents = parse_safetensors(bytes_of(file));
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  EXPECT_EQ(contents->tensors[0].name, "a");
  EXPECT_EQ(text_of(contents->find("b")->bytes()), "ef");
  EXPECT_EQ(contents->find("b")->shape(), Shape());
}

TEST(SafetensorsTest, each_way_to_be_wrong_is_refused_with_its_reason) {
  const auto says = [](const std::string& file, const std::string& expected) {
    const std::string refusal = refusal_of(file);
    EXPECT_NE(refusal.find(expected), std::string::npos)
        << "'" << refusal << "' should say '" << expected << "'";
  };
  says("", "this is not a safetensors file; safetensors.torch.save_file writes one");
  says("x,y\n1.5,2\n3.5,4\n", "this is not a safetensors file");
  says(file_of(std::string(100, ' '), "").substr(0, 50),
       "ends within its header: that has 100 bytes, the whole file 50");
  says(file_of("{", ""), "not a JSON object");
  says(file_of("[]", ""), "not a JSON object");
  says(file_of(std::string(1 << 20, '['), ""), "nested deeper");
  says(file_of(R"({"a\"[[[[":1})", ""), "not described by an object");
  says(file_of(R"({"t":{"shape":[[1]]}})", ""), "nested deeper");
  says(file_of(R"({"t":1})", ""), "not described by an object");
  says(file_of(R"({"__metadata__":{"a":1}})", ""), "metadata 'a' is not a string");
  says(one_tensor(R"({"shape":[8],"data_offsets":[0,8]})"), "has no dtype");
  says(one_tensor(R"({"dtype":"F8","shape":[8],"data_offsets":[0,8]})"),
       "dtype 'F8', which is not supported");
  says(one_tensor(R"({"dtype":"U8","data_offsets":[0,8]})"), "has no shape");
  says(one_tensor(R"({"dtype":"U8","shape":[-8],"data_offsets":[0,8]})"), "shape that is none");
  says(one_tensor(R"({"dtype":"U8","shape":[8.0],"data_offsets":[0,8]})"), "shape that is none");
  says(one_tensor(R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,8],"data_offsets":[0,8]})"),
       "shape that is none");
  says(one_tensor(R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,8]})"), "dimension 0");
  says(one_tensor(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"), "overflows");
  says(one_tensor(R"({"dtype":"U8","shape":[8],"data_offsets":[0]})"), "no data_offsets");
  says(one_tensor(R"({"dtype":"U8","shape":[8],"data_offsets":[8,0]})"), "claims bytes 8 to 0");
  says(one_tensor(R"({"dtype":"U8","shape":[8],"data_offsets":[1,9]})"), "claims bytes 1 to 9");
  says(one_tensor(R"({"dtype":"U8","shape":[9],"data_offsets":[0,9]})"), "claims bytes 0 to 9");
  says(one_tensor(R"({"dtype":"U8","shape":[7],"data_offsets":[0,7]})"),
       "1 bytes of data belong to no tensor");
  says(file_of(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
               R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
               "x"),
       "names something twice");
  says(one_tensor(R"({"dtype":"f64","shape":[1],"data_offsets":[0,8]})"),
       "dtype 'f64', which is not supported");
  says(one_tensor(R"({"dtype":"C64","shape":[1],"data_offsets":[0,8]})"),
       "dtype 'C64', which is not supported");
  says(one_tensor(R"({"dtype":"","shape":[1],"data_offsets":[0,8]})"), "dtype '', which is not supported");
}

TEST(SafetensorsTest, overlapping_tensors_are_refused) {
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})";
  EXPECT_NE(refusal_of(file_of(header, "abcdef")).find("tensor 'b' claims bytes 2 to 6"), std::string::npos);
}

TEST(SafetensorsTest, an_error_names_the_file) {
  const TemporaryFolder folder;
  std::ofstream(folder / "bad") << "short";
  EXPECT_NE(SafetensorsFile::open(folder / "bad").error().message.find("/bad: "), std::string::npos);
  EXPECT_EQ(SafetensorsFile::open(folder / "none").error().kind, ErrorKind::invalid);
}

TEST(SafetensorsTest, a_name_used_twice_is_not_written) {
  const TemporaryFolder folder;
  const NamedTensor tensor{"t", TensorView::of_bytes({})};
  EXPECT_EQ(write_safetensors(folder / "a", std::vector{tensor, tensor}, {}).error().kind,
            ErrorKind::invalid);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SafetensorsTest, complex_numbers_are_not_written) {
  const TemporaryFolder folder;
  const std::vector<std::byte> number(8);
  const NamedTensor tensor{"t", TensorView(number, DType::c64, Shape{1})};
  EXPECT_EQ(write_safetensors(folder / "a", {&tensor, 1}, {}).error().kind, ErrorKind::invalid);
}

TEST(SafetensorsTest, a_header_too_long_to_be_read_again_is_not_written) {
  const TemporaryFolder folder;
  const Metadata metadata = {{"note", std::string(17 << 20, 'x')}};
  EXPECT_EQ(write_safetensors(folder / "a.safetensors", {}, metadata).error().kind, ErrorKind::overloaded);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.safetensors"));
}

RC_GTEST_PROP(SafetensorsTest, what_is_written_is_read_back, ()) {
  const TemporaryFolder folder;
  const auto count = *rc::gen::inRange<std::size_t>(0, 6);
  std::vector<std::vector<std::byte>> memory(count);
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    const auto dtype = *rc::gen::elementOf(std::vector<DType>(kDTypes.begin(), kDTypes.end() - 2));
    const auto dims = *rc::gen::container<std::vector<std::int64_t>>(*rc::gen::inRange<std::size_t>(0, 4),
                                                                     rc::gen::inRange<std::int64_t>(0, 5));
    const Shape shape = Shape::make(dims).value();
    memory[i] = *rc::gen::container<std::vector<std::byte>>(
        shape.elements() * size_of(dtype), rc::gen::cast<std::byte>(rc::gen::arbitrary<std::uint8_t>()));
    tensors.push_back({fmt::format("layer \"{}\"/weight", i), TensorView(memory[i], dtype, shape)});
  }
  Metadata metadata = {{"seed", std::to_string(*rc::gen::arbitrary<int>())}};
  RC_ASSERT(write_safetensors(folder / "file", tensors, metadata).ok());
  const auto file = SafetensorsFile::open(folder / "file");
  RC_ASSERT(file.ok());
  RC_ASSERT(file->contents().metadata == metadata);
  RC_ASSERT(file->contents().tensors.size() == count);
  for (const NamedTensor& expected : tensors) {
    const TensorView* read = file->contents().find(expected.name);
    RC_ASSERT(read != nullptr);
    RC_ASSERT(read->dtype() == expected.tensor.dtype());
    RC_ASSERT(read->shape() == expected.tensor.shape());
    RC_ASSERT(text_of(read->bytes()) == text_of(expected.tensor.bytes()));
  }
}

}  // namespace
}  // namespace w5xde
