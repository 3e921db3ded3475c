// Plan files and the plan cache: round trips, keys, damage, stale files, unwritable places.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "base/log.h"
#include "compiler/plan_key.h"
#include "io/file.h"
#include "pantala/error.h"
#include "pantala/ops.h"
#include "plan/plan_file.h"
#include "schedule/cost_table.h"
#include "schedule/cpu/cost_tables.h"
#include "support/errors.h"
#include "support/temporary.h"

namespace pantala::compiler {
namespace {

using plan::CompiledLeaf;
using plan::CompiledStep;
using plan::decode_plan;
using plan::encode_plan;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::message_of;

struct Small {
  Graph graph;
  Tensor hidden, loss;
  explicit Small(std::int64_t columns = 3, const std::string& parameter = "w") {
    const Tensor x = graph.input("x", {4, columns});
    const Tensor w = graph.parameter(parameter, {columns}, init::normal(0, 0.1));
    hidden = x * w;
    loss = mean(square(hidden));
  }
};

CompileOptions quick(double lr = 0.01) { return {.device = "kir", .optimizer = optim::adam(lr)}; }

// Warnings while it stands.
struct Warnings {
  std::vector<std::string> lines;
  logging::Capture capture{logging::Level::warning, [this](logging::Level, std::string_view text) {
                             lines.emplace_back(text);
                           }};
};

TEST(Sha256, known_answers) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(PlanFile, a_plan_comes_back) {
  const Small model;
  CompileOptions options{.observe = {{"h", model.hidden}},
                         .observe_gradients = true,
                         .accumulation_steps = 2,
                         .optimizer = optim::sgd(0.1, {.momentum = 0.9, .nesterov = true})};
  options.training.groups = {{.pattern = "w", .weight_decay = 0.5}};
  const CompileResult made = compile_training_graph(model.graph, model.loss, options);
  const std::string bytes = encode_plan(*made.plan.data());
  const auto data = decode_plan(bytes, "file");
  EXPECT_TRUE(encode_plan(*data) == bytes);
  const CompiledPlan plan(data);
  EXPECT_EQ(plan.launches(), made.plan.launches());
  EXPECT_EQ(plan.buffers(), made.plan.buffers());
  EXPECT_EQ(plan.outputs(), made.plan.outputs());
  EXPECT_EQ(plan.peak_bytes(), made.plan.peak_bytes());
  EXPECT_EQ(plan.parameter_gradients().size(), made.plan.parameter_gradients().size());
  EXPECT_EQ(data->leaves, made.plan.data()->leaves);
  EXPECT_EQ(data->optimizer, options.optimizer);
  EXPECT_THAT(data->group_patterns, ElementsAre("w"));
  EXPECT_EQ(data->accumulation_steps, 2);
  EXPECT_EQ(data->key, plan_key(model.graph, model.loss, options));
  for (std::size_t k = 0; k < data->steps.size(); ++k) {
    const CompiledStep &a = data->steps[k], &b = made.plan.data()->steps[k];
    EXPECT_EQ(a.role, b.role);
    EXPECT_EQ(a.host.text(), b.host.text());
    EXPECT_EQ(a.plan.launches, b.plan.launches);
    EXPECT_EQ(a.plan.units.size(), b.plan.units.size());
    EXPECT_EQ(a.messages.size(), b.messages.size());
  }
}

TEST(PlanFile, saved_and_loaded) {
  const tests::TemporaryFolder folder;
  const Small model;
  const CompiledPlan plan = compile_training_graph(model.graph, model.loss, quick()).plan;
  plan.save(folder.file("plan"));
  EXPECT_EQ(load_plan(folder.file("plan")).launches(), plan.launches());
  EXPECT_THROW(load_plan(folder.file("other")), IoError);
  EXPECT_THROW(plan.save(folder.file("no/folder")), IoError);
}

TEST(PlanFile, says_what_is_wrong) {
  const Small model;
  const std::string good =
      encode_plan(*compile_training_graph(model.graph, model.loss, quick()).plan.data());
  const auto message = [](const std::string& bytes) {
    return message_of<ParseError>([&] { decode_plan(bytes, "my.plan"); });
  };
  EXPECT_EQ(message(good), "no error");
  EXPECT_EQ(message("abcdefghijkl"), "my.plan, byte 8: this is not a compiled plan");
  EXPECT_EQ(message(""), "my.plan, byte 0: 8 bytes expected, 0 are left");
  std::string newer = good;
  newer[8] = 9;
  EXPECT_EQ(message(newer), "my.plan, byte 12: a compiled plan of version 9, 4 is expected");
  for (std::size_t at = 12; at < good.size(); at += good.size() / 200 + 1) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    EXPECT_THAT(message(flipped), HasSubstr("its checksum differs")) << at;
    EXPECT_NE(message(good.substr(0, at)), "no error") << at;
  }
}

// Damage under a right checksum: a reader trusts nothing.
TEST(PlanFile, content_that_makes_no_sense_is_a_parse_error) {
  const Small model;
  const std::string good =
      encode_plan(*compile_training_graph(model.graph, model.loss, quick()).plan.data());
  constexpr std::size_t kStart = 8 + 4 + 32;
  for (std::size_t at = kStart + 32; at < good.size(); at += 7) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 7)));
    const Digest sum = sha256(std::string_view(bytes).substr(kStart));
    bytes.replace(12, sum.size(), reinterpret_cast<const char*>(sum.data()), sum.size());
    try {
      decode_plan(bytes, "file");
    } catch (const ParseError&) {}
  }
}

TEST(PlanKey, everything_that_changes_a_plan_changes_the_key) {
  const Small model;
  const Tensor other_loss = sum(model.hidden);
  std::set<Digest> keys;
  int count = 0;
  const auto add = [&](const Graph& graph, const Tensor& loss, const CompileOptions& options) {
    keys.insert(plan_key(graph, loss, options));
    EXPECT_EQ(std::ssize(keys), ++count);
  };
  const auto with = [&](const std::function<void(CompileOptions&)>& change) {
    CompileOptions options = quick();
    change(options);
    add(model.graph, model.loss, options);
  };
  with([](CompileOptions&) {});
  const Small shape(5), name(3, "v");
  add(shape.graph, shape.loss, quick());
  add(name.graph, name.loss, quick());
  Graph attribute;
  {
    const Tensor x = attribute.input("x", {4, 3}),
                 w = attribute.parameter("w", {3}, init::normal(0, 0.2));
    add(attribute, mean(square(x * w)), quick());
  }
  add(model.graph, {}, quick());
  add(model.graph, other_loss, quick());
  with([](CompileOptions& o) { o.device = "cpu"; });
  with([](CompileOptions& o) { o.threads = 7; });
  with([](CompileOptions& o) { o.optimize = false; });
  const auto table = [](std::string_view name, double row) {
    schedule::CostTable changed = schedule::cpu::shipped_cost_table(32);
    changed.name = name;
    changed.row = row;
    return to_text(changed);
  };
  with([&](CompileOptions& o) { o.cost_table = table("mine", 20); });
  with([&](CompileOptions& o) { o.cost_table = table("mine", 21); });
  with([&](CompileOptions& o) {  // what is predicted depends on it in any case
    o.cost_table = table("mine", 21);
    o.rewrite = Rewrite::none;
  });
  with([](CompileOptions& o) { o.rewrite = Rewrite::none; });
  with([](CompileOptions& o) { o.non_finite = NonFiniteGuard::gradients; });
  with([](CompileOptions& o) { o.observe_gradients = true; });
  with([&](CompileOptions& o) { o.observe = {{"h", model.hidden}}; });
  with([&](CompileOptions& o) { o.observe = {{"g", model.hidden}}; });
  with([](CompileOptions& o) { o.accumulation_steps = 2; });
  with([](CompileOptions& o) { o.split_update = true; });
  with([](CompileOptions& o) { o.optimizer = std::nullopt; });
  with([](CompileOptions& o) { o.optimizer = optim::sgd(0.01); });
  with([](CompileOptions& o) { o.optimizer = optim::sgd(0.01, {.momentum = 0.9}); });
  with([](CompileOptions& o) { o.optimizer = optim::adam(0.01, {.amsgrad = true}); });
  with([](CompileOptions& o) { o.optimizer = optim::adagrad(0.01); });
  with([](CompileOptions& o) {
    o.optimizer = optim::adagrad(0.01, {.initial_accumulator_value = 0.5});
  });
  with([](CompileOptions& o) { o.training.parameters = {"w"}; });
  with([](CompileOptions& o) { o.training.clip.norm = 1; });
  with([](CompileOptions& o) { o.training.clip.value = 1; });
  with([](CompileOptions& o) { o.training.ema_decay = 0.9; });
  with([](CompileOptions& o) { o.training.gradient_norms = true; });
  with([](CompileOptions& o) { o.training.global_norm = true; });
  with([](CompileOptions& o) { o.training.groups = {{.pattern = "w"}}; });
  with([](CompileOptions& o) { o.training.groups = {{.pattern = "*"}}; });
  with([](CompileOptions& o) { o.training.groups = {{.pattern = "w", .weight_decay = 0.1}}; });
  // What can be set between steps does not.
  EXPECT_TRUE(keys.contains(plan_key(model.graph, model.loss, quick(0.5))));
  CompileOptions clipped = quick();
  clipped.training.clip.norm = 2;
  EXPECT_TRUE(keys.contains(plan_key(model.graph, model.loss, clipped)));
}

TEST(PlanCache, compiles_once) {
  const tests::TemporaryFolder folder;
  const Small model;
  const Warnings warnings;
  const CompileResult first =
      load_or_compile_training(folder.file("plan"), model.graph, model.loss, quick());
  EXPECT_FALSE(first.report.cached());
  const CompileResult second =
      load_or_compile_training(folder.file("plan"), model.graph, model.loss, quick());
  EXPECT_TRUE(second.report.cached());
  EXPECT_EQ(second.plan.launches(), first.plan.launches());
  EXPECT_EQ(second.report.peak_bytes, first.report.peak_bytes);
  EXPECT_EQ(second.report.store_bytes, first.report.store_bytes);
  EXPECT_EQ(second.report.kernels.size(), first.report.kernels.size());
  for (const Report::Unit& unit : second.report.units) EXPECT_EQ(unit.milliseconds, 0);
  EXPECT_THAT(warnings.lines, IsEmpty());
}

TEST(PlanCache, takes_plain_graphs_as_well) {
  const tests::TemporaryFolder folder;
  Small model;
  model.graph.output("hidden", model.hidden);
  EXPECT_FALSE(
      load_or_compile(folder.file("plan"), model.graph, {.device = "kir"}).report.cached());
  EXPECT_TRUE(load_or_compile(folder.file("plan"), model.graph, {.device = "kir"}).report.cached());
  EXPECT_THROW(load_or_compile(folder.file("plan"), model.graph, quick()), TypeError);
}

TEST(PlanCache, hyper_parameters_are_those_of_the_options) {
  const tests::TemporaryFolder folder;
  const Small model;
  CompileOptions options = quick(0.01);
  options.training.clip.norm = 1;
  options.training.groups = {{.pattern = "*", .lr_factor = 0.5}};
  load_or_compile_training(folder.file("plan"), model.graph, model.loss, options);
  options.optimizer = optim::adam(0.5, {.beta1 = 0.8});
  options.training.clip.norm = 3;
  options.training.groups[0].lr_factor = 0.25;
  const CompileResult result =
      load_or_compile_training(folder.file("plan"), model.graph, model.loss, options);
  EXPECT_TRUE(result.report.cached());
  EXPECT_EQ(result.plan.data()->optimizer, options.optimizer);
  const auto value = [&](std::string_view name) {
    for (const CompiledLeaf& leaf : result.plan.data()->leaves)
      if (leaf.name == name) return leaf.init.a;
    return -1.0;
  };
  EXPECT_EQ(value("optim.lr"), 0.5);
  EXPECT_EQ(value("optim.beta1"), 0.8);
  EXPECT_EQ(value("optim.beta2"), 0.999);
  EXPECT_EQ(value("optim.clip_norm"), 3);
  EXPECT_EQ(value("optim.group0.lr_factor"), 0.25);
}

TEST(PlanCache, a_file_of_another_graph_or_version_is_replaced_silently) {
  const tests::TemporaryFolder folder;
  const Warnings warnings;
  const Small one(3), other(5);
  load_or_compile_training(folder.file("plan"), one.graph, one.loss, quick());
  EXPECT_FALSE(load_or_compile_training(folder.file("plan"), other.graph, other.loss, quick())
                   .report.cached());
  EXPECT_TRUE(load_or_compile_training(folder.file("plan"), other.graph, other.loss, quick())
                  .report.cached());
  std::string bytes = io::read_file(folder.file("plan"));
  bytes[8] = 77;
  io::write_file(folder.file("plan"), bytes);
  EXPECT_FALSE(load_or_compile_training(folder.file("plan"), other.graph, other.loss, quick())
                   .report.cached());
  EXPECT_TRUE(load_or_compile_training(folder.file("plan"), other.graph, other.loss, quick())
                  .report.cached());
  EXPECT_THAT(warnings.lines, IsEmpty());
}

TEST(PlanCache, a_damaged_file_is_one_warning_and_is_replaced) {
  const tests::TemporaryFolder folder;
  const Small model;
  load_or_compile_training(folder.file("plan"), model.graph, model.loss, quick());
  const std::string good = io::read_file(folder.file("plan"));
  std::vector<std::string> damaged = {"", "PANT",
                                      "something else entirely, long enough to be read"};
  for (const std::size_t keep : {good.size() - 1, good.size() / 2, std::size_t{50}})
    damaged.push_back(good.substr(0, keep));
  for (const std::size_t at : {std::size_t{0}, std::size_t{20}, std::size_t{50}, std::size_t{100},
                               good.size() / 2, good.size() - 1}) {
    damaged.push_back(good);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 1);
  }
  for (const std::string& bytes : damaged) {
    io::write_file(folder.file("plan"), bytes);
    const Warnings warnings;
    const CompileResult result =
        load_or_compile_training(folder.file("plan"), model.graph, model.loss, quick());
    EXPECT_FALSE(result.report.cached());
    ASSERT_EQ(warnings.lines.size(), 1u);
    EXPECT_THAT(warnings.lines[0], HasSubstr(folder.file("plan")));
    EXPECT_TRUE(load_or_compile_training(folder.file("plan"), model.graph, model.loss, quick())
                    .report.cached());
  }
}

TEST(PlanCache, a_place_that_cannot_be_written_is_one_warning) {
  const tests::TemporaryFolder folder;
  const Small model;
  io::write_file(folder.file("in_the_way"), "a file");
  std::filesystem::create_directory(folder.file("folder"));
  for (const std::string& path : {folder.file("in_the_way/plan"), folder.file("in_the_way/a/plan"),
                                  folder.file("folder"), std::string("/proc/no/such/plan")}) {
    const Warnings warnings;
    const CompileResult result = load_or_compile_training(path, model.graph, model.loss, quick());
    EXPECT_GT(result.plan.launches(), 0);
    EXPECT_EQ(warnings.lines.size(), 1u) << path;
  }
}

TEST(PlanCache, a_new_folder_belongs_to_the_user_alone) {
  const tests::TemporaryFolder folder;
  const Small model;
  const Warnings warnings;
  load_or_compile_training(folder.file("a/b/plan"), model.graph, model.loss, quick());
  EXPECT_THAT(warnings.lines, IsEmpty());
  for (const char* name : {"a", "a/b"}) {
    struct stat info{};
    ASSERT_EQ(::stat(folder.file(name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << name;
  }
  // Nothing but the plan is left there.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.file("a/b")),
                          std::filesystem::directory_iterator()),
            1);
}

TEST(PlanCache, plans_of_many_graphs_share_a_folder_by_their_keys) {
  const tests::TemporaryFolder folder;
  const Small one(3), other(5);
  const std::string path = folder.file("{key}/step-{key}.plan");  // of the file's name alone
  for (const Small* model : {&one, &other, &one}) {
    const CompileResult result = load_or_compile_training(path, model->graph, model->loss, quick());
    const std::string key = hex(plan_key(model->graph, model->loss, quick()));
    EXPECT_EQ(hex(result.plan.data()->key), key);
    EXPECT_TRUE(std::filesystem::exists(folder.file("{key}/step-" + key.substr(0, 16) + ".plan")));
  }
  for (const Small* model : {&one, &other})
    EXPECT_TRUE(load_or_compile_training(path, model->graph, model->loss, quick()).report.cached());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.file("{key}")),
                          std::filesystem::directory_iterator()),
            2);
}

// A process that was killed while it wrote a plan leaves a temporary file; the number of a process
// that is gone is one that has just ended here.
TEST(PlanCache, removes_what_processes_that_are_gone_have_left_of_plans) {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const tests::TemporaryFolder folder;
  const auto put = [&](const std::string& name, pid_t process) {
    const std::string file = folder.file(fmt::format(".{}.{}-3.tmp", name, process));
    io::write_file(file, "half a plan");
    return file;
  };
  const std::string key = "0123456789abcdef", plan = "eval-7-" + key + ".plan";
  const std::string stale = put(plan, gone), living = put(plan, ::getppid()),
                    old = put("step-64-" + key + ".plan", ::getppid());
  std::filesystem::last_write_time(
      old, std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  const std::vector<std::string> others = {put("notes.plan", gone), put(key + ".txt", gone)};
  const Small model;
  load_or_compile_training(folder.file("step-{key}.plan"), model.graph, model.loss, quick());
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(living));
  for (const std::string& other : others) EXPECT_TRUE(std::filesystem::exists(other)) << other;
}

TEST(PlanCache, errors_of_the_user_stay_errors) {
  const tests::TemporaryFolder folder;
  const Small model;
  EXPECT_THROW(load_or_compile_training(folder.file("plan"), model.graph, {}, quick()), TypeError);
  EXPECT_FALSE(std::filesystem::exists(folder.file("plan")));
}

}  // namespace
}  // namespace pantala::compiler
