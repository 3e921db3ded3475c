// The parts of `pantala explain`: sets of rules, kernels by name, chains of rewrites, and texts of
// users in pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/options.h"
#include "pantala/error.h"
#include "support/errors.h"
#include "tools/explain/bisect.h"
#include "tools/explain/explanation.h"
#include "tools/explain/page.h"
#include "tools/explain/text.h"

namespace pantala::tools::explain_parts_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::message_of;
using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

Names letters(int count) {
  Names names;
  for (int k = 0; k < count; ++k) names.push_back(std::string(1, static_cast<char>('a' + k)));
  return names;
}

TEST(SmallestSet, finds_one_name_among_many) {
  for (const std::string& wrong : letters(13)) {
    int asked = 0;
    const Names found = smallest_set(letters(13), [&](const Names& on) {
      ++asked;
      EXPECT_FALSE(on.empty());
      return has(on, wrong);
    });
    EXPECT_THAT(found, ElementsAre(wrong));
    EXPECT_LT(asked, 12);  // halves, not one after the other
  }
}

TEST(SmallestSet, finds_names_that_are_wrong_together) {
  const Names found = smallest_set(
      letters(11), [](const Names& on) { return has(on, "b") && has(on, "g") && has(on, "k"); });
  EXPECT_THAT(found, ElementsAre("b", "g", "k"));
}

TEST(SmallestSet, leaves_no_name_that_is_not_needed) {
  // Either a alone or three of the others: whatever is found can do without nothing.
  const auto holds = [](const Names& on) { return has(on, "a") || on.size() >= 3; };
  const Names found = smallest_set(letters(9), holds);
  ASSERT_TRUE(holds(found));
  for (const std::string& name : found) {
    Names less = found;
    std::erase(less, name);
    EXPECT_FALSE(!less.empty() && holds(less)) << name;
  }
}

TEST(SmallestSet, keeps_a_single_name) {
  const auto never = [](const Names&) { return ADD_FAILURE() << "it was asked", true; };
  EXPECT_THAT(smallest_set({"a"}, never), ElementsAre("a"));
}

const Explanation& explained_lenet() {
  static const Explanation explanation =
      explain("lenet", read_subject({.name = "lenet", .batch = 16, .threads = 2}), false);
  return explanation;
}

TEST(ExplainedKernels, have_all_nodes_and_read_what_others_store) {
  const ExplainedStep& step = explained_lenet().steps.at(0);
  for (const auto* kernels : {&step.given, &step.chosen}) {
    ASSERT_GT(kernels->size(), 10u);
    for (std::size_t k = 0; k < kernels->size(); ++k) {
      const ExplainedKernel& one = (*kernels)[k];
      EXPECT_FALSE(one.nodes.empty() && one.leaves.empty() && one.reads.empty()) << one.name();
      EXPECT_GT(one.predicted_us, 0) << one.name();
      for (const std::size_t read : one.reads) EXPECT_LT(read, k) << one.name();
    }
  }
}

// What was stored, computed again or laid out otherwise is said in words and for programs.
TEST(Explanation, says_what_is_stored_and_how_images_lie) {
  Explanation all = explained_lenet();
  all.steps[0].found.stored = {{"add f32[3]", 2, 24}};
  all.steps[0].found.recomputed = {{"mul f32[5]", 4, 80}};
  all.steps[0].found.by_planes = {"convolution f32[7]"};
  const std::string text = explanation_text(all);
  EXPECT_THAT(text, testing::ContainsRegex("stored for all who read it +2 x add f32"));
  EXPECT_THAT(text, testing::ContainsRegex("computed again, not kept +4 x mul f32"));
  EXPECT_THAT(text, testing::ContainsRegex("images by planes +convolution f32"));
  const auto step = nlohmann::json::parse(explanation_json(all)).at("steps").at(0);
  EXPECT_EQ(step.at("stored").at(0).at("values"), "add f32[3]");
  EXPECT_EQ(step.at("recomputed").at(0).at("count"), 4);
  EXPECT_EQ(step.at("by_planes"), nlohmann::json::array({"convolution f32[7]"}));
}

TEST(ExplainedKernels, know_the_rewrites_that_made_them) {
  const ExplainedStep& step = explained_lenet().steps.at(0);
  for (const ExplainedKernel& kernel : step.given) EXPECT_THAT(kernel.rules(), ElementsAre());
  // The sum of the pool's gradient was there before the mask was moved above the pool: one chain.
  bool has_sum = false, has_mask = false;
  for (const ExplainedKernel& kernel : step.chosen)
    for (const KernelNode& node : kernel.nodes)
      for (const ir::Rewriting& one : node.rewrites) {
        EXPECT_FALSE(node.place.empty()) << node.op;
        if (one.rule == "sum-of-pool-gradient") {
          has_sum = true;
          EXPECT_THAT(one.from, HasSubstr("sum f32["));
          EXPECT_THAT(one.from, HasSubstr("lenet.cpp:"));
        }
        has_mask |= one.rule == "relu-mask-above-pool";
      }
  EXPECT_TRUE(has_sum);
  EXPECT_TRUE(has_mask);
}

TEST(ExplainedKernels, name_the_rules_that_reached_the_result) {
  const ExplainedStep& step = explained_lenet().steps.at(0);
  Names made;
  for (const ExplainedKernel& kernel : step.chosen)
    for (const std::string& rule : kernel.rules()) made.push_back(rule);
  for (const ExplainedRule& rule : step.rules)
    EXPECT_EQ(has(made, rule.use.name), rule.use.reached > 0) << rule.use.name;
}

TEST(ExplainedKernels, are_found_by_name_and_number) {
  const std::vector<ExplainedKernel>& kernels = explained_lenet().steps.at(0).chosen;
  EXPECT_THAT(find_kernels(kernels, "3"), ElementsAre(3u));
  std::size_t named_alike = 0;
  const std::string name = "rows.sum";
  for (const std::size_t k : find_kernels(kernels, name)) {
    EXPECT_EQ(kernels[k].name(), name);
    ++named_alike;
  }
  EXPECT_EQ(named_alike,
            static_cast<std::size_t>(std::ranges::count(kernels, name, &ExplainedKernel::name)));
  EXPECT_GT(named_alike, 1u);
  const std::string message = message_of<TypeError>([&] { find_kernels(kernels, name + "x"); });
  EXPECT_THAT(message, HasSubstr("did you mean"));
  EXPECT_THAT(message_of<TypeError>([&] { find_kernels(kernels, "100000"); }),
              HasSubstr("numbered from 0 to"));
}

TEST(ExplainedStep, has_every_phase) {
  const Explanation& all = explained_lenet();
  Names names;
  for (const auto* stages : {&all.stages, &all.steps.at(0).stages})
    for (const Report::Stage& stage : *stages) names.push_back(stage.name);
  EXPECT_THAT(names, ElementsAre("canonicalise", "differentiate", "optimizer", "saturate",
                                 "schedule", "codegen", "plan"));
  double searched = 0;
  for (const search::Phase& phase : all.steps.at(0).found.phases) searched += phase.milliseconds;
  EXPECT_GT(searched, 0);
  EXPECT_LE(searched, all.steps.at(0).search_ms());
}

TEST(ExplanationPage, cannot_be_broken_by_names) {
  EXPECT_EQ(json_in_script(R"({"a": "</script><!--"})"), R"({"a": "\u003c/script>\u003c!--"})");
  Explanation awkward = explained_lenet();
  awkward.subject = "</title><script>\"&'";
  awkward.steps[0].chosen[0].layers = "</script><script>throw 1</script>\xff";
  const std::string page = explanation_page(awkward);
  EXPECT_THAT(page, HasSubstr("<title>&lt;/title&gt;&lt;script&gt;&quot;&amp;'"));
  EXPECT_THAT(page, Not(HasSubstr("throw 1</script>")));
  // What the page's script reads is the document again.
  const std::string_view begin = "id=\"data\">";
  const std::size_t first = page.find(begin) + begin.size();
  const auto data =
      nlohmann::json::parse(page.substr(first, page.find("</script>", first) - first));
  EXPECT_EQ(data.at("subject"), awkward.subject);
  EXPECT_EQ(data.at("steps").at(0).at("chosen").at(0).at("layers"),
            "</script><script>throw 1</script>\xef\xbf\xbd");
}

TEST(Bisect, checks_its_tolerance) {
  EXPECT_THAT(message_of<TypeError>([] { bisect({}, -1); }),
              HasSubstr("--tolerance must be 0 or more, got -1"));
}

}  // namespace
}  // namespace pantala::tools::explain_parts_test
