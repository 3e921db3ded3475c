#include "base/ahead.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace pantala {

void give_way_to_other_threads() noexcept {
  // About a third of the time of a thread that it competes with: enough to end in time on a machine
  // that is busy with other things. On Linux the number of a thread stands for that thread alone.
  // Where it is refused, the thread runs like all others.
  constexpr int kNiceness = 5;
  const auto thread = static_cast<id_t>(::gettid());
  const int own = ::getpriority(PRIO_PROCESS, thread);  // a process that was started by nice(1)
  static_cast<void>(::setpriority(PRIO_PROCESS, thread, std::max(own, kNiceness)));
}

}  // namespace pantala
