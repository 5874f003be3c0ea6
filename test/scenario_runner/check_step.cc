#include <algorithm>
#include <optional>

#include "app/words.h"
#include "queue_expect.h"

namespace berth::scenario {

namespace {

using Kind = Expectation::Kind;

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out.empty() ? "nothing" : out;
}
std::string joined(const std::set<std::string>& words) {
  return joined(std::vector<std::string>(words.begin(), words.end()));
}

// What a mismatch looks like; nothing when the expectation holds.
using Found = std::optional<std::string>;

class StepChecker {
 public:
  explicit StepChecker(const Observed& seen) : seen_(seen) {}

  Found check(const Expectation& e) const {
    switch (e.kind) {
      case Kind::kOn:
        return on(e);
      case Kind::kPlaced:
        return placed(e);
      case Kind::kPlacedIn:
        return placed_in(e);
      case Kind::kNotPlaced:
        return not_placed(e);
      case Kind::kRemoved:
      case Kind::kOnly:
      case Kind::kBinding:
      case Kind::kFits:
      case Kind::kFree:
        return proof(e);
      case Kind::kCounts:
        return counts(e);
      case Kind::kPreempted:
        return names(e, seen_.preempted);
      case Kind::kBreaks:
        return names(e, seen_.broken_budgets);
      case Kind::kText:
        return text(e);
      case Kind::kExit:
        if (seen_.exit_code == e.number) return std::nullopt;
        return "exit " + std::to_string(seen_.exit_code);
      case Kind::kAdmitted:
      case Kind::kEvicted:
      case Kind::kDomains:
      case Kind::kPosition:
      case Kind::kAdmissions:
      case Kind::kEvictions:
      case Kind::kQueue:
        return check_queue_expectation(e, seen_);
    }
    return "an expectation nobody checks";
  }

 private:
  // Pods of a workload, or the pod itself.
  std::vector<const Observed::Bound*> bound_of(const std::string& name) const {
    std::vector<const Observed::Bound*> out;
    for (const auto& [pod, bound] : seen_.bound) {
      if (pod == name || bound.workload == name) out.push_back(&bound);
    }
    return out;
  }

  const model::Outcome* pending_of(const std::string& name) const {
    const auto it = seen_.pending.find(name);
    return it == seen_.pending.end() ? nullptr : &it->second;
  }

  std::string state_of(const std::string& name) const {
    if (const model::Outcome* outcome = pending_of(name)) {
      const auto help = seen_.help.find(name);
      return std::string(model::name(outcome->verdict)) + ' ' +
             std::string(model::name(outcome->reason)) + " (" + outcome->message + ") [" +
             (help == seen_.help.end() ? "" : help->second) + "]";
    }
    std::string out;
    for (const auto& [pod, bound] : seen_.bound) {
      if (pod != name && bound.workload != name) continue;
      out += (out.empty() ? "" : "; ") + pod + " on " + bound.node;
      if (!bound.gpus.empty()) out += " gpus " + app::show_ranges(bound.gpus);
    }
    return out.empty() ? "neither placed nor waiting" : out;
  }

  Found on(const Expectation& e) const {
    const auto it = seen_.bound.find(e.name);
    if (it == seen_.bound.end() || it->second.node != e.names[0] ||
        (e.has_gpus && it->second.gpus != e.gpus)) {
      return state_of(e.name);
    }
    return std::nullopt;
  }

  Found placed(const Expectation& e) const {
    const auto pods = bound_of(e.name);
    if (pods.empty() || pending_of(e.name) != nullptr) return state_of(e.name);
    if (e.names.empty()) return std::nullopt;
    std::set<std::string> nodes, wanted(e.names.begin(), e.names.end());
    for (const Observed::Bound* pod : pods) nodes.insert(pod->node);
    if (nodes == wanted) return std::nullopt;
    return "on " + joined(nodes);
  }

  Found placed_in(const Expectation& e) const {
    const auto pods = bound_of(e.name);
    if (pods.empty() || pending_of(e.name) != nullptr) return state_of(e.name);
    for (const Observed::Bound* pod : pods) {
      const auto labels = seen_.node_labels.find(pod->node);
      if (labels == seen_.node_labels.end()) return "on unknown node " + pod->node;
      const auto label = labels->second.find(e.word);
      const std::string value = label == labels->second.end() ? "(no label)" : label->second;
      if (value != e.text) return "on " + pod->node + " in " + value;
    }
    return std::nullopt;
  }

  Found not_placed(const Expectation& e) const {
    const model::Outcome* outcome = pending_of(e.name);
    if (outcome == nullptr) return state_of(e.name);
    const std::string_view verdict = e.word == "waits" ? "wait" : std::string_view(e.word);
    if (model::name(outcome->verdict) != verdict) return state_of(e.name);
    if (!e.reason.empty() && model::name(outcome->reason) != e.reason) return state_of(e.name);
    if (e.number >= 0 && outcome->placed != e.number)
      return "placed " + std::to_string(outcome->placed);
    if (e.total >= 0 && outcome->pods != e.total) return "of " + std::to_string(outcome->pods);
    const auto help = seen_.help.find(e.name);
    if (!e.text.empty() && outcome->message.find(e.text) == std::string::npos &&
        (help == seen_.help.end() || help->second.find(e.text) == std::string::npos)) {
      return state_of(e.name);
    }
    return std::nullopt;
  }

  static int constraint_of(const std::string& key) {
    for (int c = 0; c < model::kConstraints; ++c) {
      if (app::constraint_key(static_cast<model::Constraint>(c)) == key) return c;
    }
    return -1;
  }

  Found proof(const Expectation& e) const {
    const model::Outcome* outcome = pending_of(e.name);
    if (outcome == nullptr) return state_of(e.name);
    const model::Certificate& proof = outcome->certificate;
    if (e.kind == Kind::kFits) {
      for (const auto& domain : proof.domains) {
        if (domain.name != e.word) continue;
        if (domain.fits == e.number) return std::nullopt;
        return "fits " + e.word + ' ' + std::to_string(domain.fits);
      }
      return "no domain " + e.word;
    }
    if (e.kind == Kind::kFree) {
      if (proof.free_gpu_milli == e.number * 1000 && proof.largest_free_milli == e.total * 1000) {
        return std::nullopt;
      }
      return "free " + app::show_milli(proof.free_gpu_milli) + " largest " +
             app::show_milli(proof.largest_free_milli);
    }
    const int c = constraint_of(e.word);
    if (c < 0) return "no constraint is called " + e.word;
    if (e.kind == Kind::kBinding) {
      if (static_cast<int>(proof.binding) == c) return std::nullopt;
      return "binding " + app::constraint_key(proof.binding);
    }
    const auto& list = e.kind == Kind::kOnly ? proof.only : proof.removed;
    const int count = list[static_cast<std::size_t>(c)];
    if (count == e.number) return std::nullopt;
    return e.word + ' ' + std::to_string(count);
  }

  Found counts(const Expectation& e) const {
    std::size_t found = 0;
    if (e.word == "placed") {
      found = static_cast<std::size_t>(std::count_if(seen_.bound.begin(), seen_.bound.end(),
                                                     [](const auto& b) { return b.second.fresh; }));
    } else if (e.word == "waiting") {
      for (const auto& [name, outcome] : seen_.pending) {
        found += static_cast<std::size_t>(outcome.pods - outcome.placed);
      }
    } else {
      found = e.word == "invalid"   ? seen_.invalid.size()
              : e.word == "ignored" ? seen_.ignored.size()
                                    : seen_.warnings.size();
    }
    if (found == static_cast<std::size_t>(e.number)) return std::nullopt;
    return e.word + ' ' + std::to_string(found);
  }

  static Found names(const Expectation& e, const std::set<std::string>& found) {
    if (std::set<std::string>(e.names.begin(), e.names.end()) == found) return std::nullopt;
    return joined(found);
  }

  Found text(const Expectation& e) const {
    const auto& lines = e.word == "invalid"   ? seen_.invalid
                        : e.word == "ignored" ? seen_.ignored
                                              : seen_.warnings;
    std::string all;
    for (const std::string& line : lines) {
      if (line.find(e.text) != std::string::npos) return std::nullopt;
      all += (all.empty() ? "" : " | ") + line;
    }
    return all.empty() ? "nothing" : all;
  }

  const Observed& seen_;
};

}  // namespace

std::vector<std::string> check_step(const Scenario& scenario, const Step& step,
                                    const Observed& observed) {
  std::vector<std::string> out;
  const StepChecker checker(observed);
  for (const Expectation& e : step.expect) {
    if (const Found found = checker.check(e)) {
      out.push_back(scenario.path + ":" + std::to_string(e.line) + ": expected \"" + e.source +
                    "\", found: " + *found);
    }
  }
  return out;
}

}  // namespace berth::scenario
