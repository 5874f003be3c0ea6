#include <algorithm>

#include "base/check.h"
#include "decide/schedule/topology_search.h"

namespace berth::schedule {

// ---- phase 1b: from the leaves up ----

void TopologySearch::finish_room(int level, TopologyRoom& room) const {
  const std::int64_t unit = plan_.unit_at(level);
  if (level > plan_.slice_level) {
    // Pods that do not fill an inner slice here can not be used by any.
    if (unit == 1) return;  // divisions are most of the cost of a question, and most units are 1
    room.pods -= room.pods % unit;
    room.pods_led -= room.pods_led % unit;
  } else if (level == plan_.slice_level) {
    room.slices = unit == 1 ? room.pods : room.pods / unit;
    room.slices_led = unit == 1 ? room.pods_led : room.pods_led / unit;
  }
}

void TopologySearch::sum_up() {
  for (TopologyRoom& leaf : rooms_.back()) finish_room(lowest(), leaf);
  for (int level = lowest() - 1; level >= 0; --level) {
    auto& here = rooms_[static_cast<std::size_t>(level)];
    const auto& below = rooms(level + 1);
    for (std::size_t d = 0; d < here.size(); ++d) {
      TopologyRoom room;
      std::int64_t pods_lost = INT64_MAX, slices_lost = INT64_MAX;
      const Range range = children(level, static_cast<std::int32_t>(d));
      for (auto c = range.begin; c < range.end; ++c) {
        const TopologyRoom& child = below[static_cast<std::size_t>(c)];
        room.pods += child.pods;
        room.slices += child.slices;
        if (!child.leads) continue;
        room.leads = true;
        pods_lost = std::min(pods_lost, child.pods - child.pods_led);
        slices_lost = std::min(slices_lost, child.slices - child.slices_led);
      }
      // The leader goes where it costs least.
      room.pods_led = room.leads ? room.pods - pods_lost : room.pods;
      room.slices_led = room.leads ? room.slices - slices_lost : room.slices;
      finish_room(level, room);
      here[d] = room;
    }
  }
}

// ---- choosing among domains of one level ----

bool TopologySearch::before(const Candidate& a, const Candidate& b) const {
  if (a.units != b.units) return plan_.ascending ? a.units < b.units : a.units > b.units;
  if (a.pods != b.pods) return a.pods < b.pods;
  return a.domain < b.domain;
}

// Of two that suffice, the better fit.
bool TopologySearch::tighter(const Candidate& a, const Candidate& b) {
  if (a.units != b.units) return a.units < b.units;
  if (a.pods != b.pods) return a.pods < b.pods;
  return a.domain < b.domain;
}

void TopologySearch::gather(std::span<const Range> ranges, const Request& request, bool led,
                            std::int32_t without) {
  candidates_.clear();
  const auto& here = rooms(request.level);
  const bool slices = request.level <= plan_.slice_level;
  const auto units_in = [&request](std::int64_t pods) {
    return request.unit == 1 ? pods : pods / request.unit;
  };
  for (const Range& range : ranges) {
    for (auto d = range.begin; d < range.end; ++d) {
      const TopologyRoom& room = here[static_cast<std::size_t>(d)];
      const std::int64_t plain = slices ? room.slices : units_in(room.pods);
      if (!led) {
        if (plain > 0 && d != without) candidates_.push_back({plain, room.pods, 0, d});
      } else if (room.leads) {
        const std::int64_t units = slices ? room.slices_led : units_in(room.pods_led);
        candidates_.push_back({units, room.pods_led, plain - units, d});
      }
    }
  }
}

// The leader goes to a domain that takes everything, else to the first in order that leaves enough
// room for the workers.
bool TopologySearch::choose_leader(std::span<const Range> ranges, Request& request,
                                   std::vector<TopologyChoice>& out, std::int32_t& host) {
  gather(ranges, request, false, -1);
  std::int64_t total = 0;
  for (const Candidate& c : candidates_) total += c.units;
  gather(ranges, request, true, -1);
  const Candidate* best = nullptr;
  if (!plan_.ascending) {
    for (const Candidate& c : candidates_) {
      if (c.units >= request.units && (best == nullptr || tighter(c, *best))) best = &c;
    }
  }
  if (best == nullptr) {
    for (const Candidate& c : candidates_) {
      if (total - c.loss >= request.units && (best == nullptr || before(c, *best))) best = &c;
    }
  }
  if (best == nullptr) return false;
  const std::int64_t taken = std::min(best->units, request.units);
  out.push_back({best->domain, taken * request.unit, true});
  request.units -= taken;
  host = best->domain;
  return true;
}

// In order; as soon as one suffices, the tightest that does. A heap, because few of many are taken.
bool TopologySearch::choose_workers(const Request& request, std::vector<TopologyChoice>& out) {
  std::int64_t left = request.units;
  const auto later = [this](const Candidate& a, const Candidate& b) { return before(b, a); };
  auto end = candidates_.end();
  const auto finish_with_tightest = [&] {
    const Candidate* best = nullptr;
    for (auto it = candidates_.begin(); it != end; ++it) {
      if (it->units >= left && (best == nullptr || tighter(*it, *best))) best = &*it;
    }
    if (best == nullptr) return false;
    out.push_back({best->domain, left * request.unit, false});
    return true;
  };
  if (left <= 0) return true;
  if (!plan_.ascending && finish_with_tightest()) return true;
  std::make_heap(candidates_.begin(), end, later);
  while (left > 0 && end != candidates_.begin()) {
    if (!plan_.ascending && candidates_.front().units >= left) return finish_with_tightest();
    const std::int64_t taken = std::min(candidates_.front().units, left);
    out.push_back({candidates_.front().domain, taken * request.unit, false});
    left -= taken;
    std::pop_heap(candidates_.begin(), end, later);
    --end;
  }
  return left <= 0;
}

bool TopologySearch::choose(std::span<const Range> ranges, const Request& request,
                            std::vector<TopologyChoice>& out) {
  Request rest = request;
  std::int32_t host = -1;
  if (request.leader && !choose_leader(ranges, rest, out, host)) return false;
  if (rest.units <= 0) return true;
  gather(ranges, rest, false, host);
  return choose_workers(rest, out);
}

// ---- phase 2a: the level ----

std::optional<TopologyChoice> TopologySearch::alone(int level) const {
  const std::int64_t wanted = plan_.slices();
  const auto& here = rooms(level);
  std::optional<Candidate> best;
  for (std::size_t d = 0; d < here.size(); ++d) {
    const TopologyRoom& room = here[d];
    const std::int64_t slices = plan_.leader ? room.slices_led : room.slices;
    if (slices < wanted || (plan_.leader && !room.leads)) continue;
    const Candidate c{slices, plan_.leader ? room.pods_led : room.pods, 0,
                      static_cast<std::int32_t>(d)};
    if (!best || tighter(c, *best)) best = c;
  }
  if (!best) return std::nullopt;
  return TopologyChoice{best->domain, plan_.pods, plan_.leader};
}

std::int64_t TopologySearch::most_in_one(int level) const {
  std::int64_t most = 0;
  for (const TopologyRoom& room : rooms(level)) {
    if (plan_.leader && !room.leads) continue;
    most = std::max(most, plan_.leader ? room.slices_led : room.slices);
  }
  return most;
}

std::int64_t TopologySearch::most_in_all(int level) const {
  std::int64_t total = 0, loss = plan_.leader ? INT64_MAX : 0;
  for (const TopologyRoom& room : rooms(level)) {
    total += room.slices;
    if (plan_.leader && room.leads) loss = std::min(loss, room.slices - room.slices_led);
  }
  return loss == INT64_MAX ? 0 : total - loss;  // no room for the leader: for nothing
}

// Leaves in find the level reached.
bool TopologySearch::seek(TopologyFind& find, std::vector<TopologyChoice>& chosen) {
  for (find.level = plan_.level;; --find.level) {
    if (const auto one = alone(find.level)) {
      chosen.push_back(*one);
      return true;
    }
    if (plan_.required) {
      find.fits = most_in_one(find.level);
      return false;
    }
    if (!plan_.climbs || find.level == 0) break;
  }
  find.fits = most_in_all(find.level);
  if (find.fits < plan_.slices()) return false;
  const Range range = all(find.level);
  return choose(
      {&range, 1},
      {.level = find.level, .units = plan_.slices(), .unit = plan_.slice, .leader = plan_.leader},
      chosen);
}

// ---- phase 2b: down to the leaves ----

bool TopologySearch::descend(int level, bool per_parent, std::vector<TopologyChoice>& chosen) {
  std::vector<Range> ranges;
  for (; level < lowest(); ++level) {
    std::vector<TopologyChoice> next;
    Request request{.level = level + 1, .unit = plan_.unit_at(level + 1)};
    if (level + 1 <= plan_.slice_level && !per_parent) {
      ranges.clear();
      for (const TopologyChoice& c : chosen) ranges.push_back(children(level, c.domain));
      request.units = plan_.slices();
      request.leader = plan_.leader;
      if (!choose(ranges, request, next)) return false;
    } else {
      for (const TopologyChoice& c : chosen) {
        const Range range = children(level, c.domain);
        request.units = c.pods / request.unit;
        request.leader = c.leader;
        if (!choose({&range, 1}, request, next)) return false;
      }
    }
    chosen = std::move(next);
  }
  return true;
}

TopologyFind TopologySearch::run() {
  TopologyFind find;
  sum_up();
  std::vector<TopologyChoice> chosen;
  if (plan_.balanced) {
    const int level = plan_.level < plan_.slice_level ? plan_.level + 1 : plan_.level;
    if (auto even = balanced(level)) {
      chosen = std::move(*even);
      find.ok = descend(level, true, chosen);
    }
  }
  if (!find.ok) {
    chosen.clear();
    if (!seek(find, chosen)) return find;
    find.ok = descend(find.level, false, chosen);
  }
  if (!find.ok) {
    BERTH_BUG("a domain had less room than its children");
    return find;
  }
  find.leaves = std::move(chosen);
  return find;
}

}  // namespace berth::schedule
