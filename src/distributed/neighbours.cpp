#include "distributed/neighbours.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <thread>
#include <utility>

#include "distributed/collectives.h"

namespace pantala::distributed {

namespace {

// Within what the numbers of processes mean the same: the kernel that runs, and its name space.
std::string place() {
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(boot, text);
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size());
  return text.append(space.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

}  // namespace

Neighbours::Neighbours(Communicator& ranks) {
  const std::vector<std::string> places = gather_texts(ranks, place());
  const std::vector<int> processes = gather_all(ranks, static_cast<int>(::getpid()));
  const auto own = static_cast<std::size_t>(ranks.rank());
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank] != places[own]) continue;
    const auto descriptor =
        rank == own ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, processes[rank], 0));
    if (rank == own || descriptor >= 0)
      list_.push_back({static_cast<int>(rank), processes[rank], descriptor});
  }
}

Neighbours::~Neighbours() {
  for (const Neighbour& one : list_)
    if (one.descriptor >= 0) ::close(one.descriptor);
}

Neighbours::Neighbours(Neighbours&& other) noexcept : list_(std::exchange(other.list_, {})) {}

std::vector<int> Neighbours::wait_for_end(std::chrono::milliseconds most) const {
  std::vector<pollfd> polled;
  for (const Neighbour& one : list_) polled.push_back({one.descriptor, POLLIN, 0});
  const auto begin = std::chrono::steady_clock::now();
  std::vector<int> ended;
  if (::poll(polled.data(), polled.size(), static_cast<int>(most.count())) <= 0) return ended;
  for (std::size_t k = 0; k < polled.size(); ++k)
    if (polled[k].revents != 0) ended.push_back(list_[k].rank);
  // Those that ended before are told of in every round; it is no shorter for that.
  constexpr std::chrono::milliseconds kShort{2};
  if (std::chrono::steady_clock::now() - begin < kShort) std::this_thread::sleep_for(kShort);
  return ended;
}

int Neighbours::first_but(const std::vector<int>& ended) const {
  const auto is_there = [&](const Neighbour& one) {
    return std::ranges::find(ended, one.rank) == ended.end();
  };
  return std::ranges::find_if(list_, is_there)->rank;
}

int Neighbours::process_of(int rank) const {
  return std::ranges::find(list_, rank, &Neighbour::rank)->process;
}

}  // namespace pantala::distributed
