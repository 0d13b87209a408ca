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
  write_file(at + "ids", "\1\2\3");
  write_file(at + "x.npy", npy_file(npy_header("|u1", "(2, 3)"), "abcdef"));
  write_file(at + "y.npy", npy_file(npy_header("|u1", "(2,)"), "\1\2"));
  const std::vector<float> values = {1, 2};
  const TensorView view(std::as_bytes(std::span(values)), DType::f32, {2, 1});
  const std::vector<NamedTensor> tensors = {{"inputs", view}, {"targets", view}};
  ASSERT_TRUE(write_safetensors(at + "both", tensors, {}).ok());

  for (const std::string& spec :
       {"idx:" + at + "images," + at + "labels", "npy:" + at + "x.npy," + at + "y.npy",
        "safetensors:" + at + "both", std::string("random:3,2,2"), "text:" + at + "images,context=8",
        "tokens:" + at + "ids:u8,context=1"}) {
    const auto data = open_dataset(spec, Split::train, 1);
    ASSERT_TRUE(data.ok()) << data.error().message;
    EXPECT_EQ((*data)->samples(), 2u) << spec;
    EXPECT_EQ(open_dataset(spec, Split::test, 1).value(), nullptr) << spec;
  }
  EXPECT_EQ((*open_dataset("synthetic", Split::train, 1))->samples(), 1000u);
  EXPECT_EQ((*open_dataset("synthetic", Split::test, 1))->samples(), 1000u);
}

TEST(DatasetTest, what_is_named_to_evaluate_on_is_a_test_split_or_else_all_there_is) {
  const TemporaryFolder folder;
  const std::string file = folder.path().string() + "/val.txt";
  write_file(file, std::string(101, 'a'));
  const auto samples = [](const std::string& spec, Split split) {
    return open_dataset(spec, split, 1).value()->samples();
  };
  for (const std::string& spec : {"text:" + file + ",context=10", "tokens:" + file + ":u8,context=10"}) {
    EXPECT_EQ(samples(spec, Split::train), 9u);
    EXPECT_EQ(samples(spec, Split::evaluation), 10u);
  }
  EXPECT_EQ(samples("random:3,2,7", Split::evaluation), 7u);
  std::vector<std::byte> memory[2];
  for (const Split split : {Split::test, Split::evaluation}) {
    const auto data = open_dataset("synthetic", split, 1).value();
    std::vector<std::byte>& inputs = memory[split == Split::test ? 0 : 1];
    inputs.resize(data->inputs()[0].sample_bytes());
    std::vector<std::byte> targets(data->targets().sample_bytes());
    const std::uint32_t number = 0;
    const MutableBytes place(inputs);
    ASSERT_TRUE(data->gather({&number, 1}, {&place, 1}, targets).ok());
  }
  EXPECT_EQ(memory[0], memory[1]);
}

TEST(DatasetTest, an_unknown_kind_is_answered_with_the_known_ones) {
  for (const std::string spec : {"", "mnist", ":", "Idx:folder", "/some/folder"}) {
    const std::string refusal = refusal_of_spec(spec);
    EXPECT_TRUE(says(refusal, "there is no data set '" + spec + "'"));
    for (const char* known :
         {"synthetic", "idx:FOLDER", "npy:INPUTS[,MORE],TARGETS", "safetensors:FILE", "text:FILE[,context=N]",
          "tokens:FILE.npy", "random:FEATURES,CLASSES", "for example idx:/usr"}) {
      EXPECT_TRUE(says(refusal, known));
    }
  }
}

TEST(DatasetTest, a_kind_without_its_place_is_answered_with_how_it_is_written) {
  EXPECT_TRUE(says(refusal_of_spec("idx"), "data set 'idx': it is written idx:FOLDER or"));
  EXPECT_TRUE(says(refusal_of_spec("npy:"), "it is written npy:INPUTS[,MORE],TARGETS"));
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
  EXPECT_EQ(refusal_with({{"inputs", view}, {"targets", view}}), "accepted");
  EXPECT_TRUE(says(refusal_with({{"inputs", view}}), path + " has no tensor 'targets'"));
  EXPECT_TRUE(says(refusal_with({{"targets", view}}), path + " has no tensor but 'targets'"));
}

TEST(DatasetTest, every_other_tensor_of_a_safetensors_file_is_an_input_in_the_file_s_order) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1, 2};
  const std::vector<std::int64_t> ids = {3, 1};
  const TensorView floats(std::as_bytes(std::span(values)), DType::f32, {2}),
      whole(std::as_bytes(std::span(ids)), DType::i64, {2, 1});
  const std::string path = (folder / "a.safetensors").string();
  const std::vector<NamedTensor> tensors = {{"zebra", floats}, {"targets", whole}, {"ant", whole}};
  ASSERT_TRUE(write_safetensors(path, tensors, {}).ok());
  const auto data = open_dataset("safetensors:" + path, Split::train, 1).value();
  ASSERT_EQ(data->inputs().size(), 2u);
  EXPECT_EQ(data->inputs()[0].name, "zebra");
  EXPECT_EQ(data->inputs()[1].name, "ant");
  EXPECT_EQ(data->inputs()[1].ids, 4u);
  EXPECT_EQ(data->targets().name, "targets");
  EXPECT_EQ(data->classes(), 4u);
  EXPECT_EQ(gather_from(*data, {1}).inputs,
            memory_of(std::vector<float>{2}) + memory_of(std::vector<std::int64_t>{1}));
  // The class that does not count.
  EXPECT_EQ((*open_dataset("safetensors:" + path, Split::train, 1, 3))->classes(), 2u);
}

TEST(DatasetTest, a_model_is_evaluated_on_data_like_that_it_was_trained_on) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& spec) { return open_dataset(spec, Split::train, 1).value(); };
  const auto save = [&](const char* name, const char* dtype, const char* shape, std::string_view elements) {
    write_file(folder / name, npy_file(npy_header(dtype, shape), elements));
    return (folder / name).string();
  };
  const std::string labels = save("labels.npy", "|u1", "(2,)", std::string("\0\1", 2));
  const std::string pixels = save("pixels.npy", "|u1", "(2, 1)", "ab");
  const std::string floats = save("floats.npy", "<f4", "(2, 1)", "abcdefgh");
  const std::string ids = save("ids.npy", "<i2", "(2, 1)", std::string("\1\0\2\0", 4));
  const std::string more_ids = save("more_ids.npy", "<i2", "(2, 1)", std::string("\1\0\3\0", 4));
  const std::string more = save("more.npy", "|u1", "(2,)", std::string("\0\2", 2));
  const auto refusal = [&](const std::string& trained, const std::string& evaluated) {
    return refusal_of(check_alike(*open("npy:" + trained), *open("npy:" + evaluated)));
  };
  EXPECT_EQ(refusal(pixels + "," + labels, pixels + "," + labels), "accepted");
  EXPECT_EQ(refusal(pixels + "," + labels, floats + "," + labels), "accepted")
      << "both are numbers to a model";
  EXPECT_EQ(refusal(ids + "," + more, ids + "," + labels), "accepted");
  EXPECT_TRUE(says(refusal(ids + "," + labels, pixels + "," + labels),
                   "'pixels' is u8 [1] in the evaluation samples and i16 [1] in training samples"));
  EXPECT_TRUE(says(refusal(ids + "," + labels, more_ids + "," + labels), "ids up to 3"));
  EXPECT_TRUE(says(refusal(pixels + "," + labels, pixels + "," + ids + "," + labels),
                   "evaluation samples have 2 inputs, training samples 1"));
  EXPECT_TRUE(says(refusal(ids + "," + labels, ids + "," + more), "evaluation samples have 3 classes"));
  EXPECT_TRUE(says(refusal(ids + "," + labels, ids + "," + floats), "in the evaluation samples"));
}

}  // namespace
}  // namespace w5xde
