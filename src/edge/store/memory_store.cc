#include "edge/store/memory_store.h"

#include <algorithm>
#include <utility>

namespace berth::store {

Result<std::uint64_t> MemoryStore::load(const Visit& visit) {
  for (const auto& [key, entry] : entries_) visit(key, entry.value, entry.version);
  return version_;
}

void MemoryStore::commit(std::vector<Write> writes, std::uint64_t version,
                         std::function<void(Status)> done) {
  Status status;
  if (left_ == 0) {
    status = Error(Code::kUnavailable, "the store is full");
  } else if (version < version_) {
    status = Error(Code::kInternal, "a commit's version is below the one before");
    left_ = 0;
  } else if (full_ || refusing_) {
    status = Error(Code::kExhausted, "memory: no space left");
    refusing_ = true;
  } else {
    if (left_ > 0) --left_;
    version_ = version;
    for (Write& write : writes) {
      if (write.remove) {
        entries_.erase(write.key);
      } else {
        entries_.insert_or_assign(std::move(write.key), Entry{std::move(write.value), version});
      }
    }
  }
  auto answer = [alive = std::weak_ptr<bool>(alive_), done = std::move(done), status] {
    if (!alive.expired()) done(status);
  };
  // In the order of the calls, also when the delay was made shorter in between.
  std::int64_t now = loop_.monotonic().ticks_ns();
  due_ns_ = std::max(due_ns_, now + delay_ns_);
  if (due_ns_ == now) {
    loop_.post(std::move(answer));
  } else {
    loop_.after(due_ns_ - now, std::move(answer));
  }
}

}  // namespace berth::store
