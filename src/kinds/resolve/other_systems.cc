#include "kinds/resolve/other_systems.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace berth::kinds {

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

ForestQueue from_volcano(const VolcanoQueue& queue) {
  ForestQueue out;
  out.name = queue.meta.name;
  out.parent = queue.parent;
  out.weight = queue.weight;
  out.by_weight = queue.deserved.empty() && queue.guarantee.empty();
  out.fifo = queue.fifo;
  out.closed = queue.closed;
  out.nominal = queue.guarantee;
  for (const auto& [resource, amount] : queue.deserved) out.nominal[resource] = amount;
  out.cap = queue.capability;
  out.guarantee = queue.guarantee;
  return out;
}

ForestQueue from_kai(const KaiQueue& queue) {
  ForestQueue out;
  out.name = queue.meta.name;
  out.parent = queue.parent;
  out.closed = queue.closed;
  for (const auto& [name, share] : queue.shares) {
    const std::string resource = name == "gpu" ? "nvidia.com/gpu" : name;
    const double unit = name == "memory" ? 1e6 : 1;
    const auto amount = [unit](double value) {
      return static_cast<std::int64_t>(
          std::min(std::ceil(value * unit), static_cast<double>(kMaxAmount)));
    };
    out.nominal[resource] = share.quota ? amount(*share.quota) : kNoLimit;
    if (!share.limit) continue;
    out.cap[resource] = amount(*share.limit);
    out.nominal[resource] = std::min(out.nominal[resource], out.cap[resource]);
  }
  const auto gpu = queue.shares.find("gpu");
  if (gpu != queue.shares.end()) out.weight = gpu->second.weight;
  return out;
}

template <class T>
bool has_name(const std::vector<T>& list, const std::string& name) {
  return std::any_of(list.begin(), list.end(), [&](const T& t) { return t.name == name; });
}

}  // namespace

OtherSystems::OtherSystems(Resolution& all, const KnownQueues& queues)
    : Part(all), queues_(queues) {
  if (any()) name_all();
}

// Of one name in two systems Kueue's stays, then Volcano's; the other gets its system before it.
void OtherSystems::name_all() {
  while (has_name(out_.queues.flavors, any_flavor_)) any_flavor_ += "-any";
  for (const auto& found : in_.volcano_queues) {
    volcano_.queues.push_back(from_volcano(found.object));
  }
  for (const auto& found : in_.kai_queues) kai_.queues.push_back(from_kai(found.object));
  for (const auto& local : out_.queues.local_queues) {
    local_targets_.emplace(qualified(local.ns, local.name), local.queue);
  }
  std::set<std::string> taken;
  for (const auto& queue : out_.queues.queues) taken.insert(queue.name);
  for (OtherSystem* system : {&volcano_, &kai_}) {
    for (const ForestQueue& queue : system->queues) {
      std::string name = queue.name;
      while (!taken.insert(name).second) name = system->root + '-' + name;
      system->cluster_queue[queue.name] = name;
    }
    straighten(*system);
    find_doors(*system);
    if (system->queues.empty()) continue;
    system->resources = {"cpu", "memory", "nvidia.com/gpu"};
    for (ForestQueue& queue : system->queues) {
      for (const auto* amounts : {&queue.nominal, &queue.cap, &queue.guarantee}) {
        for (const auto& [resource, amount] : *amounts) system->resources.insert(resource);
      }
      queue.name = system->cluster_queue.at(queue.name);
      if (!queue.parent.empty()) queue.parent = system->cluster_queue.at(queue.parent);
    }
  }
}

void OtherSystems::straighten(OtherSystem& system) {
  std::map<std::string, std::string> parents;
  for (const ForestQueue& queue : system.queues) parents[queue.name] = queue.parent;
  const auto warn = [&](const std::string& name, const std::string& message) {
    for (const auto& found : in_.volcano_queues) {
      if (&system == &volcano_ && found.object.meta.name == name) {
        in_.warn(found, "spec.parent", message);
      }
    }
    for (const auto& found : in_.kai_queues) {
      if (&system == &kai_ && found.object.meta.name == name) {
        in_.warn(found, "spec.parentQueue", message);
      }
    }
  };
  for (ForestQueue& queue : system.queues) {
    if (queue.parent.empty()) continue;
    const std::string found = "found " + quoted(queue.parent) + ", want ";
    if (!parents.contains(queue.parent)) {
      warn(queue.name, found + "a Queue of the input; it is taken to be at the top");
      queue.parent = parents[queue.name] = "";
      continue;
    }
    int depth = 1;
    for (std::string at = queue.parent; !at.empty() && depth <= kMaxQueueDepth; ++depth) {
      const auto next = parents.find(at);
      at = next == parents.end() ? "" : next->second;
    }
    if (depth <= kMaxQueueDepth) continue;
    warn(queue.name, found + "a queue that is not below this one, at most " +
                         std::to_string(kMaxQueueDepth) +
                         " levels deep; it is taken to be at the top");
    queue.parent = parents[queue.name] = "";
  }
}

// Parents are those of straighten(), so the way up ends.
void OtherSystems::find_doors(OtherSystem& system) {
  std::map<std::string, QueueDoor> own;
  const auto read = [&](const auto& list) {
    for (const auto& found : list) {
      const auto bad = read_queue_door(found.object.meta, own[found.object.meta.name]);
      if (bad) in_.warn(found, bad->path, bad->message);
    }
  };
  if (&system == &volcano_) {
    read(in_.volcano_queues);
  } else {
    read(in_.kai_queues);
  }
  std::map<std::string, std::string> parents;
  for (const ForestQueue& queue : system.queues) parents[queue.name] = queue.parent;
  for (const ForestQueue& queue : system.queues) {
    std::string at = queue.name;
    while (!own[at].given && !parents[at].empty()) at = parents[at];
    system.doors[queue.name] = own[at];
  }
}

std::string OtherSystems::shut_to(const std::string& ns, const std::string& queue,
                                  const OtherSystem& system) const {
  const QueueDoor& door = system.doors.at(queue);
  const std::string note(kNamespacesAnnotation);
  if (door.bad)
    return "queue " + quoted(queue) + " takes nobody: its annotation " + note + " cannot be read";
  if (door.takes(ns)) return "";
  const std::string no = "queue " + quoted(queue) + " does not take namespace " + quoted(ns);
  if (door.given) return no + ": its annotation " + note + " does not name it";
  if (!queues_.requires_queue(ns)) return "";
  return no + ", which requires a queue of its own: the queue has no annotation " + note +
         " that names it";
}

OtherSystem* OtherSystems::system_of(const std::string& queue, bool kai) {
  if (queue.empty()) return nullptr;
  OtherSystem* first = kai ? &kai_ : &volcano_;
  OtherSystem* second = kai ? &volcano_ : &kai_;
  for (OtherSystem* system : {first, second}) {
    if (system->cluster_queue.contains(queue)) return system;
  }
  return nullptr;
}

std::string OtherSystems::local_queue(const std::string& ns, const std::string& queue,
                                      const OtherSystem& system) {
  const std::string& target = system.cluster_queue.at(queue);
  std::string name = queue;
  while (true) {
    const auto [at, added] = local_targets_.emplace(qualified(ns, name), target);
    if (!added && at->second != target) {
      name = system.root + '-' + name;
      continue;
    }
    if (added) out_.queues.local_queues.push_back({.ns = ns, .name = name, .queue = target});
    return name;
  }
}

void OtherSystems::plant_queues() {
  if (!any()) return;
  model::QueueInputs& queues = out_.queues;
  queues.flavors.push_back({.name = any_flavor_});
  const model::Amounts totals = cluster_totals(out_.nodes);
  for (OtherSystem* system : {&volcano_, &kai_}) {
    if (system->queues.empty()) continue;
    plant(system->root, std::move(system->queues), totals, system->resources, any_flavor_, queues);
  }
  // Both systems share by weight; with Kueue's own queues its Configuration says.
  if (!queues_.decide() && in_.queue_configs.empty()) queues.config.fair_sharing = true;
}

}  // namespace berth::kinds
