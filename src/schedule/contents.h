// What a group is made of, in the user's words: for tables of kernels and traces.
#pragma once

#include <string>

#include "schedule/context.h"

namespace pantala::schedule {

struct Contents {
  // The layers whose ops it computes, "fc1, fc2"; where no op has a layer those of the parameters
  // that it reads, or else the outputs and states that it makes; "" if there are none either.
  std::string layers;
  // The ops that are computed, "contract, add, relu", with those that only move elements left out.
  std::string ops;
};

Contents contents_of(const Context& context, const Group& group);

}  // namespace pantala::schedule
