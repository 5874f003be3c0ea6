// Fixes of what a queue is made of: flavors that do not exist or that no node or pod goes with,
// resources that no quota covers, a ClusterQueue that is not there.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/amounts.h"
#include "people/view/words.h"
#include "people/why/fixes.h"
#include "text/nearest.h"
#include "text/quantity.h"

namespace berth::people {

namespace {

using model::FlavorSpec;
using model::QueueSpec;
using model::Reason;

constexpr std::size_t kMostFlavors = 8;

// The queue it goes through, as far as it exists.
struct Route {
  const model::LocalQueueSpec* local = nullptr;
  const QueueSpec* queue = nullptr;
  std::vector<const FlavorSpec*> flavors;
  std::vector<std::string> missing;  // flavors that the queue names and nobody defined
};

Route route_of(const Situation& s) {
  Route out;
  const model::QueueInputs& queues = s.inputs().queues;
  for (const model::LocalQueueSpec& local : queues.local_queues) {
    if (local.ns == s.unit.queued->ns && local.name == s.unit.queued->queue) out.local = &local;
  }
  for (const QueueSpec& queue : queues.queues) {
    if (out.local != nullptr && queue.name == out.local->queue) out.queue = &queue;
  }
  if (out.queue == nullptr) return out;
  for (const model::ResourceGroup& group : out.queue->groups) {
    for (const model::FlavorQuota& quota : group.flavors) {
      const auto it = std::find_if(queues.flavors.begin(), queues.flavors.end(),
                                   [&](const FlavorSpec& f) { return f.name == quota.flavor; });
      if (it == queues.flavors.end()) {
        out.missing.push_back(quota.flavor);
      } else if (out.flavors.size() < kMostFlavors) {
        out.flavors.push_back(&*it);
      }
    }
  }
  return out;
}

std::string api_version_of(const Situation& s, const char* kind) {
  const auto objects = s.objects()->of_kind(kind);
  return objects.empty() ? "kueue.x-k8s.io/v1beta2" : objects.front().api_version;
}

Tree made_flavor(const Situation& s, const std::string& name) {
  Tree flavor;
  flavor["apiVersion"] = Tree::of_text(api_version_of(s, "ClusterQueue"));
  flavor["kind"] = Tree::of_text("ResourceFlavor");
  flavor["metadata"]["name"] = Tree::of_text(name);
  return flavor;
}

void rename_flavor(Tree& queue, const std::string& from, const std::string& to) {
  for (Tree& group : queue["spec"]["resourceGroups"].items()) {
    for (Tree& flavor : group["flavors"].items()) {
      if (flavor["name"].string() == from) flavor["name"] = Tree::of_text(to);
    }
  }
}

void missing_flavors(const Situation& s, const Route& route, Proposals& out) {
  if (route.missing.empty() || s.objects() == nullptr || s.reason != Reason::kMisconfigured) return;
  const std::string list = fmt::format("{}", fmt::join(route.missing, ", "));
  std::vector<std::string> names;
  for (const FlavorSpec& flavor : s.inputs().queues.flavors) {
    const bool used = std::any_of(route.flavors.begin(), route.flavors.end(),
                                  [&](const FlavorSpec* f) { return f->name == flavor.name; });
    if (!used) names.push_back(flavor.name);
  }
  const std::string& gone = route.missing.front();
  const std::string meant = text::nearest(gone, names);
  std::stable_partition(names.begin(), names.end(), [&](const auto& n) { return n == meant; });
  for (std::size_t i = 0; i < names.size() && i < 2 && route.missing.size() == 1; ++i) {
    out.push_back({.title = fmt::format("name the flavor {} instead of {} in {}", names[i], gone,
                                        route.queue->name),
                   .kind = "other-flavor",
                   .disturbance = 3,
                   .objects_only = true,
                   .apply = [&s, queue = route.queue->name, gone, to = names[i]](Draft& draft) {
                     Tree* object = draft.edit(s.objects(), "ClusterQueue", "", queue);
                     if (object == nullptr) return false;
                     rename_flavor(*object, gone, to);
                     return true;
                   }});
  }
  out.push_back({.title = "create the ResourceFlavor " + list,
                 .kind = "create-flavor",
                 .disturbance = 3,
                 .objects_only = true,
                 .apply = [&s, missing = route.missing](Draft& draft) {
                   for (const std::string& name : missing) draft.create(made_flavor(s, name));
                   return true;
                 }});
}

// Values of a label on nodes.
std::vector<std::string> label_values(const Situation& s, const std::string& key) {
  std::set<std::string> values;
  for (const model::NodeSpec& node : s.inputs().nodes) {
    const auto it = node.labels.find(key);
    if (it != node.labels.end() && values.size() < 256) values.insert(it->second);
  }
  return {values.begin(), values.end()};
}

// value empty: the label goes.
void set_flavor_label(const Situation& s, const std::string& flavor, const std::string& key,
                      const std::string& value, std::string title, Proposals& out) {
  out.push_back({.title = std::move(title),
                 .kind = "flavor-labels",
                 .disturbance = 3,
                 .apply = [&s, flavor, key, value](Draft& draft) {
                   for (FlavorSpec& spec : edit_rules(s, draft).flavors) {
                     if (spec.name != flavor) continue;
                     if (value.empty()) {
                       spec.node_labels.erase(key);
                     } else {
                       spec.node_labels[key] = value;
                     }
                   }
                   Tree* object = draft.edit(s.objects(), "ResourceFlavor", "", flavor);
                   if (object == nullptr) return s.objects() == nullptr;
                   Tree& labels = (*object)["spec"]["nodeLabels"];
                   if (!value.empty()) {
                     labels[key] = Tree::of_text(value);
                     return true;
                   }
                   labels.erase(key);
                   if (labels.members().empty()) (*object)["spec"].erase("nodeLabels");
                   return true;
                 }});
}

// Labels of a flavor that no node has.
void flavor_labels(const Situation& s, const Route& route, Proposals& out) {
  for (const FlavorSpec* flavor : route.flavors) {
    for (const auto& [key, value] : flavor->node_labels) {
      const std::vector<std::string> values = label_values(s, key);
      if (std::find(values.begin(), values.end(), value) != values.end()) continue;
      std::vector<std::string> tried = {text::nearest(value, values)};
      for (const std::string& other : values) {
        if (tried.size() < 3 && other != tried.front()) tried.push_back(other);
      }
      for (const std::string& other : tried) {
        if (other.empty()) continue;
        set_flavor_label(s, flavor->name, key, other,
                         fmt::format("label {}: {} instead of {} in the flavor {}", key, other,
                                     value, flavor->name),
                         out);
      }
      set_flavor_label(
          s, flavor->name, key, "",
          fmt::format("take the label {}={} off the flavor {}", key, value, flavor->name), out);
    }
  }
}

const char* effect_of(model::TaintEffect effect) {
  return effect == model::TaintEffect::kNoExecute ? "NoExecute" : "NoSchedule";
}

bool goes_with(const model::PodSpec& pod, const FlavorSpec& flavor, const model::Taint& taint) {
  const auto by = [&taint](const model::Toleration& t) { return tolerates(t, taint); };
  return taint.effect == model::TaintEffect::kPreferNoSchedule ||
         std::any_of(pod.tolerations.begin(), pod.tolerations.end(), by) ||
         std::any_of(flavor.tolerations.begin(), flavor.tolerations.end(), by);
}

// Taints that a flavor's nodes have and the pods do not tolerate.
void flavor_taints(const Situation& s, const Route& route, Proposals& out) {
  if (s.reason != Reason::kNoMatchingFlavor) return;
  for (const FlavorSpec* flavor : route.flavors) {
    std::vector<model::Taint> taints;
    std::string list;
    for (const model::Taint& taint : flavor->node_taints) {
      if (goes_with(s.sample, *flavor, taint)) continue;
      taints.push_back(taint);
      list += (list.empty() ? "" : " and ") + taint.key;
      if (!taint.value.empty()) list += '=' + taint.value;
    }
    if (taints.empty()) continue;
    out.push_back(
        {.title = fmt::format("tolerate the taint {} of the flavor {}", list, flavor->name),
         .kind = "tolerate",
         .apply = [&s, taints](Draft& draft) {
           return edit_pods(
               s, draft,
               [&](model::PodSpec& pod) {
                 for (const model::Taint& taint : taints) {
                   pod.tolerations.push_back({.key = taint.key,
                                              .op = model::Toleration::Op::kExists,
                                              .value = {},
                                              .effect = taint.effect});
                 }
               },
               [&](Tree&, Tree& spec) {
                 for (const model::Taint& taint : taints) {
                   Tree toleration;
                   toleration["key"] = Tree::of_text(taint.key);
                   toleration["operator"] = Tree::of_text("Exists");
                   toleration["effect"] = Tree::of_text(effect_of(taint.effect));
                   spec["tolerations"].items().push_back(std::move(toleration));
                 }
               });
         }});
    out.push_back({.title = fmt::format("take the taint {} off the flavor {}", list, flavor->name),
                   .kind = "flavor-taints",
                   .disturbance = 3,
                   .apply = [&s, name = flavor->name](Draft& draft) {
                     for (FlavorSpec& spec : edit_rules(s, draft).flavors) {
                       if (spec.name == name) spec.node_taints.clear();
                     }
                     Tree* object = draft.edit(s.objects(), "ResourceFlavor", "", name);
                     if (object == nullptr) return s.objects() == nullptr;
                     return (*object)["spec"].erase("nodeTaints");
                   }});
  }
}

std::string amount_of(const std::string& resource, std::int64_t amount) {
  if (resource == "cpu") return text::Quantity::from_milli(amount).to_string();
  const bool bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  return text::Quantity::from_units(amount,
                                    bytes ? text::Format::kBinarySI : text::Format::kDecimalSI)
      .to_string();
}

// What all its pods ask of quota.
model::Amounts wanted_of(const model::WorkloadSpec& spec) {
  model::Amounts out;
  for (const model::PodSetSpec& set : spec.pod_sets) {
    for (const auto& [resource, amount] : set.requests) out[resource] += amount * set.count;
  }
  return out;
}

model::Amounts uncovered(const Situation& s, const QueueSpec& queue) {
  model::Amounts out = wanted_of(*s.unit.queued);
  for (const model::ResourceGroup& group : queue.groups) {
    for (const std::string& resource : group.covered) out.erase(resource);
  }
  std::erase_if(out, [](const auto& each) { return each.second == 0; });
  return out;
}

std::string amounts_text(const model::Amounts& amounts) {
  std::string out;
  for (const auto& [resource, amount] : amounts) {
    out += (out.empty() ? "" : ", ") + amount_of(resource, amount) + ' ' + resource;
  }
  return out;
}

void cover(Tree& group, const model::Amounts& amounts) {
  for (const auto& [resource, amount] : amounts) {
    group["coveredResources"].items().push_back(Tree::of_text(resource));
    for (Tree& flavor : group["flavors"].items()) {
      Tree quota;
      quota["name"] = Tree::of_text(resource);
      quota["nominalQuota"] = Tree::of_text(amount_of(resource, amount));
      flavor["resources"].items().push_back(std::move(quota));
    }
  }
}

// Resources that no group of the queue counts: the first group counts them too.
void cover_resources(const Situation& s, const Route& route, Proposals& out) {
  if (s.reason != Reason::kNoMatchingFlavor || route.queue->groups.empty()) return;
  const model::Amounts lacking = uncovered(s, *route.queue);
  if (lacking.empty() || lacking.size() > 4) return;
  out.push_back(
      {.title = fmt::format("quota of {} for {}", amounts_text(lacking), route.queue->name),
       .kind = "cover-resource",
       .disturbance = 3,
       .apply = [&s, lacking, name = route.queue->name](Draft& draft) {
         for (QueueSpec& queue : edit_rules(s, draft).queues) {
           if (queue.name != name) continue;
           model::ResourceGroup& group = queue.groups.front();
           for (const auto& [resource, amount] : lacking) {
             group.covered.push_back(resource);
             for (model::FlavorQuota& flavor : group.flavors) {
               flavor.resources.push_back({.resource = resource, .nominal = amount});
             }
           }
         }
         Tree* object = draft.edit(s.objects(), "ClusterQueue", "", name);
         if (object == nullptr) return s.objects() == nullptr;
         std::vector<Tree>& groups = (*object)["spec"]["resourceGroups"].items();
         if (groups.empty()) return false;
         cover(groups.front(), lacking);
         return true;
       }});
}

// The LocalQueue leads to a ClusterQueue that does not exist.
void missing_cluster_queue(const Situation& s, const Route& route, Proposals& out) {
  if (route.local == nullptr || route.queue != nullptr || s.objects() == nullptr) return;
  const model::LocalQueueSpec local = *route.local;
  const model::QueueInputs& queues = s.inputs().queues;
  std::vector<std::string> names;
  for (const QueueSpec& queue : queues.queues) names.push_back(queue.name);
  const std::string meant = text::nearest(local.queue, names);
  if (!meant.empty()) {
    // The field cannot be changed, so the queue is made anew.
    out.push_back({.title = fmt::format("make the LocalQueue {} anew, for {} instead of {}",
                                        local.name, meant, local.queue),
                   .kind = "create-queue",
                   .disturbance = 3,
                   .objects_only = true,
                   .apply = [&s, local, meant](Draft& draft) {
                     draft.remove(s.objects(), "LocalQueue", local.ns, local.name);
                     Tree queue;
                     queue["apiVersion"] = Tree::of_text(api_version_of(s, "LocalQueue"));
                     queue["kind"] = Tree::of_text("LocalQueue");
                     queue["metadata"]["name"] = Tree::of_text(local.name);
                     queue["metadata"]["namespace"] = Tree::of_text(local.ns);
                     queue["spec"]["clusterQueue"] = Tree::of_text(meant);
                     draft.create(std::move(queue));
                     return true;
                   }});
  }
  const model::Amounts wanted = wanted_of(*s.unit.queued);
  const std::string flavor = queues.flavors.empty() ? "default" : queues.flavors.front().name;
  out.push_back({.title = fmt::format("create the ClusterQueue {} with {}", local.queue,
                                      amounts_text(wanted)),
                 .kind = "create-queue",
                 .disturbance = 3,
                 .objects_only = true,
                 .apply = [&s, wanted, flavor, name = local.queue](Draft& draft) {
                   if (s.inputs().queues.flavors.empty()) draft.create(made_flavor(s, flavor));
                   Tree queue;
                   queue["apiVersion"] = Tree::of_text(api_version_of(s, "LocalQueue"));
                   queue["kind"] = Tree::of_text("ClusterQueue");
                   queue["metadata"]["name"] = Tree::of_text(name);
                   Tree everything;
                   everything["all"];
                   everything.erase("all");
                   queue["spec"]["namespaceSelector"] = everything;
                   Tree group;
                   group["coveredResources"].items();
                   Tree first;
                   first["name"] = Tree::of_text(flavor);
                   group["flavors"].items().push_back(std::move(first));
                   cover(group, wanted);
                   queue["spec"]["resourceGroups"].items().push_back(std::move(group));
                   draft.create(std::move(queue));
                   return true;
                 }});
}

}  // namespace

void propose_flavors(const Situation& s, Proposals& out) {
  if (s.unit.queued == nullptr) return;
  const Route route = route_of(s);
  missing_cluster_queue(s, route, out);
  if (route.queue == nullptr) return;
  missing_flavors(s, route, out);
  flavor_labels(s, route, out);
  flavor_taints(s, route, out);
  cover_resources(s, route, out);
  namespace_labels(s, *route.queue, out);
}

}  // namespace berth::people
