// pantala explain MODEL|FILE|RUN: which of the equal ways to compute a step was chosen, what the
// others were expected to cost, which rules made it and what each of them is worth.
#include <fmt/format.h>

#include <memory>

#include "base/doing.h"
#include "io/file.h"
#include "tools/command.h"
#include "tools/explain/bisect.h"
#include "tools/explain/explanation.h"
#include "tools/explain/page.h"
#include "tools/explain/text.h"
#include "tools/options.h"
#include "tools/subject_options.h"

namespace pantala::tools {

namespace {

struct ExplainOptions {
  InspectSubject subject;
  std::string kernel, html;
  bool json = false, measure = false, bisect = false;
  double tolerance = 0.01;
};

// Exit code 1: something differs.
int print_bisection(const ExplainOptions& o) {
  const Doing doing("comparing steps of " + o.subject.name);
  const Bisection found = bisect(read_subject(o.subject), o.tolerance);
  fmt::print("{}",
             o.json ? bisection_json(found, o.tolerance) : bisection_text(found, o.tolerance));
  return found.causes.empty() ? 0 : kExitFailed;
}

int print_explanation(const ExplainOptions& o) {
  const Doing doing("explaining " + o.subject.name);
  const Explanation explanation = explain(o.subject.name, read_subject(o.subject), o.measure);
  if (!o.html.empty()) io::write_file(o.html, explanation_page(explanation));
  if (!o.kernel.empty())
    fmt::print("{}", kernel_text(explanation, o.kernel));
  else
    fmt::print("{}", o.json ? explanation_json(explanation) : explanation_text(explanation));
  return 0;
}

}  // namespace

Run explain_verb(VerbOptions& verb) {
  const auto o = std::make_shared<ExplainOptions>();
  add_subject_options(verb, o->subject);
  verb.add_flag("--measure", o->measure,
                "Also run both graphs in turns on made-up inputs, and show their times");
  Option* json = verb.add_flag("--json", o->json, "JSON instead of text, with all kernels");
  verb.add_option("--kernel", o->kernel,
                  "One kernel of the chosen graph, by name or number: what it computes, and the "
                  "rewrites that made it")
      ->excludes(json);
  Option* html =
      verb.add_option("--html", o->html,
                      "Also write a page for a browser to this file: both graphs, their kernels "
                      "coloured by time");
  verb.add_flag("--bisect", o->bisect,
                "Instead: run a step with the rules and without any, and where the results differ "
                "find the rules that make the difference; exit code 1 if there are such")
      ->excludes(html);
  verb.add_option(
          "--tolerance", o->tolerance,
          "What --bisect takes for equal: the norm of a difference by that of the value; 0: "
          "the bits")
      ->capture_default_str();
  verb.footer(
      "Examples:\n"
      "  pantala explain resnet18 --batch 8 --measure\n"
      "  pantala explain lenet --kernel 12\n"
      "  pantala explain runs/lenet-fashion-mnist --inference --json");
  return [o] { return o->bisect ? print_bisection(*o) : print_explanation(*o); };
}

}  // namespace pantala::tools
