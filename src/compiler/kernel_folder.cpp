#include "compiler/kernel_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/sha256.h"
#include "codegen/llvm/code.h"
#include "compiler/build_id.h"
#include "kir/text.h"

namespace pantala::compiler {

namespace {

// Everything that the object depends on. Names are no part of it (kir::same_code); the hash tells
// apart what the text does not, the bits of NaNs.
std::string origin_of(kir::Kernel kernel, const codegen::HostTarget& target) {
  kernel.name = "kernel";
  for (std::size_t k = 0; k < kernel.buffers.size(); ++k)
    kernel.buffers[k].name = fmt::format("b{}", k);
  for (std::size_t k = 0; k < kernel.params.size(); ++k)
    kernel.params[k].name = fmt::format("p{}", k);
  return fmt::format("{}\n{}\n{} {} {} {}\n{:016x}\n{}", build_id(), llvm_version(),
                     codegen::target_name(target), target.vector_bytes, target.vector_registers,
                     target.fma, kir::hash_code(kernel), kir::print(kernel));
}

// A file is a line with the lengths and the checksum of origin and object, and the two.
std::string file_bytes(const std::string& origin, std::string_view object) {
  const std::string content = fmt::format("{}{}", origin, object);
  return fmt::format("{} {} {}\n{}", origin.size(), object.size(), hex(sha256(content)), content);
}

// The object in a file, if the file is whole and of this origin.
std::optional<std::vector<std::byte>> object_in(const std::filesystem::path& path,
                                                const std::string& origin) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::size_t content = bytes.find('\n') + 1;
  if (bytes.compare(content, origin.size(), origin) != 0) return std::nullopt;
  const std::string_view object = std::string_view(bytes).substr(content + origin.size());
  if (file_bytes(origin, object) != bytes) return std::nullopt;
  std::vector<std::byte> result(object.size());
  std::memcpy(result.data(), object.data(), object.size());
  return result;
}

// Others see the whole file or none; without it they compile.
void leave(const std::filesystem::path& path, const std::string& bytes) {
  static std::atomic<int> number{0};
  const std::filesystem::path temporary =
      fmt::format("{}.{}.{}", path.string(), ::getpid(), ++number);
  std::ofstream out(temporary, std::ios::binary);
  out << bytes;
  out.close();
  std::error_code ignored;
  if (out)
    std::filesystem::rename(temporary, path, ignored);
  else
    std::filesystem::remove(temporary, ignored);
}

}  // namespace

KernelFolder::KernelFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code ignored;  // without the folder every kernel is compiled
  if (!std::filesystem::exists(folder_, ignored) &&
      std::filesystem::create_directories(folder_, ignored))
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, ignored);
}

codegen::CompiledUnit KernelFolder::get(const kir::Kernel& kernel,
                                        const codegen::HostTarget& target) const {
  const auto begin = std::chrono::steady_clock::now();
  const std::string origin = origin_of(kernel, target);
  const std::filesystem::path path = folder_ / fmt::format("{:016x}", fnv1a(origin));
  if (auto object = object_in(path, origin)) {
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    return {.name = kernel.name, .object = std::move(*object), .milliseconds = time.count()};
  }
  codegen::CompiledUnit unit = codegen::compile(kernel, target);
  leave(path, file_bytes(origin,
                         {reinterpret_cast<const char*>(unit.object.data()), unit.object.size()}));
  return unit;
}

void share_kernels(const std::filesystem::path& folder) {
  codegen::CodeCache::process()->set_compiler(
      [kernels = std::make_shared<KernelFolder>(folder)](const kir::Kernel& kernel,
                                                         const codegen::HostTarget& target) {
        return kernels->get(kernel, target);
      });
}

}  // namespace pantala::compiler
