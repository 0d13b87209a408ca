#include "record/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "base/printable.h"

namespace w5xde {

namespace {

// More nodes than kNodesMax are cut to the first kNodesShown: a terminal should still show the totals above.
constexpr std::size_t kNodesMax = 12;
constexpr std::size_t kNodesShown = 10;
constexpr std::size_t kNameCharsMax = 14;

// "1 node", "3 nodes"
std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

std::string loss_text(double loss) {
  if (std::isnan(loss)) return "-";
  const double size = std::abs(loss);
  const bool plain = size == 0 || (size >= 0.001 && size < 100'000);
  return plain ? fmt::format("{:.4f}", loss) : fmt::format("{:.2e}", loss);
}

// Three digits or so, and the unit in which they are readable.
std::string bytes_text(double bytes, std::string_view per = "") {
  constexpr std::array kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
  if (!std::isfinite(bytes)) return "-";
  std::size_t unit = 0;
  while (bytes >= 999.95 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}{}", bytes, unit == 0 ? 0 : 1, kUnits[unit], per);
}

std::string ratio_text(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:.2f}x", ratio) : "-";
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 59.995) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

// In a column whose head says that these are seconds.
std::string seconds_cell(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.{}f}", seconds, seconds < 1000 ? 2 : 0) : "-";
}

// Of a UTF-8 character, not of what follows in it.
bool is_first_byte(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, is_first_byte));
}

// Cuts between characters, not inside one.
std::string short_name(const std::string& name) {
  std::size_t chars = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (is_first_byte(name[i]) && ++chars > kNameCharsMax) return name.substr(0, i) + "…";
  }
  return name;
}

using Row = std::array<std::string, 10>;

// The first column to the left, the others to the right, each as wide as its widest cell.
std::string table_text(const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      text += i == 0 ? "  " + row[i] + padding : "  " + padding + row[i];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string nodes_text(const Summary& summary) {
  const std::vector<NodeSummary>& nodes = summary.per_node;
  if (nodes.empty()) return "";
  const std::size_t shown = nodes.size() > kNodesMax ? kNodesShown : nodes.size();
  std::vector<Row> rows = {
      {"", "", "loss", "", "", "", "", "seconds", "", ""},
      {"node", "batches", "first", "last", "mean", "throughput", "ratio", "waiting", "compress", "compute"}};
  for (const NodeSummary& node : std::span(nodes).first(shown)) {
    rows.push_back({short_name(node.name), grouped(node.batches), loss_text(node.loss.first),
                    loss_text(node.loss.last), loss_text(node.loss.mean),
                    bytes_text(node.throughput_bytes_per_second, "/s"), ratio_text(node.compression_ratio),
                    seconds_cell(node.network_seconds), seconds_cell(node.compression_seconds),
                    seconds_cell(node.compute_seconds)});
  }
  std::string text = summary.resumed ? "\n  since the resume:\n" : "\n";
  text += table_text(rows);
  if (shown < nodes.size()) text += fmt::format("  … and {} more (all in --json)\n", nodes.size() - shown);
  return text + "  waiting: for the network, the coordinator or other nodes\n";
}

// What all nodes have in common; of the first of them where they differ.
std::string common_text(const std::vector<NodeSummary>& nodes, std::string NodeSummary::*field) {
  const std::string& first = nodes.front().*field;
  const auto others =
      std::ranges::count_if(nodes, [&](const NodeSummary& node) { return node.*field != first; });
  if (others == 0) return first;
  return fmt::format("{} for {}; not the same for {} (all in --json)", first, nodes.front().name,
                     counted(static_cast<std::uint64_t>(others), "other node"));
}

std::string trials_text(const std::vector<BatchTrial>& trials) {
  std::string text;
  for (const BatchTrial& trial : trials) {
    const auto rate = static_cast<std::uint64_t>(std::llround(trial.samples_per_second));
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", trial.batch, grouped(rate));
  }
  return text + " samples/s";
}

std::string audit_text(const AuditStats& audit) {
  std::string again = fmt::format("{} leased again, {} dropped", counted(audit.slots_leased_again, "slot"),
                                  counted(audit.duplicates_dropped, "duplicate"));
  if (audit.feedback_lost > 0)
    again += fmt::format("; {} left with gradients that their codec had held back",
                         counted(audit.feedback_lost, "node"));
  const std::string samples = fmt::format("{} of {} samples committed", grouped(audit.samples_committed),
                                          grouped(audit.samples_expected));
  if (audit.passed()) return fmt::format("audit: {} exactly once; {}\n", samples, again);
  std::string problem;
  if (audit.samples_committed < audit.samples_expected)
    problem += ", " + grouped(audit.samples_expected - audit.samples_committed) + " MISSING";
  if (audit.samples_committed > audit.samples_expected)
    problem += ", " + grouped(audit.samples_committed - audit.samples_expected) + " TOO MANY";
  if (audit.slots_missing > 0) problem += ", " + counted(audit.slots_missing, "slot") + " SKIPPED";
  if (audit.slots_twice > 0) problem += ", " + counted(audit.slots_twice, "slot") + " TWICE";
  return fmt::format("AUDIT FAILED: {}{}; {}\n", samples, problem, again);
}

// How many nodes did not work at the end, by their standing and its reason.
std::map<std::pair<std::string, std::string>, std::uint64_t> standings(std::span<const NodeSummary> nodes) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts;
  for (const NodeSummary& node : nodes) {
    if (!node.reason.empty()) ++counts[{node.standing, node.reason}];
  }
  return counts;
}

std::string title_text(const Summary& summary) {
  std::string text = fmt::format("{} training with {} took {}", summary.mode, counted(summary.nodes, "node"),
                                 seconds_text(summary.seconds));
  if (summary.resumed)
    text += fmt::format(", {} of it since the resume at step {}", seconds_text(summary.resumed->seconds),
                        grouped(summary.resumed->step));
  if (summary.outcome == kStopped) return text + "; stopped\n";
  return text + (summary.outcome.empty() || summary.outcome == kFinished ? "\n" : "; failed\n");
}

}  // namespace

std::string to_text(const EvaluationStats& evaluation) {
  const auto& [loss, accuracy, perplexity] = evaluation;
  return fmt::format("loss {:.4f}", loss) +
         (std::isnan(accuracy) ? "" : fmt::format(", accuracy {:.4f}", accuracy)) +
         (std::isnan(perplexity) ? "" : fmt::format(", perplexity {:.4g}", perplexity));
}

std::string to_text(const Summary& summary) {
  const char* const since = summary.resumed ? " since the resume" : "";
  std::string text = title_text(summary);
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<12}  {}\n", label, value);
  };
  line("steps", fmt::format("{}  ({}, {:.2f} epochs)", grouped(summary.steps),
                            counted(summary.samples, "sample"), summary.epochs));
  line("batches",
       fmt::format("{}  ({:.1f} a second{})", grouped(summary.batches), summary.batches_per_second, since));
  if (summary.working > 0 && summary.working < summary.nodes)
    line("working", fmt::format("{} of {} at a time: more at once would make a step longer", summary.working,
                                counted(summary.nodes, "node")));
  if (!summary.batch_trials.empty())
    line("batch", fmt::format("{} samples, of {}", summary.batch, trials_text(summary.batch_trials)));
  if (summary.batch_growth) {
    line("global batch", fmt::format("{}, {}", counted(summary.global_batch, "sample"),
                                     noise_scale_text(summary.batch_growth->noise_scale)));
    for (const BatchGrowth& growth : summary.batch_growth->growths) line("", to_text(growth));
  }
  if (!summary.ending.empty()) line("ended", summary.ending);
  line("loss", fmt::format("{} first, {} last, {} mean", loss_text(summary.loss.first),
                           loss_text(summary.loss.last), loss_text(summary.loss.mean)));
  if (summary.evaluation) {
    const auto& [loss, accuracy, perplexity] = *summary.evaluation;
    line("evaluation", fmt::format("{} loss", loss_text(loss)) +
                           (std::isnan(accuracy) ? "" : fmt::format(", {:.2f} % accuracy", accuracy * 100)) +
                           (std::isnan(perplexity) ? "" : fmt::format(", {:.4g} perplexity", perplexity)));
  }
  if (summary.best)
    line("best", fmt::format("step {}: {} evaluation loss, the lowest", grouped(summary.best->step),
                             loss_text(summary.best->loss)));
  line("network",
       fmt::format("{} sent, {} received, {}{}", bytes_text(static_cast<double>(summary.bytes.sent)),
                   bytes_text(static_cast<double>(summary.bytes.received)),
                   bytes_text(summary.throughput_bytes_per_second, "/s"), since));
  line("compression", ratio_text(summary.compression_ratio) + since);
  if (!summary.preset.empty()) line("preset", summary.preset);
  if (!summary.per_node.empty() && !summary.per_node.front().codec_up.empty()) {
    line("gradients", common_text(summary.per_node, &NodeSummary::codec_up));
    line("parameters", common_text(summary.per_node, &NodeSummary::codec_down));
  }
  const auto lanes = std::ranges::max_element(summary.per_node, {}, &NodeSummary::lanes);
  if (lanes != summary.per_node.end() && lanes->lanes > 1)
    line("cores", fmt::format("{} computed up to {} slots at once", lanes->name, lanes->lanes));
  for (const auto& [why, nodes] : standings(summary.per_node))
    line(why.first, fmt::format("{}: {}", counted(nodes, "node"), why.second));
  line("memory", bytes_text(static_cast<double>(summary.memory_bytes)));
  line("hash of parameters", summary.parameters_hash);
  return text + nodes_text(summary) + "\n" + audit_text(summary.audit);
}

}  // namespace w5xde
