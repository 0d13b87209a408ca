#include "settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/errors.h"
#include "base/file.h"
#include "commands/command.h"
#include "commands/suggestion.h"
#include "run/presets.h"

namespace w5xde {

namespace {

constexpr bool kFixed = true, kFree = false;  // Setting::fixed

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(name_of(value));
  } else {
    return to_string(value);
  }
}

// Text, numbers, true and false. Other types bring their own parser.
template <class T>
Result<T> parse_plain(std::string_view text) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(text);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (text != "true" && text != "false") return invalid("'{}': use true or false", text);
    return text == "true";
  } else {
    T parsed{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    bool good = error == std::errc() && end == text.data() + text.size();
    if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(parsed);
    if (good) return parsed;
    if constexpr (std::is_integral_v<T>)
      return invalid("'{}': use a whole number from 0 to {}", text, std::numeric_limits<T>::max());
    else
      return invalid("'{}': use a number, as 0.5 or 1e-3", text);
  }
}

// All values of a type that has few.
template <class T>
std::vector<std::string> choices_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return {"true", "false"};
  } else if constexpr (std::is_array_v<decltype(kNames<T>)>) {
    std::vector<std::string> choices;
    for (const auto& [value, name] : kNames<T>) choices.emplace_back(name);
    return choices;
  } else {
    return {};
  }
}

template <class T>
using Parser = Result<T> (*)(std::string_view);

template <class T>
Setting setting(const std::string& name, std::string help, bool fixed, T& value,
                std::type_identity_t<Parser<T>> parse = parse_plain<T>) {
  return {name,
          std::move(help),
          fixed,
          [&value] { return text_of(value); },
          [&value, parse, name](const std::string& text) -> Status {
            auto parsed = parse(text);
            if (!parsed.ok()) return std::move(parsed).error().within("--" + name);
            value = std::move(*parsed);
            return {};
          },
          !std::is_arithmetic_v<T>,
          choices_of<T>()};
}

// A number of samples, or `auto`: to be measured. run.toml gets the number once it is known.
Setting measured(const std::string& name, std::string help, std::uint32_t& value, bool& measure) {
  Setting made = setting(name, std::move(help), kFixed, value);
  made.get = [&measure, get = made.get] { return measure ? "auto" : get(); };
  made.set = [&measure, set = made.set](const std::string& text) -> Status {
    measure = text == "auto";
    return measure ? Status() : set(text);
  };
  return made;
}

// What is written of `preparation` by one of these two pairs of functions (run/choices.h).
Setting prepared(const std::string& name, std::string help, SamplePreparation& preparation,
                 std::string (*get)(const SamplePreparation&),
                 Status (*set)(std::string_view, SamplePreparation&)) {
  return {name,
          std::move(help),
          kFixed,
          [&preparation, get] { return get(preparation); },
          [&preparation, set, name](const std::string& text) -> Status {
            Status status = set(text, preparation);
            return status.ok() ? status : std::move(status).error().within("--" + name);
          },
          true};
}

// Or `auto`: means and deviations of the data. run.toml gets the numbers once they are known.
Setting normalize_setting(RunConfig& c) {
  Setting made = prepared("normalize",
                          "(value - mean) / deviation for each channel of images or column of a table: "
                          "MEAN,…/DEVIATION,…, pixels being 0 to 1; auto: of the data; none",
                          c.preparation, normalize_of, parse_normalize);
  made.get = [&c, get = made.get] { return c.normalize_measured ? "auto" : get(); };
  made.set = [&c, set = made.set](const std::string& text) -> Status {
    c.normalize_measured = text == "auto";
    return set(c.normalize_measured ? "none" : text);
  };
  return made;
}

Setting preset_of(Transport& transport) {
  std::string help =
      fmt::format("chooses the codecs and all transport settings at once; single flags change them: {}",
                  fmt::join(preset_names(), ", "));
  Setting made = setting("preset", std::move(help), kFree, transport.preset);
  made.set = [&transport](const std::string& text) -> Status {
    auto parsed = preset(text);
    if (!parsed.ok()) return std::move(parsed).error().within("--preset");
    transport = *parsed;
    return {};
  };
  return made;
}

Result<Schedule> schedule_without_end(std::string_view text) {
  return parse_schedule(text, 1);
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
      setting("model",
              "mlp:IN,…,OUT, lenet[:dropout=P], resnet-small, resnet18, vit:PATCH,LAYERS,HEADS,WIDTH, "
              "gpt:LAYERS,HEADS,WIDTH,CONTEXT, lstm:LAYERS,WIDTH, or a TorchScript FILE.pt",
              kFixed, c.model),
      setting("data",
              "idx:FOLDER, npy:X,Y, csv:FILE?label=COLUMN, images:FOLDER, cifar10:FOLDER, safetensors:FILE, "
              "text:FILE, tokens:FILE, synthetic, random:FEATURES,CLASSES",
              kFixed, c.data),
      setting("split", "hold out this part of the samples to evaluate on, where --data has no test split",
              kFixed, c.split),
      setting("init", "begin with the weights of a safetensors FILE or of a run, its best if it has one",
              kFixed, c.init),
      setting("epochs", "end after this many epochs (1 when no end is given)", kFree, c.epochs),
      setting("steps", "end after this many steps", kFree, c.steps),
      setting("seconds", "end after this many seconds", kFree, c.seconds),
      setting("target-accuracy",
              "end when an evaluation of the parameters reaches it, 0 to 1 (see --evaluate-every)", kFree,
              c.target_accuracy),
      setting("target-loss", "end when the loss of an evaluation is at most this; 0: do not", kFree,
              c.target_loss),
      setting("patience", "end when this many evaluations in a row brought no lower loss; 0: do not", kFree,
              c.patience),
      measured("batch", "samples a slot; auto: measured, and slots with it", c.batch, c.batch_measured),
      setting("slots", "slots a step: the global batch is batch × slots, for any number of nodes", kFixed,
              c.slots),
      setting("optimizer", "sgd, adam or adamw", kFixed, c.optimizer.kind, parse_optimizer),
      // A run that diverged goes on from its last good checkpoint with this and clip-norm lowered.
      setting("learning-rate", "the base that --schedule changes", kFree, c.optimizer.learning_rate),
      setting("mode", "sync: the same bits for any nodes; async: no waiting", kFixed, c.mode, parse_mode),
      setting("seed", "of data order, initial parameters and dropout", kFixed, c.seed),
      setting("evaluate-every", "steps between evaluations; 0: at the end only", kFree, c.evaluate_every),
  };
}

std::vector<Setting> training_settings(RunConfig& c) {
  return {
      setting("loss",
              "auto, cross-entropy, bce, mse, or own: a TorchScript file's forward(inputs, targets) gives it",
              kFixed, c.loss, parse_choice<Loss>),
      setting("ignore-index", "targets of this class do not count (cross-entropy): none, or as -100", kFixed,
              c.ignore_index, parse_ignore_index),
      normalize_setting(c),
      prepared("augment",
               "of training images: crop:PIXELS (zeros on each side, then cut at random), flip (left to "
               "right, one half of them), crop:4,flip, or none",
               c.preparation, augment_of, parse_augment),
      setting("train",
              "train the parameters whose names this regular expression finds, as '^head' or 'fc|norm'; the "
              "others stay as they begin; empty: all",
              kFixed, c.train),
      setting("evaluation-data", "what to evaluate on; by default the test split of --data", kFree,
              c.evaluation_data),
      setting("accumulate", "multiplies the slots of a step", kFixed, c.accumulate),
      setting("global-batch", "fixed, or auto: it doubles as the noise of gradients allows (sync)", kFixed,
              c.growth.policy, parse_choice<BatchPolicy>),
      setting("global-batch-max", "samples a step that it may grow to; 0: 64 times the first", kFixed,
              c.growth.samples_max),
      setting("global-batch-every", "steps between two growths, at least", kFixed, c.growth.every),
      setting("global-batch-scaling",
              "how the learning rate follows it: auto (by the optimizer), linear, sqrt, none", kFixed,
              c.growth.scaling, parse_choice<RateScaling>),
      setting("schedule",
              "of the learning rate: constant, step:EVERY,GAMMA or cosine; +warmup:STEPS may follow", kFixed,
              c.schedule, schedule_without_end),
      setting("clip-norm", "clip the gradient to this norm; 0: do not", kFree, c.clip_norm),
      setting("momentum", "of sgd", kFixed, c.optimizer.momentum),
      setting("nesterov", "of sgd", kFixed, c.optimizer.nesterov),
      setting("weight-decay", "of adamw, decoupled", kFixed, c.optimizer.weight_decay),
      setting("beta1", "of adam and adamw", kFixed, c.optimizer.beta1),
      setting("beta2", "of adam and adamw", kFixed, c.optimizer.beta2),
      setting("epsilon", "of adam and adamw", kFixed, c.optimizer.epsilon),
      setting("max-staleness", "async: a gradient counts in full while it is at most this many versions old",
              kFixed, c.max_staleness),
      setting("threads", "for one slot's arithmetic, on every node", kFixed, c.threads),
      setting("compute", "matrix products and convolutions in f32, or bf16; parameters and gradients are f32",
              kFixed, c.compute, parse_choice<DType>),
  };
}

std::vector<Setting> network_settings(RunConfig& c) {
  return {
      preset_of(c.transport),
      setting("codec", "lossless: auto, none, lz4, lz4-frame, zstd:LEVEL, zlib:LEVEL", kFree,
              c.transport.codec, parse_lossless_choice),
      setting("gradient-codec",
              "lossy, for contributions: none, auto, fp16, bf16, int8, onebit, topk:DENSITY, powersgd:RANK",
              kFixed, c.transport.gradient_codec, parse_gradient_choice),
      setting("parameter-codec", "lossy, for what the coordinator sends; as --gradient-codec", kFixed,
              c.transport.parameter_codec, parse_gradient_choice),
      setting("sample-cache", "nodes keep the samples they were sent: auto (behind slow links), on, off",
              kFree, c.transport.sample_cache, parse_choice<SampleCaching>),
      setting("part-bytes",
              "larger models travel in parts of this size, so that both directions are busy; 0: whole", kFree,
              c.transport.part_bytes),
      setting("shared-memory",
              "a large model stays in memory that nodes of the coordinator's machine share: auto, off", kFree,
              c.transport.shared_memory, parse_choice<MemorySharing>),
      setting("workers", "nodes that work in a step: auto (as many as make it faster), all", kFree,
              c.transport.who_works, parse_choice<WhoWorks>),
      setting("turns", "let nodes that share a machine's cores take turns", kFree, c.turns),
  };
}

std::vector<Setting> recording_settings(RunConfig& c) {
  return {
      setting("checkpoint-seconds", "how often to save", kFree, c.checkpoint_seconds),
      setting("keep", "how many checkpoints to keep, beside the best", kFree, c.keep),
  };
}

// Parts of the presets, to study what each generation of the original changed.
std::vector<Setting> history_settings(RunConfig& c) {
  return {
      setting("contribution-codec", "lossless codec for what nodes send; same: as --codec", kFree,
              c.transport.contribution_codec, parse_lossless_or_same),
      setting("codec-threshold", "contributions of fewer bytes are not compressed", kFree,
              c.transport.codec_threshold),
      setting("serialization", "direct, or generic: every number by itself", kFree, c.transport.serialization,
              parse_choice<Serialization>),
      setting("socket-buffer", "bytes; 0: as bandwidth × delay needs", kFree, c.transport.socket_buffer),
      setting("receive-chunk", "bytes that one read takes at most; 0: no limit", kFree,
              c.transport.receive_chunk),
      setting("combined-send", "header and payload in one system call", kFree, c.transport.combined_send),
      setting("keep-alive", "TCP keepalive", kFree, c.transport.keep_alive),
      setting("quick-ack", "TCP_QUICKACK", kFree, c.transport.quick_ack),
  };
}

// Values of settings whose type does not tell them; of codecs, one with each name.
std::vector<std::string> more_choices_of(const std::string& name) {
  if (name == "preset") return {preset_names().begin(), preset_names().end()};
  if (name == "mode") return {"sync", "async"};
  if (name == "optimizer") return {"sgd", "adam", "adamw"};
  if (name == "model") return {"lenet", "resnet-small"};  // and files
  if (name == "data") return {"synthetic"};               // and files
  if (name == "codec") return {"auto", "none", "lz4", "lz4-frame", "zstd", "zlib"};
  if (name == "gradient-codec" || name == "parameter-codec")
    return {"none", "auto", "fp16", "bf16", "int8", "onebit", "topk:0.01", "powersgd:4"};
  return {};
}

}  // namespace

std::vector<Setting> settings_of(RunConfig& c) {
  std::vector<Setting> all;
  const auto add = [&](const char* group, std::vector<Setting> settings) {
    for (Setting& setting : settings) {
      setting.group = group;
      if (setting.choices.empty()) setting.choices = more_choices_of(setting.name);
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

namespace {

constexpr AlsoCalled kSettings[] = {{"lr", "learning-rate"}, {"batch-size", "batch"}, {"dataset", "data"}};

Error not_a_setting(const std::string& name) {
  const bool is_setting = std::ranges::find(kSettings, name, &AlsoCalled::theirs) != std::end(kSettings);
  if (const std::string command = command_with_flag(name); !command.empty() && !is_setting)
    return invalid("'{}' belongs to the command line: w5xde {} --{}", name, command, name);
  RunConfig config;
  std::vector<std::string> names;
  for (const Setting& setting : settings_of(config)) names.push_back(setting.name);
  return invalid("'{}' is not a setting of a run{} `w5xde train --help-all` lists them", name,
                 did_you_mean(name, names, kSettings));
}

}  // namespace

Status apply_settings(std::vector<Setting>& settings, const Given& given) {
  // The preset first: the others change it.
  if (const auto chosen = given.find("preset"); chosen != given.end()) {
    W5XDE_CHECK(std::ranges::find(settings, "preset", &Setting::name)->set(chosen->second));
  }
  for (const auto& [name, value] : given) {
    if (name == "preset") continue;
    const auto setting = std::ranges::find(settings, name, &Setting::name);
    if (setting == settings.end()) {
      return not_a_setting(name);
    }
    W5XDE_CHECK(setting->set(value));
  }
  return {};
}

void add_settings(CLI::App& command, Given& given) {
  RunConfig defaults;
  for (const Setting& setting : settings_of(defaults)) {
    CLI::Option* option =
        command
            .add_option_function<std::string>(
                "--" + setting.name + (setting.name == "learning-rate" ? ",--lr" : ""),
                [&given, name = setting.name](const std::string& value) { given[name] = value; },
                setting.help)
            ->default_str(setting.get())
            ->group(setting.group);
    if (!setting.choices.empty()) only(option, setting.choices);
  }
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

namespace {

// "model = lenet": TOML would have quotes there. Empty where the line has another mistake.
std::string missing_quotes(std::string_view line) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return {};
  const auto trimmed = [](std::string_view part) {
    const auto begin = part.find_first_not_of(" \t"), end = part.find_last_not_of(" \t\r");
    return begin == std::string_view::npos ? std::string_view() : part.substr(begin, end - begin + 1);
  };
  const std::string_view rest = line.substr(equals + 1);
  const std::string_view name = trimmed(line.substr(0, equals)),
                         value = trimmed(rest.substr(0, rest.find(" #")));
  constexpr std::string_view kWords[] = {"true", "false", "inf", "nan"};
  const bool begins_as_text =
      !value.empty() && (std::isalpha(static_cast<unsigned char>(value.front())) != 0 ||
                         std::string_view("./~").find(value.front()) != std::string_view::npos);
  if (!begins_as_text || std::ranges::find(kWords, value) != std::end(kWords)) return {};
  return fmt::format("text needs quotes: {} = {}", name, quoted(std::string(value)));
}

std::string_view line_of(std::string_view text, std::size_t number) {
  for (; number > 1; --number) text = text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

}  // namespace

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
        return not_a_setting(name).within(fmt::format("{}:{}", path.string(), value.source().begin.line));
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
        return invalid("{}:{}: '{}' takes one value", path.string(), value.source().begin.line, name);
      }
    }
  } catch (const toml::parse_error& error) {
    const auto line = error.source().begin.line;
    const std::string quotes = missing_quotes(line_of(text_of(file.bytes()), line));
    return invalid("{}:{}: {}", path.string(), line,
                   quotes.empty() ? std::string(error.description()) : quotes);
  }
  return given;
}

Status write_run_toml(const std::filesystem::path& path, RunConfig config) {
  std::string text =
      "# What this run was asked for, defaults written out. `w5xde train --help-all` explains each.\n";
  for (const Setting& setting : settings_of(config)) {
    text += fmt::format("{} = {}\n", setting.name, toml_of(setting));
  }
  const Bytes bytes = bytes_of(text);
  return write_file_atomically(path, {&bytes, 1});
}

}  // namespace w5xde
