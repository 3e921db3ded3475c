// What the models share.
#pragma once

#include <string_view>

#include "pantala/zoo.h"
#include "pantala/zoo/presets.h"

namespace pantala::zoo {

// TypeErrors `model (file:line): what must be ..., got ...`.
void require_positive(std::string_view model, std::int64_t value, std::string_view what,
                      const Where& where);
void require_at_least(std::string_view model, std::int64_t value, std::int64_t least,
                      std::string_view what, const Where& where);

// Closes a classifier: labels [batch], cross entropy, and the outputs.
void add_classifier_loss(Model& model, const Tensor& logits, const Where& where);

// What a request asks for, with the preset's own values where it is silent. TypeError for an item
// of another rank than the preset's.
struct Resolved {
  std::int64_t batch;
  Shape item;
  std::int64_t classes;
  bool training;
};
Resolved resolve(const Request& request, const Type& item, std::int64_t classes,
                 std::string_view model);

}  // namespace pantala::zoo
