#include "egraph/matcher.h"

#include <algorithm>

#include "pantala/error.h"

namespace pantala::egraph {

bool Matcher::Step::is_like(const Step& other) const {
  return kind == other.kind && from == other.from && to == other.to && op == other.op &&
         arity == other.arity && position == other.position && symbol == other.symbol &&
         node == other.node && ground == other.ground && rule == other.rule;
}

// Turns the patterns of one rule into a chain of steps: a node is bound, what its children must be
// is tested, and only then the next node is bound.
struct Matcher::Compilation {
  Matcher& matcher;
  MatchLayout& layout;
  std::vector<Raw>* siblings;
  Raw registers = 0;

  void emit(Step step) {
    const Raw id = matcher.enter(*siblings, std::move(step));
    siblings = &matcher.steps_[id].next;
  }

  bool is_ground(const Pattern& pattern, TermId id) const {
    const Term& term = pattern.terms[id];
    return !term.variable.valid() && term.payload &&
           std::all_of(term.children.begin(), term.children.end(),
                       [&](TermId child) { return is_ground(pattern, child); });
  }

  // What stands at a term must be the class in the register. Terms that are nodes are left for
  // later.
  void test(const Pattern& pattern, TermId id, Raw at) {
    const Term& term = pattern.terms[id];
    if (term.variable.valid()) {
      Raw& known = layout.registers[term.variable.index()];
      if (known == kAny)
        known = at;
      else
        emit({.kind = Kind::same, .from = at, .to = known});
    } else if (is_ground(pattern, id)) {
      emit({.kind = Kind::ground, .from = at, .ground = matcher.ground_number(pattern, id)});
    }
  }

  Step node_step(Kind kind, const Term& term) {
    Step step = {.kind = kind, .op = static_cast<Raw>(term.op.index()), .symbol = kAny};
    step.arity = term.any_children ? kAny : static_cast<Raw>(term.children.size());
    step.node = layout.nodes++;
    if (term.payload)
      step.symbol =
          static_cast<Raw>(matcher.symbols_->intern(term.op, step.arity, *term.payload).index());
    return step;
  }

  void bind_children(const Pattern& pattern, const Term& term, Raw first) {
    for (std::size_t k = 0; k < term.children.size(); ++k)
      test(pattern, term.children[k], first + static_cast<Raw>(k));
    for (std::size_t k = 0; k < term.children.size(); ++k) {
      const TermId child = term.children[k];
      if (!pattern.terms[child].variable.valid() && !is_ground(pattern, child))
        bind(pattern, child, first + static_cast<Raw>(k));
    }
  }

  void bind(const Pattern& pattern, TermId id, Raw at) {
    const Term& term = pattern.terms[id];
    Step step = node_step(Kind::bind, term);
    step.from = at;
    step.to = registers;
    registers += static_cast<Raw>(term.children.size());
    const Raw first = step.to;
    emit(std::move(step));
    bind_children(pattern, term, first);
  }

  // A further pattern: found from a child that is known already, if there is one.
  void bind_further(const Pattern& pattern) {
    const Term& term = pattern.terms[pattern.root()];
    Step step = node_step(Kind::bind_any, term);
    for (std::size_t k = 0; k < term.children.size() && step.kind == Kind::bind_any; ++k) {
      const VariableId variable = pattern.terms[term.children[k]].variable;
      if (!variable.valid() || layout.registers[variable.index()] == kAny) continue;
      step.kind = Kind::bind_user;
      step.from = layout.registers[variable.index()];
      step.position = static_cast<Raw>(k);
    }
    step.to = registers;  // its class; then its children
    registers += 1 + static_cast<Raw>(term.children.size());
    const Raw first = step.to + 1;
    emit(std::move(step));
    bind_children(pattern, term, first);
  }
};

Matcher::Matcher(Symbols& symbols, std::span<const Rule> rules) : symbols_(&symbols) {
  layouts_.resize(rules.size());
  Raw most_registers = 0, most_nodes = 0;
  for (std::size_t k = 0; k < rules.size(); ++k) {
    const Rule& rule = rules[k];
    MatchLayout& layout = layouts_[k];
    layout.registers.assign(rule.variables.names.size(), kAny);
    if (rule.left.empty() || rule.left[0].terms[rule.left[0].root()].variable.valid())
      throw InternalError("egraph: the left side of a rule begins with a node: " + rule.name);
    const OpId op = rule.left[0].terms[rule.left[0].root()].op;
    Compilation compilation = {*this, layout, &roots_[static_cast<Raw>(op.index())]};
    compilation.registers = 1;
    compilation.bind(rule.left[0], rule.left[0].root(), 0);
    for (std::size_t n = 1; n < rule.left.size(); ++n) compilation.bind_further(rule.left[n]);
    compilation.emit({.kind = Kind::accept, .rule = static_cast<Raw>(k)});
    most_registers = std::max(most_registers, compilation.registers);
    most_nodes = std::max(most_nodes, layout.nodes);
  }
  registers_.resize(most_registers);
  nodes_.resize(most_nodes);
  for (const auto& [op, first] : roots_)
    for (const Raw step : first) has_bind(step);
}

std::uint32_t Matcher::enter(std::vector<Raw>& siblings, Step step) {
  for (const Raw sibling : siblings)
    if (steps_[sibling].is_like(step)) return sibling;
  const Raw id = static_cast<Raw>(steps_.size());
  siblings.push_back(id);
  steps_.push_back(std::move(step));
  return id;
}

std::uint32_t Matcher::ground_number(const Pattern& pattern, TermId root) {
  Pattern part;
  for (std::size_t k = 0; k <= root.index(); ++k) part.terms.push_back(pattern.terms[TermId(k)]);
  grounds_.push_back(std::move(part));
  return static_cast<Raw>(grounds_.size() - 1);
}

// Notes for each bind whether another stands behind it, and says whether there is one here or
// behind.
bool Matcher::has_bind(Raw id) {
  bool behind = false;
  for (const Raw next : steps_[id].next) behind |= has_bind(next);
  steps_[id].last_bind = !behind;
  return behind || steps_[id].kind <= Kind::bind_any;
}

namespace {

// The class of a term without variables, or none.
std::optional<ClassId> ground_class(const EGraph& graph, const Pattern& pattern, TermId id) {
  const Term& term = pattern.terms[id];
  std::vector<ClassId> children;
  for (const TermId child : term.children) {
    const std::optional<ClassId> found = ground_class(graph, pattern, child);
    if (!found) return std::nullopt;
    children.push_back(*found);
  }
  const auto arity = static_cast<std::uint32_t>(children.size());
  const std::optional<SymbolId> symbol = graph.symbols().find(term.op, arity, *term.payload);
  return symbol ? graph.lookup(*symbol, children) : std::nullopt;
}

}  // namespace

void Matcher::run(const EGraph& graph, const Index& index, const Sink& sink) {
  graph_ = &graph;
  index_ = &index;
  sink_ = &sink;
  is_fresh_ = false;
  known_nodes_ = static_cast<Raw>(graph.node_ids());
  ground_classes_.clear();
  for (const Pattern& ground : grounds_) {
    const std::optional<ClassId> found = ground_class(graph, ground, ground.root());
    ground_classes_.push_back(found ? static_cast<Raw>(found->index()) : kAny);
  }
  for (const auto& [op, first] : roots_)
    for (const Raw id : index.classes_with(op)) {
      registers_[0] = id;
      for (const Raw step : first) visit(step);
    }
}

void Matcher::visit(Raw id) {
  const Step& step = steps_[id];
  switch (step.kind) {
    case Kind::bind:
      return visit_class(step, registers_[step.from], step.to);
    case Kind::bind_user:
      return visit_users(step);
    case Kind::bind_any:
      return visit_any(step);
    case Kind::same:
      if (registers_[step.from] == registers_[step.to]) visit_all(step);
      return;
    case Kind::ground:
      if (registers_[step.from] == ground_classes_[step.ground]) visit_all(step);
      return;
    case Kind::accept:
      if (is_fresh_) accept(step.rule);
      return;
  }
}

void Matcher::accept(Raw rule) {
  const MatchLayout& layout = layouts_[rule];
  match_.assign(nodes_.begin(), nodes_.begin() + layout.nodes);
  for (const Raw at : layout.registers) match_.push_back(registers_[at]);
  (*sink_)(RuleId(rule), match_);
}

void Matcher::visit_class(const Step& step, Raw id, Raw to) {
  if (step.arity == kAny) {
    for (const Index::Group& group : index_->groups(id))
      if (group.op == step.op) visit_group(step, group, to);
  } else if (const Index::Group* group = index_->group(id, step.op, step.arity)) {
    visit_group(step, *group, to);
  }
}

void Matcher::visit_group(const Step& step, const Index::Group& group, Raw to) {
  // Without a fresh node so far, the last one must be fresh.
  const Raw end = is_fresh_ || !step.last_bind ? group.end : group.fresh_end;
  for (Raw at = group.begin; at < end; at += 1 + group.arity) {
    const Raw* row = index_->rows() + at;
    try_node(step, row[0], row + 1, to, at < group.fresh_end);
  }
}

void Matcher::visit_users(const Step& step) {
  for (Raw use = graph_->users_of_[registers_[step.from]].first; use != EGraph::kNone;
       use = graph_->uses_[use].next) {
    const Raw id = graph_->uses_[use].node;
    if (id >= known_nodes_ || !graph_->nodes_[id].is_live()) continue;
    const EGraph::Node& node = graph_->nodes_[id];
    if (use - node.first_child != step.position || graph_->op(NodeId(id)).index() != step.op ||
        (step.arity != kAny && graph_->arity(NodeId(id)) != step.arity))
      continue;
    registers_[step.to] = node.in;
    try_node(step, id, graph_->raw_children(node).data(), step.to + 1,
             index_->is_fresh(*graph_, id));
  }
}

void Matcher::visit_any(const Step& step) {
  for (const Raw id : index_->classes_with(step.op)) {
    registers_[step.to] = id;
    visit_class(step, id, step.to + 1);
  }
}

void Matcher::try_node(const Step& step, Raw node, const Raw* children, Raw to, bool is_fresh) {
  if (step.symbol != kAny && graph_->nodes_[node].symbol != step.symbol) return;
  if (step.arity != kAny) std::copy_n(children, step.arity, registers_.begin() + to);
  nodes_[step.node] = node;
  const bool before = is_fresh_;
  is_fresh_ |= is_fresh;
  visit_all(step);
  is_fresh_ = before;
}

}  // namespace pantala::egraph
