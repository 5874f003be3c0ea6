#include "decide/schedule/topology_tree.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "decide/schedule/topology_search.h"
#include "decide/schedule/topology_task.h"

namespace berth::schedule {
namespace {

constexpr std::size_t kMostCounts = 4;  // kinds of pods whose counts are kept

}  // namespace

TopologyTree::TopologyTree(std::string name, std::vector<std::string> levels,
                           std::vector<std::string> resources)
    : name_(std::move(name)), levels_(std::move(levels)), resources_(std::move(resources)) {
  BERTH_ASSERT(!levels_.empty(), "a topology has at least one level");
  hostnames_ = levels_.back() == model::kHostnameLabel;
  const auto pods = std::find(resources_.begin(), resources_.end(), "pods");
  if (pods != resources_.end()) pods_resource_ = static_cast<int>(pods - resources_.begin());
}

TopologyTree::~TopologyTree() = default;
TopologyTree::TopologyTree(const TopologyTree& other) = default;
TopologyTree::TopologyTree(TopologyTree&& other) noexcept = default;
TopologyTree& TopologyTree::operator=(const TopologyTree& other) = default;
TopologyTree& TopologyTree::operator=(TopologyTree&& other) noexcept = default;

// ---- building ----

void TopologyTree::add_host(TopologyHost host) {
  BERTH_ASSERT(!sealed_, "hosts come before the seal");
  BERTH_ASSERT(host.values.size() == levels_.size(), "a host has a value per level");
  host.free.resize(resources_.size());
  hosts_.push_back(std::move(host));
}

void TopologyTree::seal() {
  BERTH_ASSERT(!sealed_, "sealed once");
  sealed_ = true;
  std::sort(hosts_.begin(), hosts_.end(), [](const TopologyHost& a, const TopologyHost& b) {
    return std::tie(a.values, a.name) < std::tie(b.values, b.name);
  });
  if (hostnames_) {
    // A hostname names one leaf, so a second host that claims it would be counted there unseen.
    std::vector<std::string> seen;
    seen.reserve(hosts_.size());
    for (const TopologyHost& host : hosts_) seen.push_back(host.values.back());
    std::sort(seen.begin(), seen.end());
    std::vector<char> taken(seen.size(), 0);
    std::erase_if(hosts_, [&](const TopologyHost& host) {
      const auto at = std::lower_bound(seen.begin(), seen.end(), host.values.back());
      return std::exchange(taken[static_cast<std::size_t>(at - seen.begin())], 1) != 0;
    });
    any_taint_ = std::any_of(hosts_.begin(), hosts_.end(),
                             [](const TopologyHost& host) { return !host.taints.empty(); });
  }
  build_form();
  now_ = base_;
  changed_.assign(leaves(), change_);
  for (const TopologyLevel& level : form_) rooms_.emplace_back(level.size());
  if (!hostnames_) return;
  by_hostname_.resize(leaves());
  for (std::size_t l = 0; l < leaves(); ++l) by_hostname_[l] = static_cast<Leaf>(l);
  std::sort(by_hostname_.begin(), by_hostname_.end(),
            [this](Leaf a, Leaf b) { return values_of(a).back() < values_of(b).back(); });
}

// Hosts are sorted, so the domains of every level and the children of each follow one another.
void TopologyTree::build_form() {
  form_.resize(levels_.size());
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const auto& values = hosts_[h].values;
    std::size_t same = 0;  // leading values shared with the host before
    if (h > 0) {
      const auto& previous = hosts_[h - 1].values;
      while (same < values.size() && values[same] == previous[same]) ++same;
    }
    for (std::size_t level = same; level < levels_.size(); ++level) {
      TopologyLevel& here = form_[level];
      here.parent.push_back(level == 0 ? -1
                                       : static_cast<std::int32_t>(form_[level - 1].size()) - 1);
      if (level + 1 < levels_.size())
        here.first.push_back(static_cast<std::int32_t>(form_[level + 1].size()));
    }
    if (same < levels_.size()) {
      host_of_.push_back(static_cast<std::int32_t>(h));
      base_.resize(base_.size() + resources_.size());
    }
    std::int64_t* row = base_.data() + (host_of_.size() - 1) * resources_.size();
    for (std::size_t r = 0; r < resources_.size(); ++r) row[r] += hosts_[h].free[r];
  }
  for (std::size_t level = 0; level + 1 < levels_.size(); ++level)
    form_[level].first.push_back(static_cast<std::int32_t>(form_[level + 1].size()));
}

int TopologyTree::level_of(std::string_view level) const {
  const auto at = std::find(levels_.begin(), levels_.end(), level);
  return at == levels_.end() ? -1 : static_cast<int>(at - levels_.begin());
}

bool TopologyTree::has_level(std::string_view level) const { return level_of(level) >= 0; }

// ---- usage ----

std::span<const std::string> TopologyTree::values_of(Leaf leaf) const {
  const std::span<const std::string> values =
      hosts_[static_cast<std::size_t>(host_of_[static_cast<std::size_t>(leaf)])].values;
  return hostnames_ ? values.last(1) : values;
}

TopologyTree::Leaf TopologyTree::leaf(std::span<const std::string> values) const {
  if (values.empty()) return kNoLeaf;
  if (hostnames_) {
    const auto at = std::lower_bound(
        by_hostname_.begin(), by_hostname_.end(), values.back(),
        [this](Leaf l, const std::string& value) { return values_of(l).back() < value; });
    return at != by_hostname_.end() && values_of(*at).back() == values.back() ? *at : kNoLeaf;
  }
  const auto less = [this](std::int32_t host, std::span<const std::string> wanted) {
    const auto& mine = hosts_[static_cast<std::size_t>(host)].values;
    return std::lexicographical_compare(mine.begin(), mine.end(), wanted.begin(), wanted.end());
  };
  const auto at = std::lower_bound(host_of_.begin(), host_of_.end(), values, less);
  if (at == host_of_.end()) return kNoLeaf;
  const auto& found = hosts_[static_cast<std::size_t>(*at)].values;
  const bool same = std::equal(found.begin(), found.end(), values.begin(), values.end());
  return same ? static_cast<Leaf>(at - host_of_.begin()) : kNoLeaf;
}

void TopologyTree::shift(Leaf leaf, std::int64_t count, std::span<const std::int64_t> per_pod) {
  if (leaf == kNoLeaf) return;
  changed_[static_cast<std::size_t>(leaf)] = ++change_;
  std::int64_t* row = now_.data() + static_cast<std::size_t>(leaf) * resources_.size();
  const std::size_t known = std::min(per_pod.size(), resources_.size());
  for (std::size_t r = 0; r < known; ++r) {
    if (static_cast<int>(r) != pods_resource_) row[r] += count * per_pod[r];
  }
  if (pods_resource_ >= 0) row[pods_resource_] += count;
}

void TopologyTree::add(Leaf leaf, int count, std::span<const std::int64_t> per_pod) {
  shift(leaf, -std::int64_t{count}, per_pod);
}
void TopologyTree::take(Leaf leaf, int count, std::span<const std::int64_t> per_pod) {
  shift(leaf, count, per_pod);
}
void TopologyTree::add(std::span<const std::string> values, int count,
                       std::span<const std::int64_t> per_pod) {
  add(leaf(values), count, per_pod);
}
void TopologyTree::take(std::span<const std::string> values, int count,
                        std::span<const std::int64_t> per_pod) {
  take(leaf(values), count, per_pod);
}

// ---- placing ----

TopologyTree::Need TopologyTree::need_of(const TopologyPodSet& set) const {
  Need need;
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    const std::int64_t stated = r < set.per_pod.size() ? set.per_pod[r] : 0;
    const std::int64_t amount = static_cast<int>(r) == pods_resource_ ? 1 : stated;
    if (amount > 0) need.items.emplace_back(r, amount);
  }
  return need;
}

TopologyTree::Task TopologyTree::task_for(const TopologyPodSet& workers,
                                          const TopologyPodSet* leader,
                                          const Options& options) const {
  Task task;
  task.workers = need_of(workers);
  task.worker_rules = judged(workers);
  task.has_leader = leader != nullptr;
  if (leader != nullptr) {
    task.leader = need_of(*leader);
    task.leader_rules = judged(*leader);
  }
  task.empty = options.empty;
  task.end = static_cast<Leaf>(leaves());
  return task;
}

const std::int64_t* TopologyTree::free_row(const Task& task, std::size_t leaf) const {
  return (task.empty ? base_ : now_).data() + leaf * resources_.size();
}

TopologyRoom TopologyTree::leaf_room(const Task& task, std::size_t leaf,
                                     std::vector<std::int64_t>& scratch) const {
  TopologyRoom room;
  const std::int64_t* free = free_row(task, leaf);
  const bool works = Task::verdict(task.worker_rules, leaf) == Verdict::kAllowed;
  if (works) room.pods = task.workers.copies_in(free);
  room.pods_led = room.pods;
  if (!task.has_leader || Task::verdict(task.leader_rules, leaf) != Verdict::kAllowed) return room;
  if (task.leader.copies_in(free) == 0) return room;
  room.leads = true;
  scratch.assign(free, free + resources_.size());
  for (const auto& [resource, amount] : task.leader.items) scratch[resource] -= amount;
  room.pods_led = works ? task.workers.copies_in(scratch.data()) : 0;
  return room;
}

TopologyTree::Counts& TopologyTree::counts_for(const Task& task) const {
  for (Counts& counts : counts_) {
    if (counts.serves(task)) return counts;
  }
  if (counts_.size() < kMostCounts) counts_.emplace_back();
  Counts& counts = counts_[next_counts_++ % kMostCounts];
  counts = {task.workers, task.leader, task.worker_rules,      task.leader_rules, task.has_leader,
            task.empty,   0,           std::move(counts.rooms)};
  counts.rooms.resize(leaves());
  return counts;
}

void TopologyTree::count_leaves(const Task& task) const {
  std::vector<std::int64_t> scratch;
  std::vector<TopologyRoom>& rooms = rooms_.back();
  Counts& counts = counts_for(task);
  const std::uint64_t known = counts.change;
  counts.change = change_;
  for (std::size_t l = 0; l < rooms.size(); ++l) {
    if (changed_[l] > known) counts.rooms[l] = leaf_room(task, l, scratch);
    rooms[l] = counts.rooms[l];
  }
  if (task.begin == 0 && task.end == static_cast<Leaf>(leaves()) && task.without == kNoLeaf) return;
  for (std::size_t l = 0; l < rooms.size(); ++l) {
    if (!task.inside(l)) rooms[l] = {};
  }
}

TopologyFind TopologyTree::find(const Task& task, const TopologyPlan& plan) const {
  count_leaves(task);
  TopologyFind found = TopologySearch(form_, plan, rooms_).run();
  std::sort(found.leaves.begin(), found.leaves.end(),
            [](const TopologyChoice& a, const TopologyChoice& b) { return a.domain < b.domain; });
  return found;
}

model::TopologyAssignment TopologyTree::assignment(std::span<const TopologyChoice> leaves,
                                                   bool leader) const {
  model::TopologyAssignment out;
  out.levels = hostnames_ ? std::vector{levels_.back()} : levels_;
  for (const TopologyChoice& choice : leaves) {
    const std::int64_t count = leader ? (choice.leader ? 1 : 0) : choice.pods;
    if (count == 0) continue;
    const auto values = values_of(choice.domain);
    out.domains.push_back({{values.begin(), values.end()}, static_cast<int>(count)});
  }
  return out;
}

TopologyAnswer TopologyTree::place(std::span<const TopologyPodSet> group, Options options) const {
  BERTH_ASSERT(sealed_, "placed after the seal");
  TopologyAnswer out;
  out.assignments.assign(group.size(), assignment({}, false));
  std::vector<std::size_t> wanted;  // sets with pods
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i].count > 0) wanted.push_back(i);
  }
  out.ok = wanted.empty();
  if (out.ok) return out;
  if (wanted.size() > 2) {
    return {.invalid = true, .message = "a group of pod sets placed together has at most two"};
  }
  // Equal counts: the first leads.
  const bool led = wanted.size() == 2;
  if (led && group[wanted[0]].count > group[wanted[1]].count) std::swap(wanted[0], wanted[1]);
  const TopologyPodSet& workers = group[wanted.back()];
  const TopologyPodSet* leader = led ? &group[wanted[0]] : nullptr;
  if (led && leader->count != 1) {
    return {.invalid = true,
            .message =
                "of two pod sets placed together one must have a single pod, the leader; "
                "the smaller has " +
                std::to_string(leader->count)};
  }
  TopologyPlan plan;
  if (auto error = read_ask(workers.ask, workers.count, options, plan); !error.empty())
    return {.invalid = true, .message = std::move(error)};
  plan.leader = led;
  const Task task = task_for(workers, leader, options);
  const TopologyFind found = find(task, plan);
  if (!found.ok) return refuse(task, plan, found, options);
  out.ok = true;
  out.assignments[wanted.back()] = assignment(found.leaves, false);
  if (led) out.assignments[wanted[0]] = assignment(found.leaves, true);
  return out;
}

}  // namespace berth::schedule
