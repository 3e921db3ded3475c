// TensorBoard's event files: Event protobufs in TFRecord frames (length, masked CRC-32C of it,
// payload, masked CRC-32C of it). Only scalars are written; TensorBoard keeps them as f32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "io/append_file.h"

namespace pantala::io {

using Scalar = std::pair<std::string, double>;  // tag ("train/loss") and value

// The CRC of Castagnoli's polynomial, as in iSCSI.
std::uint32_t crc32c(std::string_view bytes);

// "events.out.tfevents.1700000000.hostname": TensorBoard knows its files by this beginning.
inline constexpr std::string_view kEventFilePrefix = "events.out.tfevents.";
std::string event_file_name(double wall_time, std::string_view host);

// The length of the file's longest beginning of at most `limit` bytes that consists of whole and
// undamaged records.
std::uint64_t whole_event_bytes(const std::filesystem::path& path, std::uint64_t limit);

class EventFile {
 public:
  // Keeps the first `keep` bytes of the file; an empty one is given its first record, the version.
  // Wall times are seconds since 1970.
  EventFile(std::filesystem::path path, std::uint64_t keep, double wall_time);
  void add(double wall_time, std::int64_t step, std::span<const Scalar> scalars);
  AppendFile& file() { return file_; }

 private:
  AppendFile file_;
};

}  // namespace pantala::io
