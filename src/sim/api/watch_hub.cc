#include "sim/api/watch_hub.h"

#include <algorithm>
#include <utility>

#include "sim/api/render.h"

namespace berth::sim::api {

struct WatchHub::Watcher {
  RequestPtr request;
  WatchStart start;
  std::uint64_t sent = 0;  // everything up to here
  std::string index;       // its key in Group::by_value; "": in Group::all
  std::string index_path;
  Loop::Timer timeout = 0;
  bool closed = false;
  bool told_columns = false;
};

// One printed event, for all watchers who want the same bytes.
struct WatchHub::Cached {
  const Type* type;
  std::string_view event;
  std::shared_ptr<const std::string> bytes;
};

namespace {

constexpr std::size_t kMaxBacklog = 64u << 20;

std::shared_ptr<const std::string> event_bytes(std::string_view event, std::string_view object) {
  std::string bytes;
  bytes.reserve(object.size() + 40);
  bytes.append("{\"type\":\"").append(event).append("\",\"object\":").append(object).append("}\n");
  return std::make_shared<const std::string>(std::move(bytes));
}

bool in_view(const Request& request, const Selection& selection, const Object& object) {
  if (!request.ns.empty() && object.ns != request.ns) return false;
  return selection.everything() || selects(selection, *request.type->shelf->kind, object);
}

std::string_view value_of_path(const Kind& kind, const Object& object, std::string_view path) {
  if (path == "metadata.name") return object.name;
  for (std::size_t i = 0; i < kind.selectable_fields.size(); ++i) {
    if (kind.selectable_fields[i] == path) return object.fields[i];
  }
  return {};
}

}  // namespace

WatchHub::WatchHub(Loop& loop, Cabinet& cabinet, std::int64_t bookmark_ns)
    : loop_(loop),
      cabinet_(cabinet),
      bookmark_ns_(bookmark_ns),
      self_(std::make_shared<WatchHub*>(this)) {}

WatchHub::~WatchHub() {
  self_.reset();
  end_all();
  loop_.cancel(bookmark_timer_);
}

void WatchHub::open(const RequestPtr& request, WatchStart start) {
  auto watcher = std::make_shared<Watcher>();
  watcher->request = request;
  watcher->start = std::move(start);
  for (const text::Requirement& requirement : watcher->start.selection.fields) {
    if (requirement.op != text::Operator::kIn || requirement.values.size() != 1) continue;
    if (requirement.key == "metadata.namespace") continue;
    watcher->index_path = requirement.key;
    watcher->index = requirement.key + "=" + requirement.values[0];
    break;
  }
  Group& group = groups_[request->type->shelf];
  if (watcher->index.empty()) {
    group.all.push_back(watcher);
  } else {
    group.by_value[watcher->index].push_back(watcher);
    ++group.paths[watcher->index_path];
  }
  in_order_.push_back(watcher);
  ++open_;
  request->exchange->begin(request->head(200, "application/json"));
  const std::weak_ptr<Watcher> weak = watcher;
  request->exchange->on_gone([hub = std::weak_ptr<WatchHub*>(self_), weak, loop = &loop_] {
    loop->post([hub, weak] {
      const auto self = hub.lock();
      const auto gone = weak.lock();
      if (self && gone) (*self)->close(gone);
    });
  });
  if (watcher->start.timeout_ns > 0) {
    watcher->timeout = loop_.after(watcher->start.timeout_ns, [this, weak] {
      const auto late = weak.lock();
      if (!late) return;
      late->timeout = 0;
      if (late->start.bookmarks) send_bookmark(*late, false);
      close(late);
    });
  }
  send_initial(*watcher);
  arm_bookmarks();
}

void WatchHub::send_initial(Watcher& watcher) {
  const Shelf& shelf = *watcher.request->type->shelf;
  const std::int64_t now_ns = loop_.wall().now_ns();
  std::vector<Cached> cache;
  if (!watcher.start.initial) {
    watcher.sent = watcher.start.version;
    const auto first = std::partition_point(
        shelf.history.begin(), shelf.history.end(),
        [&](const Change& change) { return change.version <= watcher.start.version; });
    for (auto change = first; change != shelf.history.end(); ++change) {
      cache.clear();
      deliver(watcher, *change, cache);
    }
  } else {
    for (const auto& [key, entry] : shelf.entries) {
      if (!entry.committed) continue;
      if (!in_view(*watcher.request, watcher.start.selection, *entry.committed)) continue;
      const bool columns = !std::exchange(watcher.told_columns, true);
      watcher.request->exchange->write(
          event_bytes("ADDED", render_for(*watcher.request, *entry.committed, now_ns, columns)));
    }
    watcher.sent = cabinet_.committed();
    if (watcher.start.initial_end) send_bookmark(watcher, true);
  }
}

void WatchHub::deliver(Watcher& watcher, const Change& change, std::vector<Cached>& cache) {
  if (watcher.closed || change.version <= watcher.sent) return;
  const Request& request = *watcher.request;
  const bool was = change.prev && in_view(request, watcher.start.selection, *change.prev);
  const bool is = change.type != Change::Type::kDeleted &&
                  in_view(request, watcher.start.selection, *change.now);
  if (!was && !is) return;
  watcher.sent = change.version;
  const std::string_view event = !is ? "DELETED" : was ? "MODIFIED" : "ADDED";
  const bool plain = request.shape == Shape::kObject;
  if (plain) {
    for (const Cached& ready : cache) {
      if (ready.type == request.type.get() && ready.event == event) {
        request.exchange->write(ready.bytes);
        return;
      }
    }
  }
  ObjectPtr shown = change.now;
  if (!is && change.type != Change::Type::kDeleted) {
    // Out of view: what was seen last, at the version that took it away.
    Tree tree;
    const auto parsed = tree.parse(change.prev->json);
    if (parsed.ok()) {
      shown = make_object(*request.type->shelf->kind, tree, parsed.value(), change.version);
    }
  }
  const bool columns = !std::exchange(watcher.told_columns, true);
  auto bytes = event_bytes(event, render_for(request, *shown, loop_.wall().now_ns(), columns));
  if (plain) cache.push_back({request.type.get(), event, bytes});
  request.exchange->write(std::move(bytes));
}

void WatchHub::deliver_by_value(Group& group, const Shelf& shelf, const Change& change,
                                std::vector<Cached>& cache) {
  for (const auto& [path, count] : group.paths) {
    const std::string_view now = value_of_path(*shelf.kind, *change.now, path);
    const std::string_view prev =
        change.prev ? value_of_path(*shelf.kind, *change.prev, path) : now;
    for (const std::string_view value : {now, prev}) {
      const auto found = group.by_value.find(path + "=" + std::string(value));
      if (found != group.by_value.end()) {
        for (const WatcherPtr& watcher : found->second) deliver(*watcher, change, cache);
      }
      if (now == prev) break;
    }
  }
}

void WatchHub::tell(Shelf& shelf, const Change& change) {
  const auto found = groups_.find(&shelf);
  if (found == groups_.end()) return;
  Group& group = found->second;
  std::vector<Cached> cache;
  for (const WatcherPtr& watcher : group.all) deliver(*watcher, change, cache);
  if (!group.paths.empty()) deliver_by_value(group, shelf, change, cache);
  std::vector<WatcherPtr> slow;
  for (const WatcherPtr& watcher : group.all) {
    if (watcher->request->exchange->backlog() > kMaxBacklog) slow.push_back(watcher);
  }
  for (const WatcherPtr& watcher : slow) close(watcher);
}

void WatchHub::send_bookmark(Watcher& watcher, bool initial_end) {
  if (watcher.closed) return;
  const std::uint64_t version = std::max(watcher.sent, cabinet_.committed());
  watcher.sent = version;
  watcher.request->exchange->write(
      event_bytes("BOOKMARK", render_bookmark(*watcher.request, version, initial_end)));
}

void WatchHub::arm_bookmarks() {
  if (bookmark_timer_ != 0 || bookmark_ns_ <= 0 || open_ == 0) return;
  bookmark_timer_ = loop_.after(bookmark_ns_, [this] {
    bookmark_timer_ = 0;
    const std::vector<WatcherPtr> watchers = in_order_;
    for (const WatcherPtr& watcher : watchers) {
      if (watcher->start.bookmarks) send_bookmark(*watcher, false);
    }
    arm_bookmarks();
  });
}

void WatchHub::close(const WatcherPtr& watcher) {
  if (std::exchange(watcher->closed, true)) return;
  loop_.cancel(watcher->timeout);
  --open_;
  const auto drop = [&](std::vector<WatcherPtr>& from) {
    from.erase(std::remove(from.begin(), from.end(), watcher), from.end());
  };
  drop(in_order_);
  Group& group = groups_[watcher->request->type->shelf];
  if (watcher->index.empty()) {
    drop(group.all);
  } else {
    auto& bucket = group.by_value[watcher->index];
    drop(bucket);
    if (bucket.empty()) group.by_value.erase(watcher->index);
    if (--group.paths[watcher->index_path] == 0) group.paths.erase(watcher->index_path);
  }
  watcher->request->exchange->end();
}

void WatchHub::end_all() {
  const std::vector<WatcherPtr> watchers = in_order_;
  for (const WatcherPtr& watcher : watchers) close(watcher);
}

}  // namespace berth::sim::api
