#include "judge/queue_cycle.h"

#include <algorithm>

#include "judge/queue_fair.h"

namespace berth::judging::quota {

namespace {

struct Entry {
  std::string workload;
  Asker asker;
  Assignment assignment;
  std::vector<Target> targets;

  bool works() const {  // as it is, or once the targets are gone
    return assignment.mode() == AssignmentMode::kFit ||
           (assignment.mode() == AssignmentMode::kPreempt && !targets.empty());
  }
};

class CycleRun {
 public:
  explicit CycleRun(Book& book) : book_(book), state_(book.snapshot()) {}

  QueueCycle run() {
    std::vector<Entry> entries;
    for (const std::string& head : book_.take_heads()) {
      if (!turned_away(head)) entries.push_back(nominate(head));
    }
    for (const Entry& entry : entries) book_.remember(entry.workload, entry.assignment.tried);
    while (!entries.empty()) {
      std::size_t next =
          book_.inputs().config.fair_sharing ? fair_next(entries) : classical_next(entries);
      Entry entry = std::move(entries[next]);
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(next));
      if (blocked_) {
        leave(entry.workload, "WaitingForPodsReady");
      } else {
        process(entry);
      }
    }
    return out_;
  }

 private:
  void leave(const std::string& workload, const std::string& reason,
             const std::string& detail = "") {
    const bool parked = book_.requeue(workload, reason);
    out_.left.push_back({workload, reason, parked, detail});
  }

  bool turned_away(const std::string& head) {
    for (const auto& [check, state] : book_.spec(head).checks) {
      if (state != model::CheckState::kRetry && state != model::CheckState::kRejected) continue;
      leave(head, "", "AdmissionCheck");
      return true;
    }
    if (book_.namespace_matches(head)) return false;
    leave(head, "NamespaceMismatch");
    return true;
  }

  // ---- nomination ----

  Entry attempt(const std::string& head, const std::vector<int>& counts) const {
    Entry entry{.workload = head, .asker = book_.asker(head), .assignment = {}, .targets = {}};
    entry.assignment = assign(book_.inputs(), state_, entry.asker, book_.spec(head), counts,
                              book_.progress(head), nullptr);
    find(entry, state_);
    return entry;
  }

  static void find(Entry& entry, const QuotaState& state) {
    entry.targets.clear();
    if (entry.assignment.mode() != AssignmentMode::kPreempt) return;
    entry.targets =
        find_targets(state, entry.asker, entry.assignment.usage(), entry.assignment.needing());
  }

  Entry nominate(const std::string& head) const {
    const std::vector<int> counts = counts_of(book_.spec(head));
    Entry full = attempt(head, counts);
    if (full.works()) return full;
    std::vector<int> deltas;
    int total = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto& least = book_.spec(head).pod_sets[i].min_count;
      deltas.push_back(least ? std::max(0, counts[i] - *least) : 0);
      total += deltas.back();
    }
    if (total == 0) return full;
    Entry found = full;
    int low = 0, high = total + 1;  // the smallest reduction that works, total + 1: none
    while (low < high) {
      const int reduction = low + (high - low) / 2;
      std::vector<int> reduced;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        reduced.push_back(counts[i] - deltas[i] * reduction / total);
      }
      Entry tried = attempt(head, reduced);
      if (tried.works()) {
        found = tried;
        high = reduction;
      } else {
        low = reduction + 1;
      }
    }
    return found;
  }

  // ---- order ----

  static bool older(const Asker& a, const Asker& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.queue_ns != b.queue_ns) return a.queue_ns < b.queue_ns;
    return a.tie < b.tie;
  }

  static std::size_t classical_next(const std::vector<Entry>& entries) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < entries.size(); ++i) {
      const int level = entries[i].assignment.level(), least = entries[best].assignment.level();
      if (level != least ? level < least : older(entries[i].asker, entries[best].asker)) best = i;
    }
    return best;
  }

  NodeName root_of(const Entry& entry) const {
    return book_.tree().root(queue_node(entry.asker.queue->name));
  }

  std::size_t fair_next(const std::vector<Entry>& entries) const {
    auto named = [&](const Entry& entry) {
      NodeName root = root_of(entry);
      return std::pair(root.name, root.cohort);
    };
    auto first = named(entries.front());
    for (const Entry& entry : entries) first = std::min(first, named(entry));
    std::vector<Contestant> contestants;
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (named(entries[i]) != first) continue;
      const Asker& asker = entries[i].asker;
      contestants.push_back({asker.queue->name, entries[i].assignment.usage(), asker.priority,
                             asker.queue_ns, asker.tie});
      at.push_back(i);
    }
    return at[tournament(state_, contestants)];
  }

  // ---- one entry ----

  bool overlaps(const std::vector<Target>& targets) const {
    return std::any_of(targets.begin(), targets.end(),
                       [&](const Target& target) { return claimed_.contains(target.workload); });
  }

  bool still_fits(const Entry& entry) const {
    QuotaState without = state_;
    without.remove(claimed_);
    for (const Target& target : entry.targets) without.remove(target.workload);
    return without.fits(entry.asker.queue->name, entry.assignment.usage(), true);
  }

  // Pinned to the same flavors, as if the victims of others were gone.
  void recompute(Entry& entry, bool& deferred) const {
    QuotaState without = state_;
    without.remove(claimed_);
    std::vector<int> counts;
    for (const PodSetChoice& set : entry.assignment.pod_sets) counts.push_back(set.count);
    const Assignment nominated = entry.assignment;
    entry.assignment = assign(book_.inputs(), without, entry.asker, book_.spec(entry.workload),
                              counts, {}, &nominated);
    entry.assignment.tried = nominated.tried;
    find(entry, without);
    deferred = entry.assignment.mode() == AssignmentMode::kFit;
  }

  void reserve_for(const Entry& entry) {
    const model::QueueSpec& queue = *entry.asker.queue;
    if (queue.reclaim == model::Reclaim::kAny) return;
    const bool borrows = entry.assignment.level() > 0;
    Usage kept;
    for (const auto& [fr, amount] : entry.assignment.usage()) {
      Quota quota = book_.tree().quota(queue_node(queue.name), fr);
      std::int64_t most = quota.nominal;
      if (borrows) {
        most = quota.borrowing_limit ? plus(most, *quota.borrowing_limit) : kUnlimited;
      }
      std::int64_t left = minus(most, state_.used(queue_node(queue.name), fr));
      kept[fr] = std::max<std::int64_t>(0, std::min(amount, left));
    }
    state_.reserve(queue.name, kept);
  }

  void process(Entry& entry) {
    bool deferred = false;
    if (overlaps(entry.targets)) recompute(entry, deferred);
    const AssignmentMode mode = entry.assignment.mode();
    if (mode == AssignmentMode::kNoFit) {
      return leave(entry.workload, "NoFit", entry.assignment.no_fit);
    }
    if (mode == AssignmentMode::kPreempt && entry.targets.empty()) {
      reserve_for(entry);
      return leave(entry.workload, "PreemptionNoCandidates");
    }
    if (mode == AssignmentMode::kPreempt && book_.spec(entry.workload).preemption_gated) {
      return leave(entry.workload, "PreemptionGated");
    }
    if (deferred) {
      state_.reserve(entry.asker.queue->name, entry.assignment.usage());
      return leave(entry.workload, "PendingPreemption", "deferred");
    }
    if (overlaps(entry.targets)) {
      return leave(entry.workload, "FailedAfterNomination", "overlapping");
    }
    if (!still_fits(entry)) {
      return leave(entry.workload, "FailedAfterNomination", "no longer fits");
    }
    state_.reserve(entry.asker.queue->name, entry.assignment.usage());
    if (mode == AssignmentMode::kPreempt) return preempt(entry);
    if (book_.waiting_for_pods()) {
      blocked_ = true;
      return leave(entry.workload, "WaitingForPodsReady");
    }
    model::AdmissionSpec admission = entry.assignment.admission(entry.asker.queue->name);
    book_.admit(entry.workload, admission);
    out_.admitted.push_back({entry.workload, std::move(admission)});
  }

  void preempt(const Entry& entry) {
    for (const Target& target : entry.targets) {
      claimed_.insert(target.workload);
      if (!book_.spec(target.workload).evicted.empty()) continue;  // on its way already
      book_.evict(target.workload, target.reason);
      out_.preempted.push_back({target.workload, entry.workload, target.reason});
    }
    leave(entry.workload, "PendingPreemption");
  }

  Book& book_;
  QuotaState state_;
  std::set<std::string> claimed_;  // victims of this cycle
  bool blocked_ = false;
  QueueCycle out_;
};

}  // namespace

QueueCycle run_cycle(Book& book, std::int64_t now_ns) {
  book.begin(now_ns);
  return CycleRun(book).run();
}

}  // namespace berth::judging::quota
