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

std::string codecs_text(const Advice::Choice& choice) {
  const std::string text = way_text(choice);
  return text.substr(text.find(" --") + 1);
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
      "\n{}, {} parameters, on {}: batch {}, {} slots a step\n"
      "{} node{} on {}, {:.3g} computing at a time; a slot takes {}{} ({})\n",
      config.model, situation.shape.parameters->parameters(), config.data, config.batch, config.step_slots(),
      situation.nodes, situation.nodes == 1 ? "" : "s", to_string(situation.link),
      plan.prediction.nodes_computing, seconds_text(situation.slot_seconds), exchange_text(situation),
      plan.measured ? "measured here" : "as given");
}

// "2.5 times as fast", also where it is slower.
std::string times_as_fast(double ratio) {
  return ratio >= 1 ? fmt::format("{} times as fast", number(ratio))
                    : fmt::format("{} times as slow", number(1 / ratio));
}

std::string flag_of(const Plan& plan, const Remedy& remedy) {
  const Situation& situation = plan.situation;
  switch (remedy.kind) {
    case Remedy::Kind::more_slots:
      return fmt::format("--slots {}", situation.config.slots * remedy.factor);
    case Remedy::Kind::larger_batch:
      return fmt::format("--batch {}", situation.config.batch * remedy.factor);
    case Remedy::Kind::faster_link: {
      LinkSpeed link = situation.link;
      link.bytes_per_second *= remedy.factor;
      return "a link of " + to_string(link);
    }
  }
  return {};
}

std::string_view meaning_of(Remedy::Kind kind) {
  constexpr std::string_view kMeanings[] = {"fewer exchanges a batch", "larger slots", "bytes take less"};
  return kMeanings[static_cast<std::size_t>(kind)];
}

// The fastest that lossy codecs do in sync, if any does better than without.
const Advice::Choice* fastest_lossy(const Advice& advice) {
  const Advice::Choice* fastest = nullptr;
  for (const Advice::Choice& choice : advice.choices) {
    const bool lossy = choice.mode == Mode::sync && !choice.exact();
    const auto rate = [](const Advice::Choice& of) { return of.prediction.batches_per_second; };
    if (lossy && (fastest == nullptr || rate(choice) > rate(*fastest))) fastest = &choice;
  }
  return fastest;
}

std::string what_would_help(const Plan& plan) {
  const double alone = plan.situation.alone_batches_per_second();
  std::string text = "What would change that, and how fast the pool is then, over one machine alone:\n";
  const auto line = [&](const std::string& change, double gain, std::string_view meaning) {
    text += fmt::format("  {:>6} times  {} ({}){}\n", number(gain), change, meaning,
                        gain > 1 ? "" : ": not enough");
  };
  for (const Remedy& remedy : plan.advice.remedies)
    line(flag_of(plan, remedy), remedy.gain, meaning_of(remedy.kind));
  if (const auto* lossy = fastest_lossy(plan.advice); lossy != nullptr)
    line(codecs_text(*lossy), lossy->prediction.batches_per_second / alone, "lossy");
  return text;
}

// Whether to pool at all: the first that a reader wants to know.
std::string verdict(const Plan& plan) {
  const Advice& advice = plan.advice;
  const double alone = plan.situation.alone_batches_per_second();
  const double pooled = advice.choice().prediction.batches_per_second;
  const std::string first = fmt::format("one of these machines alone: {} batches/s\n", number(alone));
  if (plan.situation.one_machine()) {
    return first + wrapped(fmt::format(
                       "These nodes share one machine, so a pool of them is for trying things out: it "
                       "does {} batches/s. Machines that join it later make it faster.",
                       number(pooled)));
  }
  if (advice.worth_pooling()) {
    const double exact = advice.choices.front().prediction.batches_per_second;
    const std::string exactly = advice.recommended == 0 ? ""
                                                        : fmt::format(" Without that, exact, it is {}.",
                                                                      times_as_fast(exact / alone));
    return first +
           wrapped(fmt::format("Pool this: with {} it is {}, {} batches/s.{}", way_text(advice.choice()),
                               times_as_fast(advice.gain), number(pooled), exactly));
  }
  const double best = advice.choices[advice.fastest].prediction.batches_per_second;
  const std::string how = alone > best ? fmt::format("one machine alone is {}", times_as_fast(alone / best))
                                       : "one machine alone is as fast, or nearly";
  return first +
         wrapped(fmt::format("Do not pool this: {}. The best that this pool does is {} batches/s, with {}.",
                             how, number(best), way_text(advice.choices[advice.fastest]))) +
         what_would_help(plan);
}

std::string_view direction_of(Bottleneck bottleneck) {
  if (bottleneck == Bottleneck::link_down) return ", from the coordinator to its nodes";
  return bottleneck == Bottleneck::link_up ? ", from the nodes to their coordinator" : "";
}

// How long the data is on its way, which runs that are short should know.
std::string samples_text(const Plan& plan) {
  const double bytes = plan.prediction.samples_bytes;
  if (bytes == 0) return {};
  const double seconds = bytes / plan.situation.link.bytes_per_second;
  return fmt::format("  samples       {} to each node, once: {} for one, {} for all {} (first epochs)\n",
                     size_text(bytes), seconds_text(seconds), seconds_text(seconds * plan.situation.nodes),
                     plan.situation.nodes);
}

std::string figures(const Plan& plan) {
  const Prediction& p = plan.prediction;
  const RunConfig& config = plan.situation.config;
  const bool sync = config.mode == Mode::sync;
  std::string text = fmt::format(
      "\n{}\n"
      "  speed         {} batches/s, {} {}/s\n"
      "  {}  {}\n"
      "  bottleneck    {}{}\n"
      "  bytes a step  {} down, {} up on the coordinator's link; {} down, {} up a node\n"
      "  memory        coordinator {}, node {}\n",
      way_text(config.mode, config.transport.gradient_codec, config.transport.parameter_codec),
      number(p.batches_per_second), number(p.steps_per_second), sync ? "steps" : "updates",
      sync ? "a step is   " : "an update is", time_text(p), name_of(p.bottleneck), direction_of(p.bottleneck),
      size_text(p.bytes_down), size_text(p.bytes_up), size_text(p.node_bytes_down),
      size_text(p.node_bytes_up), size_text(static_cast<double>(p.coordinator_memory_bytes)),
      size_text(static_cast<double>(p.node_memory_bytes)));
  return text + samples_text(plan);
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
  if (choice.exact()) return "The result is exact: the same bits for any number of nodes.";
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
  const RunConfig& config = plan.situation.config;
  const bool one_machine_is_faster = !plan.situation.one_machine() && !plan.advice.worth_pooling();
  std::string text = '\n' +
                     wrapped(fmt::format("{} {}: {}.", one_machine_is_faster ? "If you pool, take" : "Take",
                                         way_text(choice), reason(plan.advice))) +
                     wrapped(consequence(choice));
  if (choice.gradient_codec.codec.kind == GradientKind::topk && config.optimizer.momentum > 0)
    text += wrapped(
        "With momentum, topk needs more steps for the same loss, and a density below 0.005 may not get "
        "there.");
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
  return verdict(plan) + heading(plan) + figures(plan) + table(plan.advice) + sentences(plan);
}

std::string to_json(const Plan& plan) {
  const Situation& situation = plan.situation;
  nlohmann::json choices = nlohmann::json::array();
  for (const Advice::Choice& choice : plan.advice.choices) choices.push_back(json_of(choice));
  nlohmann::json remedies = nlohmann::json::array();
  for (const Remedy& remedy : plan.advice.remedies)
    remedies.push_back({{"change", flag_of(plan, remedy)}, {"gain", remedy.gain}});
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
                               {"gain", plan.advice.gain},
                               {"worth_pooling", plan.advice.worth_pooling()},
                               {"remedies", remedies},
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
