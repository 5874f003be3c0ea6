#include "embedded/api/watch_hub.h"

#include <algorithm>
#include <utility>

#include "embedded/api/render.h"

namespace berth::sim::api {

struct WatchHub::Watcher {
  enum class Phase : std::uint8_t { kObjects, kHistory, kLive };
  std::uint64_t id = 0;
  RequestPtr request;
  WatchStart start;
  Phase phase = Phase::kLive;
  std::uint64_t sent = 0;  // everything up to here
  // While the objects that are there are sent: the last key that was looked at. They are read as
  // they are when their turn comes, so of what changed meanwhile only that is told which came
  // after: until which key they were read at which version.
  std::string cursor;
  std::vector<std::pair<std::string, std::uint64_t>> read_at;
  std::string index;  // its key in Group::by_value; "": in Group::all
  std::string index_path;
  Loop::Timer timeout = 0;
  bool closed = false;
  bool told_columns = false;
};

// One printed event, for all watchers who want the same bytes.
struct WatchHub::Cached {
  const Type* type;
  std::string_view event;
  Shape shape;
  bool columns;
  std::string_view table_version, include_object;
  std::shared_ptr<const std::string> bytes;
};

// What one piece of work may send and look at.
struct WatchHub::Budget {
  std::size_t bytes = 256 * 1024;
  std::size_t looks = 2'000;
  bool spent() const { return bytes == 0 || looks == 0; }
  void look() { looks -= 1; }
  void send(std::size_t sent) { bytes -= std::min(bytes, sent); }
};

namespace {

constexpr std::size_t kMaxBacklog = 1u << 20;  // of a live watcher; then it catches up
constexpr std::size_t kRefill = 256 * 1024;    // one that catches up is sent more below this
constexpr std::size_t kWatchSlice = 256 * 1024;
constexpr std::int64_t kLookAgain = 5'000'000;

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

WatchHub::WatchHub(Loop& loop, Storage& storage, std::int64_t bookmark_ns)
    : loop_(loop),
      storage_(storage),
      bookmark_ns_(bookmark_ns),
      self_(std::make_shared<WatchHub*>(this)) {}

WatchHub::~WatchHub() {
  self_.reset();
  end_all();
  loop_.cancel(bookmark_timer_);
  loop_.cancel(pump_timer_);
}

void WatchHub::open(const RequestPtr& request, WatchStart start) {
  auto watcher = std::make_shared<Watcher>();
  watcher->id = ++last_id_;
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
    group.all.emplace(watcher->id, watcher);
  } else {
    group.by_value[watcher->index].emplace(watcher->id, watcher);
    ++group.paths[watcher->index_path];
  }
  in_order_.emplace(watcher->id, watcher);
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
  watcher->phase = watcher->start.initial ? Watcher::Phase::kObjects : Watcher::Phase::kHistory;
  watcher->sent = watcher->start.version;
  if (watcher->start.initial && !request->ns.empty()) watcher->cursor = request->ns + "/";
  Budget budget;
  catch_up(watcher, budget);
  arm_bookmarks();
}

// As much as the budget allows; what is left waits for its next turn.
void WatchHub::catch_up(const WatcherPtr& watcher, Budget& budget) {
  if (watcher->closed) return;
  if (watcher->phase == Watcher::Phase::kObjects && send_objects(*watcher, budget)) {
    watcher->phase = Watcher::Phase::kHistory;
  }
  if (watcher->phase == Watcher::Phase::kHistory) {
    const Shelf& shelf = *watcher->request->type->shelf;
    if (watcher->sent < shelf.floor) {
      const ApiError gone = expired("too old resource version: " + std::to_string(watcher->sent) +
                                    " (" + std::to_string(storage_.committed()) + ")");
      watcher->request->exchange->write(event_bytes("ERROR", gone.to_json()));
      return close(watcher);
    }
    if (send_history(*watcher, budget)) {
      watcher->phase = Watcher::Phase::kLive;
      watcher->read_at.clear();
      if (std::exchange(watcher->start.initial_end, false)) send_bookmark(*watcher, true);
      return;
    }
  }
  behind_.push_back(watcher);
  arm_pump(watcher->request->exchange->backlog() < kRefill);
}

// The objects that are there. True: that was the last of them.
bool WatchHub::send_objects(Watcher& watcher, Budget& budget) {
  const Shelf& shelf = *watcher.request->type->shelf;
  const std::string& ns = watcher.request->ns;
  const std::int64_t now_ns = loop_.wall().now_ns();
  if (watcher.read_at.empty()) watcher.sent = storage_.committed();
  auto entry = shelf.entries.upper_bound(watcher.cursor);
  bool all = true;
  for (; entry != shelf.entries.end(); ++entry) {
    if (!ns.empty() && !entry->first.starts_with(ns + "/")) break;
    if (budget.spent()) {
      all = false;
      break;
    }
    budget.look();
    watcher.cursor = entry->first;
    const ObjectPtr& object = entry->second.committed;
    if (!object || !in_view(*watcher.request, watcher.start.selection, *object)) continue;
    const bool columns = !std::exchange(watcher.told_columns, true);
    auto bytes = event_bytes("ADDED", render_for(*watcher.request, *object, now_ns, columns));
    budget.send(std::max(bytes->size(), object->json.size()));
    watcher.request->exchange->write(std::move(bytes));
  }
  if (!watcher.read_at.empty() && watcher.read_at.back().second == storage_.committed()) {
    watcher.read_at.back().first = watcher.cursor;
  } else {
    watcher.read_at.emplace_back(watcher.cursor, storage_.committed());
  }
  return all;
}

// Changes since the last that was sent. True: there are no more.
bool WatchHub::send_history(Watcher& watcher, Budget& budget) {
  const Shelf& shelf = *watcher.request->type->shelf;
  const auto first =
      std::partition_point(shelf.history.begin(), shelf.history.end(),
                           [&](const Change& change) { return change.version <= watcher.sent; });
  std::vector<Cached> cache;
  for (auto change = first; change != shelf.history.end(); ++change) {
    if (budget.spent()) return false;
    budget.look();
    const auto read =
        std::lower_bound(watcher.read_at.begin(), watcher.read_at.end(),
                         object_key(change->now->ns, change->now->name),
                         [](const auto& page, const std::string& key) { return page.first < key; });
    if (read == watcher.read_at.end() || change->version > read->second) {
      cache.clear();
      const std::size_t before = watcher.request->exchange->backlog();
      deliver(watcher, *change, cache);
      budget.send(watcher.request->exchange->backlog() == before ? 0 : change->now->json.size());
    }
    watcher.sent = change->version;
  }
  return true;
}

// Everybody who is behind gets a slice, those first who wait longest, until the budget is spent.
void WatchHub::pump() {
  Budget budget;
  budget.bytes = 1u << 20;
  std::size_t left = behind_.size();
  bool moved = false;
  while (left-- > 0 && !budget.spent()) {
    const WatcherPtr watcher = std::move(behind_.front());
    behind_.pop_front();
    if (watcher->closed) continue;
    if (watcher->request->exchange->backlog() >= kRefill) {
      behind_.push_back(watcher);
      continue;
    }
    moved = true;
    Budget slice;
    slice.bytes = std::min(budget.bytes, kWatchSlice);
    slice.looks = std::min<std::size_t>(budget.looks, 500);
    const std::size_t bytes = slice.bytes, looks = slice.looks;
    catch_up(watcher, slice);
    budget.send(bytes - slice.bytes);
    budget.looks -= looks - slice.looks;
  }
  if (!behind_.empty()) arm_pump(moved);
}

void WatchHub::arm_pump(bool at_once) {
  if (pump_posted_) return;
  if (at_once) {
    pump_posted_ = true;
    loop_.cancel(std::exchange(pump_timer_, 0));
    loop_.post([hub = std::weak_ptr<WatchHub*>(self_)] {
      const auto self = hub.lock();
      if (!self) return;
      (*self)->pump_posted_ = false;
      (*self)->pump();
    });
  } else if (pump_timer_ == 0) {
    pump_timer_ = loop_.after(kLookAgain, [this] {
      pump_timer_ = 0;
      pump();
    });
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
  const bool columns = !std::exchange(watcher.told_columns, true);
  Cached mine{request.type.get(),
              event,
              request.shape,
              request.shape == Shape::kTable && columns,
              request.table_version,
              request.include_object,
              nullptr};
  for (const Cached& ready : cache) {
    if (ready.type == mine.type && ready.event == event && ready.shape == mine.shape &&
        ready.columns == mine.columns && ready.table_version == mine.table_version &&
        ready.include_object == mine.include_object) {
      request.exchange->write(ready.bytes);
      return;
    }
  }
  ObjectPtr shown = change.now;
  if (!is && change.type != Change::Type::kDeleted) {
    // Out of view: what was seen last, at the version that took it away.
    text::Editor edit;
    const auto parsed = edit.parse(change.prev->json);
    if (parsed.ok()) {
      shown = make_object(*request.type->shelf->kind, edit, parsed.value(), change.version);
    }
  }
  mine.bytes = event_bytes(event, render_for(request, *shown, loop_.wall().now_ns(), columns));
  request.exchange->write(mine.bytes);
  if (cache.size() < 32) cache.push_back(std::move(mine));
}

// One whose reader does not keep up takes its place among those behind.
void WatchHub::deliver_live(const WatcherPtr& watcher, const Change& change,
                            std::vector<Cached>& cache) {
  if (watcher->phase != Watcher::Phase::kLive) return;
  deliver(*watcher, change, cache);
  if (watcher->closed || watcher->request->exchange->backlog() <= kMaxBacklog) return;
  watcher->sent = change.version;
  watcher->phase = Watcher::Phase::kHistory;
  behind_.push_back(watcher);
  arm_pump(false);
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
        for (const auto& [id, watcher] : found->second) deliver_live(watcher, change, cache);
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
  for (const auto& [id, watcher] : group.all) deliver_live(watcher, change, cache);
  if (!group.paths.empty()) deliver_by_value(group, shelf, change, cache);
}

void WatchHub::send_bookmark(Watcher& watcher, bool initial_end) {
  if (watcher.closed || watcher.phase != Watcher::Phase::kLive) return;
  const std::uint64_t version = std::max(watcher.sent, storage_.committed());
  watcher.sent = version;
  watcher.request->exchange->write(
      event_bytes("BOOKMARK", render_bookmark(*watcher.request, version, initial_end)));
}

void WatchHub::arm_bookmarks() {
  if (bookmark_timer_ != 0 || bookmark_ns_ <= 0 || in_order_.empty()) return;
  bookmark_timer_ = loop_.after(bookmark_ns_, [this] {
    bookmark_timer_ = 0;
    for (const auto& [id, watcher] : in_order_) {
      if (watcher->start.bookmarks) send_bookmark(*watcher, false);
    }
    arm_bookmarks();
  });
}

void WatchHub::close(const WatcherPtr& watcher) {
  if (std::exchange(watcher->closed, true)) return;
  loop_.cancel(watcher->timeout);
  in_order_.erase(watcher->id);
  Group& group = groups_[watcher->request->type->shelf];
  if (watcher->index.empty()) {
    group.all.erase(watcher->id);
  } else {
    Watchers& bucket = group.by_value[watcher->index];
    bucket.erase(watcher->id);
    if (bucket.empty()) group.by_value.erase(watcher->index);
    if (--group.paths[watcher->index_path] == 0) group.paths.erase(watcher->index_path);
  }
  watcher->request->exchange->end();
}

void WatchHub::end_all() {
  const Watchers watchers = in_order_;
  for (const auto& [id, watcher] : watchers) close(watcher);
}

}  // namespace berth::sim::api
