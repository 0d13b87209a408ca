#include "settings.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <set>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class SettingsTest : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) {
    std::ofstream(folder_ / "run.toml") << text;
    return folder_ / "run.toml";
  }
  std::string refusal(const std::string& text) {
    const auto given = read_run_toml(file(text));
    if (given.ok()) {
      RunConfig config;
      auto settings = settings_of(config);
      const Status status = apply_settings(settings, *given);
      return status.ok() ? "accepted" : status.error().message;
    }
    return given.error().message;
  }
  // What is left of a refusal after the folder's name.
  std::string local(std::string text) {
    const std::string prefix = folder_.path().string() + "/";
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
    return text;
  }
  static std::map<std::string, std::string> all_of(RunConfig& config) {
    std::map<std::string, std::string> values;
    for (const Setting& setting : settings_of(config)) values[setting.name] = setting.get();
    return values;
  }
  // Written to a file, read back, applied to the defaults.
  RunConfig there_and_back(const RunConfig& config) {
    EXPECT_TRUE(write_run_toml(folder_ / "run.toml", config).ok());
    const auto given = read_run_toml(folder_ / "run.toml");
    EXPECT_TRUE(given.ok()) << given.error().message;
    RunConfig read;
    if (!given.ok()) return read;
    auto settings = settings_of(read);
    const Status status = apply_settings(settings, *given);
    EXPECT_TRUE(status.ok()) << status.error().message;
    return read;
  }

  TemporaryFolder folder_;
};

// A value for each setting that is not its default.
const Given kOther = {{"model", "mlp:10,20,10"},
                      {"data", "npy:x \"quoted\",C:\\y"},
                      {"evaluation-data", "synthetic"},
                      {"loss", "mse"},
                      {"ignore-index", "-100"},
                      {"mode", "async"},
                      {"batch", "7"},
                      {"slots", "9"},
                      {"accumulate", "3"},
                      {"global-batch", "auto"},
                      {"global-batch-max", "8192"},
                      {"global-batch-every", "20"},
                      {"global-batch-scaling", "sqrt"},
                      {"max-staleness", "5"},
                      {"steps", "1234567890123"},
                      {"epochs", "0.1"},
                      {"seconds", "1e-300"},
                      {"target-accuracy", "0.85"},
                      {"target-loss", "-0.25"},
                      {"patience", "4"},
                      {"split", "0.125"},
                      {"init", "runs/before"},
                      {"optimizer", "adamw"},
                      {"learning-rate", "0.30000000000000004"},
                      {"momentum", "0.9"},
                      {"nesterov", "true"},
                      {"weight-decay", "1e+20"},
                      {"beta1", "0.85"},
                      {"beta2", "0.99"},
                      {"epsilon", "1e-07"},
                      {"schedule", "cosine+warmup:5"},
                      {"clip-norm", "2.5"},
                      {"seed", "18446744073709551615"},
                      {"threads", "2"},
                      {"compute", "bf16"},
                      {"preset", "early"},
                      {"codec", "zstd:3"},
                      {"contribution-codec", "lz4"},
                      {"codec-threshold", "1024"},
                      {"gradient-codec", "topk:0.001"},
                      {"parameter-codec", "int8"},
                      {"serialization", "generic"},
                      {"socket-buffer", "4096"},
                      {"receive-chunk", "8192"},
                      {"combined-send", "false"},
                      {"keep-alive", "false"},
                      {"quick-ack", "false"},
                      {"sample-cache", "on"},
                      {"normalize", "0.5,0.25/1,2"},
                      {"augment", "crop:3,flip"},
                      {"train", "^head\\."},
                      {"part-bytes", "65536"},
                      {"shared-memory", "off"},
                      {"workers", "all"},
                      {"turns", "false"},
                      {"checkpoint-seconds", "0.25"},
                      {"keep", "8"},
                      {"evaluate-every", "10"}};

TEST_F(SettingsTest, every_setting_is_written_and_read_back) {
  RunConfig config;
  auto settings = settings_of(config);
  const auto defaults = all_of(config);
  ASSERT_TRUE(apply_settings(settings, kOther).ok());
  const auto written = all_of(config);
  for (const Setting& setting : settings) {
    EXPECT_NE(written.at(setting.name), defaults.at(setting.name))
        << setting.name << " has no other value here";
  }
  RunConfig read = there_and_back(config);
  EXPECT_EQ(all_of(read), written);
  EXPECT_EQ(read.seed, UINT64_MAX);
  EXPECT_EQ(read.optimizer.learning_rate, 0.1 + 0.2) << "to the last bit";
  EXPECT_EQ(read.data, kOther.at("data"));
}

TEST_F(SettingsTest, the_defaults_are_written_out_and_read_back) {
  RunConfig config;
  RunConfig read = there_and_back(config);
  EXPECT_EQ(all_of(read), all_of(config));
  EXPECT_EQ(read_run_toml(folder_ / "run.toml")->size(), settings_of(config).size());
}

TEST_F(SettingsTest, text_with_control_characters_is_read_back) {
  RunConfig config;
  config.model = "a\nb\tc\x01 – d.pt";
  EXPECT_EQ(there_and_back(config).model, config.model);
}

TEST_F(SettingsTest, names_are_unique_and_each_setting_has_its_own_value) {
  RunConfig config;
  std::set<std::string> names;
  for (const Setting& setting : settings_of(config)) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_FALSE(setting.help.empty()) << setting.name;
    if (setting.name == "preset") continue;  // it is there to change others
    const auto before = all_of(config);
    ASSERT_TRUE(setting.set(kOther.at(setting.name)).ok()) << setting.name;
    const auto after = all_of(config);
    for (const auto& [name, value] : after) {
      EXPECT_EQ(value != before.at(name), name == setting.name) << setting.name << " changed " << name;
    }
  }
}

TEST_F(SettingsTest, a_preset_comes_first_and_what_is_given_beside_it_changes_it) {
  RunConfig config;
  auto settings = settings_of(config);
  ASSERT_TRUE(apply_settings(settings, {{"codec", "none"}, {"preset", "direct-tensor"}}).ok());
  EXPECT_EQ(config.transport.preset, "direct-tensor");
  EXPECT_EQ(config.transport.codec, LosslessChoice());
  EXPECT_EQ(config.transport.socket_buffer, 16u << 20);
  const RunConfig read = there_and_back(config);
  EXPECT_EQ(read.transport.codec, LosslessChoice());
  EXPECT_EQ(read.transport.receive_chunk, 1u << 20);
  EXPECT_EQ(apply_settings(settings, {{"preset", "late"}}).error().message,
            "--preset: 'late' is no preset; take one of early, standard, current, enhanced, lz4-block, "
            "direct-tensor, "
            "gradient-compression, adaptive, adaptive-lossy");
}

TEST_F(SettingsTest, what_the_command_line_gives_goes_before_what_the_file_says) {
  RunConfig config;
  auto settings = settings_of(config);
  const Given from_file = read_run_toml(file("batch = 64\nslots = 4\n")).value();
  ASSERT_TRUE(apply_settings(settings, from_file).ok());
  ASSERT_TRUE(apply_settings(settings, {{"batch", "16"}}).ok());
  EXPECT_EQ(config.batch, 16u);
  EXPECT_EQ(config.slots, 4u);
  EXPECT_EQ(config.accumulate, 1u);
}

TEST_F(SettingsTest, a_key_that_is_no_setting_is_named_with_its_line) {
  EXPECT_EQ(local(refusal("batch = 1\n\nlerning-rate = 0.1\n")),
            "run.toml:3: 'lerning-rate' is not a setting of a run; did you mean learning-rate? `w5xde train "
            "--help-all` lists them");
  RunConfig config;
  auto settings = settings_of(config);
  EXPECT_EQ(apply_settings(settings, {{"colour", "blue"}}).error().message,
            "'colour' is not a setting of a run. `w5xde train --help-all` lists them");
  EXPECT_NE(refusal("lr = 0.1\n").find("did you mean learning-rate?"), std::string::npos)
      << refusal("lr = 0.1\n");
}

TEST_F(SettingsTest, tables_and_lists_are_no_values) {
  EXPECT_EQ(local(refusal("batch = 1\nslots = [1, 2]\n")), "run.toml:2: 'slots' takes one value");
  EXPECT_EQ(local(refusal("[model]\nname = \"lenet\"\n")), "run.toml:1: 'model' takes one value");
}

TEST_F(SettingsTest, a_flag_of_the_command_line_in_run_toml_is_called_that) {
  EXPECT_EQ(local(refusal("nodes = 3\n")),
            "run.toml:1: 'nodes' belongs to the command line: w5xde train --nodes");
  EXPECT_EQ(local(refusal("seed = 1\nwait-for = 3\n")),
            "run.toml:2: 'wait-for' belongs to the command line: w5xde serve --wait-for");
  EXPECT_EQ(local(refusal("no-summary = true\n")),
            "run.toml:1: 'no-summary' belongs to the command line: w5xde train --no-summary");
}

TEST_F(SettingsTest, text_without_quotes_is_shown_with_them) {
  EXPECT_EQ(local(refusal("batch = 1\ndata = npy:x.npy,y.npy\n")),
            "run.toml:2: text needs quotes: data = \"npy:x.npy,y.npy\"");
  EXPECT_EQ(local(refusal("mode=sync # the same bits\n")), "run.toml:1: text needs quotes: mode = \"sync\"");
  for (const char* text : {"batch = 1\nbatch = 2\n", "slots = = 2\n", "batch = [\n", "seed = 1 2\n"})
    EXPECT_EQ(refusal(text).find("quotes"), std::string::npos) << refusal(text);
}

TEST_F(SettingsTest, what_is_no_toml_is_refused_with_its_line) {
  EXPECT_TRUE(local(refusal("batch = 1\nslots = = 2\n")).starts_with("run.toml:2: "));
  EXPECT_TRUE(local(refusal("batch = 1\nbatch = 2\n")).starts_with("run.toml:2: "));
  EXPECT_FALSE(read_run_toml(folder_ / "nowhere.toml").ok());
}

TEST_F(SettingsTest, numbers_that_do_not_fit_are_refused_by_name_and_change_nothing) {
  RunConfig config;
  auto settings = settings_of(config);
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"batch", "-1"},
                                                        {"batch", "1.5"},
                                                        {"batch", "4294967296"},
                                                        {"batch", ""},
                                                        {"batch", "7 "},
                                                        {"batch", "ten"},
                                                        {"seed", "18446744073709551616"},
                                                        {"epochs", "1,5"},
                                                        {"nesterov", "1"},
                                                        {"mode", "lockstep"},
                                                        {"optimizer", "lion"},
                                                        {"loss", "huber"},
                                                        {"schedule", "sometimes"},
                                                        {"codec", "snappy"},
                                                        {"gradient-codec", "topk:2"},
                                                        {"workers", "some"}}) {
    const auto before = all_of(config);
    const Status status = apply_settings(settings, {{name, value}});
    ASSERT_FALSE(status.ok()) << name << " = " << value;
    EXPECT_EQ(status.error().kind, ErrorKind::invalid);
    EXPECT_NE(status.error().message.find(value), std::string::npos) << status.error().message;
    EXPECT_EQ(all_of(config), before) << name << " = " << value;
  }
  EXPECT_EQ(apply_settings(settings, {{"batch", "-1"}}).error().message,
            "--batch: '-1': use a whole number from 0 to 4294967295");
  EXPECT_NE(refusal("batch = -1\n"), "accepted");
  EXPECT_NE(refusal("batch = true\n"), "accepted");
}

TEST_F(SettingsTest, a_batch_is_a_number_or_to_be_measured) {
  RunConfig config;
  auto settings = settings_of(config);
  ASSERT_TRUE(w5xde::apply_settings(settings, {{"batch", "auto"}}).ok());
  EXPECT_TRUE(config.batch_measured);
  EXPECT_EQ(config.batch, 32u) << "the global batch that is asked for is that of the default";
  EXPECT_TRUE(there_and_back(config).batch_measured);
  ASSERT_TRUE(w5xde::apply_settings(settings, {{"batch", "64"}}).ok());
  EXPECT_FALSE(config.batch_measured);
  EXPECT_EQ(there_and_back(config).batch, 64u);
  EXPECT_NE(refusal("batch = \"some\"").find("use a whole number"), std::string::npos);
}

TEST_F(SettingsTest, what_samples_are_normalized_with_is_numbers_or_to_be_measured) {
  RunConfig config;
  auto settings = settings_of(config);
  ASSERT_TRUE(w5xde::apply_settings(settings, {{"normalize", "auto"}}).ok());
  EXPECT_TRUE(config.normalize_measured);
  EXPECT_FALSE(config.preparation.any());
  EXPECT_TRUE(there_and_back(config).normalize_measured);
  ASSERT_TRUE(w5xde::apply_settings(settings, {{"normalize", "0.28604059/0.35302424"}}).ok());
  EXPECT_FALSE(config.normalize_measured);
  EXPECT_EQ(there_and_back(config).preparation, config.preparation) << "to the last bit";
  EXPECT_NE(refusal("normalize = \"some\"").find("--normalize: 'some'"), std::string::npos);
}

TEST_F(SettingsTest, what_is_given_for_a_configuration_makes_it_again) {
  EXPECT_EQ(given_for(RunConfig()), Given());
  RunConfig config;
  auto settings = settings_of(config);
  const Given given = {{"model", "lenet"},     {"data", "synthetic"},    {"batch", "auto"},
                       {"optimizer", "adamw"}, {"learning-rate", "0.3"}, {"gradient-codec", "int8"},
                       {"turns", "false"}};
  ASSERT_TRUE(apply_settings(settings, given).ok());
  EXPECT_EQ(given_for(config), given);
}

}  // namespace
}  // namespace w5xde
