#include "zoo/model.h"

#include <fmt/format.h>

#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/ops.h"

namespace pantala::zoo {

namespace {
// The handle of the same value in a copy of its graph.
Tensor moved(const Graph& copy, const Tensor& value) {
  return value.valid() ? copy.value(value.id()) : Tensor();
}
}  // namespace

Model::Model(const Model& other)
    : graph(other.graph),
      input(moved(graph, other.input)),
      labels(moved(graph, other.labels)),
      loss(moved(graph, other.loss)),
      logits(moved(graph, other.logits)),
      prediction(moved(graph, other.prediction)) {}

Model& Model::operator=(const Model& other) { return *this = Model(other); }

void require_positive(std::string_view model, std::int64_t value, std::string_view what,
                      const Where& where) {
  if (value <= 0)
    ir::throw_type_error(model, ir::provenance(where),
                         fmt::format("{} must be positive, got {}", what, value));
}

void require_at_least(std::string_view model, std::int64_t value, std::int64_t least,
                      std::string_view what, const Where& where) {
  if (value < least)
    ir::throw_type_error(model, ir::provenance(where),
                         fmt::format("{} must be at least {}, got {}", what, least, value));
}

void add_classifier_loss(Model& model, const Tensor& logits, const Where& where) {
  model.labels = model.graph.input("labels", {logits.dim(0)}, i64, where);
  model.logits = logits;
  model.loss = cross_entropy({logits, where}, model.labels);
  model.graph.output("logits", model.logits, where);
  model.graph.output("loss", model.loss, where);
}

Resolved resolve(const Request& request, const Type& item, std::int64_t classes,
                 std::string_view model) {
  const bool asked = request.item.rank() > 0;
  if (asked && request.item.rank() != item.shape.rank())
    throw TypeError(fmt::format("model {} takes items like {}, got {}", model, item.shape.str(),
                                request.item.str()));
  if (request.sizes != LlamaSizes{})
    throw TypeError(fmt::format("model {} has one size; no other can be asked for", model));
  return {.batch = request.batch,
          .item = asked ? request.item : item.shape,
          .classes = request.classes > 0 ? request.classes : classes,
          .training = request.training};
}

}  // namespace pantala::zoo
