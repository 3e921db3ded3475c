#include "base/ahead.h"

#include <sys/resource.h>
#include <unistd.h>

namespace pantala {

void give_way_to_other_threads() noexcept {
  // About a third of the time of a thread that it competes with: enough to end in time on a machine
  // that is busy with other things. On Linux the number of a thread stands for that thread alone.
  // Where it is refused, the thread runs like all others.
  constexpr int kNiceness = 5;
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness));
}

}  // namespace pantala
