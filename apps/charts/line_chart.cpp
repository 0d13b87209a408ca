#include "charts/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "charts/svg.h"

namespace w5xde {

namespace {

constexpr double kWidth = 960, kLeft = 88, kRight = 28;
constexpr double kTitleHeight = 44, kLegendRow = 22, kFirstPanel = 340, kOtherPanel = 200, kBetween = 34;
constexpr double kAxisHeight = 58;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kCharWidth = 7.2, kSwatch = 26, kLegendGap = 26;  // about, whatever the font
constexpr unsigned kTicksX = 8, kTicksY = 6;
// Apart for most eyes that see colours differently, too.
constexpr std::array kColours = {"#0b6bb0", "#d55e00", "#0a8f68", "#b4508f",
                                 "#c28a00", "#4b4f9e", "#7a5230", "#555b66"};

constexpr const char* kStyle =
    "text{font:13px ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
    "fill:#4a505c}.title{font-size:17px;font-weight:600;fill:#1d2026}.grid{stroke:#e6e5df}"
    ".axis{stroke:#8a909b}polyline{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}"
    ".faint{stroke-width:1;opacity:.28}.dotted{stroke-dasharray:6 4}";

const char* colour_of(const Line& line) {
  return kColours[line.colour % kColours.size()];
}

const char* class_of(Line::Style style) {
  return style == Line::Style::faint ? "faint" : style == Line::Style::dotted ? "dotted" : "plain";
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return !(low <= high); }
};

// From values to pixels.
struct Scale {
  double low = 0, high = 1;
  double at_low = 0, at_high = 1;

  double at(double value) const { return at_low + (value - low) / (high - low) * (at_high - at_low); }
};

bool is_finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

std::string grouped_text(double value) {
  std::string text = fmt::format("{:.0f}", value);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

// With as many decimals as tell neighbours apart.
std::string tick_text(double value, double step, bool share) {
  if (share) return fmt::format("{:.{}f} %", value * 100, step >= 0.00999 ? 0 : 1);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
  if (std::abs(value) >= 1e6) return fmt::format("{:.2g}", value);
  return fmt::format("{:.{}f}", value == 0 ? 0.0 : value, decimals);
}

std::string text(double x, double y, std::string_view anchor, std::string_view words,
                 std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escape(words));
}

std::string rule(std::string_view kind, double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind,
                     x1, y1, x2, y2);
}

std::string polyline(const Line& line, std::string_view points) {
  return fmt::format("<polyline class=\"{}\" stroke=\"{}\" points=\"{}\"/>\n", class_of(line.style),
                     colour_of(line), points);
}

std::string line_svg(const Line& line, const Scale& x, const Scale& y) {
  std::string svg, run, dots;
  const auto end_run = [&] {
    if (!run.empty()) svg += polyline(line, run);
    run.clear();
  };
  for (const auto& point : line.points) {
    if (!is_finite(point)) {
      end_run();
      continue;
    }
    const double across = x.at(point.first), down = y.at(point.second);
    run += fmt::format("{}{:.2f},{:.2f}", run.empty() ? "" : " ", across, down);
    if (line.style != Line::Style::dotted) continue;
    dots += fmt::format(
        "<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3.2\" fill=\"{}\"><title>{}: {:.4g}</title></circle>\n",
        across, down, colour_of(line), grouped_text(point.first), point.second);
  }
  end_run();
  return svg + dots;
}

// A loss is seen against 0 unless that would press it flat.
std::vector<double> y_ticks(const Panel& panel) {
  Range range;
  for (const Line& line : panel.lines) {
    for (const auto& point : line.points) {
      if (is_finite(point)) range.add(point.second);
    }
  }
  if (range.empty()) range = {0, 1};
  if (range.low > 0 && range.low < range.high / 2) range.low = 0;
  std::vector<double> ticks = round_ticks(range.low, range.high, kTicksY);
  if (panel.share) std::erase_if(ticks, [](double tick) { return tick > 1 + 1e-9; });
  return ticks.size() > 1 ? ticks : round_ticks(0, 1, kTicksY);
}

std::string panel_svg(const Panel& panel, const std::vector<double>& x_ticks, const Scale& x, double top,
                      double height) {
  const std::vector<double> ticks = y_ticks(panel);
  const Scale y{ticks.front(), ticks.back(), top + height, top};
  std::string svg;
  for (const double tick : ticks) {
    svg += rule("grid", kLeft, y.at(tick), kWidth - kRight, y.at(tick));
    svg += text(kLeft - 10, y.at(tick) + 4.5, "end", tick_text(tick, ticks[1] - ticks[0], panel.share));
  }
  for (const double tick : x_ticks) svg += rule("grid", x.at(tick), top, x.at(tick), top + height);
  svg += rule("axis", kLeft, top, kLeft, top + height);
  svg += rule("axis", kLeft, top + height, kWidth - kRight, top + height);
  const double middle = top + height / 2;
  svg +=
      text(18, middle, "middle", panel.y_label, fmt::format(" transform=\"rotate(-90 18 {:.1f})\"", middle));
  for (const Line& line : panel.lines) svg += line_svg(line, x, y);
  return svg;
}

// The legend's rows, as wide as the chart, from `top` on; moves `top` below them.
std::string legend_svg(const std::vector<Panel>& panels, double& top) {
  std::string svg;
  double left = kLeft;
  for (const Panel& panel : panels) {
    for (const Line& line : panel.lines) {
      if (line.name.empty()) continue;
      const double width = kSwatch + 8 + kCharWidth * static_cast<double>(line.name.size()) + kLegendGap;
      if (left > kLeft && left + width > kWidth - kRight) {
        left = kLeft;
        top += kLegendRow;
      }
      svg += polyline(line,
                      fmt::format("{:.1f},{:.1f} {:.1f},{:.1f}", left, top + 10, left + kSwatch, top + 10));
      svg += text(left + kSwatch + 8, top + 14.5, "start", line.name);
      left += width;
    }
  }
  top += svg.empty() ? 0 : kLegendRow + 12;
  return svg;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, unsigned count) {
  if (!(high > low)) high = low + std::max(std::abs(low) / 10, 1e-9);
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double times : {5.0, 2.0, 1.0}) {
    if (times * power >= rough * (1 - 1e-9)) step = times * power;
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (int i = 0; i <= static_cast<int>(last - first); ++i) ticks.push_back((first + i) * step);
  return ticks;
}

std::string line_chart(std::string_view title, std::string_view x_label, const std::vector<Panel>& panels) {
  Range range;
  for (const Panel& panel : panels) {
    for (const Line& line : panel.lines) {
      for (const auto& [x, y] : line.points) range.add(x);
    }
  }
  if (range.empty()) range = {0, 1};
  range.low = std::min(range.low, 0.0);
  if (range.high <= range.low) range.high = range.low + 1;
  const Scale x{range.low, range.high, kLeft, kLeft + kPlotWidth};
  std::vector<double> ticks = round_ticks(range.low, range.high, kTicksX);
  std::erase_if(ticks, [&](double tick) { return tick > range.high || tick != std::round(tick); });
  double top = kTitleHeight;
  std::string content = legend_svg(panels, top);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    if (i > 0) top += kBetween;
    const double height = i == 0 ? kFirstPanel : kOtherPanel;
    content += panel_svg(panels[i], ticks, x, top, height);
    top += height;
  }
  for (const double tick : ticks) content += text(x.at(tick), top + 20, "middle", grouped_text(tick));
  content += text(kLeft + kPlotWidth / 2, top + 44, "middle", x_label);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n<style>{3}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{4}{5}</svg>\n",
      kWidth, top + kAxisHeight, escape(title), kStyle, text(kLeft, 28, "start", title, " class=\"title\""),
      content);
}

}  // namespace w5xde
