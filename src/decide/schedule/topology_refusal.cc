// Why a TopologyTree did not place: the sentences of Kueue, which its users and tools know.
#include <algorithm>
#include <map>

#include "decide/schedule/topology_search.h"
#include "decide/schedule/topology_task.h"

namespace berth::schedule {
namespace {

std::string_view effect_name(model::TaintEffect effect) {
  switch (effect) {
    case model::TaintEffect::kNoSchedule:
      return "NoSchedule";
    case model::TaintEffect::kPreferNoSchedule:
      return "PreferNoSchedule";
    case model::TaintEffect::kNoExecute:
      return "NoExecute";
  }
  return "";
}

std::string taint_text(const model::Taint& taint) {
  std::string out = taint.key;
  if (!taint.value.empty()) out += "=" + taint.value;
  return out.append(":").append(effect_name(taint.effect));
}

}  // namespace

// Of the domain with the most slices at the level where the search ended: how many slices of each
// layer fit there.
std::string TopologyTree::layers_text(const TopologyPlan& plan, int level) const {
  if (!plan.layered || leaves() == 0) return {};
  const auto& rooms = rooms_[static_cast<std::size_t>(level)];
  const auto best = std::max_element(
      rooms.begin(), rooms.end(),
      [](const TopologyRoom& a, const TopologyRoom& b) { return a.slices < b.slices; });
  auto begin = static_cast<std::int32_t>(best - rooms.begin());
  auto end = begin + 1;
  std::string out;
  for (auto at = static_cast<std::size_t>(level); at < levels_.size(); ++at) {
    const auto size = plan.unit_at(static_cast<int>(at));
    if (static_cast<int>(at) == plan.slice_level ||
        (static_cast<int>(at) > plan.slice_level && size > 1)) {
      std::int64_t fits = 0;
      for (auto d = begin; d < end; ++d)
        fits += rooms_[at][static_cast<std::size_t>(d)].pods / size;
      out += "; " + std::to_string(fits) + "/" + std::to_string(plan.pods / size) +
             " slice(s) fit on level " + levels_[at];
    }
    if (at + 1 == levels_.size()) break;
    begin = form_[at].first[static_cast<std::size_t>(begin)];
    end = form_[at].first[static_cast<std::size_t>(end)];
  }
  return out;
}

// Of a leaf without room for one pod: the first, by name, of the resources that allow none.
std::size_t TopologyTree::shortest_resource(const Task& task, std::size_t leaf) const {
  const std::int64_t* free = free_row(task, leaf);
  std::size_t first = resources_.size();
  for (const auto& [resource, amount] : task.workers.items) {
    if (free[resource] >= amount) continue;
    if (first == resources_.size() || resources_[resource] < resources_[first]) first = resource;
  }
  return first;
}

std::string TopologyTree::excluded_text(const Task& task) const {
  int total = 0, selector = 0, affinity = 0, elsewhere = 0;
  std::map<model::Taint, int> taints;
  std::vector<int> short_of(resources_.size() + 1, 0);  // the last: short of nothing
  for (std::size_t l = 0; l < leaves(); ++l) {
    if (static_cast<Leaf>(l) == task.without) continue;
    ++total;
    const Verdict verdict = Task::verdict(task.worker_rules, l);
    if (verdict == Verdict::kTaint) {
      ++taints[*task.worker_rules->rules.untolerated(hosts_[l])];
    } else if (verdict == Verdict::kSelector) {
      ++selector;
    } else if (verdict == Verdict::kAffinity) {
      ++affinity;
    } else if (!task.inside(l)) {
      ++elsewhere;
    } else {
      ++short_of[shortest_resource(task, l)];
    }
  }
  std::string reasons;
  const auto add = [&](const std::string& what, int count) {
    if (count > 0) reasons += (reasons.empty() ? "" : ", ") + what + ": " + std::to_string(count);
  };
  add("nodeSelector", selector);
  add("affinity", affinity);
  for (const auto& [taint, count] : taints) add("taint \"" + taint_text(taint) + "\"", count);
  add("topologyDomain", elsewhere);
  std::map<std::string, int> by_name;
  for (std::size_t r = 0; r < resources_.size(); ++r) by_name[resources_[r]] = short_of[r];
  for (const auto& [resource, count] : by_name) add("resource \"" + resource + "\"", count);
  if (reasons.empty()) return {};
  return ". Total nodes: " + std::to_string(total) + "; excluded: " + reasons;
}

TopologyAnswer TopologyTree::refuse(const Task& task, const TopologyPlan& plan,
                                    const TopologyFind& find, const Options& options) const {
  TopologyAnswer out;
  out.fits = static_cast<int>(std::min<std::int64_t>(find.fits, INT32_MAX));
  if (!options.explain) return out;
  out.message = "topology \"" + name_ + "\" ";
  out.message += find.fits == 0 ? "doesn't allow to fit any of "
                                : "allows to fit only " + std::to_string(find.fits) + " out of ";
  out.message += std::to_string(plan.slices()) + (plan.slice > 1 ? " slice(s)" : " pod(s)");
  out.message += layers_text(plan, find.level) + excluded_text(task);
  return out;
}

}  // namespace berth::schedule
