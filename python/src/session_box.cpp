#include "session_box.h"

namespace pantala::python {

SessionBox::SessionBox(Session session) : usable_(std::make_shared<Usable>("session")) {
  session_ = shared_unless_forked(std::move(session), usable_);
}

std::shared_ptr<Session> SessionBox::open() const {
  if (!session_) throw ClosedError("the session was closed");
  return session_;
}

void SessionBox::close() {
  if (!session_) return;
  const Usable::Use use(*usable_);
  if (session_.use_count() > 1)
    throw ClosedError(
        "the session cannot be closed: views of its memory, or a trainer, still use it");
  session_.reset();
}

nb::capsule SessionBox::owner() const {
  return {new std::shared_ptr<Session>(open()),
          [](void* kept) noexcept { delete static_cast<std::shared_ptr<Session>*>(kept); }};
}

}  // namespace pantala::python
