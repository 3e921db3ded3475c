// Models as safetensors files: one file, or several of limited size with an index, as Hugging
// Face's tools write them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/safetensors_write.h"

namespace pantala::io {

// Writes NAME.safetensors, or, if the tensors have more than `max_shard_bytes` bytes (0: no limit),
// NAME-00001-of-0000N.safetensors and NAME.safetensors.index.json. Tensors keep their order. Files
// of an earlier model under the same name are removed, so that no reader takes them for this one.
void write_shards(const std::filesystem::path& path, std::vector<TensorBytes> tensors,
                  const std::map<std::string, std::string>& metadata,
                  std::uint64_t max_shard_bytes);

}  // namespace pantala::io
