#include "compiler/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "pantala/error.h"
#include "plan/arena.h"
#include "plan/dependencies.h"

namespace pantala::compiler {

using schedule::ParamValue;
using schedule::Program;
using schedule::ProgramBuffer;
using schedule::ProgramLaunch;
using schedule::Role;

namespace {

bool is_row_major(const ProgramBuffer& buffer) { return std::ranges::is_sorted(buffer.order); }

// Inside one plan: buffers keep their numbers from the program.
class Assembly {
 public:
  Assembly(const Program& program, ProgramCode code, const AssembleOptions& options)
      : program_(program), code_(std::move(code)), options_(options) {}

  plan::Plan run() {
    plan_.name = options_.name;
    plan_.target = code_.objects.empty() ? "" : code_.target;
    for (const ProgramBuffer& buffer : program_.buffers) add_buffer(buffer);
    for (std::size_t k = 0; k < program_.uniforms.size(); ++k)
      plan::add_uniform(plan_, fmt::format("uniform{}", k), program_.uniforms[k].dtype);
    for (std::size_t k = 0; k < program_.kernels.size(); ++k) add_unit(k);
    for (const ProgramLaunch& launch : program_.launches) add_launch(launch);
    plan_.preparation = static_cast<std::uint32_t>(program_.preparation);
    add_gradients();
    plan::place_arena(plan_);
    plan::add_dependencies(plan_);
    plan::validate(plan_);
    return std::move(plan_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError(fmt::format("assemble '{}': {}", options_.name, what));
  }

  void add_buffer(const ProgramBuffer& buffer) {
    const std::int64_t elements = buffer.shape.numel();
    if (buffer.role == Role::temporary) {
      plan::add_arena_buffer(plan_, buffer.name, buffer.dtype, elements);
      return;
    }
    if (buffer.role == Role::prepared) {
      plan::add_prepared_buffer(plan_, buffer.name, buffer.dtype, elements);
      return;
    }
    if (buffer.role == Role::constant) {
      if (std::ssize(buffer.content) != elements * dtype_bytes(buffer.dtype))
        fail(fmt::format("constant '{}' {}{} has {} bytes", buffer.name, dtype_name(buffer.dtype),
                         buffer.shape.str(), buffer.content.size()));
      plan::add_constant(plan_, buffer.name, buffer.dtype, buffer.content);
      return;
    }
    // The world sees row-major tensors.
    if (!is_row_major(buffer))
      fail(fmt::format("'{}' is not stored in row-major order", buffer.name));
    add_bound_buffer(buffer, elements);
  }

  void add_bound_buffer(const ProgramBuffer& buffer, std::int64_t elements) {
    const plan::Storage storage = buffer.role == Role::input   ? plan::Storage::input
                                  : buffer.role == Role::store ? plan::Storage::store
                                                               : plan::Storage::output;
    const plan::Port port{
        buffer.name, plan::add_region_buffer(plan_, storage, buffer.name, buffer.dtype, elements),
        buffer.shape, buffer.role == Role::input ? buffer.limit : 0,
        buffer.role == Role::input ? buffer.exempt : std::nullopt};
    if (buffer.role == Role::input) plan_.inputs.push_back(port);
    if (buffer.role == Role::output) plan_.outputs.push_back(port);
    if (buffer.role == Role::store && is_parameter(buffer.name)) plan_.parameters.push_back(port);
  }
  bool is_parameter(const std::string& name) const {
    const std::vector<Leaf> parameters = program_.graph.leaves(LeafKind::parameter);
    return std::ranges::any_of(parameters, [&](const Leaf& leaf) { return leaf.name == name; });
  }

  void add_unit(std::size_t kernel) {
    plan::add_unit(plan_, program_.kernels[kernel]);
    if (!code_.objects.empty()) plan_.units.back().object = std::move(code_.objects.at(kernel));
  }

  void add_launch(const ProgramLaunch& launch) {
    plan::Launch added{.name = launch.name, .unit = launch.kernel, .sets = {}};
    added.serial = launch.serial;
    for (const ProgramLaunch::Set& set : launch.sets) {
      plan::ArgumentSet row{set.items, set.buffers, {}};
      const std::vector<kir::Param>& params = program_.kernels.at(launch.kernel).params;
      if (params.size() != set.params.size())
        fail(fmt::format("launch '{}' has {} parameters, its kernel takes {}", launch.name,
                         set.params.size(), params.size()));
      for (std::size_t k = 0; k < params.size(); ++k)
        row.params.push_back(scalar(set.params[k], params[k].dtype));
      added.sets.push_back(std::move(row));
    }
    plan_.launches.push_back(std::move(added));
  }

  static plan::Scalar scalar(const ParamValue& value, DType dtype) {
    if (value.kind == ParamValue::Kind::uniform)
      return plan::Scalar::uniform(static_cast<std::uint32_t>(value.integer));
    const bool real = value.kind == ParamValue::Kind::real;
    const double number = real ? value.real : static_cast<double>(value.integer);
    if (dtype == DType::f32) return plan::Scalar::immediate(static_cast<float>(number));
    if (dtype == DType::f64) return plan::Scalar::immediate(number);
    return plan::Scalar::immediate(real ? static_cast<std::int64_t>(number) : value.integer);
  }

  // Pairs of which the plan touches both.
  void add_gradients() {
    const auto find = [](const std::vector<plan::Port>& ports, const std::string& name) {
      const auto port = std::ranges::find(ports, name, &plan::Port::name);
      return port == ports.end() ? nullptr : &*port;
    };
    for (const auto& [parameter, gradient] : options_.gradients) {
      const plan::Port* of = find(plan_.parameters, parameter);
      const plan::Port* is = find(plan_.outputs, gradient);
      if (of && is) plan_.gradients.push_back({parameter, of->buffer, is->buffer});
    }
  }

  const Program& program_;
  ProgramCode code_;
  const AssembleOptions& options_;
  plan::Plan plan_;
};

}  // namespace

void name_kernels(Program& program) {
  std::set<std::string> taken;
  for (kir::Kernel& kernel : program.kernels) {
    const std::string base = kernel.name;
    for (int number = 2; !taken.insert(kernel.name).second; ++number)
      kernel.name = fmt::format("{}_{}", base, number);
  }
}

plan::Plan assemble(const Program& program, ProgramCode code, const AssembleOptions& options) {
  return Assembly(program, std::move(code), options).run();
}

}  // namespace pantala::compiler
