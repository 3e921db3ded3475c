// The form of code: all that what is found out about it depends on, and nothing that differs
// between layers that are alike. Code of one form reads the same way, joins the same company, costs
// the same and becomes the same kernels, whatever values and buffers it works on.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/context.h"

namespace pantala::schedule {

using FormWords = std::vector<std::uint64_t>;
struct FormHash {
  std::size_t operator()(const FormWords& words) const;
};

// Walks code from what it makes to what it loads, and writes its form. Nodes get numbers in the
// order in which they are met. One walker serves many walks over a graph.
class CodeWalker {
 public:
  // Whether a value is loaded; then the words that stand for it have been written.
  using Load = std::function<bool(ValueId)>;
  CodeWalker(const Context& context, Load load);

  void begin();
  void word(std::uint64_t value) { words_.push_back(value); }
  template <class Numbers>
  void words(const Numbers& numbers) {
    word(numbers.size());
    for (const auto number : numbers) word(static_cast<std::uint64_t>(number));
  }
  void value(ValueId id);
  // The code of a node, whether it is loaded elsewhere or not.
  void node(std::uint32_t id);

  const FormWords& words() const { return words_; }
  // Values of the host that the code reads, in the order in which they are met.
  const std::vector<ValueId>& hosts() const { return hosts_; }

 private:
  std::uint64_t signature(std::uint32_t id);
  std::uint32_t moved_from(std::uint32_t id) const;
  bool is_own_number(std::uint32_t id) const;

  const Context& context_;
  Load load_;
  FormWords words_;
  std::vector<ValueId> hosts_;
  struct Met {
    std::uint64_t walk = 0, number = 0;
  };
  std::vector<Met> met_;                   // by node
  std::vector<std::uint64_t> signatures_;  // by node; 0: not known yet
  std::uint64_t walk_ = 0, nodes_ = 0;
};

struct GroupForm {
  FormWords words;                     // equal for groups of one form
  std::vector<std::uint32_t> buffers;  // of this group, in the order in which they are met
  std::vector<ValueId> hosts;          // likewise
};
// The forms of groups whose outputs have their places.
class GroupForms {
 public:
  explicit GroupForms(const Context& context);
  GroupForms(const GroupForms&) = delete;
  GroupForms& operator=(const GroupForms&) = delete;
  GroupForm of(const Group& group);

 private:
  bool load(ValueId id);
  void buffer(std::uint32_t id);

  const Context& context_;
  const Group* group_ = nullptr;
  GroupForm form_;
  CodeWalker walker_;
};

}  // namespace pantala::schedule
