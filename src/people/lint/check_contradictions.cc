#include <algorithm>
#include <map>

#include "people/lint/checks.h"

namespace berth::lint {

namespace {

constexpr std::string_view kVolcano = "scheduling.volcano.sh";
constexpr const char* kGroupName = "scheduling.k8s.io/group-name";
constexpr const char* kGroupNameToo = "scheduling.volcano.sh/group-name";

// ---- queues and groups -----------------------------------------------------------------------

// Names of queues that something asks for, whichever system it means.
std::set<std::string> asked_queues(const std::deque<Object>& objects) {
  std::set<std::string> out;
  for (const Object& object : objects) {
    if (object.group == kVolcano || object.group == "batch.volcano.sh") {
      out.insert(object.root()["spec"]["queue"].word());
    }
    walk(object.root(), [&](const Place& place) {
      if (!place.path().empty() && place.key() == "kueue.x-k8s.io/queue-name") {
        out.insert(place.word());
      }
      return true;
    });
  }
  return out;
}

// Two systems, two queues, one name, and somebody who asks for it: for which?
void check_shared_names(const std::deque<Object>& objects, std::vector<Finding>& out) {
  std::map<std::string, const Object*> kueue;
  for (const Object& object : objects) {
    if (object.is("kueue.x-k8s.io", "ClusterQueue")) kueue.emplace(object.name, &object);
  }
  const std::set<std::string> asked = asked_queues(objects);
  for (const Object& object : objects) {
    if (!object.is(kVolcano, "Queue")) continue;
    const auto same = kueue.find(object.name);
    if (!asked.contains(object.name) || same == kueue.end()) continue;
    Reporter(object, out)
        .add("queue-name-shared", object.root()["metadata"]["name"],
             object.name + " is a Queue of Volcano here and a ClusterQueue of Kueue in " +
                 same->second->file + ": they know nothing of one another",
             "keep one of the two, or give them different names");
  }
}

Place joined_group(const Object& object, const Place& pod) {
  // A pod's annotations stand beside its spec.
  text::YamlPath at = pod.path();
  Place root = object.root();
  Place holder = root;
  if (!at.empty()) at.pop_back();
  for (const std::string& step : at) holder = holder[step];
  const Place annotations = holder["metadata"]["annotations"];
  for (const char* key : {kGroupName, kGroupNameToo}) {
    if (annotations.has(key)) return annotations[key];
  }
  return {};
}

// Pods join a group of Volcano by an annotation, and only Volcano (or berth) reads it.
void check_groups_of_pods(const std::deque<Object>& objects, std::vector<Finding>& out) {
  std::set<std::string> joined;
  for (const Object& object : objects) {
    for (const Place& pod : pod_specs(object)) {
      const Place group = joined_group(object, pod);
      if (!group) continue;
      joined.insert(namespace_of(object) + "/" + group.word());
      const Place scheduler = pod["schedulerName"];
      if (scheduler && !scheduler.is("default-scheduler")) continue;
      Reporter(object, out)
          .add("volcano-scheduler-name", scheduler,
               "the pods name the group " + group.word() +
                   " and the default scheduler, which reads no groups",
               "set schedulerName: volcano, or berth");
    }
  }
  for (const Object& object : objects) {
    if (!object.is(kVolcano, "PodGroup") || object.name.empty()) continue;
    if (object.root()["metadata"].has("ownerReferences")) continue;
    if (joined.contains(namespace_of(object) + "/" + object.name)) continue;
    Reporter(object, out)
        .add("volcano-group-unjoined", object.root()["metadata"]["name"],
             "no pod here joins the group: being of the same job is not enough",
             "annotate the pods with " + std::string(kGroupName) + ": " + object.name +
                 " and set schedulerName: volcano");
  }
}

// ---- quotas ----------------------------------------------------------------------------------

struct Asked {
  std::string resource, section;  // "cpu" of "requests"
  std::string quota;
};

bool has_amount(const Place& resources, const Asked& asked) {
  if (resources[asked.section].has(asked.resource)) return true;
  // A request that is missing is the limit.
  return asked.section == "requests" && resources["limits"].has(asked.resource);
}

// What quotas count must be asked for by every container of the namespace.
void check_counted(const std::deque<Object>& objects, std::vector<Finding>& out) {
  std::map<std::string, std::vector<Asked>> asked;  // by namespace
  std::set<std::string> defaulted;
  for (const Object& object : objects) {
    if (object.is("", "LimitRange")) defaulted.insert(namespace_of(object));
    const Place spec = object.root()["spec"];
    if (!object.is("", "ResourceQuota") || spec.has("scopes") || spec.has("scopeSelector")) {
      continue;
    }
    for (const Place& entry : spec["hard"].members()) {
      const std::string& key = entry.key();
      const std::size_t dot = key.find('.');
      const std::string section = key.starts_with("limits.") ? "limits" : std::string("requests");
      const std::string resource =
          key.starts_with("limits.") || key.starts_with("requests.") ? key.substr(dot + 1) : key;
      if (resource != "cpu" && resource != "memory") continue;
      asked[namespace_of(object)].push_back({resource, section, object.name});
    }
  }
  for (const Object& object : objects) {
    const auto found = asked.find(namespace_of(object));
    if (found == asked.end() || defaulted.contains(found->first)) continue;
    for (const Place& pod : pod_specs(object)) {
      for (const Place& container : pod["containers"].items()) {
        for (const Asked& one : found->second) {
          if (has_amount(container["resources"], one)) continue;
          Reporter(object, out)
              .add("quota-request-missing", container["resources"],
                   "the container has no " + one.section + "." + one.resource +
                       ", which the quota " + one.quota + " of the namespace counts",
                   "add " + one.section + ": {" + one.resource +
                       ": ...}, or give the namespace a LimitRange with defaults");
          break;
        }
      }
    }
  }
}

// ---- taints ----------------------------------------------------------------------------------

void check_taint_values(const std::deque<Object>& objects, const ScriptFacts& facts,
                        std::vector<Finding>& out) {
  std::string first;
  const auto differs = [&first](const std::string& key, const std::string& value) {
    if (key != "nvidia.com/gpu" || value.empty()) return false;
    if (first.empty()) first = value;
    return value != first;
  };
  const auto what = [&first](const std::string& value) {
    return "the taint nvidia.com/gpu has the value " + value + " here and " + first + " elsewhere";
  };
  constexpr const char* kFix = "use one value, and tolerations with operator: Exists";
  for (const Object& object : objects) {
    const Place spec = object.root()["spec"];
    const Place list = object.is("", "Node")                   ? spec["taints"]
                       : object.is("karpenter.sh", "NodePool") ? spec["template"]["spec"]["taints"]
                                                               : Place();
    for (const Place& taint : list.items()) {
      const std::string value = taint["value"].word();
      if (!differs(taint["key"].word(), value)) continue;
      Reporter(object, out).add("gpu-taint-values", taint["value"], what(value), kFix);
    }
  }
  for (const ScriptTaint& taint : facts.taints) {
    if (!differs(taint.key, taint.value)) continue;
    Finding found = taint.where;
    found.what = what(taint.value);
    found.fix = kFix;
    out.push_back(std::move(found));
  }
}

// One chart has one strategy; scripts that set two leave it to who runs them last.
void check_strategies(const ScriptFacts& facts, std::vector<Finding>& out) {
  for (const Finding& single : facts.single_at) {
    for (const Finding& mixed : facts.mixed_at) {
      if (mixed.file == single.file) continue;
      Finding found = single;
      found.what = "mig.strategy is single here and mixed in " + mixed.file;
      found.fix =
          "choose one: with single nodes offer nvidia.com/gpu, with mixed nvidia.com/mig-...";
      out.push_back(std::move(found));
      break;
    }
  }
}

// ---- Tekton ----------------------------------------------------------------------------------

// Tasks by name, where the input defines some of that namespace.
void check_tasks(const std::deque<Object>& objects, std::vector<Finding>& out) {
  std::set<std::string> tasks, spaces;
  for (const Object& object : objects) {
    if (!object.is("tekton.dev", "Task")) continue;
    spaces.insert(namespace_of(object));
    tasks.insert(namespace_of(object) + "/" + object.name);
  }
  for (const Object& object : objects) {
    if (!object.is("tekton.dev", "Pipeline") || !spaces.contains(namespace_of(object))) continue;
    for (const Place& task : object.root()["spec"]["tasks"].items()) {
      const Place name = task["taskRef"]["name"];
      if (!name || task["taskRef"].has("resolver") || task["taskRef"]["kind"].is("ClusterTask") ||
          tasks.contains(namespace_of(object) + "/" + name.word())) {
        continue;
      }
      Reporter(object, out)
          .add("reference-missing", name,
               "there is no Task " + name.word() + " in the namespace " + namespace_of(object),
               "define it, or name one that exists");
    }
  }
}

}  // namespace

void check_contradictions(const std::deque<Object>& objects, const ScriptFacts& facts,
                          std::vector<Finding>& out) {
  check_shared_names(objects, out);
  check_groups_of_pods(objects, out);
  check_counted(objects, out);
  check_taint_values(objects, facts, out);
  check_strategies(facts, out);
  check_tasks(objects, out);
}

}  // namespace berth::lint
