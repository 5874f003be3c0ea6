#include "judge/queue_judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "judge/queue_book.h"
#include "judge/queue_cycle.h"

namespace berth::judging {

using quota::Book;
using quota::FlavorResource;
using quota::NodeName;
using quota::Place;
using quota::QuotaState;

namespace {

NodeName node_name(QueueNode kind, const std::string& name) {
  return {.cohort = kind == QueueNode::kCohort, .name = name};
}

using Figure = std::int64_t (QuotaState::*)(const NodeName&, const FlavorResource&) const;

std::int64_t figure(const Book& book, QueueNode kind, const std::string& name,
                    const FlavorResource& fr, Figure of) {
  NodeName node = node_name(kind, name);
  if (!book.tree().has(node) || book.tree().cyclic(node)) return 0;
  QuotaState state = book.snapshot();
  return (state.*of)(node, fr);
}

// The tree once more, kept step by step: usage is added to and removed from a node and moves up
// by what the node's local quota does not hold.
class SteppedUsage {
 public:
  explicit SteppedUsage(const QuotaState& quotas) : quotas_(quotas) {}

  void add(const NodeName& node, const FlavorResource& fr, std::int64_t amount) {
    const std::int64_t local = std::max<std::int64_t>(0, quotas_.local(node, fr) - at(node, fr));
    used_[{node, fr}] += amount;
    const auto& parent = quotas_.tree().at(node).parent;
    if (parent && amount > local) add(*parent, fr, amount - local);
  }

  void remove(const NodeName& node, const FlavorResource& fr, std::int64_t amount) {
    const std::int64_t stored = quota::minus(at(node, fr), quotas_.local(node, fr));
    used_[{node, fr}] -= amount;
    const auto& parent = quotas_.tree().at(node).parent;
    if (parent && stored > 0) remove(*parent, fr, std::min(amount, stored));
  }

  std::int64_t at(const NodeName& node, const FlavorResource& fr) const {
    auto found = used_.find({node, fr});
    return found == used_.end() ? 0 : found->second;
  }

  std::string differs(const QuotaState& from) const {
    for (const auto& [key, amount] : used_) {
      if (amount != from.used(key.first, key.second)) {
        return key.first.name + " " + key.second.flavor + "/" + key.second.resource + ": " +
               std::to_string(amount) + " step by step, " +
               std::to_string(from.used(key.first, key.second)) + " by definition";
      }
    }
    return "";
  }

 private:
  const QuotaState& quotas_;
  std::map<std::pair<NodeName, FlavorResource>, std::int64_t> used_;
};

std::string check_usage(const QuotaState& state) {
  SteppedUsage stepped(state);
  for (const auto& [name, holding] : state.holders()) {
    if (state.tree().cyclic(quota::queue_node(holding.queue))) continue;
    for (const auto& [fr, amount] : holding.usage) {
      stepped.add(quota::queue_node(holding.queue), fr, amount);
    }
  }
  if (std::string wrong = stepped.differs(state); !wrong.empty()) return wrong;
  for (const auto& [name, holding] : state.holders()) {
    if (state.tree().cyclic(quota::queue_node(holding.queue))) continue;
    for (const auto& [fr, amount] : holding.usage) {
      stepped.remove(quota::queue_node(holding.queue), fr, amount);
    }
  }
  return stepped.differs(QuotaState(state.tree()));
}

std::string check_figures(const QuotaState& state) {
  for (const auto& [node, unused] : state.tree().nodes()) {
    if (state.tree().cyclic(node)) continue;
    for (const FlavorResource& fr : state.tree().known()) {
      if (state.used(node, fr) < 0) return node.name + ": negative usage";
      if (state.available(node, fr) > state.potential(node, fr)) {
        return node.name + ": more available than there is";
      }
    }
  }
  return "";
}

}  // namespace

QueueJudge::QueueJudge(model::QueueInputs inputs, std::int64_t now_ns)
    : book_(std::make_unique<Book>(std::move(inputs), now_ns)) {}
QueueJudge::QueueJudge(const QueueJudge& other) : book_(std::make_unique<Book>(*other.book_)) {}
QueueJudge& QueueJudge::operator=(const QueueJudge& other) {
  if (this != &other) book_ = std::make_unique<Book>(*other.book_);
  return *this;
}
QueueJudge::~QueueJudge() = default;

QueueCycle QueueJudge::cycle(std::int64_t now_ns) { return quota::run_cycle(*book_, now_ns); }
void QueueJudge::evictions_done() { book_->evictions_done(); }
void QueueJudge::finish(const std::string& workload) { book_->finish(workload); }
void QueueJudge::add(const model::WorkloadSpec& workload) { book_->add(workload); }
void QueueJudge::ready(const std::string& workload) { book_->ready(workload); }

std::string QueueJudge::check() const {
  for (const auto& [name, record] : book_->records()) {
    const bool holds = record.place == Place::kHolding;
    if (name != quota::full_name(record.spec)) return name + ": under another's name";
    if (holds != record.spec.admission.has_value()) return name + ": holds without admission";
    if (record.leaving && !holds) return name + ": leaves without holding";
    if (record.backing_off && record.place != Place::kParked) return name + ": backs off unparked";
    const bool queued = record.place == Place::kHeap || record.place == Place::kParked;
    if (queued && book_->queue_of(record.spec).empty()) return name + ": waits nowhere";
  }
  for (const auto& [queue, preemptor] : book_->preemptors()) {
    auto found = book_->records().find(preemptor);
    if (found == book_->records().end()) return queue + ": its preemptor is gone";
    if (found->second.place == Place::kHolding) return queue + ": its preemptor holds quota";
  }
  QuotaState state = book_->snapshot();
  std::string wrong = check_usage(state);
  return wrong.empty() ? check_figures(state) : wrong;
}

std::string QueueJudge::place(const std::string& workload) const {
  auto found = book_->records().find(workload);
  if (found == book_->records().end()) return "gone";
  switch (found->second.place) {
    case Place::kHeap:
      return "heap";
    case Place::kParked:
      return "parked";
    case Place::kHolding:
      return found->second.leaving ? "leaving" : "holding";
    case Place::kOut:
      return "out";
  }
  return "gone";
}

std::vector<std::string> QueueJudge::workloads() const {
  std::vector<std::string> names;
  for (const auto& [name, record] : book_->records()) names.push_back(name);
  return names;
}

const model::WorkloadSpec& QueueJudge::spec(const std::string& workload) const {
  return book_->spec(workload);
}

std::int64_t QueueJudge::subtree_quota(QueueNode kind, const std::string& name,
                                       const std::string& flavor,
                                       const std::string& resource) const {
  return figure(*book_, kind, name, {flavor, resource}, &QuotaState::subtree);
}
std::int64_t QueueJudge::usage(QueueNode kind, const std::string& name, const std::string& flavor,
                               const std::string& resource) const {
  return figure(*book_, kind, name, {flavor, resource}, &QuotaState::used);
}
std::int64_t QueueJudge::available(QueueNode kind, const std::string& name,
                                   const std::string& flavor, const std::string& resource) const {
  return figure(*book_, kind, name, {flavor, resource}, &QuotaState::available);
}
std::int64_t QueueJudge::potential(QueueNode kind, const std::string& name,
                                   const std::string& flavor, const std::string& resource) const {
  return figure(*book_, kind, name, {flavor, resource}, &QuotaState::potential);
}
std::int64_t QueueJudge::borrowed(QueueNode kind, const std::string& name,
                                  const std::string& flavor, const std::string& resource) const {
  return std::max<std::int64_t>(0, quota::minus(usage(kind, name, flavor, resource),
                                                subtree_quota(kind, name, flavor, resource)));
}

std::int64_t QueueJudge::weighted_share(QueueNode kind, const std::string& name) const {
  NodeName node = node_name(kind, name);
  if (!book_->tree().has(node) || book_->tree().cyclic(node)) return 0;
  quota::Share share = book_->snapshot().share(node);
  return share.infinite() ? INT64_MAX : static_cast<std::int64_t>(std::ceil(share.value()));
}

bool QueueJudge::active(const std::string& queue) const {
  const model::QueueSpec* spec = book_->queue(queue);
  return spec != nullptr && book_->active(*spec);
}

}  // namespace berth::judging
