#include "schedule/gpu/contract/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "ops/contract.h"
#include "ops/face.h"
#include "schedule/append.h"
#include "schedule/common/contract/contraction.h"
#include "schedule/common/reduce/traced.h"
#include "schedule/company.h"
#include "schedule/gpu/product.h"

namespace pantala::schedule::gpu {

using kir::Var;

namespace {

// Of the code of an operand's element, which runs again for every tile that needs it, in additions.
constexpr double kCheapOperand = 8;

// A side of the product as kernels read it.
class Side {
 public:
  Side(const Context& context, std::uint32_t node, int side, const Contraction& p)
      : context_(context),
        p_(p),
        operand_(context.node(node).inputs[static_cast<std::size_t>(side)]),
        at_(operand_indices(p, side)),
        reads_(operand_reads(context, node, side, p,
                             [&](ValueId value) { return context.is_stored(value); })) {
    const std::vector<Affine> walks = walks_of(reads_);
    const auto loops = [&](int first, int count) {
      return loops_between(p.domain, first, count, walks, reads_.counted);
    };
    batch_loops_ = loops(0, p.batch);
    free_loops_ = side == 0 ? loops(p.batch, p.m) : loops(p.batch + p.m, p.n);
    k_loops_ = loops(p.batch + p.m + p.n, p.k);
  }

  void announce(Arguments& arguments) const { announce_reads(context_, reads_, arguments); }
  void declare(kir::Builder& b, Arguments& arguments) {
    builder_ = &b;
    batch_.emplace(b, batch_loops_, arguments);
    free_.emplace(b, free_loops_, arguments);
    k_.emplace(b, k_loops_, arguments);
    emitter_.emplace(make_emitter(b, context_, p_.domain, reads_, arguments));
  }
  TileOperand operand(Var batch) {
    Site outer;
    batch_->place(*builder_, outer, batch);
    return {.open =
                [this, outer](Var at) {
                  Site site = outer;
                  free_->place(*builder_, site, at);
                  return TileLoad([this, site](Var k, Var mask) {
                    Site here = site;
                    k_->place(*builder_, here, k);
                    here.mask = mask;
                    emitter_->enter(here);
                    return emitter_->value(operand_, at_);
                  });
                },
            .k_inner = k_inner()};
  }

 private:
  // Of the first memory that is read, which way its neighbours lie.
  bool k_inner() const {
    if (reads_.accesses.empty() || k_loops_.empty()) return false;
    const auto stride = [&](const std::vector<Loop>& loops) {
      return loops.empty() ? 0 : reads_.accesses[0].flat.coef[loops.back().dim.index()];
    };
    return stride(free_loops_) != 1 || stride(k_loops_) == 1;
  }

  const Context& context_;
  const Contraction& p_;
  const ValueId operand_;
  const Indices at_;
  const Footprint reads_;
  std::vector<Loop> batch_loops_, free_loops_, k_loops_;
  kir::Builder* builder_ = nullptr;
  std::optional<LoopNest> batch_, free_, k_;
  std::optional<Emitter> emitter_;
};

// The loops of the results, by batch, m and n.
class ResultLoops {
 public:
  ResultLoops(const Contraction& p, const ElementwiseBody& body) {
    const std::vector<Affine> walks = all_walks(body);
    const std::array<int, 3> counts{p.batch, p.m, p.n};
    int first = 0;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      loops_[k] = loops_between(body.domain, first, counts[k], walks, body.footprint.counted);
      first += counts[k];
    }
    const auto stride = [&](const std::vector<Loop>& loops) {
      return loops.empty() ? 0 : body.writes[0].coef[loops.back().dim.index()];
    };
    n_inner_ = stride(loops_[1]) != 1 || stride(loops_[2]) == 1;
  }
  bool n_inner() const { return n_inner_; }
  void declare(kir::Builder& b, Arguments& arguments) {
    for (std::size_t k = 0; k < loops_.size(); ++k) nests_[k].emplace(b, loops_[k], arguments);
  }
  Site site(kir::Builder& b, Var batch, Var m, Var n) const {
    Site at;
    nests_[0]->place(b, at, batch);
    nests_[1]->place(b, at, m);
    nests_[2]->place(b, at, n);
    return at;
  }

 private:
  std::array<std::vector<Loop>, 3> loops_;
  std::array<std::optional<LoopNest>, 3> nests_;
  bool n_inner_ = true;
};

ProductSizes product_sizes(const Contraction& p) {
  return {p.sizes.batch, p.sizes.m, p.sizes.n, p.sizes.k};
}

std::vector<KernelDraft> build_contraction(Building& building, const Group& group) {
  const Context& context = building.context();
  const std::uint32_t id = group.anchors[0];
  const Contraction p = contraction_of(context, id);
  Side a(context, id, 0, p), b(context, id, 1, p);
  Product product{.node = id,
                  .name = fmt::format("contract.{}", id),
                  .dtype = context.node(id).results[0].dtype,
                  .sizes = product_sizes(p),
                  .body = epilogue_body(context, id, p, group.outputs)};
  ResultLoops result(p, product.body);
  product.n_inner = result.n_inner();
  product.announce = [&](Arguments& arguments) {
    a.announce(arguments);
    b.announce(arguments);
  };
  product.declare = [&](kir::Builder& builder, Arguments& arguments) {
    a.declare(builder, arguments);
    b.declare(builder, arguments);
  };
  product.a = [&](Var batch) { return a.operand(batch); };
  product.b = [&](Var batch) { return b.operand(batch); };
  product.declare_site = [&](kir::Builder& builder, Arguments& arguments) {
    result.declare(builder, arguments);
  };
  product.site = [&](kir::Builder& builder, Var batch, Var m, Var n) {
    return result.site(builder, batch, m, n);
  };
  return build_product(building, product);
}

bool must_store(const Context& context, std::uint32_t node, std::size_t operand,
                const IsStored& is_stored) {
  const ValueId input = context.node(node).inputs[operand];
  if (is_stored(input)) return false;
  const Contraction p = contraction_of(context, node);
  return operand_reads(context, node, static_cast<int>(operand), p, is_stored).cost > kCheapOperand;
}

Reads reads_of_operands(const Context& context, const ValueInfo& info, std::uint32_t node) {
  const Contraction p = contraction_of(context, node);
  std::vector<ValueId> values;
  std::size_t size = 0;
  for (const int side : {0, 1}) {
    const Footprint reads = operand_reads(context, node, side, p, info.is_stored);
    size += reads.size;
    for (const Access& access : reads.accesses)
      if (std::ranges::find(values, access.value) == values.end()) values.push_back(access.value);
  }
  Reads reads = reads_whole(context.node(node).results[0].shape, values);
  reads.size = size;
  return reads;
}

std::vector<Effort> efforts_of_contraction(const EffortSite& at) {
  const Contraction p = contraction_of(at.context, at.group.anchors[0]);
  const ElementwiseBody body = epilogue_body(at.context, at.group.anchors[0], p, at.group.outputs);
  return efforts_of_product(product_sizes(p), at, at.table.contract,
                            elementwise_cycles(work_of(at.context, body), at.table));
}

ReductionOrder order_of_node(const Context& context, std::uint32_t node) {
  const ProductTiling tiling =
      choose_tiling(product_sizes(contraction_of(context, node)), context.target);
  return {"contract", {tiling.slices, tiling.slice}};
}

}  // namespace

const Archetype& contract_archetype() {
  static const Archetype row{
      .name = "contract",
      .ops = {&ops::def<op::Contract>()},
      .append = append_widened,
      .must_store = must_store,
      .reads = reads_of_operands,
      .can_join = [](const Company& company) { return company.is_epilogue(); },
      .reduction_order = order_of_node,
      .work = work_of_contraction,
      .efforts = efforts_of_contraction,
      .build = build_contraction,
  };
  return row;
}

}  // namespace pantala::schedule::gpu
