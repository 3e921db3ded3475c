// Ranks of a run as threads of the test's process.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "pantala/distributed.h"

namespace pantala::tests {

// Runs `body` once a rank, and returns what each has thrown. A rank that throws tells the others.
inline std::vector<std::exception_ptr> run_ranks(
    int size, const std::function<void(const std::shared_ptr<distributed::Communicator>&)>& body) {
  const auto ranks = distributed::ranks_in_process(size);
  std::vector<std::exception_ptr> thrown(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < ranks.size(); ++k)
    threads.emplace_back([&, k] {
      try {
        body(ranks[k]);
      } catch (const std::exception& error) {
        thrown[k] = std::current_exception();
        ranks[k]->fail(error.what(), 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

// The same, where nothing may be thrown.
inline void run_ranks_well(
    int size, const std::function<void(const std::shared_ptr<distributed::Communicator>&)>& body) {
  for (const std::exception_ptr& error : run_ranks(size, body))
    if (error) std::rethrow_exception(error);
}

}  // namespace pantala::tests
