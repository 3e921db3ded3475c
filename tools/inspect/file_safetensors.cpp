// safetensors files, their indices and folders of them: the tensors in order of their names.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/safetensors.h"
#include "tools/inspect/file_kinds.h"
#include "tools/inspect/table.h"

namespace pantala::tools {

namespace {

using Json = nlohmann::ordered_json;

struct Listed {
  const io::SafeTensorsEntry* entry;
  std::string file;
};

std::string file_name(const io::SafeTensorsFile& file) {
  return file.file->file().path().filename().string();
}

std::vector<Listed> sorted_tensors(const io::SafeTensorsModel& model) {
  std::vector<Listed> tensors;
  for (const io::SafeTensorsFile& file : model.files)
    for (const io::SafeTensorsEntry& entry : file.entries)
      tensors.push_back({&entry, file_name(file)});
  std::sort(tensors.begin(), tensors.end(),
            [](const Listed& a, const Listed& b) { return a.entry->name < b.entry->name; });
  return tensors;
}

// Pantala's name of the dtype, or the format's where Pantala has none.
std::string_view dtype_text(const io::SafeTensorsEntry& entry) {
  return entry.dtype ? dtype_name(*entry.dtype) : entry.format;
}

struct Totals {
  std::uint64_t elements = 0, bytes = 0;
};
Totals totals_of(const std::vector<Listed>& tensors) {
  Totals totals;
  for (const Listed& tensor : tensors) {
    totals.elements += static_cast<std::uint64_t>(tensor.entry->shape.numel());
    totals.bytes += tensor.entry->bytes;
  }
  return totals;
}

std::map<std::string, std::string> metadata_of(const io::SafeTensorsModel& model) {
  std::map<std::string, std::string> metadata;
  for (const io::SafeTensorsFile& file : model.files)
    metadata.insert(file.metadata.begin(), file.metadata.end());
  return metadata;
}

std::string as_text(const io::SafeTensorsModel& model) {
  const std::vector<Listed> tensors = sorted_tensors(model);
  const Totals totals = totals_of(tensors);
  const bool has_parts = model.files.size() > 1;
  std::vector<Column> columns = {
      {"tensor"}, {"dtype"}, {"shape"}, {.title = "bytes", .is_number = true}};
  if (has_parts) columns.push_back({"file"});
  std::vector<std::vector<std::string>> rows;
  for (const auto& [entry, file] : tensors) {
    rows.push_back({entry->name, std::string(dtype_text(*entry)), entry->shape.str(),
                    std::to_string(entry->bytes)});
    if (has_parts) rows.back().push_back(file);
  }
  std::string text =
      fmt::format("{}: {}, {}, {}{}\n", model.path.string(), counted(tensors.size(), "tensor"),
                  counted(totals.elements, "element"), size_text(totals.bytes),
                  has_parts ? fmt::format(" in {} files", model.files.size()) : "");
  for (const auto& [key, value] : metadata_of(model))
    text += fmt::format("metadata {}: {}\n", in_quotes(key), in_quotes(value));
  return tensors.empty() ? text : text + table_text(columns, rows);
}

std::string as_json(const io::SafeTensorsModel& model) {
  const std::vector<Listed> tensors = sorted_tensors(model);
  const Totals totals = totals_of(tensors);
  Json files = Json::array(), list = Json::array();
  for (const io::SafeTensorsFile& file : model.files)
    files.push_back({{"name", file_name(file)}, {"bytes", file.file->bytes().size()}});
  for (const auto& [entry, file] : tensors)
    list.push_back({{"name", entry->name},
                    {"dtype", dtype_text(*entry)},
                    {"shape", entry->shape.vec()},
                    {"bytes", entry->bytes},
                    {"file", file}});
  const Json document = {{"kind", "safetensors"}, {"path", model.path.string()},
                         {"files", files},        {"elements", totals.elements},
                         {"bytes", totals.bytes}, {"metadata", metadata_of(model)},
                         {"tensors", list}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool recognises(const std::filesystem::path& path, std::string_view first_bytes) {
  std::error_code ignored;
  const auto exists = [&](const std::string& name) {
    return std::filesystem::exists(name, ignored);
  };
  const std::string name = path.string();
  if (std::filesystem::is_directory(path, ignored)) return true;
  // Eight bytes of length, and then an object: what a file without the usual ending has.
  const bool has_header =
      first_bytes.size() >= 10 && first_bytes.substr(4, 5) == std::string_view("\0\0\0\0{", 5);
  const bool is_index =
      name.ends_with(fmt::format("{}{}", io::kSafeTensorsEnding, io::kIndexEnding));
  return has_header || (is_index && exists(name)) ||
         (name.ends_with(io::kSafeTensorsEnding) &&
          (exists(name) || exists(name + std::string(io::kIndexEnding))));
}

std::string show(const std::filesystem::path& path, bool json) {
  const io::SafeTensorsModel model = io::open_safetensors_model(path);
  return json ? as_json(model) : as_text(model);
}

}  // namespace

FileKind safetensors_file_kind() {
  return {.name = "safetensors file", .recognises = recognises, .show = show};
}

}  // namespace pantala::tools
