#include "settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <charconv>

#include "base/file.h"

namespace w5xde {

namespace {

template <class T>
Setting number(const std::string& name, std::string help, bool fixed, T& value) {
  return {name,
          std::move(help),
          fixed,
          [&value] { return fmt::format("{}", value); },
          [&value, name](const std::string& text) -> Status {
            T parsed{};
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
            if (error != std::errc() || end != text.data() + text.size()) {
              return invalid(
                  fmt::format("{} = '{}' is not a number that fits; it is {} by default", name, text, value));
            }
            value = parsed;
            return {};
          },
          false};
}

Setting flag(const std::string& name, std::string help, bool fixed, bool& value) {
  return {name,
          std::move(help),
          fixed,
          [&value] { return value ? "true" : "false"; },
          [&value, name](const std::string& text) -> Status {
            if (text != "true" && text != "false")
              return invalid(fmt::format("{} = '{}': true or false", name, text));
            value = text == "true";
            return {};
          },
          false};
}

Setting word(std::string name, std::string help, bool fixed, std::string& value) {
  return {std::move(name),
          std::move(help),
          fixed,
          [&value] { return value; },
          [&value](const std::string& text) -> Status {
            value = text;
            return {};
          },
          true};
}

template <class Parse, class T>
Setting choice(std::string name, std::string help, T& value, Parse parse) {
  return {std::move(name),
          std::move(help),
          true,
          [&value] { return std::string(name_of(value)); },
          [&value, parse](const std::string& text) -> Status {
            W5XDE_TRY(value, parse(text));
            return {};
          },
          true};
}

// A number of samples, or `auto`: to be measured. run.toml gets the number once it is known.
Setting measured(const std::string& name, std::string help, std::uint32_t& value, bool& measure) {
  Setting setting = number(name, std::move(help), true, value);
  setting.get = [&measure, get = setting.get] { return measure ? "auto" : get(); };
  setting.set = [&measure, set = setting.set](const std::string& text) -> Status {
    measure = text == "auto";
    return measure ? Status() : set(text);
  };
  return setting;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (const auto code = static_cast<unsigned char>(c); code < 0x20 || code == 0x7f) {
      out += fmt::format("\\u{:04x}", code);
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// As run.toml has it. TOML's integers end at 2^63 - 1: larger ones go in quotes, which are read as well.
std::string toml_of(const Setting& setting) {
  const std::string value = setting.get();
  std::int64_t ignored = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), ignored);
  const bool text = setting.text || value == "auto" || parsed.ec == std::errc::result_out_of_range;
  return text ? quoted(value) : value;
}

// What most people set.
std::vector<Setting> main_settings(RunConfig& c) {
  return {
      word("model", "mlp:IN,…,OUT, lenet[:dropout=P], resnet-small, or a TorchScript FILE.pt", true, c.model),
      word("data", "synthetic, idx:FOLDER, npy:X,Y, safetensors:FILE, random:FEATURES,CLASSES", true, c.data),
      number("epochs", "end after this many epochs (1 when no end is given)", false, c.epochs),
      number("steps", "end after this many steps", false, c.steps),
      number("seconds", "end after this many seconds", false, c.seconds),
      number("target-accuracy",
             "end when an evaluation of the parameters reaches it, 0 to 1 (see --evaluate-every)", false,
             c.target_accuracy),
      measured("batch", "samples a slot; auto: measured, and slots with it", c.batch, c.batch_measured),
      number("slots", "slots a step: the global batch is batch × slots, for any number of nodes", true,
             c.slots),
      choice("optimizer", "sgd, adam or adamw", c.optimizer.kind, parse_optimizer),
      // A run that diverged goes on from its last good checkpoint with this and clip-norm lowered.
      number("learning-rate", "the base that --schedule changes", false, c.optimizer.learning_rate),
      choice("mode", "sync: the same bits for any nodes; async: no waiting", c.mode, parse_mode),
      number("seed", "of data order, initial parameters and dropout", true, c.seed),
      number("evaluate-every", "steps between evaluations; 0: at the end only", false, c.evaluate_every),
  };
}

std::vector<Setting> training_settings(RunConfig& c) {
  return {
      word("loss", "auto, cross-entropy, mse, or own: a TorchScript file's forward(inputs, targets) gives it",
           true, c.loss),
      word("evaluation-data", "what to evaluate on; by default the test split of --data", false,
           c.evaluation_data),
      number("accumulate", "multiplies the slots of a step", true, c.accumulate),
      word("global-batch", "fixed, or auto: it doubles as the noise of gradients allows (sync)", true,
           c.growth.policy),
      number("global-batch-max", "samples a step that it may grow to; 0: 64 times the first", true,
             c.growth.samples_max),
      number("global-batch-every", "steps between two growths, at least", true, c.growth.every),
      word("global-batch-scaling",
           "how the learning rate follows it: auto (by the optimizer), linear, sqrt, none", true,
           c.growth.scaling),
      word("schedule", "of the learning rate: constant, step:EVERY,GAMMA or cosine; +warmup:STEPS may follow",
           true, c.schedule),
      number("clip-norm", "clip the gradient to this norm; 0: do not", false, c.clip_norm),
      number("momentum", "of sgd", true, c.optimizer.momentum),
      flag("nesterov", "of sgd", true, c.optimizer.nesterov),
      number("weight-decay", "of adamw, decoupled", true, c.optimizer.weight_decay),
      number("beta1", "of adam and adamw", true, c.optimizer.beta1),
      number("beta2", "of adam and adamw", true, c.optimizer.beta2),
      number("epsilon", "of adam and adamw", true, c.optimizer.epsilon),
      number("max-staleness", "async: a gradient counts in full while it is at most this many versions old",
             true, c.max_staleness),
      number("threads", "for one slot's arithmetic, on every node", true, c.threads),
  };
}

std::vector<Setting> network_settings(RunConfig& c) {
  return {
      {"preset",
       "chooses the codecs and all transport settings at once; single flags change them: " +
           fmt::format("{}", fmt::join(preset_names(), ", ")),
       false, [&c] { return c.transport.preset; },
       [&c](const std::string& text) -> Status {
         W5XDE_TRY(c.transport, preset(text));
         return {};
       },
       true},
      word("codec", "lossless: auto, none, lz4, lz4-frame, zstd:LEVEL, zlib:LEVEL", false, c.transport.codec),
      word("gradient-codec",
           "lossy, for contributions: none, auto, fp16, bf16, int8, onebit, topk:DENSITY, powersgd:RANK",
           true, c.transport.gradient_codec),
      word("parameter-codec", "lossy, for what the coordinator sends; as --gradient-codec", true,
           c.transport.parameter_codec),
      word("sample-cache", "nodes keep the samples they were sent: auto (behind slow links), on, off", false,
           c.transport.sample_cache),
      number("part-bytes",
             "larger models travel in parts of this size, so that both directions are busy; 0: whole", false,
             c.transport.part_bytes),
      word("crew", "how many nodes take part in a step: auto (as many as make it faster), all", false,
           c.transport.crew),
      flag("turns", "let nodes that share a machine's cores take turns", false, c.turns),
  };
}

std::vector<Setting> recording_settings(RunConfig& c) {
  return {
      number("checkpoint-seconds", "how often to save", false, c.checkpoint_seconds),
      number("keep", "how many checkpoints to keep, beside the best", false, c.keep),
  };
}

// Parts of the presets that show what each generation of the original changed. Nobody else needs them.
std::vector<Setting> history_settings(RunConfig& c) {
  return {
      word("contribution-codec", "lossless codec for what nodes send; same: as --codec", false,
           c.transport.contribution_codec),
      number("codec-threshold", "contributions of fewer bytes are not compressed", false,
             c.transport.codec_threshold),
      word("serialization", "direct, or generic: every number by itself", false, c.transport.serialization),
      number("socket-buffer", "bytes; 0: as bandwidth × delay needs", false, c.transport.socket_buffer),
      number("receive-chunk", "bytes that one read takes at most; 0: no limit", false,
             c.transport.receive_chunk),
      flag("combined-send", "header and payload in one system call", false, c.transport.combined_send),
      flag("keep-alive", "TCP keepalive", false, c.transport.keep_alive),
      flag("quick-ack", "TCP_QUICKACK", false, c.transport.quick_ack),
  };
}

}  // namespace

std::vector<Setting> settings_of(RunConfig& c) {
  std::vector<Setting> all;
  const auto add = [&](const char* group, std::vector<Setting> settings) {
    for (Setting& setting : settings) {
      setting.group = group;
      all.push_back(std::move(setting));
    }
  };
  add(kMainGroup, main_settings(c));
  add(kTrainingGroup, training_settings(c));
  add(kPoolGroup, network_settings(c));
  add(kRecordingGroup, recording_settings(c));
  add(kHistoryGroup, history_settings(c));
  return all;
}

Status apply(std::vector<Setting>& settings, const Given& given) {
  // A preset is what the others change.
  if (const auto chosen = given.find("preset"); chosen != given.end()) {
    W5XDE_CHECK(std::ranges::find(settings, "preset", &Setting::name)->set(chosen->second));
  }
  for (const auto& [name, value] : given) {
    if (name == "preset") continue;
    const auto setting = std::ranges::find(settings, name, &Setting::name);
    if (setting == settings.end()) {
      return invalid(fmt::format("'{}' is no setting of a run; `w5xde train --help` lists them", name));
    }
    W5XDE_CHECK(setting->set(value));
  }
  return {};
}

Given given_for(RunConfig config) {
  RunConfig usual;
  const auto settings = settings_of(config), defaults = settings_of(usual);
  Given given;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (const std::string value = settings[i].get(); value != defaults[i].get())
      given.emplace(settings[i].name, value);
  }
  return given;
}

Result<Given> read_run_toml(const std::filesystem::path& path) {
  W5XDE_TRY(const MappedFile file, MappedFile::open(path));
  RunConfig defaults;
  const auto settings = settings_of(defaults);
  Given given;
  try {
    const toml::table table = toml::parse(text_of(file.bytes()), path.string());
    for (const auto& [key, value] : table) {
      const std::string name(key.str());
      if (std::ranges::find(settings, name, &Setting::name) == settings.end()) {
        return invalid(fmt::format("{}:{}: '{}' is no setting of a run; `w5xde train --help` lists them",
                                   path.string(), value.source().begin.line, name));
      }
      if (const auto* text = value.as_string()) {
        given[name] = text->get();
      } else if (const auto* integer = value.as_integer()) {
        given[name] = std::to_string(integer->get());
      } else if (const auto* real = value.as_floating_point()) {
        given[name] = fmt::format("{}", real->get());
      } else if (const auto* boolean = value.as_boolean()) {
        given[name] = boolean->get() ? "true" : "false";
      } else {
        return invalid(
            fmt::format("{}:{}: '{}' takes one value", path.string(), value.source().begin.line, name));
      }
    }
  } catch (const toml::parse_error& error) {
    return invalid(fmt::format("{}:{}: {}", path.string(), error.source().begin.line, error.description()));
  }
  return given;
}

Status write_run_toml(const std::filesystem::path& path, RunConfig config) {
  std::string text =
      "# What this run was asked for, defaults written out. `w5xde train --help` explains each.\n";
  for (const Setting& setting : settings_of(config)) {
    text += fmt::format("{} = {}\n", setting.name, toml_of(setting));
  }
  const Bytes bytes = bytes_of(text);
  return write_file_atomically(path, {&bytes, 1});
}

}  // namespace w5xde
