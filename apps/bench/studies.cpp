#include "bench/studies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "base/errors.h"
#include "run/presets.h"

namespace w5xde {

namespace {

constexpr std::array kLinks = {"loopback", "100mbit"};
constexpr std::array kBufferMegabytes = {1u, 2u, 4u, 8u, 16u};
constexpr std::array kTiers = {"silent", "normal", "verbose"};

// The fastest lossless preset of the original, a lossy one, and ours.
constexpr std::array<std::string_view, 3> kForecastPresets = {"direct-tensor", "gradient-compression",
                                                              "adaptive"};

struct Workload {
  const char* name;
  const char* model;
  const char* data;
};
constexpr std::array<Workload, 2> kWorkloads = {{
    {"original", "mlp:10,20,10", "synthetic"},
    {"2M", "mlp:784,1024,1024,10", "random:784,10"},
}};

// So that a step divides evenly among the nodes.
constexpr unsigned kSlotsPerNode = 4;

constexpr double kWarmUpSeconds = 1;
// The first parameters of ten nodes take six seconds of this link, and their samples come on top.
constexpr double kSlowWarmUpSeconds = 12;

// What a word of --only can name.
constexpr std::array<std::string Cell::*, 4> kKinds = {&Cell::part, &Cell::preset, &Cell::workload,
                                                       &Cell::link};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

}  // namespace

bool compared(const Cell& one, const Cell& other) {
  return one.part == other.part && one.workload == other.workload && one.link == other.link;
}

std::vector<Cell> all_cells() {
  std::vector<Cell> cells;
  for (const Workload& workload : kWorkloads) {
    for (const char* link : kLinks) {
      for (const std::string_view preset : preset_names())
        cells.push_back({"presets", std::string(preset), workload.name, link});
    }
  }
  for (const Workload& workload : kWorkloads) {
    for (const unsigned megabytes : kBufferMegabytes) {
      cells.push_back({"buffers", "adaptive", workload.name, "loopback", std::uint64_t{megabytes} << 20});
    }
  }
  for (const char* tier : kTiers) cells.push_back({"logging", "adaptive", "original", "loopback", 0, tier});
  return cells;
}

Result<std::vector<Cell>> chosen(const std::vector<Cell>& cells, const std::string& only) {
  std::map<std::size_t, std::vector<std::string>> asked;  // by kind
  for (const std::string& word : split(only)) {
    const auto names_it = [&](auto kind) { return std::ranges::find(cells, word, kind) != cells.end(); };
    const auto* kind = std::ranges::find_if(kKinds, names_it);
    if (kind == kKinds.end()) {
      return invalid(
          "--only '{}': choose by part (presets, buffers, logging), preset ({}), workload (original, 2M) "
          "or link ({})",
          word, fmt::join(preset_names(), ", "), fmt::join(kLinks, ", "));
    }
    asked[static_cast<std::size_t>(kind - kKinds.begin())].push_back(word);
  }
  std::vector<Cell> found;
  std::ranges::copy_if(cells, std::back_inserter(found), [&](const Cell& cell) {
    return std::ranges::all_of(asked, [&](const auto& entry) {
      return std::ranges::find(entry.second, cell.*kKinds[entry.first]) != entry.second.end();
    });
  });
  if (found.empty()) {
    return invalid("--only {} leaves nothing to measure; leave a word out", only);
  }
  return found;
}

std::vector<Turn> interleaved(const std::vector<Cell>& cells, unsigned rounds) {
  std::vector<Turn> turns;
  for (std::size_t first = 0, next = 0; first < cells.size(); first = next) {
    while (next < cells.size() && compared(cells[first], cells[next])) ++next;
    const std::size_t count = next - first;
    for (unsigned round = 0; round < rounds; ++round) {
      const bool backwards = round % 2 == 1;
      for (std::size_t i = 0; i < count; ++i)
        turns.push_back({first + ((backwards ? count - i : i) + round) % count, round});
    }
  }
  return turns;
}

bool predicted(const Cell& cell) {
  return cell.part == "presets" && std::ranges::find(kForecastPresets, cell.preset) != kForecastPresets.end();
}

double warm_up_seconds(const Cell& cell) {
  return cell.workload == "2M" && cell.link != "loopback" ? kSlowWarmUpSeconds : kWarmUpSeconds;
}

Words run_flags(const Cell& cell, unsigned nodes) {
  const auto* workload = std::ranges::find(kWorkloads, cell.workload, &Workload::name);
  Words words = {
      "--preset",     cell.preset, "--model", workload->model, "--data",
      workload->data, "--batch",   "32",      "--slots",       std::to_string(kSlotsPerNode * nodes),
      "--mode",       "sync"};
  if (cell.socket_buffer_bytes == 0) return words;
  return words + Words{"--socket-buffer", std::to_string(cell.socket_buffer_bytes)};
}

Words flags_of(const Cell& cell, unsigned nodes, double seconds) {
  return run_flags(cell, nodes) +
         Words{"--seconds", fmt::format("{}", warm_up_seconds(cell) + seconds), "--log", cell.log};
}

std::string name_of(const Cell& cell) {
  std::string name = fmt::format("{}, {}, {}", cell.preset, cell.workload, cell.link);
  if (cell.socket_buffer_bytes > 0) name += fmt::format(", {} MB buffers", cell.socket_buffer_bytes >> 20);
  if (cell.part == "logging") name += fmt::format(", {} log", cell.log);
  return name;
}

}  // namespace w5xde
