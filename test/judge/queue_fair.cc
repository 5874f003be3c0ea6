#include "judge/queue_fair.h"

#include <algorithm>
#include <optional>

#include "judge/queue_preempt.h"

namespace berth::judging::quota {

using Strategy = model::QueueConfig::Strategy;

namespace {

// ---- the search for victims ----

class FairSearch {
 public:
  FairSearch(const QuotaState& state, const Asker& asker, const Usage& request,
             const FlavorResources& needing)
      : before_(state), now_(state), asker_(asker), request_(request), needing_(needing) {}

  std::vector<Target> run() {
    ByQueue candidates = collect();
    now_.reserve(asker_.queue->name, request_);
    const std::vector<Strategy> strategies = asker_.config->strategies.empty()
                                                 ? model::QueueConfig{}.strategies
                                                 : asker_.config->strategies;
    ByQueue retry;
    bool done = first_strategy(candidates, strategies.front(), retry);
    if (!done && strategies.size() > 1) done = second_strategy(retry);
    if (!done) return {};
    now_.release(asker_.queue->name, request_);
    fill_back(now_, before_.holders(), asker_, request_, true, targets_);
    return targets_;
  }

 private:
  using ByQueue = std::map<std::string, std::vector<Holding>>;  // each list in victim order

  NodeName own() const { return queue_node(asker_.queue->name); }

  ByQueue collect() const {
    std::vector<NodeName> tree = before_.tree().queues_below(before_.tree().root(own()));
    ByQueue candidates;
    for (const auto& [name, holding] : before_.holders()) {
      NodeName queue = queue_node(holding.queue);
      if (!uses_any(holding, needing_)) continue;
      if (queue == own()) {
        if (may_preempt_within(asker_, holding)) candidates[queue.name].push_back(holding);
        continue;
      }
      if (std::find(tree.begin(), tree.end(), queue) == tree.end()) continue;
      if (before_.within(queue, needing_) || !may_reclaim(asker_, holding)) continue;
      candidates[queue.name].push_back(holding);
    }
    for (auto& [queue, list] : candidates) sort_candidates(asker_, list);
    return candidates;
  }

  // ---- which queue is next ----

  static bool any_left(const ByQueue& candidates, const std::string& queue) {
    auto found = candidates.find(queue);
    return found != candidates.end() && !found->second.empty();
  }

  bool open(const NodeName& node, const ByQueue& candidates) const {
    if (!node.cohort) {
      return any_left(candidates, node.name) && (node == own() || now_.borrows(node));
    }
    std::vector<NodeName> above = now_.tree().ancestors(own());
    const bool ancestor = std::find(above.begin(), above.end(), node) != above.end();
    if (!ancestor && !now_.borrows(node)) return false;
    const auto& children = now_.tree().at(node).children;
    return std::any_of(children.begin(), children.end(),
                       [&](const NodeName& child) { return open(child, candidates); });
  }

  // a before b, both open children of one cohort.
  bool preferred(const NodeName& a, const NodeName& b, const ByQueue& candidates) const {
    const int order = now_.share(a).compare(now_.share(b));
    if (order != 0) return order > 0;
    if (a.cohort != b.cohort) return a.cohort;
    if (a.cohort) return a.name < b.name;
    return goes_before(asker_, candidates.at(a.name).front(), candidates.at(b.name).front());
  }

  std::optional<std::string> next_queue(const ByQueue& candidates) const {
    NodeName at = now_.tree().root(own());
    if (!open(at, candidates)) return std::nullopt;
    while (at.cohort) {
      std::optional<NodeName> best;
      for (const NodeName& child : now_.tree().at(at).children) {
        if (!open(child, candidates)) continue;
        if (!best || preferred(child, *best, candidates)) best = child;
      }
      at = *best;
    }
    return at.name;
  }

  // ---- what may be taken ----

  // The child of the lowest shared cohort on the side of `node`.
  NodeName below_shared(const NodeName& node, const NodeName& other) const {
    std::vector<NodeName> across = now_.tree().ancestors(other);
    NodeName side = node;
    for (const NodeName& above : now_.tree().ancestors(node)) {
      if (std::find(across.begin(), across.end(), above) != across.end()) break;
      side = above;
    }
    return side;
  }

  bool passes(Strategy strategy, const Holding& victim) const {
    NodeName target = queue_node(victim.queue);
    NodeName p = below_shared(own(), target), q = below_shared(target, own());
    if (strategy == Strategy::kLessThanInitialShare) {
      return now_.share(p).compare(now_.share(q)) < 0;
    }
    QuotaState without = now_;
    without.remove(victim.workload);
    return now_.share(p).compare(without.share(q)) <= 0;
  }

  bool take(const Holding& victim, const std::string& reason) {
    now_.remove(victim.workload);
    targets_.push_back({victim.workload, reason});
    QuotaState without = now_;
    without.release(asker_.queue->name, request_);
    return without.fits(asker_.queue->name, request_, true);
  }

  static Holding pop(std::vector<Holding>& list) {
    Holding first = list.front();
    list.erase(list.begin());
    return first;
  }

  bool first_strategy(ByQueue& candidates, Strategy strategy, ByQueue& retry) {
    while (auto queue = next_queue(candidates)) {
      std::vector<Holding>& list = candidates.at(*queue);
      if (*queue == asker_.queue->name) {
        if (take(pop(list), "InClusterQueue")) return true;
      } else if (now_.within(own(), needing_)) {
        if (take(pop(list), "InCohortReclamation")) return true;
      } else {
        while (!list.empty()) {
          Holding victim = pop(list);
          if (!passes(strategy, victim)) {
            retry[*queue].push_back(victim);
            continue;
          }
          if (take(victim, "InCohortFairSharing")) return true;
          break;
        }
      }
    }
    return false;
  }

  bool second_strategy(ByQueue& retry) {
    while (auto queue = next_queue(retry)) {
      Holding victim = retry.at(*queue).front();
      retry.erase(*queue);
      if (passes(Strategy::kLessThanInitialShare, victim) && take(victim, "InCohortFairSharing")) {
        return true;
      }
    }
    return false;
  }

  const QuotaState& before_;
  QuotaState now_;  // with the request, without the victims
  const Asker& asker_;
  const Usage& request_;
  const FlavorResources& needing_;
  std::vector<Target> targets_;
};

// ---- the tournament ----

struct Bid {
  std::size_t index = 0;
  bool borrows = false;  // the child it comes from, in what it asks for
  Share share;           // of that child, with it
};

bool wins(const Bid& a, const Bid& b, const std::vector<Contestant>& contestants) {
  if (a.borrows != b.borrows) return b.borrows;
  if (int order = a.share.compare(b.share); order != 0) return order < 0;
  const Contestant &left = contestants[a.index], &right = contestants[b.index];
  if (left.priority != right.priority) return left.priority > right.priority;
  if (left.queue_ns != right.queue_ns) return left.queue_ns < right.queue_ns;
  return left.tie < right.tie;
}

std::optional<std::size_t> champion(const QuotaState& state, const NodeName& node,
                                    const std::vector<Contestant>& contestants) {
  if (!node.cohort) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      if (contestants[i].queue == node.name) return i;
    }
    return std::nullopt;
  }
  std::optional<Bid> best;
  for (const NodeName& child : state.tree().at(node).children) {
    std::optional<std::size_t> index = champion(state, child, contestants);
    if (!index) continue;
    const Contestant& contestant = contestants[*index];
    QuotaState with = state;
    with.reserve(contestant.queue, contestant.usage);
    Bid bid{.index = *index, .borrows = false, .share = with.share(child)};
    for (const auto& [fr, amount] : contestant.usage) {
      bid.borrows = bid.borrows || with.borrowing(child, fr, 0);
    }
    if (!best || wins(bid, *best, contestants)) best = bid;
  }
  if (!best) return std::nullopt;
  return best->index;
}

}  // namespace

std::vector<Target> fair_targets(const QuotaState& state, const Asker& asker, const Usage& request,
                                 const FlavorResources& needing) {
  return FairSearch(state, asker, request, needing).run();
}

std::size_t tournament(const QuotaState& state, const std::vector<Contestant>& contestants) {
  NodeName root = state.tree().root(queue_node(contestants.front().queue));
  return champion(state, root, contestants).value_or(0);
}

}  // namespace berth::judging::quota
