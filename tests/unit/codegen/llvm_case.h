// Runs a kernel twice, through the kernel-IR interpreter and as machine code, on equal memory, and
// compares every byte of it. Buffers end at a page that must not be touched and start behind a
// pattern that must survive.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "codegen/llvm/llvm.h"
#include "kir/arithmetic.h"
#include "kir/builder.h"
#include "kir/interpret.h"

namespace pantala::codegen {

// Elements in front of an inaccessible page.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes) : bytes_(bytes) {
    body_ = (bytes + 64 + kPage - 1) / kPage * kPage;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, body_ + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(base_ + body_, kPage, PROT_NONE);
    std::memset(base_, kPattern, body_);
  }
  ~GuardedMemory() { munmap(base_, body_ + kPage); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() { return base_ + body_ - bytes_; }
  bool front_is_whole() const {
    for (const std::byte* p = base_; p != base_ + body_ - bytes_; ++p)
      if (*p != std::byte{kPattern}) return false;
    return true;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr unsigned char kPattern = 0xA5;
  std::size_t bytes_, body_;
  std::byte* base_;
};

// The contents of a buffer.
struct Array {
  DType dtype = DType::f32;
  std::vector<std::byte> bytes;
  std::int64_t elements() const {
    return static_cast<std::int64_t>(bytes.size()) / dtype_bytes(dtype);
  }
};

template <class T>
Array array_of(DType dtype, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {dtype, std::vector<std::byte>(bytes.begin(), bytes.end())};
}
inline Array zeros(DType dtype, std::int64_t elements) {
  return {dtype, std::vector<std::byte>(static_cast<std::size_t>(elements * dtype_bytes(dtype)))};
}

// Numbers of every kind: half of them special, the rest any bits at all.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::uint64_t bits() { return random_(); }
  double real(DType dtype) {
    const bool single = dtype == DType::f32;
    static constexpr double kSpecial[] = {0.0,    -0.0,      1.0,      -1.0,         0.5,
                                          1.5,    2.5,       -2.5,     -0.5,         3.0,
                                          1e-3,   1e10,      -1e10,    2147483648.0, -2147483649.0,
                                          9.3e18, 8388609.5, INFINITY, -INFINITY,    NAN};
    switch (random_() % 4) {
      case 0:
        return kSpecial[random_() % std::size(kSpecial)];
      case 1:
        return single ? std::bit_cast<float>(static_cast<std::uint32_t>(random_() % 0x00800000U))
                      : std::bit_cast<double>(random_() >> 12);
      case 2:
        return std::ldexp(static_cast<double>(random_() % 100000) - 50000, -8);
      default:
        return single ? std::bit_cast<float>(static_cast<std::uint32_t>(random_()))
                      : std::bit_cast<double>(random_());
    }
  }
  std::int64_t integer(DType dtype) {
    const std::int64_t least = dtype == DType::i32 ? INT32_MIN : INT64_MIN;
    const std::int64_t special[] = {0,         1,  -1, 2,  7, -7, least, -(least + 1),
                                    least + 1, 31, 32, 63, 64};
    if (random_() % 3 == 0) return special[random_() % std::size(special)];
    return wrap_to(dtype, static_cast<std::int64_t>(random_()) >> (random_() % 60));
  }
  Array array(DType dtype, std::int64_t elements) {
    Array a = zeros(dtype, elements);
    const auto size = static_cast<std::size_t>(dtype_bytes(dtype));
    for (std::int64_t k = 0; k < elements; ++k) {
      const double r = is_float(dtype) ? real(dtype) : 0;
      const float single = static_cast<float>(r);
      const std::int64_t i = dtype == DType::i32 || dtype == DType::i64
                                 ? integer(dtype)
                                 : static_cast<std::int64_t>(random_());
      const std::int64_t b = dtype == DType::boolean ? i & 1 : i;
      const void* from = dtype == DType::f64   ? static_cast<const void*>(&r)
                         : dtype == DType::f32 ? static_cast<const void*>(&single)
                                               : &b;
      std::memcpy(a.bytes.data() + static_cast<std::size_t>(k) * size, from, size);
    }
    return a;
  }

 private:
  std::mt19937_64 random_;
};

// Equal bits, or two NaNs.
inline bool same_element(DType dtype, const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, static_cast<std::size_t>(dtype_bytes(dtype))) == 0) return true;
  if (!is_float(dtype)) return false;
  if (dtype == DType::f64) {
    double x, y;
    std::memcpy(&x, a, 8), std::memcpy(&y, b, 8);
    return x != x && y != y;
  }
  float x, y;
  kir::load_element(dtype, a, reinterpret_cast<std::byte*>(&x)),
      kir::load_element(dtype, b, reinterpret_cast<std::byte*>(&y));
  return x != x && y != y;
}

inline std::string hex(const std::byte* p, std::int64_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, static_cast<std::size_t>(size));
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(word));
  return text;
}

inline std::int64_t param_slot(DType dtype, const ir::Number& n) {
  if (dtype == DType::f32) return std::bit_cast<std::int32_t>(static_cast<float>(n.f));
  return dtype == DType::f64 ? std::bit_cast<std::int64_t>(n.f) : n.i;
}

// The processors that this machine can stand in for: itself and older ones.
inline std::vector<std::pair<std::string, HostTarget>> runnable_targets() {
  const HostTarget host = detect_host();
  std::vector<std::pair<std::string, HostTarget>> targets{{"host", host}};
  if (host.triple.starts_with("x86_64")) {
    targets.emplace_back("x86-64", known_target("x86-64"));
    if (host.vector_bytes >= 32 && host.fma)
      targets.emplace_back("x86-64-v3", known_target("x86-64-v3"));
  }
  return targets;
}

// Kernels are compiled once per target and test run.
inline CodeLibrary& shared_library(const HostTarget& target) {
  static std::map<std::string, std::unique_ptr<CodeLibrary>> libraries;
  std::unique_ptr<CodeLibrary>& library = libraries[target.cpu + target.features];
  if (!library) library = std::make_unique<CodeLibrary>(target);
  return *library;
}

// Runs items [0, items) on both and expects the same memory and status. Returns the compiled
// kernel's buffers.
inline std::vector<Array> expect_same(const kir::Kernel& kernel, const std::vector<Array>& buffers,
                                      const std::vector<ir::Number>& params, std::int64_t items,
                                      const HostTarget& target) {
  std::vector<Array> expected = buffers;
  kir::Arguments arguments{.buffers = {}, .params = params};
  for (Array& a : expected) arguments.buffers.push_back({a.dtype, a.bytes.data(), a.elements()});
  const std::int64_t expected_status = kir::interpret(kernel, arguments, 0, items);

  CodeLibrary& library = shared_library(target);
  library.add({&kernel, 1});
  const KernelFn run = library.find(kernel.name);
  EXPECT_NE(run, nullptr);
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  std::vector<void*> pointers;
  for (const Array& a : buffers) {
    memory.push_back(std::make_unique<GuardedMemory>(a.bytes.size()));
    std::copy(a.bytes.begin(), a.bytes.end(), memory.back()->data());
    pointers.push_back(memory.back()->data());
  }
  std::vector<std::int64_t> slots;
  for (std::size_t k = 0; k < params.size(); ++k)
    slots.push_back(param_slot(kernel.params[k].dtype, params[k]));
  // A multiple of the alignment, so that it can end at a page.
  const std::int64_t scratch_bytes = kernel.scratch_bytes();
  GuardedMemory scratch(static_cast<std::size_t>(scratch_bytes));
  std::int32_t status = 0;
  run(pointers.data(), slots.data(), 0, items, scratch.data(), &status);

  EXPECT_EQ(status, expected_status);
  EXPECT_TRUE(scratch.front_is_whole());
  std::vector<Array> results = buffers;
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    std::copy_n(memory[k]->data(), results[k].bytes.size(), results[k].bytes.data());
    const std::string& name = kernel.buffers[k].name;
    EXPECT_TRUE(memory[k]->front_is_whole()) << "written in front of " << name;
    const std::int64_t size = dtype_bytes(results[k].dtype);
    int shown = 0;
    for (std::int64_t i = 0; i < results[k].elements() && shown < 3; ++i) {
      const std::byte *got = results[k].bytes.data() + i * size,
                      *want = expected[k].bytes.data() + i * size;
      if (same_element(results[k].dtype, got, want)) continue;
      ADD_FAILURE() << kernel.name << " for " << target.cpu << ": " << name << '[' << i << "] is "
                    << hex(got, size) << ", interpreted " << hex(want, size);
      ++shown;
    }
  }
  return results;
}

// The same on every processor that this machine can stand in for; for the one that it cannot run,
// the kernel must at least compile.
inline void expect_same_on_all_targets(const kir::Kernel& kernel, const std::vector<Array>& buffers,
                                       const std::vector<ir::Number>& params, std::int64_t items) {
  for (const auto& [name, target] : runnable_targets())
    expect_same(kernel, buffers, params, items, target);
  EXPECT_FALSE(compile(kernel, known_target("aarch64")).object.empty());
}

// A kernel with one result buffer per case, named after it; item i works on lanes i * lanes ....
class Cases {
 public:
  static constexpr std::int64_t kItems = 96;
  Cases(const std::string& name, int lanes) : builder(name), lanes_(lanes) {}

  kir::Var input(const std::string& name, DType dtype) {
    const kir::BufferId b = builder.buffer(name, dtype, kir::Access::read);
    arrays_.push_back(draw.array(dtype, kItems * lanes_));
    return builder.load(b, builder.item() * lanes_, lanes_);
  }
  void result(const std::string& name, kir::Var value) { results_.emplace_back(name, value); }
  void expect_same_on_all_targets() {
    for (const auto& [name, value] : results_) {
      const kir::BufferId b = builder.buffer(name, value.dtype(), kir::Access::write);
      arrays_.push_back(zeros(value.dtype(), kItems * value.lanes()));
      builder.store(b, builder.item() * value.lanes(), value);
    }
    codegen::expect_same_on_all_targets(builder.finish(), arrays_, {}, kItems);
  }

  kir::Builder builder;
  Draw draw{7};

 private:
  int lanes_;
  std::vector<Array> arrays_;
  std::vector<std::pair<std::string, kir::Var>> results_;
};

inline std::string title(const char* what, DType dtype, int lanes) {
  return std::string(what) + "_" + kir::VType{dtype, lanes}.str();
}

}  // namespace pantala::codegen
