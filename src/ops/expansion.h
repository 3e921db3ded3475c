// Copying graphs with composites replaced by their definitions: for whoever understands only some
// ops (the interpreter, the scheduler).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "ir/graph_data.h"

namespace pantala::ops {

class Expander {
 public:
  using Results = std::vector<Tensor>;
  // Copies into `target`. Ops for which `keeps` holds are copied by `append`, by default as they
  // are; all others are expanded. InternalError for one that has no definition.
  using Keeps = std::function<bool(const ir::OpDef&)>;
  using Append = std::function<Results(const ir::Node&, const std::vector<Tensor>& inputs)>;
  Expander(std::shared_ptr<ir::GraphData> target, Keeps keeps, Append append = {});

  // Copies what the wanted values need; `known` maps values of the source that stand in the target
  // already, and grows by what is copied.
  void copy(ir::GraphData& source, const std::vector<ValueId>& wanted,
            std::map<ValueId, Tensor>& known) const;

 private:
  Results define(const ir::Node& node, const std::vector<Tensor>& inputs) const;

  std::shared_ptr<ir::GraphData> target_;
  Keeps keeps_;
  Append append_;
};

}  // namespace pantala::ops
