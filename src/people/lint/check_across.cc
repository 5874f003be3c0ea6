#include <map>

#include "people/lint/checks.h"

namespace berth::lint {

namespace {

using Names = std::set<std::string>;  // "namespace/name", or the name alone

constexpr std::string_view kKueue2 = "kueue.x-k8s.io";
constexpr const char* kQueueLabel = "kueue.x-k8s.io/queue-name";

struct Taint {
  std::string key, value, effect;
};

std::string full_name(const Object& object) { return namespace_of(object) + "/" + object.name; }

// What the input holds of each kind.
class Inventory {
 public:
  Inventory(const std::deque<Object>& objects, const ScriptFacts& facts) {
    for (const ScriptTaint& taint : facts.taints) {
      taints_.push_back({taint.key, taint.value, taint.effect});
    }
    for (const Object& object : objects) {
      kinds_[object.kind + "." + object.group].insert(object.name);
      kinds_[object.kind + "." + object.group].insert(full_name(object));
      spaces_.insert(object.kind + "." + object.group + "@" + namespace_of(object));
      taints_of(object);
    }
  }
  bool any(std::string_view kind, std::string_view group) const {
    return kinds_.contains(std::string(kind) + "." + std::string(group));
  }
  bool any_in(std::string_view kind, std::string_view group, const std::string& space) const {
    return spaces_.contains(std::string(kind) + "." + std::string(group) + "@" + space);
  }
  bool has(std::string_view kind, std::string_view group, const std::string& name) const {
    const auto found = kinds_.find(std::string(kind) + "." + std::string(group));
    return found != kinds_.end() && found->second.contains(name);
  }
  const std::vector<Taint>& taints() const { return taints_; }

 private:
  void taints_of(const Object& object) {
    const Place spec = object.root()["spec"];
    Place list;
    if (object.is("", "Node")) list = spec["taints"];
    if (object.is("karpenter.sh", "NodePool")) list = spec["template"]["spec"]["taints"];
    if (object.is(kKueue2, "ResourceFlavor")) list = spec["nodeTaints"];
    for (const Place& taint : list.items()) {
      taints_.push_back({taint["key"].word(), taint["value"].word(), taint["effect"].word()});
    }
  }

  std::map<std::string, Names> kinds_;
  Names spaces_;
  std::vector<Taint> taints_;
};

// ---- queues ----------------------------------------------------------------------------------

void check_queue_chain(const Object& object, const Inventory& all, const Names& used,
                       Reporter& out) {
  const Place root = object.root();
  if (object.is(kKueue2, "LocalQueue")) {
    const Place queue = root["spec"]["clusterQueue"];
    if (queue && all.any("ClusterQueue", kKueue2) &&
        !all.has("ClusterQueue", kKueue2, queue.word())) {
      out.add("kueue-reference", queue,
              "there is no ClusterQueue " + queue.word() + " in the input",
              "name a ClusterQueue that exists");
    }
    if (object.name != "default" && !object.name.empty() && !used.contains(object.name)) {
      out.add("kueue-nobody-joins", root["metadata"]["name"],
              "nothing here asks for this queue: jobs do not join it by being in its namespace",
              "give jobs the label " + std::string(kQueueLabel) + ": " + object.name +
                  ", or call the queue default");
    }
    return;
  }
  if (object.is(kKueue2, "ClusterQueue") && all.any("ResourceFlavor", kKueue2)) {
    for (const Place& group : root["spec"]["resourceGroups"].items()) {
      for (const Place& flavor : group["flavors"].items()) {
        if (all.has("ResourceFlavor", kKueue2, flavor["name"].word())) continue;
        out.add("kueue-reference", flavor["name"],
                "there is no ResourceFlavor " + flavor["name"].word() + " in the input",
                "name a ResourceFlavor that exists");
      }
    }
    return;
  }
  Place label = root["metadata"]["labels"][kQueueLabel];
  // Where Kueue does not look (kueue-queue-name says so), the name is meant all the same.
  if (!label) {
    walk(root, [&](const Place& place) {
      if (!label && !place.path().empty() && place.key() == kQueueLabel) label = place;
      return true;
    });
  }
  if (!label) return;
  const std::string queue = label.word();
  const std::string space = namespace_of(object);
  if (all.has("LocalQueue", kKueue2, space + "/" + queue)) return;
  const bool cluster = all.has("ClusterQueue", kKueue2, queue);
  if (!cluster && !all.any("LocalQueue", kKueue2)) return;
  out.add("kueue-reference", label,
          cluster ? queue + " is a ClusterQueue, want a LocalQueue of the namespace " + space
                  : "there is no LocalQueue " + queue + " in the namespace " + space,
          "name a LocalQueue of the namespace " + space);
}

// ---- pods ------------------------------------------------------------------------------------

// The parts of an InferenceService: pod specs whose first container is called model.
std::vector<Place> served_pods(const Object& object) {
  std::vector<Place> out;
  if (!object.is("serving.kserve.io", "InferenceService")) return out;
  for (const char* part : {"predictor", "transformer", "explainer"}) {
    const Place pod = object.root()["spec"][part];
    if (pod && !pod.has("containers")) out.push_back(pod);
  }
  return out;
}

bool asks_for_gpus(const Place& pod) {
  std::vector<Place> containers = containers_of(pod);
  for (const char* own : {"model", "pytorch", "triton", "huggingface", "tensorflow", "onnx"}) {
    if (pod[own].has("resources")) containers.push_back(pod[own]);
  }
  for (const Place& container : containers) {
    for (const Place& limit : container["resources"]["limits"].members()) {
      if (is_gpu_resource(limit.key()) && !limit.is("0") && limit.value().as_int64() != 0)
        return true;
    }
  }
  return false;
}

bool tolerates(const Place& pod, const Taint& taint) {
  for (const Place& one : pod["tolerations"].items()) {
    const bool exists = one["operator"].is("Exists");
    const std::string key = one["key"].word();
    if (key != taint.key && !(key.empty() && exists)) continue;
    if (one.has("effect") && !one["effect"].is(taint.effect) && one["effect"].word() != "")
      continue;
    if (exists || one["value"].word() == taint.value) return true;
  }
  return false;
}

void check_taints(const Place& pod, const Inventory& all, Reporter& out) {
  if (!asks_for_gpus(pod)) return;
  bool tainted = false, one_fits = false;
  const Taint* shown = nullptr;
  for (const Taint& taint : all.taints()) {
    if (taint.key != "nvidia.com/gpu" || taint.effect == "PreferNoSchedule") continue;
    tainted = true;
    one_fits = one_fits || tolerates(pod, taint);
    shown = &taint;
  }
  if (!tainted || one_fits) return;
  out.add("gpu-toleration", pod["tolerations"],
          "the pods ask for GPUs and do not tolerate the taint " + shown->key +
              (shown->value.empty() ? "" : "=" + shown->value) + ":" + shown->effect +
              " of the GPU nodes",
          "add tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]");
}

// What both standards forbid: the host's files, its network and all rights.
bool baseline_enough(const Place& pod) {
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (pod[field].value().as_bool()) return false;
  }
  for (const Place& volume : pod["volumes"].items()) {
    if (volume.has("hostPath")) return false;
  }
  for (const Place& container : containers_of(pod)) {
    if (container["securityContext"]["privileged"].value().as_bool()) return false;
    for (const Place& port : container["ports"].items()) {
      if (port["hostPort"].value().as_int64().value_or(0) != 0) return false;
    }
  }
  return true;
}

bool restricted_enough(const Place& pod) {
  if (!baseline_enough(pod)) return false;
  const Place context = pod["securityContext"];
  if (context["runAsUser"].value().as_int64() == 0) return false;
  for (const Place& container : containers_of(pod)) {
    const Place own = container["securityContext"];
    const bool user = own["runAsNonRoot"].value().as_bool() ||
                      (context["runAsNonRoot"].value().as_bool() && !own.has("runAsNonRoot"));
    const bool escalation = own["allowPrivilegeEscalation"].value().is_bool() &&
                            !own["allowPrivilegeEscalation"].value().as_bool();
    const bool seccomp = own["seccompProfile"].has("type") || context["seccompProfile"].has("type");
    bool drops = false;
    for (const Place& one : own["capabilities"]["drop"].items()) drops = drops || one.is("ALL");
    if (!user || !escalation || !seccomp || !drops) return false;
  }
  return true;
}

// standards: the level that a namespace enforces.
void check_security(const Object& object, const Place& pod,
                    const std::map<std::string, std::string>& standards, Reporter& out) {
  const auto level = standards.find(namespace_of(object));
  if (level == standards.end()) return;
  const bool base = baseline_enough(pod);
  if (level->second == "baseline" ? base : restricted_enough(pod)) return;
  out.add("pod-security", pod["securityContext"],
          "the namespace " + namespace_of(object) + " enforces the " + level->second +
              " pod security standard, which refuses these pods",
          base ? "set runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, "
                 "allowPrivilegeEscalation: false and capabilities: {drop: [ALL]}"
               : "do without hostPath, host namespaces, host ports and privileged containers");
}

void check_references(const Object& object, const Place& pod, const Inventory& all, Reporter& out) {
  const std::string space = namespace_of(object);
  for (const Place& volume : pod["volumes"].items()) {
    const Place claim = volume["persistentVolumeClaim"]["claimName"];
    if (!claim || !all.any_in("PersistentVolumeClaim", "", space)) continue;
    if (all.has("PersistentVolumeClaim", "", space + "/" + claim.word())) continue;
    out.add("reference-missing", claim,
            "there is no PersistentVolumeClaim " + claim.word() + " in the namespace " + space,
            "define it, or name one that exists");
  }
  const Place priority = pod["priorityClassName"];
  if (priority && !priority.text().starts_with("system-") &&
      all.any("PriorityClass", "scheduling.k8s.io") &&
      !all.has("PriorityClass", "scheduling.k8s.io", priority.word())) {
    out.add("reference-missing", priority, "there is no PriorityClass " + priority.word(),
            "define it, or name one that exists");
  }
  for (const Place& claim : pod["resourceClaims"].items()) {
    const Place from = claim["resourceClaimTemplateName"];
    if (!from || !all.any_in("ResourceClaimTemplate", "resource.k8s.io", space)) continue;
    if (all.has("ResourceClaimTemplate", "resource.k8s.io", space + "/" + from.word())) continue;
    out.add("reference-missing", from,
            "there is no ResourceClaimTemplate " + from.word() + " in the namespace " + space,
            "define it, or name one that exists");
  }
}

// ---- the rest --------------------------------------------------------------------------------

// Who scales what: "namespace/kind/name" -> the first that does.
void check_scaled_twice(const std::deque<Object>& objects, std::vector<Finding>& out) {
  std::map<std::string, const Object*> owners;
  for (const Object& object : objects) {
    const bool hpa = object.is("autoscaling", "HorizontalPodAutoscaler");
    const bool keda = object.kind == "ScaledObject" && object.group.ends_with("keda.sh");
    const Place target = object.root()["spec"]["scaleTargetRef"];
    if ((!hpa && !keda) || !target) continue;
    const std::string kind = target.has("kind") ? target["kind"].word() : "Deployment";
    const std::string key = namespace_of(object) + "/" + kind + "/" + target["name"].word();
    const auto [owner, fresh] = owners.emplace(key, &object);
    if (fresh) continue;
    Reporter(object, out)
        .add("two-autoscalers", target,
             kind + " " + target["name"].word() + " is scaled by " + owner->second->title() +
                 " as well (" + owner->second->file + ")",
             "keep one of the two; a ScaledObject may have several triggers");
  }
}

void check_quota_classes(const Object& object, const Inventory& all, Reporter& out) {
  if (!object.is("", "ResourceQuota")) return;
  for (const Place& term : object.root()["spec"]["scopeSelector"]["matchExpressions"].items()) {
    if (!term["scopeName"].is("PriorityClass")) continue;
    for (const Place& value : term["values"].items()) {
      if (all.has("PriorityClass", "scheduling.k8s.io", value.word())) continue;
      if (!all.has("WorkloadPriorityClass", kKueue2, value.word())) continue;
      out.add("quota-priority-class", value,
              value.word() +
                  " is a WorkloadPriorityClass of Kueue, want a PriorityClass: the quota "
                  "matches no pod",
              "define a PriorityClass " + value.word() + " and have pods use it");
    }
  }
}

// What Helm values and ClusterPolicies say about MIG, beside what scripts say.
ScriptFacts with_objects(const ScriptFacts& from_scripts, const std::deque<Object>& objects) {
  ScriptFacts out = from_scripts;
  for (const Object& object : objects) {
    const Place root = object.root();
    const Place strategy = object.kind.empty()              ? root["mig"]["strategy"]
                           : object.kind == "ClusterPolicy" ? root["spec"]["mig"]["strategy"]
                                                            : Place();
    out.mig_single = out.mig_single || strategy.is("single");
    out.mig_mixed = out.mig_mixed || strategy.is("mixed");
  }
  return out;
}

void check_mig_strategy(const Object& object, const ScriptFacts& facts, Reporter& out) {
  if (facts.mig_mixed || object.kind == "CustomResourceDefinition") return;
  // Unknown: worth a word on pods, which then wait; said once.
  bool noted = facts.mig_single || pod_specs(object).empty();
  walk(object.root(), [&](const Place& place) {
    if (place.path().empty() || !place.key().starts_with("nvidia.com/mig-")) return true;
    const bool amount = place.value().is_number() || place.value().is_string();
    if (!amount) return true;
    if (facts.mig_single) {
      out.add("mig-strategy", place,
              "found " + place.key() +
                  ", which nodes offer only with mig.strategy mixed; what installs the operator "
                  "here sets single",
              "install with mig.strategy=mixed, or ask for nvidia.com/gpu");
    } else if (!noted) {
      noted = true;
      out.add("mig-needs-mixed", place,
              "found " + place.key() +
                  ", which nodes offer only with mig.strategy mixed; the chart's default is single",
              "see whether nodes have it: kubectl get nodes -L nvidia.com/mig.strategy");
    }
    return true;
  });
}

}  // namespace

void check_across(const std::deque<Object>& objects, const ScriptFacts& from_scripts,
                  std::vector<Finding>& out) {
  const ScriptFacts facts = with_objects(from_scripts, objects);
  const Inventory all(objects, facts);
  Names used;
  std::map<std::string, std::string> standards;
  for (const Object& object : objects) {
    walk(object.root(), [&](const Place& place) {
      if (!place.path().empty() && place.key() == kQueueLabel) used.insert(place.word());
      return true;
    });
    const Place label = object.root()["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
    if (object.is("", "Namespace") && (label.is("restricted") || label.is("baseline"))) {
      standards[object.name] = label.word();
    }
  }
  for (const Object& object : objects) {
    Reporter reporter(object, out);
    check_queue_chain(object, all, used, reporter);
    check_quota_classes(object, all, reporter);
    check_mig_strategy(object, facts, reporter);
    for (const Place& pod : served_pods(object)) check_taints(pod, all, reporter);
    for (const Place& pod : pod_specs(object)) {
      check_taints(pod, all, reporter);
      check_security(object, pod, standards, reporter);
      check_references(object, pod, all, reporter);
    }
  }
  check_scaled_twice(objects, out);
  check_contradictions(objects, facts, out);
}

}  // namespace berth::lint
