// How a TopologyTree reads what is asked: levels, slices, and which nodes the pods may use.
#include <algorithm>
#include <optional>

#include "decide/schedule/topology_search.h"
#include "decide/schedule/topology_task.h"

namespace berth::schedule {
namespace {

using AskMode = model::TopologyAsk::Mode;

constexpr std::size_t kMostLayers = 3;
constexpr std::size_t kMostJudged = 8;  // templates whose verdicts are kept

std::string quoted_level(const std::string& level) { return "\"" + level + "\""; }

bool host_term_matches(const TopologyHost& host, const model::NodeSelectorTerm& term) {
  if (term.labels.empty() && term.fields.empty()) return false;
  const auto label = [&](std::string_view key) -> std::optional<std::string_view> {
    const auto it = host.labels.find(key);
    if (it == host.labels.end()) return std::nullopt;
    return std::string_view(it->second);
  };
  const auto field = [&](std::string_view key) -> std::optional<std::string_view> {
    if (key != "metadata.name") return std::nullopt;
    return std::string_view(host.name);
  };
  return text::matches(term.labels, label) && text::matches(term.fields, field);
}

}  // namespace

// ---- levels and slices ----

std::string TopologyTree::level_error(std::string_view what, const std::string& level) const {
  std::string out = std::string(what) + " " + quoted_level(level) + " is not a level of topology " +
                    quoted_level(name_) + "; its levels are ";
  for (std::size_t i = 0; i < levels_.size(); ++i) out += (i > 0 ? ", " : "") + levels_[i];
  return out;
}

std::string TopologyTree::read_layers(const model::TopologyAsk& ask,
                                      std::vector<Layer>& out) const {
  if (ask.slices.size() > kMostLayers)
    return "slices have " + std::to_string(ask.slices.size()) + " layers; at most 3 are possible";
  for (const auto& slice : ask.slices) {
    const Layer layer{level_of(slice.level), slice.size};
    if (layer.level < 0) return level_error("the level of slices", slice.level);
    if (layer.size < 1)
      return "the size of slices is " + std::to_string(layer.size) + "; it must be at least 1";
    if (!out.empty()) {
      const Layer& outer = out.back();
      const std::string& above = levels_[static_cast<std::size_t>(outer.level)];
      if (layer.level <= outer.level)
        return "slices at " + quoted_level(slice.level) + " must lie below those at " +
               quoted_level(above);
      if (outer.size % layer.size != 0)
        return "slices of " + std::to_string(layer.size) + " at " + quoted_level(slice.level) +
               " do not divide those of " + std::to_string(outer.size) + " at " +
               quoted_level(above);
    }
    out.push_back(layer);
  }
  return {};
}

std::string TopologyTree::read_ask(const model::TopologyAsk& ask, int count, const Options& options,
                                   TopologyPlan& plan) const {
  std::vector<Layer> layers;
  if (auto error = read_layers(ask, layers); !error.empty()) return error;
  const int lowest = static_cast<int>(levels_.size()) - 1;
  const bool named = ask.mode == AskMode::kRequired || ask.mode == AskMode::kPreferred;
  plan.level = named ? level_of(ask.level) : layers.empty() ? lowest : 0;
  if (plan.level < 0) {
    return level_error(
        ask.mode == AskMode::kRequired ? "the required level" : "the preferred level", ask.level);
  }
  plan.required = ask.mode == AskMode::kRequired;
  plan.climbs = ask.mode == AskMode::kPreferred;
  plan.ascending = !named && options.mixed;
  plan.balanced = plan.climbs && options.balanced;
  plan.pods = count;
  plan.slice_level = lowest;
  plan.layered = layers.size() > 1;
  plan.unit.assign(levels_.size(), 1);
  if (layers.empty()) return {};
  plan.slice_level = layers.front().level;
  plan.slice = layers.front().size;
  if (plan.slice_level < plan.level) {
    return "slices at " + quoted_level(ask.slices.front().level) + " lie above the level " +
           quoted_level(ask.level) + " that is asked for all pods";
  }
  if (count % plan.slice != 0) {
    return std::to_string(count) + " pods are not a multiple of the size of slices, " +
           std::to_string(plan.slice);
  }
  for (std::size_t i = 1; i < layers.size(); ++i)
    plan.unit[static_cast<std::size_t>(layers[i].level)] = layers[i].size;
  return {};
}

// ---- nodes ----

const model::Taint* TopologyTree::Rules::untolerated(const TopologyHost& host) const {
  for (const model::Taint& taint : host.taints) {
    if (taint.effect == model::TaintEffect::kPreferNoSchedule) continue;
    const bool tolerated =
        std::any_of(tolerations.begin(), tolerations.end(),
                    [&](const auto& toleration) { return model::tolerates(toleration, taint); });
    if (!tolerated) return &taint;
  }
  return nullptr;
}

TopologyTree::Verdict TopologyTree::Rules::judge(const TopologyHost& host) const {
  if (untolerated(host) != nullptr) return Verdict::kTaint;
  for (const auto& [key, value] : selector) {
    const auto it = host.labels.find(key);
    if (it == host.labels.end() || it->second != value) return Verdict::kSelector;
  }
  const bool matched =
      terms.empty() || std::any_of(terms.begin(), terms.end(),
                                   [&](const auto& term) { return host_term_matches(host, term); });
  return matched ? Verdict::kAllowed : Verdict::kAffinity;
}

std::shared_ptr<const TopologyTree::Judged> TopologyTree::judged(const TopologyPodSet& set) const {
  if (!hostnames_) return nullptr;
  Rules rules;
  if (set.pod != nullptr) {
    rules.selector = set.pod->node_selector;
    rules.terms = set.pod->required_nodes;
    rules.tolerations = set.pod->tolerations;
  }
  if (!any_taint_ && rules.selector.empty() && rules.terms.empty()) return nullptr;
  rules.tolerations.insert(rules.tolerations.end(), set.tolerations.begin(), set.tolerations.end());
  for (const auto& known : judged_) {
    if (known->rules == rules) return known;
  }
  auto fresh = std::make_shared<Judged>();
  fresh->rules = std::move(rules);
  fresh->verdicts.reserve(hosts_.size());  // a host is a leaf here
  for (const TopologyHost& host : hosts_) fresh->verdicts.push_back(fresh->rules.judge(host));
  if (judged_.size() < kMostJudged) {
    judged_.push_back(fresh);
  } else {
    judged_[next_judged_++ % kMostJudged] = fresh;
  }
  return fresh;
}

}  // namespace berth::schedule
