#include <algorithm>

#include "bench/report.h"
#include "bench/report_sections.h"
#include "commands/figure_text.h"

namespace w5xde {

namespace {

// The first column to the left, the others to the right, each as wide as its widest cell.
std::string table_text(const std::vector<Section::Line>& lines) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(line.size());
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], columns_of(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - columns_of(line[i]), ' ');
      text += i == 0 ? "  " + line[i] + padding : "  " + padding + line[i];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string to_text(const BenchReport& report) {
  std::string text;
  for (const Section& section : sections_of(report)) {
    text += section.title + "\n" + table_text(section.table);
    for (const std::string& paragraph : section.paragraphs) text += paragraph + "\n";
    text += "\n";
  }
  for (const std::string& warning : warnings_of(report)) text += warning + "\n";
  return text;
}

}  // namespace w5xde
