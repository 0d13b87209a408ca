#include <fmt/format.h>

#include "bench/report.h"
#include "bench/report_sections.h"
#include "charts/bar_chart.h"
#include "charts/svg.h"

namespace w5xde {

namespace {

// Light or dark as the reader's machine is.
constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--page:#fbfaf7;--card:#fff;--ink:#1d2026;--soft:#5b6270;--line:#e3e1da;
--track:#eeece5;--bar:#9db4d8;--best:#2f62b4;--mark:#c2410c}
@media(prefers-color-scheme:dark){:root{--page:#14161a;--card:#1b1e24;--ink:#e8e6e1;--soft:#9aa2b1;
--line:#2c313a;--track:#262a32;--bar:#4a6796;--best:#86aef2;--mark:#fb923c}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.55 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
main{max-width:68rem;margin:0 auto;padding:2.5rem 1.25rem 5rem}
h1{font-size:2rem;line-height:1.15;margin:0 0 .5rem;letter-spacing:-.02em}
h2{font-size:1.35rem;line-height:1.25;margin:3.5rem 0 .25rem;letter-spacing:-.01em}
p{max-width:42rem;margin:.5rem 0;overflow-wrap:anywhere}
figure{margin:1.25rem 0 0;padding:1.1rem 1.1rem .6rem;background:var(--card);border:1px solid var(--line);
border-radius:10px;min-width:0}
figcaption{font-size:.8125rem;color:var(--soft);margin:.5rem 0}
svg{display:block;overflow:visible;font-size:13px}
text.label{fill:var(--ink)}
text.figure{fill:var(--soft);font-variant-numeric:tabular-nums}
.track{fill:var(--track)}.bar{fill:var(--bar)}.best{fill:var(--best)}
.whisker{stroke:var(--ink);stroke-width:1.25;opacity:.65}
.marker{stroke:var(--mark);stroke-width:2.5}
.scroll{overflow-x:auto;margin:.25rem 0 .5rem}
table{border-collapse:collapse;width:100%;font-size:.8125rem;font-variant-numeric:tabular-nums;
white-space:nowrap}
th,td{padding:.3rem .6rem;text-align:right;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--soft);font-weight:500;white-space:normal;vertical-align:bottom}
th:first-child,td:first-child{text-align:left;padding-left:0;font-weight:500;position:sticky;left:0;
background:var(--card)}
.warning{border-left:3px solid var(--mark);padding-left:.75rem}
)";

std::string cells(std::string_view tag, const Section::Line& line) {
  std::string html = "<tr>";
  for (const std::string& cell : line) html += fmt::format("<{0}>{1}</{0}>", tag, escape(cell));
  return html + "</tr>";
}

std::string figure_html(const Section& section) {
  if (section.table.empty()) return "";
  std::string html = "<figure>";
  if (!section.bars.empty()) html += bar_chart(section.title, section.bars);
  html += fmt::format("<figcaption>{}</figcaption>", escape(section.caption));
  html += fmt::format("<div class=\"scroll\"><table><thead>{}</thead><tbody>", cells("th", section.table[0]));
  for (std::size_t i = 1; i < section.table.size(); ++i) html += cells("td", section.table[i]);
  return html + "</tbody></table></div></figure>\n";
}

}  // namespace

std::string to_html(const BenchReport& report) {
  const Conditions& c = report.conditions;
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<title>WIIIIIDE: its presets compared</title><style>{}</style></head>\n<body><main>\n"
      "<h1>WIIIIIDE: its presets compared</h1>\n"
      "<p>Every preset, from the first generation to the adaptive one, run as a pool of {} nodes on one "
      "machine ({}, {} cores) on {}.</p>\n",
      kStyle, c.nodes, escape(c.processor), c.cores, escape(c.date));
  for (const std::string& warning : warnings_of(report)) {
    html += fmt::format("<p class=\"warning\">{}</p>\n", escape(warning));
  }
  for (const Section& section : sections_of(report)) {
    html += fmt::format("<section><h2>{}</h2>\n", escape(section.title));
    for (const std::string& text : section.paragraphs) html += fmt::format("<p>{}</p>\n", escape(text));
    html += figure_html(section) + "</section>\n";
  }
  return html + "</main></body></html>\n";
}

}  // namespace w5xde
