// The scripts of examples/, each as a person runs it, with sizes for seconds.
#include <gtest/gtest.h>

#include <fstream>

#include "pool.h"

namespace w5xde {
namespace {

class ExamplesTest : public testing::Test {
 protected:
  // What the example's command says; it ends well.
  std::string run(const std::string& example, const Words& arguments = {}) const {
    Words command = {W5XDE_EXAMPLES "/" + example + "/train"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return expect_well({command,
                        {.folder = pool_.folder(),
                         .environment = {{"W5XDE", W5XDE_PROGRAM},
                                         {"RUNS", (pool_.folder() / "runs").string()},
                                         {"HOME", pool_.home().string()}},
                         .with_output = true}});
  }
  std::string python(const Words& arguments) const {
    Words command = {"/usr/bin/python3"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return expect_well({command, {.folder = pool_.folder(), .with_output = true}});
  }
  static std::string expect_well(Process process) {
    EXPECT_EQ(process.wait(), 0) << process.said();
    return process.said();
  }
  static void expect_parts(const std::string& said, const Words& parts) {
    for (const std::string& part : parts)
      EXPECT_NE(said.find(part), std::string::npos) << "no '" << part << "' in:\n" << said;
  }

  Pool pool_{{.name = "examples", .flags = {}}};
};

TEST_F(ExamplesTest, gpt_trains_on_a_text_and_writes) {
  std::ofstream text(pool_.folder() / "text.txt");
  for (int i = 0; i < 200; ++i) text << "call me a whale, the ship sails on. ";
  text.close();
  expect_parts(run("gpt", {"text.txt,context=16", "--model", "gpt:1,2,16,16", "--steps", "20"}),
               {"perplexity", "It writes:\nCall me"});
}

TEST_F(ExamplesTest, fashion_mnist_is_trained_on_and_scored) {
  write_few_images(pool_.folder() / "images");
  expect_parts(run("fashion_mnist", {"images", "--steps", "3", "--batch", "8"}),
               {"1,024 samples", "10 classes", "step 3  samples 32", "accuracy"});
}

// Sheets as npm has them, of few pictures.
TEST_F(ExamplesTest, cifar10_is_unpacked_to_binary_files_trained_on_and_scored) {
  python({"-c",
          "import json, numpy as n, os; from PIL import Image; r = n.random.RandomState(1); "
          "os.mkdir('package')\n"
          "for name in ['data_batch_%d' % i for i in range(1, 6)] + ['test_batch']:\n"
          "  Image.fromarray(r.randint(0, 255, (12, 1024, 3)).astype('u1')).save(f'package/{name}.png')\n"
          "json.dump([i % 10 for i in range(60)], open('package/train_lables.json', 'w'))\n"
          "json.dump([i % 10 for i in range(12)], open('package/test_lables.json', 'w'))"});
  python({W5XDE_EXAMPLES "/cifar10/convert.py", "package", "cifar"});
  // The 15th picture is the third row of the second sheet: its label, then its red, green and blue.
  python({"-c",
          "import numpy as n; from PIL import Image; b = n.fromfile('cifar/data_batch_2.bin', "
          "'u1').reshape(12, 3073)\n"
          "sheet = n.asarray(Image.open('package/data_batch_2.png'))\n"
          "assert b[2, 0] == 4 and (b[2, 1:].reshape(3, 1024) == sheet[2].T).all()"});
  expect_parts(run("cifar10", {"cifar", "--model", "lenet", "--steps", "3", "--batch", "8"}),
               {"60 samples", "[3, 32, 32]", "step 3  samples 12", "accuracy"});
}

TEST_F(ExamplesTest, a_model_of_one_s_own_is_trained_and_used_in_python) {
  const std::string said = run("bring_your_own", {"--epochs", "3"});
  expect_parts(said, {"audit: ", "the model of step "});
  const std::size_t at = said.rfind(" of 4000 right");
  ASSERT_NE(at, std::string::npos) << said;
  EXPECT_GT(std::stoi(said.substr(said.rfind('\n', at) + 1)), 2000) << "a third is chance";
}

TEST_F(ExamplesTest, a_table_is_shown_trained_on_and_scored) {
  expect_parts(run("table", {"--steps", "200", "--evaluate-every", "50"}),
               {"kind: flat, house, villa", "garden: no, yes", "step ", "samples 200", "loss 0."});
}

}  // namespace
}  // namespace w5xde
