#include "embedded/api/old_events.h"

#include "embedded/api/server.h"

namespace berth::sim::api {

OldEvents::~OldEvents() { server_.loop.cancel(timer_); }

void OldEvents::expire() {
  const TypePtr events = server_.registry.find("", "v1", "events");
  if (!events || server_.options.event_ttl_ns <= 0) return;
  const std::int64_t now_ns = server_.loop.wall().now_ns();
  std::vector<std::string> old;
  for (const auto& [key, entry] : events->shelf->entries) {
    if (!entry.latest) continue;
    const auto written = times_.find(entry.latest->uid);
    if (written == times_.end()) {
      times_[entry.latest->uid] = {entry.latest->version, now_ns};
    } else if (written->second.first != entry.latest->version) {
      written->second = {entry.latest->version, now_ns};
    } else if (now_ns - written->second.second >= server_.options.event_ttl_ns) {
      old.push_back(key);
    }
  }
  server_.in_slices<std::string>(std::move(old), [this, events](const std::string& key) {
    if (const ObjectPtr live = events->shelf->latest(key)) times_.erase(live->uid);
    server_.delete_object(events, key, {}, [](const MaybeError&, const Server::Deleted&) {});
  });
  if (times_.size() > 2 * events->shelf->entries.size() + 1'000) times_.clear();
  timer_ = server_.loop.after(60'000'000'000, [this] { expire(); });
}

}  // namespace berth::sim::api
