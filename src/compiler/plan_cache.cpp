// The plan cache: a file per plan. A file that fits is used, one that is stale or damaged is
// replaced, and no trouble with the file keeps the user from working.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "base/log.h"
#include "compiler/pipeline.h"
#include "compiler/plan_key.h"
#include "compiler/stages.h"
#include "compiler/training.h"
#include "io/file.h"
#include "io/temporary_files.h"
#include "optim/added_scalars.h"
#include "pantala/error.h"
#include "plan/plan_file.h"
#include "plan/report.h"

namespace pantala::compiler {

namespace {

// The folder belongs to the user alone if it is made here.
void make_folder(const std::filesystem::path& folder) {
  if (folder.empty() || std::filesystem::exists(folder)) return;
  make_folder(folder.parent_path());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw IoError(
        fmt::format("{}: cannot make the folder: {}", folder.string(), std::strerror(errno)));
}

// Values of scalars that the options give and the key leaves out.
std::vector<std::pair<std::string, double>> scalar_values(const CompileOptions& options) {
  if (!options.optimizer) return {};
  std::vector<std::pair<std::string, double>> values = options.optimizer->scalars();
  for (auto& scalar : optim::added_scalars(append_options(options.training)))
    values.push_back(std::move(scalar));
  return values;
}

void set_scalars(CompiledPlan::Data& data, const CompileOptions& options) {
  data.optimizer = options.optimizer;
  for (const auto& [name, value] : scalar_values(options))
    for (plan::CompiledStep& step : data.steps)
      for (plan::CompiledLeaf& leaf : step.leaves)
        if (leaf.kind == LeafKind::scalar && leaf.name == name) leaf.init = init::constant(value);
  plan::gather_leaves(data);
}

constexpr std::string_view kKeyPlace = "{key}";
constexpr std::size_t kKeyDigits = 16;

// Whether a file of this name is one that a cache with this path keeps, of whatever key. Before the
// key stands what a plan is for, which differs from plan to plan.
bool is_kept_under(std::string_view name, const std::filesystem::path& path) {
  const std::string pattern = path.filename().string();
  const std::size_t at = pattern.find(kKeyPlace);
  if (at == pattern.npos) return name == pattern;
  const std::string_view end = std::string_view(pattern).substr(at + kKeyPlace.size());
  if (!name.ends_with(end) || name.size() < end.size() + kKeyDigits) return false;
  const std::string_view key = name.substr(name.size() - end.size() - kKeyDigits, kKeyDigits);
  return key.find_first_not_of("0123456789abcdef") == key.npos;
}

// `{key}` in the file's name stands for the beginning of the key.
std::string file_of(const std::string& path, const Digest& key) {
  const std::filesystem::path given(path);
  std::string name = given.filename().string();
  const std::size_t at = name.find(kKeyPlace);
  if (at == name.npos) return path;
  name.replace(at, kKeyPlace.size(), hex(key).substr(0, kKeyDigits));
  return (given.parent_path() / name).string();
}

class Cache {
 public:
  // The path may have a place for the key.
  Cache(std::string path, const Digest& key)
      : pattern_(std::move(path)), path_(file_of(pattern_, key)), key_(key) {}

  // Null if there is no file that fits.
  std::shared_ptr<CompiledPlan::Data> load() {
    std::error_code unknown;
    if (!std::filesystem::exists(path_, unknown)) return nullptr;
    try {
      const std::string bytes = io::read_file(path_, plan::kMaxPlanFileBytes);
      if (plan::plan_file_version(bytes).value_or(plan::kPlanFileVersion) != plan::kPlanFileVersion)
        return stale("it has another version");
      if (plan::verified_key(bytes, path_) != key_) return stale("it was made from something else");
      return plan::decode_plan(bytes, path_);
    } catch (const Error& error) { warn(error); }
    return nullptr;
  }
  void store(const CompiledPlan::Data& data) {
    try {
      const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
      make_folder(folder);
      // Plans are large, and a process that was killed while it wrote one has left it behind.
      io::remove_stale_temporaries(folder.empty() ? "." : folder, [&](std::string_view name) {
        return is_kept_under(name, pattern_);
      });
      io::write_file(path_, plan::encode_plan(data));
    } catch (const std::runtime_error& error) {  // Error, or what std::filesystem throws
      warn(error);
    }
  }

 private:
  std::shared_ptr<CompiledPlan::Data> stale(std::string_view why) const {
    logging::info("plan cache: {}: {}; compiling again", path_, why);
    return nullptr;
  }
  // Once: trouble in reading is followed by trouble in writing.
  void warn(const std::exception& error) {
    if (!warned_) logging::warning("plan cache: {}; compiling without it", error.what());
    warned_ = true;
  }

  std::string pattern_, path_;
  Digest key_;
  bool warned_ = false;
};

CompileResult load_or_run(const std::string& path, const Compilation& given) {
  const CompileOptions& options = given.options;
  const Digest key = plan_key(given.graph, given.loss, options);
  Cache cache(path, key);
  Report report;
  std::shared_ptr<CompiledPlan::Data> data =
      Stages(report, options).run(plan::kLoadStage, [&] { return cache.load(); });
  if (!data) {
    CompileResult result = run_pipeline(given, key);
    cache.store(*result.plan.data());
    return result;
  }
  set_scalars(*data, options);
  Report total = plan::combined_report(data->steps);
  total.stages = std::move(report.stages);
  total.store_bytes = plan::bytes_in_store(data->leaves);
  return {CompiledPlan(std::move(data)), std::move(total)};
}

}  // namespace

}  // namespace pantala::compiler

namespace pantala {

CompileResult load_or_compile(const std::string& path, const Graph& graph,
                              const CompileOptions& options) {
  return compiler::load_or_run(path, compiler::Compilation::plain(graph, options));
}

CompileResult load_or_compile_training(const std::string& path, const Graph& graph,
                                       const Tensor& loss, const CompileOptions& options) {
  return compiler::load_or_run(path, compiler::Compilation::training(graph, loss, options));
}

}  // namespace pantala
