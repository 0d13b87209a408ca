#include "commands/plan_report.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "commands/figure_text.h"

namespace w5xde {

namespace {

// Two to four digits.
std::string number(double value) {
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
  return fmt::format("{:.{}f}", value, digits);
}

std::string seconds_text(double seconds) {
  if (seconds >= 1) return fmt::format("{} s", number(seconds));
  return seconds >= 1e-3 ? fmt::format("{} ms", number(seconds * 1e3))
                         : fmt::format("{:.0f} µs", seconds * 1e6);
}

std::string way_text(Mode mode, const GradientChoice& gradients, const GradientChoice& parameters) {
  std::string text = fmt::format("--mode {}", name_of(mode));
  if (gradients != GradientChoice()) text += fmt::format(" --gradient-codec {}", to_string(gradients));
  if (parameters != GradientChoice()) text += fmt::format(" --parameter-codec {}", to_string(parameters));
  return text;
}

std::string way_text(const Advice::Choice& choice) {
  return way_text(choice.mode, choice.gradient_codec, choice.parameter_codec);
}

// Lines that fit a terminal.
std::string wrapped(std::string text) {
  constexpr std::size_t kColumns = 98;
  for (std::size_t begin = 0; text.size() - begin > kColumns;) {
    const std::size_t space = text.rfind(' ', begin + kColumns);
    if (space == std::string::npos || space <= begin) break;
    text[space] = '\n';
    begin = space + 1;
  }
  return text + '\n';
}

struct Share {
  Bottleneck what;
  double seconds;
};
std::array<Share, 5> shares_of(const Prediction::Seconds& seconds) {
  return {{{Bottleneck::compute, seconds.compute},
           {Bottleneck::link_down, seconds.link_down},
           {Bottleneck::link_up, seconds.link_up},
           {Bottleneck::round_trips, seconds.round_trips},
           {Bottleneck::coordinator, seconds.coordinator}}};
}

// What a step's time is spent on, shares below 1 % left out.
std::string time_text(const Prediction& prediction) {
  std::string text;
  for (const Share& share : shares_of(prediction.seconds)) {
    if (share.seconds * prediction.steps_per_second < 0.01) continue;
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", seconds_text(share.seconds), name_of(share.what));
  }
  return text;
}

// Empty where it was not measured.
std::string exchange_text(const Situation& situation) {
  if (situation.exchange_seconds == kExchangeSeconds) return "";
  return fmt::format(", an exchange {}", seconds_text(situation.exchange_seconds));
}

std::string heading(const Plan& plan) {
  const Situation& situation = plan.situation;
  const RunConfig& config = situation.config;
  return fmt::format(
      "{}, {} parameters, on {}: batch {}, {} slots a step\n"
      "{} node{} on {}, {:.3g} computing at a time; a slot takes {}{} ({})\n",
      config.model, situation.shape.parameters->parameters(), config.data, config.batch, config.step_slots(),
      situation.nodes, situation.nodes == 1 ? "" : "s", plan.link, plan.prediction.nodes_computing,
      seconds_text(situation.slot_seconds), exchange_text(situation),
      plan.measured ? "measured here" : "as given");
}

// Whether to pool at all.
std::string verdict(const Plan& plan) {
  const double alone = plan.situation.alone_batches_per_second();
  const double pooled = plan.advice.choice().prediction.batches_per_second;
  std::string text = fmt::format("one of these machines alone: {} batches a second", number(alone));
  if (plan.situation.one_machine()) return wrapped(text);
  text +=
      pooled < alone
          ? fmt::format(". Do not pool this: the best that this pool does is {}", number(pooled))
          : fmt::format(". Pool this: it is {} times as fast, as recommended below", number(pooled / alone));
  return wrapped(text);
}

std::string figures(const Plan& plan) {
  const Prediction& p = plan.prediction;
  const RunConfig& config = plan.situation.config;
  const bool sync = config.mode == Mode::sync;
  std::string text = fmt::format(
      "\n{}\n"
      "  speed         {} batches a second, {} {} a second\n"
      "  {}  {}\n"
      "  bottleneck    {}\n"
      "  bytes a step  {} down, {} up on the coordinator's link; {} down, {} up a node\n"
      "  memory        coordinator {}, node {}\n",
      way_text(config.mode, config.transport.gradient_codec, config.transport.parameter_codec),
      number(p.batches_per_second), number(p.steps_per_second), sync ? "steps" : "updates",
      sync ? "a step is   " : "an update is", time_text(p), name_of(p.bottleneck), size_text(p.bytes_down),
      size_text(p.bytes_up), size_text(p.node_bytes_down), size_text(p.node_bytes_up),
      size_text(static_cast<double>(p.coordinator_memory_bytes)),
      size_text(static_cast<double>(p.node_memory_bytes)));
  if (p.samples_bytes > 0)
    text += fmt::format(
        "  samples       {} to each node, once, in {} at least: the first epochs are slower\n",
        size_text(p.samples_bytes), seconds_text(p.samples_bytes / plan.situation.link.bytes_per_second));
  return text;
}

std::string table(const Advice& advice) {
  std::string text = fmt::format("\n  {:<6} {:<10} {:<10} {:>10} {:>10} {:>10}  {}\n", "mode", "gradients",
                                 "parameters", "batches/s", "down/step", "up/step", "bottleneck");
  for (std::size_t i = 0; i < advice.choices.size(); ++i) {
    const Advice::Choice& choice = advice.choices[i];
    const Prediction& p = choice.prediction;
    text += fmt::format(
        "{} {:<6} {:<10} {:<10} {:>10} {:>10} {:>10}  {}\n", i == advice.recommended ? '>' : ' ',
        name_of(choice.mode), to_string(choice.gradient_codec), to_string(choice.parameter_codec),
        number(p.batches_per_second), size_text(p.bytes_down), size_text(p.bytes_up), name_of(p.bottleneck));
  }
  return text;
}

// What the choice does to the result.
std::string consequence(const Advice::Choice& choice) {
  if (choice.mode == Mode::async)
    return "With async two runs differ: an update counts when it arrives, and was computed from slightly "
           "older parameters.";
  if (choice.gradient_codec == GradientChoice() && choice.parameter_codec == GradientChoice())
    return "The result is exact: the same bits for any number of nodes.";
  return "Lossy codecs change the result a little: what they drop from a gradient is added to the next "
         "(error feedback). Exact is --mode sync without them; lossless --codec and --sample-cache are exact "
         "too.";
}

std::string reason(const Advice& advice) {
  const Advice::Choice& taken = advice.choice();
  const double gain =
      taken.prediction.batches_per_second / advice.choices.front().prediction.batches_per_second;
  const auto bottleneck = name_of(advice.choices.front().prediction.bottleneck);
  if (advice.recommended != 0) {
    return fmt::format(
        "it is {} times as fast as exact sync, whose bottleneck is {}, and nothing closer to exact is "
        "within 10 % of the fastest",
        number(gain), bottleneck);
  }
  const Advice::Choice& fastest = advice.choices[advice.fastest];
  const double more = fastest.prediction.batches_per_second / taken.prediction.batches_per_second - 1;
  if (advice.fastest == 0) return fmt::format("nothing is faster; the bottleneck is {}", bottleneck);
  return fmt::format("the fastest ({}) is only {:.0f} % faster", way_text(fastest), 100 * more);
}

std::string sentences(const Plan& plan) {
  const Advice::Choice& choice = plan.advice.choice();
  std::string text = '\n' + wrapped(fmt::format("Take {}: {}.", way_text(choice), reason(plan.advice))) +
                     wrapped(consequence(choice));
  const RunConfig& config = plan.situation.config;
  const double more = plan.advice.with_more_slots.batches_per_second / plan.prediction.batches_per_second;
  if (config.mode == Mode::sync && more > 1.1) {
    text += wrapped(fmt::format(
        "With --slots {} a step is {} times as large and the pool {} times as fast: there are fewer "
        "exchanges per batch.",
        config.slots * Advice::kMoreSlots, Advice::kMoreSlots, number(more)));
  }
  return text;
}

nlohmann::json json_of(const Prediction& p) {
  nlohmann::json seconds;
  for (const Share& share : shares_of(p.seconds)) seconds[std::string(name_of(share.what))] = share.seconds;
  return {{"steps_per_second", p.steps_per_second},
          {"batches_per_second", p.batches_per_second},
          {"contributions_per_step", p.contributions},
          {"nodes_computing", p.nodes_computing},
          {"bottleneck", name_of(p.bottleneck)},
          {"seconds", seconds},
          {"bytes_down_per_step", p.bytes_down},
          {"bytes_up_per_step", p.bytes_up},
          {"node_bytes_down_per_step", p.node_bytes_down},
          {"node_bytes_up_per_step", p.node_bytes_up},
          {"samples_bytes_per_node", p.samples_bytes},
          {"coordinator_memory_bytes", p.coordinator_memory_bytes},
          {"node_memory_bytes", p.node_memory_bytes}};
}

nlohmann::json json_of(const Advice::Choice& choice) {
  nlohmann::json json = json_of(choice.prediction);
  json["mode"] = name_of(choice.mode);
  json["gradient_codec"] = to_string(choice.gradient_codec);
  json["parameter_codec"] = to_string(choice.parameter_codec);
  return json;
}

}  // namespace

std::string to_text(const Plan& plan) {
  return heading(plan) + verdict(plan) + figures(plan) + table(plan.advice) + sentences(plan);
}

std::string to_json(const Plan& plan) {
  const Situation& situation = plan.situation;
  nlohmann::json choices = nlohmann::json::array();
  for (const Advice::Choice& choice : plan.advice.choices) choices.push_back(json_of(choice));
  const nlohmann::json json = {{"model", situation.config.model},
                               {"data", situation.config.data},
                               {"parameters", situation.shape.parameters->parameters()},
                               {"nodes", situation.nodes},
                               {"lanes", situation.cores},
                               {"link", plan.link},
                               {"slot_seconds", situation.slot_seconds},
                               {"exchange_seconds", situation.exchange_seconds},
                               {"slot_measured", plan.measured},
                               {"alone_batches_per_second", situation.alone_batches_per_second()},
                               {"asked", json_of(plan.prediction)},
                               {"choices", choices},
                               {"recommended", plan.advice.recommended},
                               {"reason", reason(plan.advice)}};
  return json.dump(2) + "\n";
}

Result<PlanFigures> plan_figures_from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    const auto& asked = json.at("asked");
    return PlanFigures{.slot_seconds = json.at("slot_seconds"),
                       .batches_per_second = asked.at("batches_per_second"),
                       .bottleneck = asked.at("bottleneck")};
  } catch (const nlohmann::json::exception& error) {
    return corrupt(std::string("not what `w5xde plan` writes: ") + error.what());
  }
}

}  // namespace w5xde
