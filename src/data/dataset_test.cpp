#include "data/dataset.h"

#include <gtest/gtest.h>

#include <string>

#include "support/data_files.h"
#include "support/temporary_folder.h"
#include "tensor/safetensors.h"

namespace w5xde {
namespace {

std::string refusal_of_spec(const std::string& spec) {
  return refusal_of(open_dataset(spec, Split::train, 1));
}

TEST(DatasetTest, every_kind_opens_by_its_name) {
  const TemporaryFolder folder;
  const std::string at = folder.path().string() + "/";
  write_file(at + "images", idx_file({2, 1, 1}, "ab"));
  write_file(at + "labels", idx_file({2}, "\1\2"));
  write_file(at + "x.npy", npy_file(npy_header("|u1", "(2, 3)"), "abcdef"));
  write_file(at + "y.npy", npy_file(npy_header("|u1", "(2,)"), "\1\2"));
  const std::vector<float> values = {1, 2};
  const TensorView view(std::as_bytes(std::span(values)), DType::f32, {2, 1});
  const std::vector<NamedTensor> tensors = {{"inputs", view}, {"targets", view}};
  ASSERT_TRUE(write_safetensors(at + "both", tensors, {}).ok());

  for (const std::string& spec :
       {"idx:" + at + "images," + at + "labels", "npy:" + at + "x.npy," + at + "y.npy",
        "safetensors:" + at + "both", std::string("random:3,2,2")}) {
    const auto data = open_dataset(spec, Split::train, 1);
    ASSERT_TRUE(data.ok()) << data.error().message;
    EXPECT_EQ((*data)->samples(), 2u) << spec;
    EXPECT_EQ(open_dataset(spec, Split::test, 1).value(), nullptr) << spec;
  }
  EXPECT_EQ((*open_dataset("synthetic", Split::train, 1))->samples(), 1000u);
  EXPECT_EQ((*open_dataset("synthetic", Split::test, 1))->samples(), 1000u);
}

TEST(DatasetTest, an_unknown_kind_is_answered_with_the_known_ones) {
  for (const std::string spec : {"", "mnist", ":", "Idx:folder", "/some/folder"}) {
    const std::string refusal = refusal_of_spec(spec);
    EXPECT_TRUE(says(refusal, "there is no data set '" + spec + "'"));
    for (const char* known : {"synthetic", "idx:FOLDER", "npy:INPUTS,TARGETS", "safetensors:FILE",
                              "random:FEATURES,CLASSES", "for example idx:/usr"}) {
      EXPECT_TRUE(says(refusal, known));
    }
  }
}

TEST(DatasetTest, a_kind_without_its_place_is_answered_with_how_it_is_written) {
  EXPECT_TRUE(says(refusal_of_spec("idx"), "data set 'idx': it is written idx:FOLDER or"));
  EXPECT_TRUE(says(refusal_of_spec("npy:"), "it is written npy:INPUTS,TARGETS"));
  EXPECT_TRUE(says(refusal_of_spec("synthetic:5"), "it is written synthetic"));
}

TEST(DatasetTest, an_error_names_the_data_set_that_was_asked_for) {
  EXPECT_TRUE(says(refusal_of_spec("safetensors:/nowhere"),
                   "data set 'safetensors:/nowhere': there is no file /nowhere"));
}

TEST(DatasetTest, a_safetensors_file_without_inputs_or_targets_is_refused) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1, 2};
  const TensorView view(std::as_bytes(std::span(values)), DType::f32, {2});
  const std::string path = (folder / "a.safetensors").string();
  const auto refusal_with = [&](const std::vector<NamedTensor>& tensors) {
    EXPECT_TRUE(write_safetensors(path, tensors, {}).ok());
    return refusal_of_spec("safetensors:" + path);
  };
  EXPECT_EQ(refusal_with({{"inputs", view}, {"targets", view}, {"notes", view}}), "accepted");
  EXPECT_TRUE(says(refusal_with({{"inputs", view}}), path + " has no tensor 'targets'"));
  EXPECT_TRUE(says(refusal_with({{"targets", view}}), "has no tensor 'inputs'"));
  const TensorView halves(std::as_bytes(std::span(values)), DType::f16, {4});
  EXPECT_TRUE(
      says(refusal_with({{"inputs", halves}, {"targets", view}}), "'inputs' of " + path + " has dtype f16"));
}

}  // namespace
}  // namespace w5xde
