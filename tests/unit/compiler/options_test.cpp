// What the compiler knows of the devices.
#include "compiler/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "device/describe.h"
#include "device/device.h"
#include "io/file.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "plan/compiled_plan.h"
#include "schedule/cost_table.h"
#include "schedule/cpu/cost_tables.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::compiler {
namespace {

using ::testing::HasSubstr;

TEST(Backends, are_those_of_the_devices) { EXPECT_EQ(backend_names(), device::device_names()); }

TEST(Backends, an_unknown_device_is_refused_with_the_list) {
  try {
    backend_of("gpu");
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(error.what(), "there is no code for the device 'gpu'; there are cpu, kir, vulkan");
  }
  EXPECT_THROW(device::describe("gpu"), UnsupportedError);
}

TEST(Backends, every_device_is_described) {
  for (const std::string& name : device::device_names()) {
    const device::Description device = device::describe(name);
    EXPECT_FALSE(device.text.empty()) << name;
    EXPECT_FALSE(device.brief.empty()) << name;
    EXPECT_TRUE(device.probed.empty()) << name;
  }
}

TEST(Options, without_code_a_plan_has_kernels_alone) {
  Graph graph;
  graph.output("y", relu(graph.input("x", {8})));
  Options options = host_options("cpu", 1, true);
  const plan::CompiledStep whole = compile_step({.graph = graph}, options);
  options.code = false;
  const plan::CompiledStep bare = compile_step({.graph = graph}, options);
  ASSERT_EQ(bare.plan.units.size(), 1u);
  EXPECT_FALSE(whole.plan.units.at(0).object.empty());
  EXPECT_TRUE(bare.plan.units.at(0).object.empty());
  EXPECT_TRUE(bare.plan.units.at(0).kernel);
}

// A file, its text, and none: what is compiled by them says so.
TEST(Options, a_cost_table_is_that_of_a_file_or_of_a_text) {
  const tests::TemporaryFolder folder;
  schedule::CostTable mine = schedule::cpu::shipped_cost_table(32);
  mine.name = "mine";
  mine.launch = 17;
  io::write_file(folder.file("table"), "# by hand\n" + to_text(mine));
  Graph graph;
  graph.output("y", relu(graph.input("x", {8})));
  CompileOptions options{.device = "kir"};
  const CompileResult shipped = compile(graph, options);
  EXPECT_TRUE(shipped.report.cost_table.starts_with("avx")) << shipped.report.cost_table;
  for (const std::string& table : {folder.file("table"), to_text(mine)}) {
    options.cost_table = table;
    const CompileResult made = compile(graph, options);
    EXPECT_EQ(made.report.cost_table, "mine");
    EXPECT_GT(made.report.predicted_us, 17);
    EXPECT_EQ(made.plan.data()->cost_table, to_text(mine));
    EXPECT_EQ(cost_table_text(table), to_text(mine));
  }
  EXPECT_EQ(cost_table_text(""), "");
}

TEST(Options, a_cost_table_that_is_none_is_refused) {
  const tests::TemporaryFolder folder;
  const std::string whole = to_text(schedule::cpu::shipped_cost_table(32));
  const auto message = [&](const std::string& content) {
    io::write_file(folder.file("table"), content);
    return tests::message_of<ParseError>(
        [&] { host_options(CompileOptions{.cost_table = folder.file("table")}); });
  };
  EXPECT_THROW(host_options(CompileOptions{.cost_table = folder.file("none")}), IoError);
  EXPECT_THROW(host_options(CompileOptions{.cost_table = folder.path().string()}), IoError);
  const std::string half = whole.substr(0, whole.find('\n', whole.size() / 2) + 1);
  EXPECT_THAT(message(half), HasSubstr("is missing"));
  EXPECT_THAT(message("\x7f"
                      "ELF"),
              HasSubstr("table:1: expected `name = value`"));
  io::write_file(folder.file("large"), std::string(1 << 20, '#'));
  EXPECT_THROW(host_options(CompileOptions{.cost_table = folder.file("large")}), IoError);
}

}  // namespace
}  // namespace pantala::compiler
