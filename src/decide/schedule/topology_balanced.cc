// Balanced placement: the fewest domains under one parent, each with as many slices as the least
// can get. The order of preferences stands in topology_tree.h.
#include <algorithm>

#include "decide/schedule/topology_search.h"

namespace berth::schedule {
namespace {

// One domain that may take slices; led: beside the leader, where it leads.
struct EvenItem {
  std::int32_t domain = 0;
  std::int64_t units = 0, led = 0;
  bool leads = false;
  std::int64_t uneven = 0;  // sum of the squares of its children's rooms
};

struct EvenSet {
  std::size_t count = 0;       // the fewest domains that take everything
  std::int64_t threshold = 0;  // what the least of them gets at best
  std::size_t lead = 0;        // the item that hosts the leader, where there is one
};

struct EvenPick {
  std::size_t item = 0;
  bool leader = false;
};

// More work than this is not done: the roomiest domains are taken instead of the tightest set.
constexpr std::size_t kMostEvenWork = std::size_t{1} << 23;
constexpr std::int64_t kUnevenCap = std::int64_t{1} << 20;  // keeps squares within 64 bits

std::int64_t square_of_room(std::int64_t room) {
  const std::int64_t capped = std::min(room, kUnevenCap);
  return capped * capped;
}

std::vector<std::size_t> roomiest_first(std::span<const EvenItem> items) {
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return items[a].units > items[b].units; });
  return order;
}

// The roomiest domains, beside item lead as the host of the leader where there is one.
std::optional<EvenSet> fewest_with(std::span<const EvenItem> items,
                                   std::span<const std::size_t> order, std::int64_t wanted,
                                   const std::size_t* lead) {
  EvenSet set;
  std::int64_t total = 0, least = INT64_MAX;
  if (lead != nullptr) {
    set.count = 1;
    set.lead = *lead;
    total = least = items[*lead].led;
  }
  for (const std::size_t i : order) {
    if (set.count > 0 && total >= wanted) break;
    if (lead != nullptr && i == *lead) continue;
    ++set.count;
    total += items[i].units;
    least = std::min(least, items[i].units);
  }
  if (set.count == 0 || total < wanted) return std::nullopt;
  set.threshold = std::min(wanted / static_cast<std::int64_t>(set.count), least);
  return set;
}

std::optional<EvenSet> fewest(std::span<const EvenItem> items, std::int64_t wanted, bool leader) {
  const auto order = roomiest_first(items);
  if (!leader) return fewest_with(items, order, wanted, nullptr);
  std::optional<EvenSet> best;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].leads) continue;
    const auto set = fewest_with(items, order, wanted, &i);
    if (!set) continue;
    if (!best || set->count < best->count ||
        (set->count == best->count && set->threshold > best->threshold))
      best = set;
  }
  return best;
}

// Of all sets of exactly `count` domains that take everything, the one with the least room; then
// the least uneven; then the first found. A table over (domains taken, leader placed, room). For
// two domains and more, the fewest: without any of them the rest is too small, so no set that
// matters passes twice what is wanted, and rooms above what is wanted count as that.
class EvenTable {
 public:
  EvenTable(std::span<const EvenItem> items, std::int64_t wanted, std::size_t count, bool leader)
      : items_(items), wanted_(wanted), count_(count), leader_(leader) {
    width_ = static_cast<std::size_t>(wanted) * 2 + 1;
    states_ = (count + 1) * (leader ? 2 : 1) * width_;
  }

  bool affordable() const { return states_ <= kMostEvenWork / items_.size(); }

  std::vector<EvenPick> solve() {
    uneven_.assign(states_, -1);
    uneven_[state(0, false, 0)] = 0;
    how_.assign(states_ * items_.size(), kSkipped);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      // From many taken to few, so that an item is taken once.
      for (std::size_t taken = count_; taken-- > 0;) {
        for (std::size_t room = 0; room < width_; ++room) extend(i, taken, room);
      }
    }
    for (auto room = static_cast<std::size_t>(wanted_); room < width_; ++room) {
      if (uneven_[state(count_, leader_, room)] >= 0) return trace(room);
    }
    return {};
  }

 private:
  enum How : std::uint8_t { kSkipped, kPlain, kLeads };

  std::size_t state(std::size_t taken, bool led, std::size_t room) const {
    return ((led ? count_ + 1 : 0) + taken) * width_ + room;
  }
  std::size_t room_of_item(std::size_t i, How how) const {
    const EvenItem& item = items_[i];
    return static_cast<std::size_t>(std::min(how == kLeads ? item.led : item.units, wanted_));
  }

  void extend(std::size_t i, std::size_t taken, std::size_t room) {
    if (const auto before = uneven_[state(taken, false, room)]; before >= 0) {
      reach(i, taken + 1, false, room, before, kPlain);
      if (leader_ && items_[i].leads) reach(i, taken + 1, true, room, before, kLeads);
    }
    if (!leader_) return;
    if (const auto before = uneven_[state(taken, true, room)]; before >= 0)
      reach(i, taken + 1, true, room, before, kPlain);
  }

  void reach(std::size_t i, std::size_t taken, bool led, std::size_t room, std::int64_t before,
             How how) {
    room += room_of_item(i, how);
    if (room >= width_) return;
    const std::size_t to = state(taken, led, room);
    const std::int64_t uneven = before + items_[i].uneven;
    if (uneven_[to] >= 0 && uneven_[to] <= uneven) return;
    uneven_[to] = uneven;
    how_[i * states_ + to] = how;
  }

  std::vector<EvenPick> trace(std::size_t room) const {
    std::vector<EvenPick> out;
    std::size_t taken = count_;
    bool led = leader_;
    for (std::size_t i = items_.size(); i-- > 0 && taken > 0;) {
      const How how = how_[i * states_ + state(taken, led, room)];
      if (how == kSkipped) continue;
      out.push_back({i, how == kLeads});
      room -= room_of_item(i, how);
      if (how == kLeads) led = false;
      --taken;
    }
    std::reverse(out.begin(), out.end());
    return out;
  }

  std::span<const EvenItem> items_;
  std::int64_t wanted_;
  std::size_t count_;
  bool leader_;
  std::size_t width_ = 0, states_ = 0;
  std::vector<std::int64_t> uneven_;  // of the best set in a state; below 0: none
  std::vector<How> how_;              // items x states: how the item came into the state's set
};

// Empty: no set takes everything.
std::vector<EvenPick> tightest_set(std::span<const EvenItem> items, std::int64_t wanted,
                                   bool leader) {
  const auto set = fewest(items, wanted, leader);
  if (!set) return {};
  if (set->count == 1) {
    const EvenItem* best = nullptr;
    const auto room = [leader](const EvenItem& item) { return leader ? item.led : item.units; };
    for (const EvenItem& item : items) {
      if ((leader && !item.leads) || room(item) < wanted) continue;
      if (best == nullptr ||
          std::pair(room(item), item.uneven) < std::pair(room(*best), best->uneven))
        best = &item;
    }
    return {{static_cast<std::size_t>(best - items.data()), leader}};
  }
  EvenTable table(items, wanted, set->count, leader);
  if (table.affordable()) return table.solve();
  std::vector<EvenPick> out;
  if (leader) out.push_back({set->lead, true});
  for (const std::size_t i : roomiest_first(items)) {
    if (out.size() < set->count && !(leader && i == set->lead)) out.push_back({i, false});
  }
  std::sort(out.begin(), out.end(),
            [](const EvenPick& a, const EvenPick& b) { return a.item < b.item; });
  return out;
}

EvenItem even_item(std::int32_t domain, const TopologyRoom& room) {
  return {.domain = domain, .units = room.slices, .led = room.slices_led, .leads = room.leads};
}

// Domains that can not give the threshold are left out; those that can not beside the leader do
// not lead.
std::vector<EvenItem> items_above(std::span<const TopologyRoom> rooms, std::int32_t begin,
                                  std::int32_t end, std::int64_t threshold) {
  std::vector<EvenItem> out;
  for (auto d = begin; d < end; ++d) {
    EvenItem item = even_item(d, rooms[static_cast<std::size_t>(d)]);
    if (item.units < threshold) continue;
    item.leads = item.leads && item.led >= threshold;
    out.push_back(item);
  }
  return out;
}

// The domain over those items.
EvenItem even_parent(std::int32_t domain, std::span<const EvenItem> below) {
  EvenItem out{.domain = domain};
  std::int64_t loss = INT64_MAX;
  for (const EvenItem& item : below) {
    out.units += item.units;
    out.uneven += square_of_room(item.units);
    if (!item.leads) continue;
    out.leads = true;
    loss = std::min(loss, item.units - item.led);
  }
  out.led = out.leads ? out.units - loss : out.units;
  return out;
}

}  // namespace

// Siblings of the asked level under one parent, and the range at the level to be balanced.
struct TopologySearch::Balance {
  Range siblings, spread;
  std::int64_t threshold = 0;
  std::size_t fewest = 0;  // siblings needed
};

std::optional<TopologySearch::Balance> TopologySearch::best_balance(int level) const {
  std::vector<Range> groups;
  if (plan_.level == 0) {
    groups.push_back(all(0));
  } else {
    const Range parents = all(plan_.level - 1);
    for (auto p = parents.begin; p < parents.end; ++p)
      groups.push_back(children(plan_.level - 1, p));
  }
  std::optional<Balance> best;
  for (const Range& siblings : groups) {
    Range spread = siblings;
    if (level > plan_.level && siblings.begin < siblings.end) {
      spread = {children(plan_.level, siblings.begin).begin,
                children(plan_.level, siblings.end - 1).end};
    }
    const auto below = items_above(rooms(level), spread.begin, spread.end, 0);
    const auto set = berth::schedule::fewest(below, plan_.slices(), plan_.leader);
    if (!set || set->threshold == 0) continue;
    const auto own = items_above(rooms(plan_.level), siblings.begin, siblings.end, 0);
    const auto few = berth::schedule::fewest(own, plan_.slices(), plan_.leader);
    if (!few) continue;
    const Balance found{siblings, spread, set->threshold, few->count};
    if (!best || found.threshold > best->threshold ||
        (found.threshold == best->threshold && found.fewest < best->fewest))
      best = found;
  }
  return best;
}

std::optional<std::vector<TopologyChoice>> TopologySearch::balanced(int level) {
  const auto best = best_balance(level);
  if (!best) return std::nullopt;
  const std::int64_t wanted = plan_.slices();
  std::vector<EvenItem> pool;
  if (level == plan_.level) {
    pool = items_above(rooms(level), best->spread.begin, best->spread.end, best->threshold);
  } else {
    std::vector<EvenItem> siblings;
    std::vector<std::vector<EvenItem>> below;
    for (auto d = best->siblings.begin; d < best->siblings.end; ++d) {
      const Range range = children(plan_.level, d);
      auto items = items_above(rooms(level), range.begin, range.end, best->threshold);
      if (items.empty()) continue;
      siblings.push_back(even_parent(d, items));
      below.push_back(std::move(items));
    }
    for (const EvenPick& pick : tightest_set(siblings, wanted, plan_.leader))
      pool.insert(pool.end(), below[pick.item].begin(), below[pick.item].end());
  }
  const auto picks = tightest_set(pool, wanted, plan_.leader);
  const auto count = static_cast<std::int64_t>(picks.size());
  if (picks.empty() || count * best->threshold > wanted) return std::nullopt;
  std::vector<TopologyChoice> out;
  for (const EvenPick& pick : picks)
    out.push_back({pool[pick.item].domain, best->threshold * plan_.slice, pick.leader});
  // The rest goes round, as one slice each at a time; whole rounds are given at once. The set has
  // room for it, so every pass gives some.
  const auto room_left = [&](std::size_t i) {
    const EvenItem& item = pool[picks[i].item];
    return (picks[i].leader ? item.led : item.units) - out[i].pods / plan_.slice;
  };
  for (std::int64_t left = wanted - count * best->threshold; left > 0;) {
    std::int64_t open = 0;
    for (std::size_t i = 0; i < out.size(); ++i) open += room_left(i) > 0 ? 1 : 0;
    if (open == 0) return std::nullopt;
    const std::int64_t share = std::max<std::int64_t>(1, left / open);
    for (std::size_t i = 0; i < out.size() && left > 0; ++i) {
      const std::int64_t given = std::min({share, room_left(i), left});
      out[i].pods += given * plan_.slice;
      left -= given;
    }
  }
  return out;
}

}  // namespace berth::schedule
