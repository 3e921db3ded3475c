#include "tools/explain/page.h"

#include <fmt/format.h>

#include "monitor/chart.h"
#include "tools/explain/page_parts.h"
#include "tools/explain/text.h"

namespace pantala::tools {

namespace {

// Scripts and styles of the page itself are all that a browser may use for it.
constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}: given and chosen</title>
<style>
{style}</style>
</head>
)";
constexpr std::string_view kBody = R"(<body>
<header>
<h1>{title}</h1>
<select id="step"></select>
<span class="group"><button id="view-given">given</button><button id="view-chosen">chosen</button><button id="view-both">both</button></span>
<span class="group"><button id="zoom-out">&minus;</button><button id="zoom-in">+</button><button id="fit">fit</button></span>
<span class="group"><input id="search" type="search" placeholder="layer, op, file, rule"><span id="found"></span></span>
<span class="group"><span id="kind"></span> time of a kernel: 0 <span id="legend"></span> <span id="longest"></span></span>
<span class="group">purple: made by rules</span>
</header>
<main>
<div id="panes">
<div class="pane" id="pane-given"><svg></svg><h2>given</h2></div>
<div class="pane" id="pane-chosen"><svg></svg><h2>chosen</h2></div>
</div>
<aside id="details"></aside>
</main>
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>
</body>
</html>
)";

}  // namespace

std::string json_in_script(std::string_view json) {
  std::string result;
  for (const char c : json)
    if (c == '<')  // only ever inside of a string
      result += "\\u003c";
    else
      result += c;
  return result;
}

std::string explanation_page(const Explanation& explanation) {
  const std::string title = monitor::xml_text(explanation.subject);
  return fmt::format(fmt::runtime(kHead), fmt::arg("title", title), fmt::arg("style", kPageStyle)) +
         fmt::format(fmt::runtime(kBody), fmt::arg("title", title),
                     fmt::arg("data", json_in_script(explanation_json(explanation))),
                     fmt::arg("script", kPageScript));
}

}  // namespace pantala::tools
