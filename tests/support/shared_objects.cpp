#include "support/shared_objects.h"

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
#include "codegen/llvm/code.h"
#include "compiler/build_id.h"
#include "kir/text.h"

namespace pantala::tests {

namespace {

// Everything that the object depends on. Names are no part of it (kir::same_code); the hash tells
// apart what the text does not, the bits of NaNs.
std::string origin_of(kir::Kernel kernel, const codegen::HostTarget& target) {
  kernel.name = "kernel";
  for (std::size_t k = 0; k < kernel.buffers.size(); ++k)
    kernel.buffers[k].name = fmt::format("b{}", k);
  for (std::size_t k = 0; k < kernel.params.size(); ++k)
    kernel.params[k].name = fmt::format("p{}", k);
  return fmt::format("{}\n{}\n{} {} {} {}\n{:016x}\n{}", compiler::build_id(),
                     compiler::llvm_version(), codegen::target_name(target), target.vector_bytes,
                     target.vector_registers, target.fma, kir::hash_code(kernel),
                     kir::print(kernel));
}

// A file is the length of the origin, the origin, the length of the object, and the object.
std::string file_bytes(const std::string& origin, const codegen::CompiledUnit& unit) {
  const std::string_view object(reinterpret_cast<const char*>(unit.object.data()),
                                unit.object.size());
  return fmt::format("{}\n{}{}\n{}", origin.size(), origin, object.size(), object);
}

// The object in a file, if the file is whole and of this origin.
std::optional<std::vector<std::byte>> object_in(const std::filesystem::path& path,
                                                const std::string& origin) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string before = fmt::format("{}\n{}", origin.size(), origin);
  if (!bytes.starts_with(before)) return std::nullopt;
  const std::size_t end = bytes.find('\n', before.size());
  if (end == bytes.npos) return std::nullopt;
  const std::string_view object = std::string_view(bytes).substr(end + 1);
  if (bytes.substr(before.size(), end - before.size()) != std::to_string(object.size()))
    return std::nullopt;
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

SharedObjects::SharedObjects(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
}

codegen::CompiledUnit SharedObjects::get(const kir::Kernel& kernel,
                                         const codegen::HostTarget& target) const {
  const auto begin = std::chrono::steady_clock::now();
  const std::string origin = origin_of(kernel, target);
  const std::filesystem::path path = folder_ / fmt::format("{:016x}", fnv1a(origin));
  if (auto object = object_in(path, origin)) {
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    return {.name = kernel.name, .object = std::move(*object), .milliseconds = time.count()};
  }
  codegen::CompiledUnit unit = codegen::compile(kernel, target);
  leave(path, file_bytes(origin, unit));
  return unit;
}

void share_objects(const std::filesystem::path& folder) {
  codegen::CodeCache::process()->set_compiler(
      [objects = std::make_shared<SharedObjects>(folder)](const kir::Kernel& kernel,
                                                          const codegen::HostTarget& target) {
        return objects->get(kernel, target);
      });
}

}  // namespace pantala::tests
