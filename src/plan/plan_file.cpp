#include "plan/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "io/file.h"
#include "io/json.h"
#include "ir/graph_data.h"
#include "pantala/error.h"
#include "pantala/text.h"
#include "plan/report.h"
#include "plan/serialize.h"

namespace pantala::plan {

namespace {

using Json = nlohmann::json;

// What the checksum covers begins here.
constexpr std::size_t kChecked = kPlanFileMagic.size() + 4 + sizeof(Digest);
constexpr std::size_t kHeader = kChecked + sizeof(Digest);

template <class N>
void put_number(std::string& bytes, N number) {
  for (std::size_t k = 0; k < sizeof(N); ++k)
    bytes.push_back(static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * k)));
}
void put_digest(std::string& bytes, const Digest& digest) {
  bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

// Reads from the front; every length is checked before it is used.
class Cursor {
 public:
  Cursor(std::string_view bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw ParseError(fmt::format("{}, byte {}: {}", file_, at_, what));
  }
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_)
      fail(fmt::format("{} bytes expected, {} are left", size, bytes_.size() - at_));
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  template <class N>
  N number() {
    std::uint64_t value = 0;
    const std::string_view raw = take(sizeof(N));
    for (std::size_t k = 0; k < raw.size(); ++k)
      value |= std::uint64_t{static_cast<unsigned char>(raw[k])} << (8 * k);
    return static_cast<N>(value);
  }
  Digest digest() {
    Digest digest;
    std::memcpy(digest.data(), take(digest.size()).data(), digest.size());
    return digest;
  }
  std::string_view rest() const { return bytes_.substr(at_); }

 private:
  std::string_view bytes_, file_;
  std::size_t at_ = 0;
};

// --- leaves: a graph that holds nothing else, as text, beside their flags

Json encode_leaves(const std::vector<CompiledLeaf>& leaves) {
  Graph graph;
  Json on_host = Json::array(), updated = Json::array(), needed_by = Json::array(),
       feeds_updates = Json::array();
  for (const CompiledLeaf& leaf : leaves) {
    const auto& [dtype, shape] = leaf.type;
    if (leaf.kind == LeafKind::input) graph.input(leaf.name, shape, dtype);
    if (leaf.kind == LeafKind::parameter) graph.parameter(leaf.name, shape, leaf.init, dtype);
    if (leaf.kind == LeafKind::state) graph.state(leaf.name, shape, leaf.init, dtype);
    if (leaf.kind == LeafKind::scalar) graph.scalar(leaf.name, leaf.init.a);
    on_host.push_back(leaf.on_host);
    updated.push_back(leaf.updated);
    needed_by.push_back(leaf.needed_by);
    feeds_updates.push_back(leaf.feeds_updates);
  }
  return {{"graph", to_text(graph)},
          {"on_host", on_host},
          {"updated", updated},
          {"needed_by", needed_by},
          {"feeds_updates", feeds_updates}};
}

std::vector<CompiledLeaf> decode_leaves(const Json& document, std::string_view file) {
  const Graph graph = parse_graph(document.at("graph").get<std::string>(), file);
  std::vector<CompiledLeaf> leaves = leaves_of(graph);
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    leaves[k].on_host = document.at("on_host").at(k);
    leaves[k].updated = document.at("updated").at(k);
    document.at("needed_by").at(k).get_to(leaves[k].needed_by);
    leaves[k].feeds_updates = document.at("feeds_updates").at(k);
  }
  return leaves;
}

// --- the optimizer

Json encode_optimizer(const std::optional<optim::Optimizer>& optimizer) {
  if (!optimizer) return nullptr;
  Json values = Json::object(), flags = Json::object();
  for (const auto& [name, value] : optimizer->values()) values[name] = value;
  for (const auto& [name, value] : optimizer->flags()) flags[name] = value;
  return {{"name", optimizer->name()}, {"values", values}, {"flags", flags}};
}

std::optional<optim::Optimizer> decode_optimizer(const Json& document) {
  if (document.is_null()) return std::nullopt;
  optim::Optimizer optimizer = optim::from_options(document.at("name").get<std::string>());
  for (const auto& [name, value] : document.at("values").items())
    optimizer = optimizer.with(name, value);
  for (const auto& [name, value] : document.at("flags").items())
    optimizer = optimizer.with_flag(name, value);
  return optimizer;
}

// --- steps

// Times are no property of the plan: the same plan has the same bytes.
Json encode_report(Report report) {
  report.stages.clear();
  for (Report::Unit& unit : report.units) unit.milliseconds = 0;
  return Json::parse(report.json());
}

Json encode_step(const CompiledStep& step) {
  Json messages = Json::array(), gradients = Json::array();
  for (const kir::StatusMessage& message : step.messages)
    messages.push_back({{"code", message.code}, {"text", message.text}});
  for (const auto& [parameter, gradient] : step.gradients)
    gradients.push_back({{"parameter", parameter}, {"gradient", gradient}});
  return {{"role", step.role},
          {"host", step.host.text()},
          {"messages", messages},
          {"gradients", gradients},
          {"report", encode_report(step.report)},
          {"leaves", encode_leaves(step.leaves)}};
}

CompiledStep decode_step(const Json& document, std::string_view plan, std::string_view file) {
  CompiledStep step;
  step.role = document.at("role");
  step.host = HostPart::parse(document.at("host").get<std::string>(), file);
  for (const Json& message : document.at("messages"))
    step.messages.push_back({message.at("code"), message.at("text")});
  for (const Json& pair : document.at("gradients"))
    step.gradients.push_back({pair.at("parameter"), pair.at("gradient")});
  step.report = report_from_json(document.at("report"));
  step.leaves = decode_leaves(document.at("leaves"), file);
  step.plan = deserialize(std::as_bytes(std::span(plan)), file);
  if (step.host.uniforms() != step.plan.uniforms.size())
    throw ParseError(fmt::format("{}: step '{}' has {} uniforms, its host part computes {}", file,
                                 step.role, step.plan.uniforms.size(), step.host.uniforms()));
  return step;
}

Json encode_all(const CompiledPlan::Data& data) {
  Json steps = Json::array();
  for (const CompiledStep& step : data.steps) steps.push_back(encode_step(step));
  return {{"device", data.device},
          {"threads", data.threads},
          {"non_finite", static_cast<int>(data.non_finite)},
          {"accumulation_steps", data.accumulation_steps},
          {"normalize", data.normalize},
          {"chosen_outputs", data.chosen_outputs},
          {"optimizer", encode_optimizer(data.optimizer)},
          {"group_patterns", data.group_patterns},
          {"has_loss", data.has_loss},
          {"cost_table", data.cost_table},
          {"steps", steps}};
}

void decode_all(const Json& document, Cursor& plans, std::string_view file,
                CompiledPlan::Data& data) {
  document.at("device").get_to(data.device);
  document.at("threads").get_to(data.threads);
  const int guard = document.at("non_finite");
  if (guard < 0 || guard >= std::ssize(guard_names()))
    plans.fail(fmt::format("there is no guard {}", guard));
  data.non_finite = static_cast<NonFiniteGuard>(guard);
  document.at("accumulation_steps").get_to(data.accumulation_steps);
  document.at("normalize").get_to(data.normalize);
  document.at("chosen_outputs").get_to(data.chosen_outputs);
  data.optimizer = decode_optimizer(document.at("optimizer"));
  document.at("group_patterns").get_to(data.group_patterns);
  document.at("has_loss").get_to(data.has_loss);
  document.at("cost_table").get_to(data.cost_table);
  for (const Json& step : document.at("steps")) {
    const std::string_view plan = plans.take(plans.number<std::uint64_t>());
    data.steps.push_back(decode_step(step, plan, file));
  }
  if (!plans.rest().empty()) plans.fail(fmt::format("{} bytes too many", plans.rest().size()));
}

}  // namespace

std::string encode_plan(const CompiledPlan::Data& data) {
  std::string content;
  put_digest(content, data.key);
  const std::string text = encode_all(data).dump();
  put_number(content, std::uint64_t{text.size()});
  content += text;
  for (const CompiledStep& step : data.steps) {
    const std::vector<std::byte> plan = serialize(step.plan);
    put_number(content, std::uint64_t{plan.size()});
    content.append(reinterpret_cast<const char*>(plan.data()), plan.size());
  }
  std::string bytes(kPlanFileMagic);
  put_number(bytes, kPlanFileVersion);
  put_digest(bytes, sha256(content));
  return bytes + content;
}

std::optional<std::uint32_t> plan_file_version(std::string_view bytes) {
  if (!bytes.starts_with(kPlanFileMagic) || bytes.size() < kHeader) return std::nullopt;
  Cursor cursor(bytes, "");
  cursor.take(kPlanFileMagic.size());
  return cursor.number<std::uint32_t>();
}

Digest verified_key(std::string_view bytes, std::string_view file) {
  Cursor cursor(bytes, file);
  if (cursor.take(kPlanFileMagic.size()) != kPlanFileMagic)
    cursor.fail("this is not a compiled plan");
  if (const auto version = cursor.number<std::uint32_t>(); version != kPlanFileVersion)
    cursor.fail(
        fmt::format("a compiled plan of version {}, {} is expected", version, kPlanFileVersion));
  const Digest checksum = cursor.digest();  // taken first: the rest is what follows it
  if (checksum != sha256(cursor.rest()))
    cursor.fail("the content is damaged: its checksum differs");
  return cursor.digest();
}

std::shared_ptr<CompiledPlan::Data> decode_plan(std::string_view bytes, std::string_view file) {
  auto data = std::make_shared<CompiledPlan::Data>();
  data->key = verified_key(bytes, file);
  Cursor cursor(bytes, file);
  cursor.take(kHeader);
  const std::string_view text = cursor.take(cursor.number<std::uint64_t>());
  try {
    io::extract(file, [&] {
      decode_all(io::parse_json(text, file), cursor, file, *data);
      return true;
    });
    gather_leaves(*data);
  } catch (const ParseError&) {
    throw;
  } catch (const Error& error) {  // texts inside that parse and mean nothing
    throw ParseError(fmt::format("{}: {}", file, error.what()));
  }
  return data;
}

}  // namespace pantala::plan

namespace pantala {

void CompiledPlan::save(const std::string& path) const {
  io::write_file(path, plan::encode_plan(*data_));
}

CompiledPlan load_plan(const std::string& path) {
  return CompiledPlan(plan::decode_plan(io::read_file(path, plan::kMaxPlanFileBytes), path));
}

}  // namespace pantala
