// The program as it grows: what builders of kernels work with. They read the decisions and add
// kernels, scratch tensors and numbers of the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kir/kernel.h"
#include "schedule/arguments.h"
#include "schedule/context.h"
#include "schedule/program.h"

namespace pantala::schedule {

// A kernel and one launch of it; buffers are those of the program.
struct KernelDraft {
  std::string name;
  kir::Kernel kernel;
  ProgramLaunch::Set set;
  bool serial = false;
  double flops = 0;
};

class Building {
 public:
  Building(Decisions decisions, const Machine& machine, const ScheduleOptions& options)
      : context_(std::move(decisions), machine, options) {}

  const Context& context() const { return context_; }

  // For a kernel under construction.
  Arguments arguments() { return {context_.info(), uniforms_}; }
  // A value of the host as a parameter.
  ParamValue uniform(ValueId value, DType dtype) {
    return ParamValue::of_uniform(uniform_index(uniforms_, value, dtype));
  }
  // Memory that kernels of one group pass on to each other.
  std::uint32_t add_scratch_tensor(const std::string& name, DType dtype, const Shape& shape) {
    return context_.add_buffer({.name = name, .dtype = dtype, .shape = shape});
  }

  // Builds all groups.
  Program run();

 private:
  Context context_;
  std::vector<Uniform> uniforms_;
};

}  // namespace pantala::schedule
