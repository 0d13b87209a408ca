// A TorchScript file made by Debian's python3-torch (engines/torch/testdata), with tied weights, a frozen
// layer, BatchNorm and dropout: it travels to nodes that have never seen it, once, and trains to the same
// bits everywhere.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "pool.h"

namespace w5xde {
namespace {

namespace fs = std::filesystem;

Workload scripted(const std::string& model = W5XDE_TORCH_MODELS "/dropout.pt",
                  const std::string& steps = "40") {
  return {.name = "scripted_numbers",
          .flags = {"--model", model, "--data", "random:8,5,512", "--momentum", "0.9", "--learning-rate",
                    "0.01", "--batch", "16", "--slots", "4", "--steps", steps},
          .steps = 40,
          .samples = 40 * 4 * 16};
}

// The one file in a home's cache of models.
fs::path cached_in(const fs::path& home) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(home / ".cache/w5xde/models"))
    files.push_back(entry.path());
  EXPECT_EQ(files.size(), 1u);
  return files.empty() ? fs::path() : files.front();
}

ino_t inode_of(const fs::path& file) {
  struct stat about {};
  EXPECT_EQ(::stat(file.c_str(), &about), 0) << file;
  return about.st_ino;
}

class ScriptedPoolTest : public testing::Test {
 protected:
  static std::string hash_with(unsigned nodes) {
    Pool pool(scripted());
    Process coordinator = pool.train(nodes);
    EXPECT_EQ(coordinator.wait(), 0) << coordinator.said();
    EXPECT_EQ(pool.summary().at("audit").at("samples_committed"), scripted().samples);
    EXPECT_EQ(pool.summary().at("nodes"), nodes);
    return pool.summary().at("parameters_hash");
  }

  // A run whose one node has this home; its final hash.
  static std::string hash_with_node_at(const fs::path& home) {
    Pool pool(scripted());
    Process coordinator = pool.serve();
    Process node = pool.start({"join", pool.address()}, {.environment = {{"HOME", home.string()}}});
    EXPECT_EQ(coordinator.wait(), 0) << coordinator.said();
    EXPECT_EQ(node.wait(), 0) << node.said();
    return pool.summary().at("parameters_hash");
  }
};

TEST_F(ScriptedPoolTest, one_node_and_three_train_it_to_the_same_bits) {
  EXPECT_EQ(hash_with(1), hash_with(3));
}

TEST_F(ScriptedPoolTest, a_node_without_it_gets_it_once_and_keeps_it) {
  const TemporaryFolder home;
  const std::string first = hash_with_node_at(home.path());
  const fs::path cached = cached_in(home.path());
  EXPECT_EQ(fs::file_size(cached), fs::file_size(W5XDE_TORCH_MODELS "/dropout.pt"));
  const ino_t before = inode_of(cached);
  EXPECT_EQ(hash_with_node_at(home.path()), first);
  EXPECT_EQ(inode_of(cached_in(home.path())), before) << "it was sent a second time";
}

TEST_F(ScriptedPoolTest, a_damaged_copy_is_not_used) {
  const TemporaryFolder home;
  const std::string first = hash_with_node_at(home.path());
  const fs::path cached = cached_in(home.path());
  fs::resize_file(cached, fs::file_size(cached) / 2);
  EXPECT_EQ(hash_with_node_at(home.path()), first);
  EXPECT_EQ(fs::file_size(cached_in(home.path())), fs::file_size(W5XDE_TORCH_MODELS "/dropout.pt"));
}

TEST_F(ScriptedPoolTest, a_run_goes_on_without_the_file_it_was_begun_with) {
  Pool pool(scripted("moved.pt", "20"));
  const fs::path model = pool.folder() / "moved.pt";
  fs::copy_file(W5XDE_TORCH_MODELS "/dropout.pt", model);
  Process begun = pool.train(1);
  EXPECT_EQ(begun.wait(), 0) << begun.said();
  fs::remove(model);
  Process resumed = pool.train(2, {"--steps", "40"});
  EXPECT_EQ(resumed.wait(), 0) << resumed.said();
  EXPECT_EQ(pool.summary().at("steps"), 40);
  EXPECT_EQ(pool.summary().at("parameters_hash"), hash_with(1));
}

// BatchNorm's statistics are buffers: without them the accuracy would be another.
TEST_F(ScriptedPoolTest, a_file_that_lies_where_the_run_will_keep_it_is_not_lost) {
  Pool pool(scripted("run/model.pt", "2"));
  fs::create_directories(pool.run());
  fs::copy_file(W5XDE_TORCH_MODELS "/dropout.pt", pool.run() / "model.pt");
  Process coordinator = pool.train(1);
  EXPECT_EQ(coordinator.wait(), 0) << coordinator.said();
  EXPECT_EQ(fs::file_size(pool.run() / "model.pt"), fs::file_size(W5XDE_TORCH_MODELS "/dropout.pt"));
}

TEST_F(ScriptedPoolTest, exported_weights_give_the_same_accuracy_in_python) {
  Pool pool({.name = "exported",
             .flags = {"--model", W5XDE_TORCH_MODELS "/mixed.pt", "--data", "npy:x.npy,y.npy", "--batch",
                       "16", "--slots", "4", "--steps", "60", "--learning-rate", "0.05"}});
  const auto run_python = [&](const std::string& script) {
    Process process({"/usr/bin/python3", "-c", script}, {.folder = pool.folder()});
    EXPECT_EQ(process.wait(), 0) << process.said();
  };
  run_python(
      "import numpy as n; r = n.random.RandomState(1); x = r.randn(512, 8).astype('f4') * 3 + 2\n"
      "n.save('x.npy', x); n.save('y.npy', (x.sum(1) > 16).astype('i8') + 2 * (x[:, 0] > 2) + (x[:, 1] > "
      "2))");
  Process coordinator = pool.train(2);
  EXPECT_EQ(coordinator.wait(), 0) << coordinator.said();
  Process eval = pool.start({"eval", "run", "--data", "npy:x.npy,y.npy", "--json", "scores.json"});
  EXPECT_EQ(eval.wait(), 0) << eval.said();
  Process exported = pool.start({"export", "run", "net.safetensors"});
  EXPECT_EQ(exported.wait(), 0) << exported.said();
  run_python(
      "import json, struct, numpy as n, torch\n"
      "net = torch.jit.load('run/model.pt'); file = open('net.safetensors', 'rb')\n"
      "size, = struct.unpack('<Q', file.read(8)); header = json.loads(file.read(size)); data = file.read()\n"
      "header.pop('__metadata__')\n"
      "trained = {k: torch.from_numpy(n.frombuffer(data[slice(*v['data_offsets'])], 'f4').copy())"
      ".reshape(v['shape']) for k, v in header.items()}\n"
      "x, y = torch.from_numpy(n.load('x.npy')), torch.from_numpy(n.load('y.npy')); net.eval()\n"
      "loss = lambda: torch.nn.functional.cross_entropy(net(x), y).item(); begun = loss()\n"
      "state = net.state_dict(); state.update(trained); net.load_state_dict(state)\n"
      "accuracy = (net(x).argmax(1) == y).float().mean().item()\n"
      "json.dump({'accuracy': accuracy, 'loss': loss(), 'begun': begun}, open('python.json', 'w'))");
  const auto read = [&](const char* file) {
    return nlohmann::json::parse(std::ifstream(pool.folder() / file));
  };
  const auto here = read("scores.json"), python = read("python.json");
  EXPECT_NEAR(python.at("accuracy").get<double>(), here.at("accuracy").get<double>(), 1e-4);
  EXPECT_NEAR(python.at("loss").get<double>(), here.at("loss").get<double>(), 1e-4);
  // What was exported is what was trained, not what the file began with.
  EXPECT_LT(python.at("loss").get<double>(), python.at("begun").get<double>() - 0.01);
}

// By name, whatever their order is; as they are stored, or from a node's cache.
TEST_F(ScriptedPoolTest, a_model_of_three_inputs_gets_them_all_and_trains_to_the_same_bits) {
  std::string hash;
  for (const char* caching : {"off", "on"}) {
    Pool pool({.name = "masked",
               .flags = {"--model", W5XDE_TORCH_MODELS "/masked.pt", "--data",
                         "npy:tokens.npy,number.npy,mask.npy,y.npy", "--sample-cache", caching, "--batch",
                         "8", "--slots", "4", "--epochs", "2"}});
    Process python({"/usr/bin/python3", "-c",
                    "import numpy as n; r = n.random.RandomState(1); t = r.randint(0, 9, (200, 4))\n"
                    "n.save('tokens.npy', t.astype('i2')); n.save('number.npy', r.randn(200))\n"
                    "n.save('mask.npy', r.rand(200, 4) > 0.5); n.save('y.npy', t[:, 0] % 3)"},
                   {.folder = pool.folder()});
    ASSERT_EQ(python.wait(), 0) << python.said();
    Process coordinator = pool.train(caching == std::string("on") ? 3 : 1);
    EXPECT_EQ(coordinator.wait(), 0) << coordinator.said();
    EXPECT_EQ(pool.summary().at("audit").at("samples_committed"), 400);
    EXPECT_TRUE(hash.empty() || pool.summary().at("parameters_hash") == hash);
    hash = pool.summary().at("parameters_hash");
  }
}

// What a script knows of a loss of its own is that forward takes targets.
TEST_F(ScriptedPoolTest, a_model_whose_forward_takes_targets_has_its_own_loss_and_no_accuracy) {
  Pool pool({.name = "own_loss",
             .flags = {"--model", W5XDE_TORCH_MODELS "/own_classes.pt", "--data", "random:6,4,512",
                       "--evaluation-data", "random:6,4,128", "--batch", "16", "--steps", "5"}});
  for (const Words& more : {Words{}, Words{"--steps", "10"}}) {
    Process coordinator = pool.train(1, more);
    EXPECT_EQ(coordinator.wait(), 0) << coordinator.said();
    EXPECT_TRUE(pool.summary().at("evaluation").at("loss").is_number());
    EXPECT_TRUE(pool.summary().at("evaluation").at("accuracy").is_null());
    EXPECT_EQ(coordinator.said().find("accuracy"), std::string::npos) << coordinator.said();
  }
  Process eval = pool.start({"eval", "run", "--json", "scores.json"});
  EXPECT_EQ(eval.wait(), 0) << eval.said();
  EXPECT_TRUE(nlohmann::json::parse(std::ifstream(pool.folder() / "scores.json")).at("accuracy").is_null());
}

// Whoever computed more slots would have another model.
TEST_F(ScriptedPoolTest, a_model_that_remembers_what_nobody_tracks_is_refused_with_what_that_is) {
  Pool pool(scripted(W5XDE_TORCH_MODELS "/remembers_counter.pt"));
  Process coordinator = pool.train(2);
  EXPECT_NE(coordinator.wait(), 0) << coordinator.said();
  EXPECT_NE(coordinator.said().find("'calls'"), std::string::npos) << coordinator.said();
  EXPECT_NE(coordinator.said().find("register_buffer"), std::string::npos) << coordinator.said();
}

}  // namespace
}  // namespace w5xde
