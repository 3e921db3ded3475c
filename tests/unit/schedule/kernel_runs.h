// Kernels of archetypes on a test's own memory: interpreted, or as machine code on memory that ends
// at a page that must not be touched; and results compared to the bit.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schedule/target.h"
#include "unit/codegen/llvm_case.h"

namespace pantala::schedule::kernel_runs {

using codegen::Array;
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

inline Target target_of(const codegen::HostTarget& host) {
  return {.vector_bytes = host.vector_bytes, .vector_registers = host.vector_registers};
}

inline std::string unique_name(const std::string& kind) {
  static int number = 0;
  return kind + std::to_string(number++);
}

// Machine code; `ranges` cut the items.
inline void run_compiled(const kir::Kernel& kernel, const codegen::HostTarget& target,
                         std::vector<Array>& buffers, const std::vector<std::int64_t>& params,
                         const Ranges& ranges) {
  codegen::CodeLibrary& library = codegen::shared_library(target);
  library.add({&kernel, 1});
  const codegen::KernelFn run = library.find(kernel.name);
  std::vector<std::unique_ptr<codegen::GuardedMemory>> memory;
  std::vector<void*> pointers;
  for (const Array& a : buffers) {
    memory.push_back(std::make_unique<codegen::GuardedMemory>(a.bytes.size()));
    std::copy(a.bytes.begin(), a.bytes.end(), memory.back()->data());
    pointers.push_back(memory.back()->data());
  }
  codegen::GuardedMemory scratch(static_cast<std::size_t>(kernel.scratch_bytes()));
  for (const auto& [begin, end] : ranges)
    run(pointers.data(), params.data(), begin, end, scratch.data(), nullptr);
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    EXPECT_TRUE(memory[k]->front_is_whole()) << "written in front of " << kernel.buffers[k].name;
    std::copy_n(memory[k]->data(), buffers[k].bytes.size(), buffers[k].bytes.data());
  }
  EXPECT_TRUE(scratch.front_is_whole());
}

inline void run_interpreted(const kir::Kernel& kernel, std::vector<Array>& buffers,
                            const std::vector<std::int64_t>& params, std::int64_t items) {
  kir::Arguments arguments;
  for (const std::int64_t p : params) arguments.params.push_back(ir::Number::of(p));
  for (Array& a : buffers) arguments.buffers.push_back({a.dtype, a.bytes.data(), a.elements()});
  kir::interpret(kernel, arguments, 0, items);
}

template <class T>
std::vector<T> values(const Array& array) {
  std::vector<T> v(array.bytes.size() / sizeof(T));
  if (!v.empty()) std::memcpy(v.data(), array.bytes.data(), array.bytes.size());
  return v;
}

template <class T>
void expect_bits(const std::vector<T>& got, const std::vector<T>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(T)), 0)
        << what << ": result[" << i << "] is " << got[i] << ", not " << want[i];
}

}  // namespace pantala::schedule::kernel_runs
