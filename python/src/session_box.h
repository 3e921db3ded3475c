// A session as Python holds it: shared by the object of Python, by views of its memory and, of a
// trainer's session, by the trainer; in use by one thread at a time.
#pragma once

#include <fmt/format.h>

#include "bind.h"
#include "pantala/session.h"
#include "use.h"

namespace pantala::python {

class SessionBox {
 public:
  explicit SessionBox(Session session);
  // The session of something that keeps it.
  SessionBox(std::shared_ptr<Session> session, std::shared_ptr<Usable> usable)
      : session_(std::move(session)), usable_(std::move(usable)) {}

  // Calls work(session) as its only user.
  template <class F>
  auto use(F&& work) const {
    const std::shared_ptr<Session> session = open();
    const Usable::Use use(*usable_);
    return work(*session);
  }
  // The same without the interpreter's lock.
  template <class F>
  auto run(F&& work) const {
    const std::shared_ptr<Session> session = open();
    const Usable::Use use(*usable_);
    const nb::gil_scoped_release others_run;
    return work(*session);
  }
  // Gives its memory back. ThreadError while views of it are there, or another thread uses it.
  void close();
  bool is_closed() const { return session_ == nullptr; }
  // For what shares it: ClosedError if it was closed.
  std::shared_ptr<Session> open() const;
  const std::shared_ptr<Usable>& usable() const { return usable_; }
  // What keeps the memory of the session, for views of it.
  nb::capsule owner() const;

 private:
  std::shared_ptr<Session> session_;
  std::shared_ptr<Usable> usable_;
};

// Keeps something whose threads are not there in a forked process: there it is left alone.
template <class T>
std::shared_ptr<T> shared_unless_forked(T value, const std::shared_ptr<Usable>& usable) {
  return {new T(std::move(value)), [usable](T* kept) {
            if (!usable->is_of_a_parent()) delete kept;
          }};
}

}  // namespace pantala::python
