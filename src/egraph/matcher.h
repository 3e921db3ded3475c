// The left sides of all rules as one program. Rules that begin alike share their first steps, so a
// node is looked at once for all of them: the steps form a forest by the op of the first root.
//
// A step works on registers that hold classes. Matching is semi-naive: a match counts only if one
// of its nodes is fresh, since the others were found in an earlier round.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "egraph/index.h"
#include "egraph/rule.h"

namespace pantala::egraph {

// What matching is told of a rule's left side.
struct MatchLayout {
  std::uint32_t nodes = 0;                    // of a match, in the order of Match::node
  std::vector<std::uint32_t> registers = {};  // of the variables
};

class Matcher {
 public:
  Matcher(Symbols& symbols, std::span<const Rule> rules);

  const MatchLayout& layout(RuleId rule) const { return layouts_[rule.index()]; }

  // Takes a match: the nodes, then the classes of the variables.
  using Sink = std::function<void(RuleId, std::span<const std::uint32_t> match)>;
  // All matches that the index shows, root by root. While it runs, the sink may add nodes and unite
  // classes, which change nothing of what is matched, but not rebuild.
  void run(const EGraph& graph, const Index& index, const Sink& sink);

 private:
  using Raw = std::uint32_t;
  enum class Kind : std::uint8_t {
    bind,  // each node of `op` in the class of `from`: its children go to registers from `to` on
    bind_user,  // each node of `op` whose child number `position` is the class of `from`; its class
                // to `to`, its children behind it
    bind_any,   // each node of `op` at all, likewise
    same,       // go on only if two registers hold the same class
    ground,     // go on only if the register holds the class of a term without variables
    accept,     // a match of `rule`
  };
  struct Step {
    Kind kind = Kind::accept;
    Raw from = 0, to = 0;  // registers
    Raw op = 0, position = 0;
    Raw arity = 0;   // kAny: any, and the children go nowhere
    Raw symbol = 0;  // bind: only nodes with this symbol, if it is not kAny
    Raw node = 0;    // bind: number of the match's node
    Raw ground = 0;
    Raw rule = 0;
    bool last_bind = true;  // no bind stands behind it
    std::vector<Raw> next = {};
    bool is_like(const Step& other) const;
  };
  static constexpr Raw kAny = 0xFFFFFFFF;
  struct Compilation;

  Raw enter(std::vector<Raw>& siblings, Step step);
  Raw ground_number(const Pattern& pattern, TermId root);
  bool has_bind(Raw step);
  void accept(Raw rule);
  void visit(Raw step);
  void visit_all(const Step& step) {
    for (const Raw next : step.next) visit(next);
  }
  void visit_class(const Step& step, Raw id, Raw to);
  void visit_group(const Step& step, const Index::Group& group, Raw to);
  void visit_users(const Step& step);
  void visit_any(const Step& step);
  void try_node(const Step& step, Raw node, const Raw* children, Raw to, bool is_fresh);

  Symbols* symbols_;
  std::vector<MatchLayout> layouts_;
  std::vector<Step> steps_;
  std::map<Raw, std::vector<Raw>> roots_;  // first steps, by op
  std::vector<Pattern> grounds_;

  // Of the run.
  const EGraph* graph_ = nullptr;
  const Index* index_ = nullptr;
  const Sink* sink_ = nullptr;
  bool is_fresh_ = false;
  Raw known_nodes_ = 0;
  std::vector<Raw> registers_, nodes_, match_, ground_classes_;
};

}  // namespace pantala::egraph
