#include "runtime/session_copy.h"

#include <cstring>

namespace pantala::runtime {

namespace {

// The first byte is, and each is as the one before.
bool are_zeros(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace

void SessionCopy::take(SessionData& session) {
  const Store& store = session.settled().store();
  const std::vector<Store::Entry>& entries = store.entries();
  kept_.assign(entries.size(), {});
  std::vector<std::byte> space;
  std::int64_t size = 0;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    if (entries[k].leaf.on_host) {
      kept_[k].number = store.number(k);
    } else if (!store.is_settled(k)) {
      kept_[k].as = As::first_value;
    } else {
      kept_[k] = {As::bytes, {}, size};
      size += entries[k].slice.bytes;
    }
  }
  spare_.resize(size);
  for (std::size_t k = 0; k < entries.size(); ++k) {
    if (kept_[k].as != As::bytes) continue;
    const std::span<const std::byte> bytes = store.bytes(entries[k], space);
    if (are_zeros(bytes))
      kept_[k].as = As::zeros;
    else
      spare_.write(kept_[k].at, bytes);
  }
  accumulated_ = session.accumulated();
}

void SessionCopy::restore(SessionData& session) const {
  Store& store = session.settled().store();
  std::vector<std::byte> bytes;
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    const Store::Entry& entry = store.entries()[k];
    switch (kept_[k].as) {
      case As::number:
        store.set_number(k, kept_[k].number);
        break;
      case As::first_value:
        store.unsettle(k);
        break;
      case As::zeros:
      case As::bytes:
        bytes.assign(static_cast<std::size_t>(entry.slice.bytes), std::byte{0});
        if (kept_[k].as == As::bytes) spare_.read(kept_[k].at, bytes);
        store.write_bytes(entry, bytes);
        break;
    }
  }
  session.undo_step(accumulated_);
}

}  // namespace pantala::runtime
