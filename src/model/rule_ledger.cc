#include "model/rule_ledger.h"

#include <fmt/format.h>

#include <functional>
#include <string_view>

namespace berth::model {

namespace {

class Tally {
 public:
  explicit Tally(const std::string& ns) : ns_(ns) {}

  void selector(const text::Selector& selector) {
    for (const text::Requirement& r : selector) {
      word(r.key);
      mix(static_cast<std::uint64_t>(r.op));
      for (const std::string& value : r.values) word(value);
    }
  }
  void term(std::uint64_t kind, const std::string& topology, const PodSet& pods) {
    mix(kind);
    word(topology);
    selector(pods.selector);
    mix((pods.all_namespaces ? 1U : 0U) + (pods.match_nothing ? 2U : 0U));
    bool foreign = pods.all_namespaces;
    for (const std::string& ns : pods.namespaces) {
      word(ns);
      foreign = foreign || ns != ns_;
    }
    ++count.terms;
    count.foreign += foreign && !pods.match_nothing ? 1 : 0;
  }
  void nodes(const std::vector<NodeSelectorTerm>& terms) {
    for (const NodeSelectorTerm& t : terms) {
      ++count.words;
      selector(t.labels);
      selector(t.fields);
    }
  }
  void mix(std::uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  }

  RuleCount count;
  std::uint64_t hash = 1;

 private:
  void word(std::string_view text) {
    ++count.words;
    mix(std::hash<std::string_view>{}(text));
  }
  const std::string& ns_;
};

}  // namespace

std::string pod_excess(const RuleCount& count) {
  if (count.terms > kMostTermsOfPod) {
    return fmt::format(
        "it has {} rules about other pods (affinity, anti-affinity, spread); at most {} are looked "
        "at: write fewer, with selectors that match more pods",
        count.terms, kMostTermsOfPod);
  }
  if (count.words > kMostWordsOfPod) {
    return fmt::format(
        "its affinity, spread and tolerations name {} keys and values; at most {} are looked at",
        count.words, kMostWordsOfPod);
  }
  return "";
}

std::string namespace_excess(const std::string& ns, const RuleCount& count) {
  if (count.terms > kMostTermsOfNamespace) {
    return fmt::format(
        "the pods of namespace {} have {} different rules about other pods (affinity, "
        "anti-affinity, spread); at most {} are looked at, so pods with such rules wait there",
        ns, count.terms, kMostTermsOfNamespace);
  }
  if (count.foreign > kMostForeignOfNamespace) {
    return fmt::format(
        "the pods of namespace {} have {} different rules about pods of other namespaces; at most "
        "{} are looked at, so pods with such rules wait there",
        ns, count.foreign, kMostForeignOfNamespace);
  }
  return "";
}

RuleLedger::Entry RuleLedger::entry_of(const PodSpec& pod) {
  Tally tally(pod.ns);
  for (const auto& t : pod.affinity) tally.term(1, t.topology_key, t.pods);
  for (const auto& t : pod.anti_affinity) tally.term(2, t.topology_key, t.pods);
  for (const auto& t : pod.preferred_affinity) tally.term(3, t.topology_key, t.pods);
  for (const auto& t : pod.preferred_anti_affinity) tally.term(4, t.topology_key, t.pods);
  for (const auto& s : pod.spread) tally.term(5, s.topology_key, s.pods);
  Entry out;
  if (tally.count.terms > 0) out.set = tally.hash == 0 ? 1 : tally.hash;
  tally.nodes(pod.required_nodes);
  for (const auto& p : pod.preferred_nodes) tally.nodes({p.term});
  tally.count.words += static_cast<std::int64_t>(pod.node_selector.size());
  tally.count.words += static_cast<std::int64_t>(pod.tolerations.size());
  out.count = tally.count;
  return out;
}

void RuleLedger::add(const std::string& ns, const Entry& entry) {
  if (entry.set == 0) return;
  Namespace& at = namespaces_[ns];
  if (++at.sets[entry.set] > 1) return;
  at.sum.terms += entry.count.terms;
  at.sum.foreign += entry.count.foreign;
}

void RuleLedger::remove(const std::string& ns, const Entry& entry) {
  if (entry.set == 0) return;
  const auto at = namespaces_.find(ns);
  const auto set = at->second.sets.find(entry.set);
  if (--set->second > 0) return;
  at->second.sets.erase(set);
  at->second.sum.terms -= entry.count.terms;
  at->second.sum.foreign -= entry.count.foreign;
  if (at->second.sets.empty()) namespaces_.erase(at);
}

RuleCount RuleLedger::of(const std::string& ns) const {
  const auto it = namespaces_.find(ns);
  return it == namespaces_.end() ? RuleCount{} : it->second.sum;
}

bool RuleLedger::over(const std::string& ns) const {
  const RuleCount count = of(ns);
  return count.terms > kMostTermsOfNamespace || count.foreign > kMostForeignOfNamespace;
}

}  // namespace berth::model
