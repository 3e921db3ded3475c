#include "runtime/placement.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace pantala::runtime {

namespace {

// The parameter that one argument set reads as an operand and the value that it meets there.
struct Product {
  std::string parameter;
  std::uint32_t other;
};

std::optional<Product> product_of(const plan::Plan& plan, const plan::Launch& launch,
                                  const plan::ArgumentSet& set,
                                  const std::set<std::string, std::less<>>& matrices) {
  const plan::Signature& signature = plan.units[launch.unit].signature;
  std::optional<std::string> parameter;
  std::optional<std::uint32_t> other;
  for (std::size_t k = 0; k < set.buffers.size(); ++k) {
    if (signature.buffers[k].access != kir::Access::read) continue;
    const plan::Buffer& buffer = plan.buffers[set.buffers[k]];
    if (buffer.storage == plan::Storage::store) {
      const std::string& name = plan.regions[buffer.region].name;
      if (!matrices.contains(name)) continue;
      if (parameter && *parameter != name) return std::nullopt;  // no product with one weight
      parameter = name;
    } else if (buffer.storage != plan::Storage::constant && !other) {
      other = set.buffers[k];
    }
  }
  if (!parameter || !other) return std::nullopt;
  return Product{*parameter, *other};
}

}  // namespace

std::vector<std::vector<std::string>> siblings(const plan::Plan& plan) {
  std::set<std::string, std::less<>> matrices;
  for (const plan::Port& port : plan.parameters)
    if (port.shape.rank() >= 2) matrices.insert(port.name);
  std::vector<std::vector<std::string>> lists;
  std::map<std::uint32_t, std::size_t> list_of;  // by the value that is multiplied
  std::set<std::string, std::less<>> seen;  // the first product counts: that of the forward pass
  for (const plan::Launch& launch : plan.launches) {
    for (const plan::ArgumentSet& set : launch.sets) {
      const std::optional<Product> product = product_of(plan, launch, set, matrices);
      if (!product || !seen.insert(product->parameter).second) continue;
      const auto [place, is_new] = list_of.emplace(product->other, lists.size());
      if (is_new) lists.emplace_back();
      lists[place->second].push_back(product->parameter);
    }
  }
  std::erase_if(lists, [](const auto& list) { return list.size() < 2; });
  return lists;
}

namespace {

class Placer {
 public:
  explicit Placer(std::span<const PlacedLeaf> leaves) : leaves_(leaves) {
    for (std::size_t k = 0; k < leaves.size(); ++k) index_of_.emplace(leaves[k].name, k);
  }

  std::vector<std::size_t> run(std::span<const std::vector<std::string>> siblings) {
    std::map<std::string_view, const std::vector<std::string>*> family;
    for (const std::vector<std::string>& list : siblings)
      for (const std::string& name : list) family.emplace(name, &list);
    for (const PlacedLeaf& leaf : leaves_) {
      if (leaf.kind != LeafKind::parameter) continue;
      if (const auto found = family.find(leaf.name); found != family.end())
        for (const std::string& name : *found->second) add(name);
      add(leaf.name);
    }
    const std::vector<std::size_t> parameters = order_;
    for (const std::string& prefix : prefixes(parameters))
      for (const std::size_t parameter : parameters) add(prefix + leaves_[parameter].name);
    for (const PlacedLeaf& leaf : leaves_) add(leaf.name);
    return std::move(order_);
  }

 private:
  void add(std::string_view name) {
    const auto found = index_of_.find(name);
    if (found == index_of_.end() || !placed_.insert(found->second).second) return;
    order_.push_back(found->second);
  }

  // What stands before a parameter's name in the names of states, in the order of the states. The
  // longest parameter counts: "optim.m.a.b" belongs to "a.b" even if there is a "b".
  std::vector<std::string> prefixes(const std::vector<std::size_t>& parameters) const {
    std::set<std::string_view> names;
    for (const std::size_t parameter : parameters) names.insert(leaves_[parameter].name);
    std::vector<std::string> found;
    for (const PlacedLeaf& leaf : leaves_) {
      if (leaf.kind != LeafKind::state) continue;
      const std::string_view name = leaf.name;
      for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
        if (!names.contains(name.substr(dot + 1))) continue;
        std::string prefix(name.substr(0, dot + 1));
        if (std::find(found.begin(), found.end(), prefix) == found.end())
          found.push_back(std::move(prefix));
        break;
      }
    }
    return found;
  }

  std::span<const PlacedLeaf> leaves_;
  std::map<std::string_view, std::size_t> index_of_;
  std::set<std::size_t> placed_;
  std::vector<std::size_t> order_;
};

}  // namespace

std::vector<std::size_t> place(std::span<const PlacedLeaf> leaves,
                               std::span<const std::vector<std::string>> siblings) {
  return Placer(leaves).run(siblings);
}

}  // namespace pantala::runtime
