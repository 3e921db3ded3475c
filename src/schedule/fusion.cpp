#include "schedule/fusion.h"

#include <algorithm>
#include <map>
#include <set>

#include "schedule/company.h"

namespace pantala::schedule {

namespace {

// Groups while pieces join them; a group is named by the piece that it began with.
struct GroupTag;
using GroupId = Id<GroupTag>;

// Of the groups that read what a piece reads, so many are asked: else the work would grow with the
// square of their number. The newest are the ones with room left.
constexpr std::size_t kMostKin = 8;

class Fusion {
 public:
  Fusion(const Context& context, const Pieces& pieces, DecisionMemo& memo)
      : context_(context),
        pieces_(pieces),
        memo_(memo),
        readers_(pieces.list.size()),
        seen_(pieces.list.size()) {
    for (const PieceId id : pieces.list.ids()) group_of_.push_back(members_.push_back({id}));
    for (const PieceId id : pieces.list.ids())
      for (const Access& read : pieces[id].reads) {
        if (pieces[id].is_anchor && pieces[id].archetype->shares_kernel)
          kin_[read.value].push_back(id);
        if (const PieceId maker = pieces.maker(read.value); maker.valid())
          readers_[maker].push_back(id);
      }
  }

  Fused run() {
    if (context_.options.fuse)
      for (const PieceId id : pieces_.list.ids()) {
        context_.check();
        join(id);
      }
    Fused fused;
    for (std::vector<PieceId>& list : members_)
      if (!list.empty()) fused.groups.push_back(std::move(list));
    fused.searched = searched_;
    return fused;
  }

 private:
  bool has_anchor(GroupId group) const {
    return std::any_of(members_[group].begin(), members_[group].end(),
                       [&](PieceId id) { return pieces_[id].is_anchor; });
  }

  // Joins a piece with the groups that it reads, the ones with anchors first.
  void join(PieceId id) {
    std::vector<GroupId> candidates;
    for (const Access& read : pieces_[id].reads)
      if (const PieceId maker = pieces_.maker(read.value); maker.valid())
        candidates.push_back(group_of_[maker]);
    if (pieces_[id].is_anchor && pieces_[id].archetype->shares_kernel) add_kin(id, candidates);
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](GroupId a, GroupId b) { return has_anchor(a) > has_anchor(b); });
    for (const GroupId candidate : candidates) {
      const GroupId mine = group_of_[id];
      if (candidate == mine || members_[candidate].empty()) continue;
      ++searched_;
      if (can_share_kernel(candidate, mine) && !makes_cycle(candidate, mine, id))
        merge(candidate, mine);
    }
  }

  // The newest groups of earlier anchors of the same archetype that read something that this one
  // reads.
  void add_kin(PieceId id, std::vector<GroupId>& candidates) const {
    for (const Access& read : pieces_[id].reads) {
      if (std::ranges::find(pieces_[id].apart, read.value) != pieces_[id].apart.end()) continue;
      const std::vector<PieceId>& kin = kin_.at(read.value);
      std::set<GroupId> groups;
      for (auto at = std::lower_bound(kin.begin(), kin.end(), id);
           at != kin.begin() && groups.size() < kMostKin;)
        if (pieces_[*--at].archetype == pieces_[id].archetype) groups.insert(group_of_[*at]);
      candidates.insert(candidates.end(), groups.begin(), groups.end());
    }
  }

  void merge(GroupId into, GroupId from) {
    for (const PieceId id : members_[from]) {
      members_[into].push_back(id);
      group_of_[id] = into;
    }
    std::sort(members_[into].begin(), members_[into].end());
    members_[from].clear();
  }

  // Whether a path leads from one group to the other through a third. `last` is the piece that
  // joins: pieces behind it are alone yet, and no path leads back from them.
  bool makes_cycle(GroupId a, GroupId b, PieceId last) {
    return reaches_through_others(a, b, last) || reaches_through_others(b, a, last);
  }
  bool reaches_through_others(GroupId from, GroupId to, PieceId last) {
    ++searches_;
    std::vector<GroupId> work;
    const auto visit_readers = [&](GroupId group, bool first) {
      for (const PieceId member : members_[group])
        for (const PieceId id : readers_[member]) {
          if (id > last) break;
          ++searched_;
          const GroupId reader = group_of_[id];
          if (seen_[reader] == searches_ || reader == group) continue;
          if (first && reader == to) continue;
          seen_[reader] = searches_;
          work.push_back(reader);
        }
    };
    visit_readers(from, true);
    while (!work.empty()) {
      const GroupId group = work.back();
      work.pop_back();
      if (group == to) return true;
      if (group != from) visit_readers(group, false);
    }
    return false;
  }

  // Whether a piece among them reads what one of the others makes and must be made before.
  bool must_stay_apart(const std::vector<PieceId>& all) const {
    return std::any_of(all.begin(), all.end(), [&](PieceId id) {
      const std::vector<ValueId>& reads = pieces_[id].apart;
      return std::any_of(reads.begin(), reads.end(), [&](ValueId value) {
        return std::binary_search(all.begin(), all.end(), pieces_.maker(value));
      });
    });
  }

  bool can_share_kernel(GroupId a, GroupId b) {
    std::vector<PieceId> all = members_[a];
    all.insert(all.end(), members_[b].begin(), members_[b].end());
    std::sort(all.begin(), all.end());
    if (must_stay_apart(all)) return false;
    FormWords form = form_of(all);
    if (const auto known = memo_.joins.find(form); known != memo_.joins.end()) return known->second;
    const Company company(context_, pieces_, std::move(all));
    const Archetype* archetype = company.archetype();
    const std::uint64_t checks = context_.index_checks();
    const bool can = archetype != nullptr && archetype->can_join != nullptr && company.is_small() &&
                     archetype->can_join(company);
    if (checks == context_.index_checks()) memo_.joins.emplace(std::move(form), can);
    return can;
  }

  // The code of all members, and which of them read the same values or each other.
  FormWords form_of(const std::vector<PieceId>& all) const {
    FormWords form;
    std::vector<ValueId> others;
    for (const PieceId id : all) {
      form.push_back(pieces_[id].form);
      for (const ValueId value : pieces_[id].loads) {
        const auto maker = std::ranges::lower_bound(all, pieces_.maker(value));
        if (maker != all.end() && *maker == pieces_.maker(value)) {
          form.push_back(2 * static_cast<std::uint64_t>(maker - all.begin()));
          form.push_back(value.result);
          continue;
        }
        const auto known = std::ranges::find(others, value);
        form.push_back(2 * static_cast<std::uint64_t>(known - others.begin()) + 1);
        if (known == others.end()) others.push_back(value);
      }
    }
    return form;
  }

  const Context& context_;
  const Pieces& pieces_;
  DecisionMemo& memo_;
  IdVector<GroupId, std::vector<PieceId>> members_;  // empty: merged into another
  IdVector<PieceId, GroupId> group_of_;
  IdVector<PieceId, std::vector<PieceId>> readers_;  // one entry a read, ascending
  std::map<ValueId, std::vector<PieceId>> kin_;      // anchors that might share a kernel, by a read
  IdVector<GroupId, std::uint64_t> seen_;            // by which search, the last time
  std::uint64_t searches_ = 0, searched_ = 0;
};

}  // namespace

Fused fuse(const Context& context, const Pieces& pieces, DecisionMemo& memo) {
  return Fusion(context, pieces, memo).run();
}

}  // namespace pantala::schedule
