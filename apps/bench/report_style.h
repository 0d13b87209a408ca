#pragma once

namespace w5xde {

// The page's looks; light or dark as the reader's machine is.
inline constexpr const char* kReportStyle = R"(
:root{color-scheme:light dark;--page:#fbfaf7;--card:#fff;--ink:#1d2026;--soft:#5b6270;--line:#e3e1da;
--track:#eeece5;--bar:#9db4d8;--best:#2f62b4;--mark:#c2410c;--network:#a3b1c6;--compression:#e0912f;
--compute:#2f62b4}
@media(prefers-color-scheme:dark){:root{--page:#14161a;--card:#1b1e24;--ink:#e8e6e1;--soft:#9aa2b1;
--line:#2c313a;
--track:#262a32;--bar:#4a6796;--best:#86aef2;--mark:#fb923c;--network:#566580;--compression:#e0a04c;
--compute:#86aef2}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:16px/1.55 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 5rem}
h1{font-size:2rem;line-height:1.15;margin:0 0 .5rem;letter-spacing:-.02em;text-wrap:balance}
h2{font-size:1.35rem;line-height:1.25;margin:3.5rem 0 .25rem;letter-spacing:-.01em}
h3{font-size:.95rem;margin:0 0 .75rem}
p{max-width:42rem;margin:.5rem 0}
.lede,.note{color:var(--soft)}
.note{font-size:.875rem}
section>p{margin-bottom:1rem}
.grid{display:grid;gap:1.25rem;margin-top:1.25rem}
@media(min-width:52rem){.grid.two{grid-template-columns:1fr 1fr}}
figure{margin:0;padding:1.1rem 1.1rem .6rem;background:var(--card);border:1px solid var(--line);
border-radius:10px;
min-width:0}
figcaption{font-size:.8125rem;color:var(--soft);margin:.5rem 0}
svg{display:block;overflow:visible;font-size:13px}
text.label{fill:var(--ink)}
text.figure{fill:var(--soft);font-variant-numeric:tabular-nums}
.track{fill:var(--track)}.bar{fill:var(--bar)}.best{fill:var(--best)}
.whisker{stroke:var(--ink);stroke-width:1.25;opacity:.65}
.marker{stroke:var(--mark);stroke-width:2.5}
.range{stroke:var(--bar);stroke-width:4}.dot{fill:var(--best)}
.rule{stroke:var(--line)}.curve{stroke:var(--best);stroke-width:2}
.part-0{fill:var(--compute)}.part-1{fill:var(--compression)}.part-2{fill:var(--network)}
.heat{fill:var(--best)}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1rem;font-size:.8125rem;color:var(--soft);margin:0 0 .75rem}
.legend i{display:inline-block;width:.7rem;height:.7rem;border-radius:2px;margin-right:.4rem}
.scroll{overflow-x:auto;margin:.25rem 0 .5rem}
table{border-collapse:collapse;width:100%;font-size:.8125rem;font-variant-numeric:tabular-nums;
white-space:nowrap}
th,td{padding:.3rem .6rem;text-align:right;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--soft);font-weight:500;white-space:normal;vertical-align:bottom}
th:first-child,td:first-child{text-align:left;padding-left:0;font-weight:500;position:sticky;left:0;
background:var(--card)}
td:last-child,th:last-child{padding-right:0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.25rem;font-size:.875rem;max-width:42rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.warning{border-left:3px solid var(--mark);padding-left:.75rem}
@media(max-width:30rem){th,td{padding:.3rem .4rem}
main{padding:1.5rem .9rem 3rem}h1{font-size:1.6rem}figure{padding:.9rem .8rem .4rem}
svg{font-size:12px}svg.dense{font-size:10.5px}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}}
)";

}  // namespace w5xde
