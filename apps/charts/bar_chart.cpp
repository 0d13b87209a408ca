#include "charts/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "charts/svg.h"

namespace w5xde {

namespace {

constexpr int kRowPixels = 46;
constexpr int kTextBaseline = 13;  // in its row
constexpr int kBarTop = 20;
constexpr int kBarPixels = 11;

std::string text(std::string_view kind, std::string_view x, int top, std::string_view anchor,
                 std::string_view words) {
  return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", kind, x,
                     top + kTextBaseline, anchor, escape(words));
}

std::string rectangle(std::string_view kind, double percent, int top) {
  return fmt::format("<rect class=\"{}\" x=\"0\" y=\"{}\" width=\"{:.2f}%\" height=\"{}\"/>", kind,
                     top + kBarTop, percent, kBarPixels);
}

std::string line(std::string_view kind, double percent1, int y1, double percent2, int y2) {
  return fmt::format("<line class=\"{}\" x1=\"{:.2f}%\" y1=\"{}\" x2=\"{:.2f}%\" y2=\"{}\"/>", kind, percent1,
                     y1, percent2, y2);
}

}  // namespace

std::string bar_chart(std::string_view title, const std::vector<Bar>& bars) {
  double largest = 0;
  for (const Bar& bar : bars) {
    for (const double value : {bar.value, bar.low, bar.high, bar.marker}) {
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
  }
  const auto percent = [&](double value) {
    return largest > 0 ? std::clamp(value / largest, 0.0, 1.0) * 100 : 0;
  };
  std::string content;
  int top = 0;
  for (const Bar& bar : bars) {
    content += text("label", "0", top, "start", bar.label) + text("figure", "100%", top, "end", bar.text);
    content += rectangle("track", 100, top);
    if (std::isfinite(bar.value)) {
      content += rectangle(bar.best ? "bar best" : "bar", percent(bar.value), top);
    }
    if (std::isfinite(bar.low) && std::isfinite(bar.high)) {
      const int below = top + kBarTop + kBarPixels + 5;
      content += line("whisker", percent(bar.low), below, percent(bar.high), below);
      for (const double end : {percent(bar.low), percent(bar.high)}) {
        content += line("whisker", end, below - 3, end, below + 3);
      }
    }
    if (std::isfinite(bar.marker)) {
      const double at = percent(bar.marker);
      content += line("marker", at, top + kBarTop - 3, at, top + kBarTop + kBarPixels + 3);
    }
    top += kRowPixels;
  }
  return fmt::format("<svg role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"{}\">{}</svg>\n",
                     escape(title), top, content);
}

}  // namespace w5xde
