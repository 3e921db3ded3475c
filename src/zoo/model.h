// What the models share.
#pragma once

#include <string_view>

#include "pantala/zoo.h"

namespace pantala::zoo {

// TypeErrors `model (file:line): what must be ..., got ...`.
void require_positive(std::string_view model, std::int64_t value, std::string_view what,
                      const Where& where);
void require_at_least(std::string_view model, std::int64_t value, std::int64_t least,
                      std::string_view what, const Where& where);

// Closes a classifier: labels [batch], cross entropy, and the outputs.
void add_classifier_loss(Model& model, const Tensor& logits, const Where& where);

}  // namespace pantala::zoo
