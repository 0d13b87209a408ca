// Models by name in pools of processes, and what a trained run is good for: text, outputs, a model file.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "pool.h"

namespace w5xde {
namespace {

constexpr int kUsage = 2;

// Sentences of few words, so that little training shows.
std::string small_text() {
  std::string text;
  for (int i = 0; text.size() < 6000; ++i) {
    text += i % 3 == 0   ? "the whale swims on the sea. "
            : i % 3 == 1 ? "the ship sails. "
                         : "call me a whale. ";
  }
  return text;
}

Workload text_run(const std::string& name, const std::string& model, const std::string& steps) {
  return {.name = name,
          .flags = {"--model", model, "--data", "text:text.txt,context=16", "--optimizer", "adamw",
                    "--learning-rate", "0.01", "--batch", "4", "--slots", "4", "--steps", steps}};
}

// With every slot's own crops and flips.
Workload image_run(const std::string& name, const std::string& model, const std::string& steps) {
  return {.name = name + "_images",
          .flags = {"--model", model, "--data", "idx:images", "--normalize", "auto", "--augment",
                    "crop:3,flip", "--momentum", "0.9", "--learning-rate", "0.01", "--batch", "2", "--slots",
                    "4", "--steps", steps}};
}

// A run of a model by name, on data that the test makes.
class NamedPool : public Pool {
 public:
  explicit NamedPool(const Workload& workload) : Pool(workload) {
    std::ofstream(folder() / "text.txt", std::ios::binary) << small_text();
  }

  // Runs to its end; what it printed.
  std::string expect_well(Process process) const {
    EXPECT_EQ(process.wait(), 0) << process.said();
    return process.said();
  }
  void python(const std::string& script) const {
    expect_well(Process({"/usr/bin/python3", "-c", script}, {.folder = folder()}));
  }
  std::string content(const std::string& file) const {
    std::ifstream in(folder() / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

Workload in_bf16(Workload run) {
  run.flags.insert(run.flags.end(), {"--compute", "bf16"});
  return run;
}

class NamedModelTest : public testing::TestWithParam<Workload> {};

TEST_P(NamedModelTest, is_trained_to_the_same_bits_by_one_three_and_seven_nodes) {
  std::string alone;
  for (const unsigned nodes : {1U, 3U, 7U}) {
    NamedPool pool(GetParam());
    pool.expect_well(nodes == 1 ? pool.train(1, {"--cores", "1"}) : pool.train(nodes, {"--turns", "false"}));
    const auto summary = pool.summary();
    EXPECT_EQ(summary.at("nodes"), nodes);
    EXPECT_EQ(summary.at("audit").at("samples_committed"), summary.at("audit").at("samples_expected"));
    const std::string hash = summary.at("parameters_hash");
    if (nodes == 1) alone = hash;
    EXPECT_EQ(hash, alone) << nodes;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, NamedModelTest,
    testing::Values(text_run("gpt", "gpt:2,2,16,16,dropout=0.1", "30"),
                    in_bf16(text_run("gpt_bf16", "gpt:2,2,16,16,dropout=0.1", "30")),
                    text_run("lstm", "lstm:2,16", "20"), image_run("vit", "vit:7,2,2,16,dropout=0.1", "20"),
                    image_run("resnet18", "resnet18", "2"), image_run("mlp", "mlp:784,16,10", "20"),
                    image_run("lenet", "lenet", "20"), image_run("resnet_small", "resnet-small", "10")),
    [](const auto& workload) { return workload.param.name; });

TEST(SampleCommand, writes_the_same_text_for_the_same_seed_and_has_learnt_its_words) {
  NamedPool pool(text_run("gpt", "gpt:2,2,32,16", "400"));
  pool.expect_well(pool.train(2));
  const auto text_of = [&](const Words& more) {
    Words words = {"sample", "run", "--prompt", "the wh", "--length", "60"};
    words.insert(words.end(), more.begin(), more.end());
    return pool.expect_well(pool.start(words, {.with_output = true}));
  };
  const std::string likeliest = text_of({"--temperature", "0"});
  EXPECT_EQ(likeliest.size(), 66u);
  EXPECT_TRUE(likeliest.starts_with("the whale ")) << likeliest;
  const std::string drawn = text_of({"--temperature", "1.5", "--seed", "1"});
  EXPECT_EQ(text_of({"--temperature", "1.5", "--seed", "1"}), drawn);
  EXPECT_NE(text_of({"--temperature", "1.5", "--seed", "2"}), drawn);
  // Of a checkpoint that is named, as of the newest.
  const std::string last = "run/checkpoints/step-000000400.safetensors";
  EXPECT_EQ(text_of({"--temperature", "1.5", "--checkpoint", last}), drawn);
}

TEST(SampleCommand, refuses_what_is_no_language_model_and_says_what_to_do) {
  NamedPool pool(
      {.name = "mlp_numbers", .flags = {"--model", "mlp:10,5,10", "--data", "synthetic", "--steps", "2"}});
  pool.expect_well(pool.train(1));
  Process sample = pool.start({"sample", "run"});
  EXPECT_EQ(sample.wait(), kUsage);
  EXPECT_NE(sample.said().find("--data text:FILE --model gpt:"), std::string::npos) << sample.said();
  Process exported = pool.start({"export", "run", "net.pt"});
  EXPECT_EQ(exported.wait(), kUsage);
  EXPECT_NE(exported.said().find("net.safetensors"), std::string::npos) << exported.said();
}

// The evaluated samples are the last tenth of the text, in windows of 16.
TEST(EvalCommand, writes_outputs_whose_loss_is_the_evaluation_s) {
  NamedPool pool(text_run("gpt", "gpt:1,2,16,16", "20"));
  pool.expect_well(pool.train(1));
  pool.expect_well(pool.start({"eval", "run", "--outputs", "outputs.npy", "--json", "scores.json"}));
  pool.python(
      "import json, numpy as n\n"
      "text = n.fromfile('text.txt', 'u1'); outputs = n.load('outputs.npy').astype('f8')\n"
      "test = text[len(text) - len(text) // 10:]; count = (len(test) - 1) // 16\n"
      "targets = test[1:count * 16 + 1].reshape(count, 16)\n"
      "assert outputs.shape == (count, 16, 256), outputs.shape\n"
      "shares = outputs - n.log(n.exp(outputs).sum(-1, keepdims=True))\n"
      "loss = -n.take_along_axis(shares, targets[..., None].astype('i8'), -1).mean()\n"
      "scores = json.load(open('scores.json'))\n"
      "assert abs(loss - scores['loss']) < 1e-5, (loss, scores)\n"
      "assert abs((outputs.argmax(-1) == targets).mean() - scores['accuracy']) < 1e-9");
}

TEST(ExportCommand, a_scripted_model_gives_in_python_what_an_evaluation_gives) {
  for (const std::string model : {"mixed", "dropout"}) {
    SCOPED_TRACE(model);
    NamedPool pool({.name = "scripted",
                    .flags = {"--model", W5XDE_TORCH_MODELS "/" + model + ".pt", "--data", "npy:x.npy,y.npy",
                              "--batch", "16", "--slots", "4", "--steps", "30", "--learning-rate", "0.05"}});
    pool.python(
        "import numpy as n; r = n.random.RandomState(1); x = r.randn(512, 8).astype('f4') * 3 + 2\n"
        "n.save('x.npy', x); n.save('y.npy', (x.sum(1) > 16).astype('i8') + 2 * (x[:, 0] > 2) + (x[:, 1] > "
        "2))");
    pool.expect_well(pool.train(2));
    pool.expect_well(pool.start({"eval", "run", "--outputs", "outputs.npy"}));
    pool.expect_well(pool.start({"export", "run", "net.pt"}));
    pool.expect_well(pool.start({"export", "run", "net.torchscript"}));
    EXPECT_FALSE(std::filesystem::exists(pool.folder() / "net.pt.tmp"));
    pool.python(
        "import numpy as n, torch\n"
        "x = torch.from_numpy(n.load('x.npy')); outputs = n.load('outputs.npy')\n"
        "net, first = torch.jit.load('net.torchscript'), torch.jit.load('run/model.pt').eval()\n"
        "assert all(a.equal(b) for a, b in zip(net.parameters(), torch.jit.load('net.pt').parameters()))\n"
        "assert not net.training\n"
        "with torch.no_grad(): here, before = net(x).numpy(), first(x).numpy()\n"
        "assert abs(here - outputs).max() < 1e-6, abs(here - outputs).max()\n"
        "assert abs(before - outputs).max() > 1e-2\n"
        "assert net.again.weight.data_ptr() == net.middle.weight.data_ptr()\n"
        "assert net.middle.weight.requires_grad and not net.frozen.weight.requires_grad");
  }
}

// examples/gpt/train, with a model and a text for seconds.
TEST(GptExample, trains_and_writes) {
  NamedPool pool({.name = "example", .flags = {}});
  Process example({W5XDE_EXAMPLES "/gpt/train", (pool.folder() / "text.txt").string() + ",context=16",
                   "--model", "gpt:1,2,16,16", "--steps", "20"},
                  {.folder = pool.folder(),
                   .environment = {{"W5XDE", W5XDE_PROGRAM}, {"RUNS", (pool.folder() / "runs").string()}},
                   .with_output = true});
  const std::string said = pool.expect_well(std::move(example));
  EXPECT_NE(said.find("It writes:"), std::string::npos) << said;
}

}  // namespace
}  // namespace w5xde
