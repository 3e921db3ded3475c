#include "egraph/proof.h"

#include <algorithm>
#include <utility>

namespace pantala::egraph {

void Proofs::connect(NodeId a, NodeId b, const Reason& reason, bool is_congruence) {
  if (!enabled_) return;
  // `a` becomes the root of its tree: the edges on its way up change their direction.
  NodeId at = a;
  Edge before = {b, reason, is_congruence};
  while (at.valid()) {
    const Edge next = std::exchange(edges_[at.index()], before);
    before = {at, next.reason, next.is_congruence};
    at = next.up;
  }
}

std::vector<NodeId> Proofs::way_up(NodeId from) const {
  std::vector<NodeId> way;
  for (NodeId at = from; at.valid(); at = edges_[at.index()].up) way.push_back(at);
  return way;
}

std::vector<Proofs::Link> Proofs::path(NodeId a, NodeId b) const {
  std::vector<NodeId> up = way_up(a), down = way_up(b);
  // Both ways end at the same root; what they share there is no part of the path, but for its
  // lowest node.
  while (up.size() > 1 && down.size() > 1 && up[up.size() - 2] == down[down.size() - 2])
    up.pop_back(), down.pop_back();
  std::vector<Link> links;
  for (std::size_t k = 0; k + 1 < up.size(); ++k) {
    const Edge& edge = edges_[up[k].index()];
    links.push_back({up[k], up[k + 1], edge.reason, edge.is_congruence});
  }
  for (std::size_t k = down.size() - 1; k > 0; --k) {
    const Edge& edge = edges_[down[k - 1].index()];
    links.push_back({down[k], down[k - 1], edge.reason, edge.is_congruence});
  }
  return links;
}

}  // namespace pantala::egraph
