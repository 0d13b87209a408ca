#include "bench/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "figure_text.h"

namespace w5xde {

namespace {

constexpr int kRowPixels = 46;
constexpr int kTextBaseline = 13;  // in its row
constexpr int kBarTop = 20;
constexpr int kBarPixels = 11;

// Across. What is not finite must have been left out before; should it not have been, it lies at the edge.
std::string across(double share) {
  return fmt::format("{:.2f}%", std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * 100 : 0.0);
}

// A scale from nothing to the largest of what is drawn.
class Scale {
 public:
  void include(double value) {
    if (std::isfinite(value)) largest_ = std::max(largest_, value);
  }
  double operator()(double value) const { return largest_ > 0 ? value / largest_ : 0; }

 private:
  double largest_ = 0;
};

std::string svg(std::string_view title, int pixels, const std::string& content, std::string_view kind = "") {
  return fmt::format(
      "<svg class=\"chart{}\" role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"{}\">{}</svg>\n", kind,
      escape(title), pixels, content);
}

std::string text(std::string_view kind, const std::string& x, int y, std::string_view anchor,
                 std::string_view words) {
  return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", kind, x, y, anchor,
                     escape(words));
}

std::string rectangle(std::string_view kind, double from, double to, int y, int pixels) {
  return fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", kind, across(from),
                     y, across(to - from), pixels);
}

std::string line(std::string_view kind, double x1, int y1, double x2, int y2) {
  return fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>", kind, across(x1), y1,
                     across(x2), y2);
}

// The label to the left and the figure to the right, above whatever is drawn.
std::string row_head(std::string_view label, std::string_view figure, int top) {
  return text("label", "0", top + kTextBaseline, "start", label) +
         text("figure", "100%", top + kTextBaseline, "end", figure);
}

int rows_pixels(std::size_t rows) {
  return static_cast<int>(rows) * kRowPixels;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string bar_chart(std::string_view title, const std::vector<Bar>& bars) {
  Scale scale;
  for (const Bar& bar : bars) {
    for (const double value : {bar.value, bar.low, bar.high, bar.marker}) scale.include(value);
  }
  std::string content;
  int top = 0;
  for (const Bar& bar : bars) {
    content += row_head(bar.label, bar.text, top);
    content += rectangle("track", 0, 1, top + kBarTop, kBarPixels);
    if (std::isfinite(bar.value)) {
      content += rectangle(bar.best ? "bar best" : "bar", 0, scale(bar.value), top + kBarTop, kBarPixels);
    }
    if (std::isfinite(bar.low) && std::isfinite(bar.high)) {
      const int below = top + kBarTop + kBarPixels + 5;
      content += line("whisker", scale(bar.low), below, scale(bar.high), below);
      for (const double end : {scale(bar.low), scale(bar.high)}) {
        content += line("whisker", end, below - 3, end, below + 3);
      }
    }
    if (std::isfinite(bar.marker)) {
      const double at = scale(bar.marker);
      content += line("marker", at, top + kBarTop - 3, at, top + kBarTop + kBarPixels + 3);
    }
    top += kRowPixels;
  }
  return svg(title, rows_pixels(bars.size()), content);
}

std::string stacked_chart(std::string_view title, const std::vector<Stack>& stacks, double whole) {
  std::string content;
  int top = 0;
  for (const Stack& stack : stacks) {
    content += row_head(stack.label, stack.text, top);
    content += rectangle("track", 0, 1, top + kBarTop, kBarPixels);
    double from = 0;
    for (std::size_t i = 0; i < stack.parts.size(); ++i) {
      if (!std::isfinite(stack.parts[i]) || !(whole > 0)) continue;
      const double to = std::min(1.0, from + std::max(0.0, stack.parts[i]) / whole);
      content += rectangle(fmt::format("part-{}", i), from, to, top + kBarTop, kBarPixels);
      from = to;
    }
    top += kRowPixels;
  }
  return svg(title, rows_pixels(stacks.size()), content);
}

std::string range_chart(std::string_view title, const std::vector<Range>& ranges) {
  Scale scale;
  for (const Range& range : ranges) scale.include(range.high);
  std::string content;
  int top = 0;
  for (const Range& range : ranges) {
    content += row_head(range.label, range.text, top);
    content += rectangle("track", 0, 1, top + kBarTop, kBarPixels);
    if (std::isfinite(range.low) && std::isfinite(range.high)) {
      const int middle = top + kBarTop + kBarPixels / 2;
      content += line("range", scale(range.low), middle, scale(range.high), middle);
      for (const double end : {range.low, range.high}) {
        content +=
            fmt::format("<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"4\"/>", across(scale(end)), middle);
      }
    }
    top += kRowPixels;
  }
  return svg(title, rows_pixels(ranges.size()), content);
}

std::string line_chart(std::string_view title, const std::vector<Point>& points) {
  constexpr int kTop = 34, kBottom = 164, kPixels = 190;
  Scale scale;
  for (const Point& point : points) {
    for (const double value : {point.value, point.low, point.high}) scale.include(value);
  }
  const auto down = [&](double value) {
    return kBottom - static_cast<int>(std::lround(std::clamp(scale(value), 0.0, 1.0) * (kBottom - kTop)));
  };
  const auto x = [&](std::size_t i) {
    return (static_cast<double>(i) + 0.5) / static_cast<double>(points.size());
  };
  std::string lines, marks;
  for (const int y : {kTop, (kTop + kBottom) / 2, kBottom}) lines += line("rule", 0, y, 1, y);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    marks += text("label", across(x(i)), kBottom + 20, "middle", point.label);
    if (!std::isfinite(point.value)) continue;
    if (std::isfinite(point.low) && std::isfinite(point.high)) {
      lines += line("whisker", x(i), down(point.low), x(i), down(point.high));
    }
    if (i > 0 && std::isfinite(points[i - 1].value)) {
      lines += line("curve", x(i - 1), down(points[i - 1].value), x(i), down(point.value));
    }
    const int above = std::isfinite(point.high) ? down(point.high) : down(point.value);
    marks +=
        fmt::format("<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"4\"/>", across(x(i)), down(point.value));
    marks += text("figure", across(x(i)), above - 9, "middle", point.text);
  }
  return svg(title, kPixels, lines + marks);
}

std::string heat_chart(std::string_view title, const std::vector<std::string>& columns,
                       const std::vector<HeatRow>& rows) {
  constexpr double kLabels = 0.42;
  constexpr int kHead = 40, kPixels = 30;
  const double width = (1 - kLabels) / static_cast<double>(std::max<std::size_t>(columns.size(), 1));
  const auto middle = [&](std::size_t i) { return across(kLabels + (static_cast<double>(i) + 0.5) * width); };
  std::string content;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto space = columns[i].find(' ');
    content += text("label", middle(i), 13, "middle", columns[i].substr(0, space));
    if (space != std::string::npos) {
      content += text("label", middle(i), 30, "middle", columns[i].substr(space + 1));
    }
  }
  int top = kHead;
  for (const HeatRow& row : rows) {
    content += text("label", "0", top + 19, "start", row.label);
    for (std::size_t i = 0; i < std::min(row.shares.size(), columns.size()); ++i) {
      const double share = row.shares[i];
      if (std::isfinite(share)) {
        const double from = kLabels + static_cast<double>(i) * width;
        content += fmt::format(
            "<rect class=\"heat\" fill-opacity=\"{:.2f}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            std::pow(std::clamp(share, 0.0, 1.0), 2) * 0.6, across(from), top, across(width - 0.005),
            kPixels - 3);
      }
      content += text("label", middle(i), top + 18, "middle", decimal_text(share));
    }
    top += kPixels;
  }
  return svg(title, top, content, " dense");
}

}  // namespace w5xde
