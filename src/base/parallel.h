// Work that falls into independent parts, shared out over threads.
#pragma once

#include <cstddef>
#include <functional>

namespace pantala {

// Calls work(0) ... work(count - 1), each once, on at most `threads` threads, the caller's among
// them; fewer if the system gives no more. Which thread takes which part is open. The first
// exception is thrown again when all threads have ended; parts that nobody has begun are left out
// then.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace pantala
