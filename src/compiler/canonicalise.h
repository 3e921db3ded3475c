// The stage `canonicalise`: what exporters write as many ops becomes the ops of the library, before
// anything is differentiated, by the rules that keep derivatives.
#pragma once

#include "compiler/options.h"
#include "compiler/training.h"
#include "plan/report.h"

namespace pantala::compiler {

struct CanonicalGraph : LossGraph {
  bool is_other = false;      // than what was given
  bool stays_finite = false;  // where the given one overflows on the way
};

// `trains`: whether the graph's loss is one. The rules that fit are noted in the report.
CanonicalGraph canonicalise(LossGraph given, bool trains, const Options& options, Report& report);

}  // namespace pantala::compiler
