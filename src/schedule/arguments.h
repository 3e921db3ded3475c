// The arguments of a kernel under construction: which buffers of the program it takes, in order,
// and what its parameters are. Numbers that belong to a layer (sizes, strides) are parameters, so
// that kernels of the same structure are the same code.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kir/builder.h"
#include "schedule/emitter.h"
#include "schedule/program.h"

namespace pantala::schedule {

class Arguments {
 public:
  // `uniforms` is the program's list: it grows as kernels need values of the host.
  Arguments(const ValueInfo& info, std::vector<Uniform>& uniforms)
      : info_(info), uniforms_(uniforms) {}

  // Says what a buffer will be used for, before it is declared.
  void will_read(std::uint32_t buffer, DType dtype) { add(buffer, dtype, false); }
  void will_write(std::uint32_t buffer, DType dtype) { add(buffer, dtype, true); }
  // The kernel has declared this buffer itself.
  void assume(std::uint32_t buffer, kir::BufferId id);
  // Declares all announced buffers that are not assumed, in order of announcement.
  void declare_buffers(kir::Builder& b);
  kir::BufferId id(std::uint32_t buffer) const;

  kir::Var integer(kir::Builder& b, const std::string& name, std::int64_t value);
  void take_integers(const std::vector<std::int64_t>& values);  // of parameters declared elsewhere
  kir::Var uniform(kir::Builder& b, ValueId value);

  // Parameters for the coefficients of an access. Those of an earlier access of the same buffer are
  // shared where all are equal.
  DeclaredAccess access(kir::Builder& b, std::uint32_t buffer, const Affine& flat,
                        const std::vector<std::int64_t>& offset_strides = {});
  // `buffer_of` gives the buffer of a stored value.
  Declared declare(kir::Builder& b, const Footprint& footprint,
                   const std::function<std::uint32_t(ValueId)>& buffer_of);

  kir::Access access_of(std::uint32_t buffer) const;
  std::vector<std::uint32_t> buffers() const;
  const std::vector<ParamValue>& params() const { return params_; }

 private:
  struct Entry {
    std::uint32_t buffer = 0;
    DType dtype = DType::f32;
    bool read = false, write = false;
    bool assumed = false;
    kir::BufferId id;
  };
  struct Shared {
    std::uint32_t buffer;
    Affine flat;
    DeclaredAccess declared;
  };
  void add(std::uint32_t buffer, DType dtype, bool write);
  const Entry* find(std::uint32_t buffer) const;

  const ValueInfo& info_;
  std::vector<Uniform>& uniforms_;
  std::vector<Entry> entries_;
  std::vector<ParamValue> params_;
  std::vector<Shared> shared_;
  int names_ = 0;
};

}  // namespace pantala::schedule
