#include "people/why/visibility.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "people/why/autoscaler.h"

namespace berth::people {

namespace {

constexpr const char* kAnotherTeam = "another team";

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '/' || c == '_';
}

class NameHider {
 public:
  NameHider(const kinds::Inputs& inputs, const Visibility& visibility) : visibility_(visibility) {
    std::set<std::string_view> own;  // nodes that his pods name
    for (const model::PodSpec& pod : inputs.pods) {
      if (sees(pod.ns)) {
        own.insert(pod.node_name);
      } else {
        others_.insert(pod.ns + '/' + pod.name);
        // Fixes name the Job of a pod too.
        if (!pod.owner.empty()) hide(pod.ns, pod.owner.substr(pod.owner.find('/') + 1));
      }
    }
    for (const model::GangSpec& gang : inputs.gangs) hide(gang.ns, gang.name);
    for (const model::WorkloadSpec& spec : inputs.queues.workloads) hide(spec.ns, spec.name);
    if (visibility.nodes) return;
    for (const model::NodeSpec& node : inputs.nodes) {
      if (!own.contains(node.name)) nodes_.insert(node.name);
    }
  }

  bool sees(std::string_view ns) const {
    return visibility_.pods || visibility_.namespaces.contains(ns);
  }

  void text(std::string& in) {
    std::string out;
    std::size_t at = 0;
    while (at < in.size()) {
      std::size_t end = at;
      while (end < in.size() && name_char(in[end])) ++end;
      if (end == at) {
        out += in[at++];
        continue;
      }
      std::string_view word = std::string_view(in).substr(at, end - at);
      std::string_view tail;
      while (!word.empty() && (word.back() == '.' || word.back() == '/' || word.back() == '-')) {
        word.remove_suffix(1);
      }
      tail = std::string_view(in).substr(at + word.size(), end - at - word.size());
      out += hidden(word);
      out += tail;
      at = end;
    }
    in = std::move(out);
  }

  void texts(std::vector<std::string>& in) {
    for (std::string& each : in) text(each);
  }

  bool hid_pods = false, hid_nodes = false;

 private:
  void hide(const std::string& ns, const std::string& name) {
    if (!sees(ns)) others_.insert(ns + '/' + name);
  }

  std::string hidden(std::string_view word) {
    if (others_.contains(word)) {
      hid_pods = true;
      return kAnotherTeam;
    }
    if (!nodes_.contains(word)) return std::string(word);
    hid_nodes = true;
    const auto [it, fresh] = aliases_.try_emplace(std::string(word));
    if (fresh) it->second = "node " + std::to_string(aliases_.size());
    return it->second;
  }

  const Visibility& visibility_;
  std::set<std::string, std::less<>> others_, nodes_;
  std::map<std::string, std::string, std::less<>> aliases_;
};

// He could not look at what the fix changes, let alone change it.
bool beyond_sight(const Fix& fix, const NameHider& hider, const Visibility& visibility) {
  return std::any_of(fix.changes.begin(), fix.changes.end(), [&](const ObjectChange& change) {
    if (visibility.unseen.contains(change.kind)) return true;
    if (change.kind == "Namespace") return false;
    if (change.ns.empty()) return change.kind == "Node" ? !visibility.nodes : !visibility.pods;
    return !hider.sees(change.ns);
  });
}

// Pools are named as their cloud calls them: who may not see nodes is told how many there are and
// whether they may grow.
void hide_pools(Answer& answer) {
  int number = 0;
  for (PoolView& pool : answer.autoscaler->pools) {
    pool.name = "pool " + std::to_string(++number);
    pool.awaits.clear();
    if (!pool.failure.empty()) pool.failure = "not told: it names what you may not see";
  }
  for (Fix& fix : answer.fixes) {
    fix.title.resize(std::min(fix.title.size(), fix.title.find(kAboveLimit)));
  }
}

void replace_all(std::string& in, const std::string& what, const std::string& with) {
  for (std::size_t at = in.find(what); at != std::string::npos; at = in.find(what, at)) {
    in.replace(at, what.size(), with);
    at += with.size();
  }
}

// The title names an object of the kind that somebody else made: the one that was meant.
bool names_another(const Fix& fix) {
  return fix.title.find(" instead of ") != std::string::npos ||
         fix.title.find("storage class ") != std::string::npos;
}

// A rule is told as there being one.
void hide_rule(const Visibility& visibility, Answer& answer) {
  if (answer.rule.message.empty() || !visibility.unseen.contains(answer.rule.kind)) return;
  const std::string plain = "a " + answer.rule.kind + " that you may not list is in its way";
  replace_all(answer.line, answer.rule.message, plain);
  replace_all(answer.message, answer.rule.message, plain);
  for (Cause& cause : answer.also) replace_all(cause.message, answer.rule.message, plain);
  answer.in_vain.clear();
  std::erase_if(answer.fixes, names_another);
  for (Fix& fix : answer.fixes) {
    const bool of_rule =
        std::any_of(fix.changes.begin(), fix.changes.end(),
                    [&](const ObjectChange& c) { return visibility.unseen.contains(c.kind); });
    if (of_rule) fix.title = "change the " + answer.rule.kind;
  }
  answer.evidence.summarised.push_back("objects of kind " + answer.rule.kind);
}

}  // namespace

void summarise(const kinds::Inputs& inputs, const Visibility& visibility, Answer& answer) {
  if (visibility.whole()) return;
  hide_rule(visibility, answer);
  NameHider hider(inputs, visibility);
  hider.text(answer.line);
  hider.text(answer.message);
  for (Cause& cause : answer.also) hider.text(cause.message);
  for (NodeFree& node : answer.have.free_by_node) hider.text(node.node);
  for (HolderView& holder : answer.holders) {
    hider.text(holder.node);
    hider.text(holder.pod);
  }
  for (BlockedNode& node : answer.nodes) hider.text(node.name);
  for (FunnelStep& step : answer.funnel) hider.texts(step.nodes);
  for (HealthView& view : answer.health) {
    hider.text(view.node);
    hider.text(view.reason);
  }
  for (Fix& fix : answer.fixes) {
    const bool beyond = beyond_sight(fix, hider, visibility);
    hider.text(fix.title);
    if (!beyond) continue;
    fix.title = "by somebody with more rights: " + fix.title;
    fix.changes.clear();
  }
  if (answer.autoscaler && !visibility.nodes) hide_pools(answer);
  hider.texts(answer.in_vain);
  for (Refused& refused : answer.refused) hider.text(refused.title);
  hider.texts(answer.where);
  hider.text(answer.start.because);
  if (!visibility.pods)
    answer.evidence.summarised.emplace_back("names of pods in other namespaces");
  if (!visibility.nodes) answer.evidence.summarised.emplace_back("names of nodes");
}

}  // namespace berth::people
