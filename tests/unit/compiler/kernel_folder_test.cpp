// What processes share must be what compiling gives.
#include "compiler/kernel_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "base/sha256.h"
#include "io/file.h"
#include "kir/text.h"
#include "support/temporary.h"

namespace pantala::tests::kernel_folder_test {
namespace {

kir::Kernel scale(const std::string& name, const std::string& factor) {
  return kir::parse("kernel \"" + name + R"(" {
  buffer x: f32 read
  buffer y: f32 write
  item %0
  %1:f32 = constant )" +
                    factor + R"(
  %2:f32 = load x[%0]
  %3:f32 = mul %2, %1
  store y[%0] = %3
})");
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  return files;
}

class KernelFiles : public ::testing::Test {
 protected:
  codegen::CompiledUnit get(const kir::Kernel& kernel) const { return kernels_.get(kernel, host_); }
  std::vector<std::byte> compiled(const kir::Kernel& kernel) const {
    return codegen::compile(kernel, host_).object;
  }

  TemporaryFolder folder_;
  compiler::KernelFolder kernels_{folder_.path()};
  codegen::HostTarget host_ = codegen::detect_host();
};

TEST_F(KernelFiles, are_kept_under_any_name_of_the_kernel) {
  EXPECT_EQ(get(scale("a", "2")).object, compiled(scale("a", "2")));
  const codegen::CompiledUnit again =
      compiler::KernelFolder(folder_.path()).get(scale("b", "2"), host_);
  EXPECT_EQ(again.object, compiled(scale("b", "2")));
  EXPECT_EQ(again.name, "b");
  EXPECT_GT(again.milliseconds, 0);
  EXPECT_EQ(files_in(folder_.path()).size(), 1u);
}

TEST_F(KernelFiles, are_taken_where_they_are_whole_and_of_the_same_code_alone) {
  get(scale("a", "2"));
  const std::filesystem::path file = files_in(folder_.path()).at(0);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_EQ(get(scale("a", "2")).object, compiled(scale("a", "2")));
  // Another kernel's file in its place, as if their names were equal.
  get(scale("a", "3"));
  for (const std::filesystem::path& other : files_in(folder_.path()))
    if (other != file)
      std::filesystem::copy_file(other, file, std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(compiled(scale("a", "2")), compiled(scale("a", "3")));
  EXPECT_EQ(get(scale("a", "2")).object, compiled(scale("a", "2")));
}

TEST_F(KernelFiles, of_targets_are_apart) {
  get(scale("a", "2"));
  const codegen::HostTarget other = codegen::known_target("x86-64");
  EXPECT_EQ(kernels_.get(scale("a", "2"), other).object,
            codegen::compile(scale("a", "2"), other).object);
  EXPECT_EQ(files_in(folder_.path()).size(), 2u);
}

// The files are used at all: what a whole one says is believed, and only that.
TEST_F(KernelFiles, are_read) {
  get(scale("a", "2"));
  const std::filesystem::path file = files_in(folder_.path()).at(0);
  std::string bytes = io::read_file(file);
  const std::size_t content = bytes.find('\n') + 1;
  bytes.back() = '!';
  io::write_file(file, bytes);
  EXPECT_EQ(get(scale("a", "2")).object, compiled(scale("a", "2")));  // compiled again, and left

  bytes.replace(bytes.rfind(' ', content) + 1, 64, hex(sha256(bytes.substr(content))));
  io::write_file(file, bytes);
  EXPECT_EQ(get(scale("a", "2")).object.back(), std::byte{'!'});
}

TEST_F(KernelFiles, do_without_a_folder_that_cannot_be_made) {
  const std::filesystem::path file = folder_.path() / "file";
  io::write_file(file, "");
  EXPECT_EQ(compiler::KernelFolder(file / "kernels").get(scale("a", "2"), host_).object,
            compiled(scale("a", "2")));
}

}  // namespace
}  // namespace pantala::tests::kernel_folder_test
