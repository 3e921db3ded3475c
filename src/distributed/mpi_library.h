// A plug-in that has been opened: its functions one call at a time, with errors as exceptions.
#pragma once

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "distributed/mpi_plugin.h"

namespace pantala::distributed {

class MpiLibrary {
 public:
  // UnsupportedError if there is none of them, or none that works.
  MpiLibrary(const std::vector<std::filesystem::path>& folders,
             const std::vector<std::string>& names);
  MpiLibrary(const MpiLibrary&) = delete;
  MpiLibrary& operator=(const MpiLibrary&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& host() const { return host_; }
  const std::string& name() const { return name_; }

  using Request = void*;
  // DeviceError with what the MPI says.
  Request send(int to, int tag, std::span<const std::byte> bytes);
  Request receive(int from, int tag, std::span<std::byte> bytes);
  bool is_done(Request request);
  struct Found {
    int from, bytes;
  };
  std::optional<Found> find(int tag);
  void abort(int code);
  void stop();

 private:
  void check(int code, const char* doing) const;

  const PantalaMpi* table_ = nullptr;
  std::mutex mutex_;  // the plug-in is called by one thread at a time
  int rank_ = 0, size_ = 1;
  std::string host_, name_;
};

}  // namespace pantala::distributed
