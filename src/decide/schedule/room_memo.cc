#include "decide/schedule/room_memo.h"

#include <algorithm>

#include "model/fit.h"

namespace berth::schedule {

RoomMemo::Entry& RoomMemo::entry_for(const model::ClusterState& state, const model::Shape& shape,
                                     int key) {
  const Entry wanted{.demand = shape.demand->serial,
                     .rules = shape.rules->serial,
                     .inventory = state.inventory().version(),
                     .key = key,
                     .seen = {},
                     .fits = {},
                     .sums = {}};
  const auto same = [&wanted](const Entry& e) {
    return e.demand == wanted.demand && e.rules == wanted.rules &&
           e.inventory == wanted.inventory && e.key == wanted.key;
  };
  auto it = std::find_if(entries_.begin(), entries_.end(), same);
  if (it == entries_.end()) {
    if (entries_.size() < kMost) {
      it = entries_.insert(entries_.end(), wanted);
    } else {
      it = std::min_element(entries_.begin(), entries_.end(),
                            [](const Entry& a, const Entry& b) { return a.used < b.used; });
      *it = wanted;
    }
  }
  it->used = ++now_;
  return *it;
}

const std::vector<int>& RoomMemo::get(const model::ClusterState& state, const model::Shape& shape,
                                      int key, const model::NodeSet& allowed) {
  Entry& entry = entry_for(state, shape, key);
  const model::Domains* domains = key < 0 ? nullptr : &state.inventory().domains(key);
  const auto count = [&](std::size_t slot) {
    const std::int32_t domain = domains == nullptr ? 0 : domains->of[slot];
    if (domain < 0 || !allowed.test(slot)) return;
    const int fits = model::fit_count(state.info(slot), state.node(slot), *shape.demand, INT32_MAX);
    entry.sums[static_cast<std::size_t>(domain)] += fits - entry.fits[slot];
    entry.fits[slot] = fits;
  };
  changed_.clear();
  if (!entry.fits.empty() &&
      model::Journal::between(entry.seen, state.history(), state.nodes(), changed_)) {
    for (const std::uint32_t slot : changed_) count(slot);
  } else {
    entry.fits.assign(state.nodes(), 0);
    entry.sums.assign(domains == nullptr ? 1 : domains->values.size(), 0);
    for (std::size_t slot = 0; slot < state.nodes(); ++slot) count(slot);
  }
  entry.seen = state.history();
  return entry.sums;
}

}  // namespace berth::schedule
