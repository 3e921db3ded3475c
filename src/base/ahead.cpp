#include "base/ahead.h"

#include <sys/resource.h>
#include <unistd.h>

namespace pantala {

void give_way_to_other_threads() noexcept {
  // On Linux the number of a thread stands for that thread alone. Where it is refused, the thread
  // runs as all others do.
  constexpr int kNiceness = 10;
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness));
}

}  // namespace pantala
