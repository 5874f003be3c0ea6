#include "decide/turns.h"

#include <algorithm>

namespace berth::decide {

bool Turns::begin(const std::vector<Item>& waiting) {
  shares_.clear();
  std::int64_t all = 0;
  for (const Item& item : waiting) all += item.work;
  if (all <= kCycleWork) {
    stopped_at_.clear();
    answers_.clear();
    return false;
  }
  for (const Item& item : waiting) {
    if (item.work == 0) continue;
    auto share = shares_.find(item.ns);
    if (share == shares_.end()) share = shares_.emplace(item.ns, Share{}).first;
    share->second.wants += item.work;
  }
  divide();
  return true;
}

// Nobody gets more than he wants, and what is over goes to those who want more, in equal parts.
void Turns::divide() {
  std::vector<Share*> by_wants;
  for (auto& [ns, share] : shares_) by_wants.push_back(&share);
  std::stable_sort(by_wants.begin(), by_wants.end(),
                   [](const Share* a, const Share* b) { return a->wants < b->wants; });
  std::int64_t left = kCycleWork;
  auto others = static_cast<std::int64_t>(by_wants.size());
  for (Share* share : by_wants) {
    share->gets = std::min(share->wants, left / others);
    left -= share->gets;
    --others;
  }
}

bool Turns::may(const Item& item, bool again) const {
  const auto share = shares_.find(item.ns);
  if (share == shares_.end()) return false;  // its answer was known when the cycle began
  // One at least: whatever it costs, it has its turn.
  if (share->second.used > 0 && share->second.used >= share->second.gets) return false;
  if (again) return true;
  const auto stopped = stopped_at_.find(item.ns);
  return stopped == stopped_at_.end() || stopped->second < item.key;
}

void Turns::paid(const Item& item, std::int64_t work) {
  const auto share = shares_.find(item.ns);
  if (share == shares_.end()) return;
  share->second.used += work;
  share->second.last = item.key;
}

void Turns::postponed(const Item& item) {
  const auto share = shares_.find(item.ns);
  if (share != shares_.end()) share->second.cut = true;
}

void Turns::end(const model::Decision& decision) {
  stopped_at_.clear();
  for (const auto& [ns, share] : shares_) {
    if (share.cut && share.used > 0) stopped_at_.emplace(ns, share.last);
  }
  answers_.clear();
  for (const model::Outcome& o : decision.outcomes) {
    if (o.verdict != model::Verdict::kPlaced) answers_.insert_or_assign({o.workload, o.gang}, o);
  }
}

model::Outcome Turns::answer(const std::string& workload, bool gang) const {
  const auto it = answers_.find({workload, gang});
  if (it != answers_.end()) return it->second;
  return {.workload = workload,
          .gang = gang,
          .reason = model::Reason::kPendingEvaluation,
          .message = "there is more to decide than a cycle takes; its turn comes"};
}

}  // namespace berth::decide
