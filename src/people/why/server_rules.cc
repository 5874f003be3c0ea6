#include "people/why/server_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "people/why/attach.h"
#include "people/why/changed_objects.h"
#include "people/why/kai_rules.h"
#include "people/why/makers.h"
#include "people/why/namespace_rules.h"
#include "people/why/pod_security.h"
#include "rules/pod_classes.h"
#include "text/nearest.h"
#include "text/path.h"

namespace berth::people {

namespace {

using model::Reason;
using text::Value;

constexpr std::size_t kMostLimited = 8;  // pods whose volumes are counted where they would go

// Of a kind that has no namespace, whatever the source makes of that.
std::optional<RawObject> of_cluster(const ObjectSource& objects, std::string_view kind,
                                    const std::string& name) {
  for (RawObject& raw : objects.of_kind(kind)) {
    if (raw.name == name) return std::move(raw);
  }
  return std::nullopt;
}

bool owned_by(const Value& object, std::string_view kind, std::string_view name) {
  const auto owners = at(object, "metadata.ownerReferences").items();
  return std::any_of(owners.begin(), owners.end(), [&](const Value& each) {
    return text_at(each, "kind") == kind && text_at(each, "name") == name;
  });
}

// Also by way of a ReplicaSet, as a Deployment's are.
bool made_by(const ObjectSource& objects, const Value& pod, const RawObject& owner) {
  if (owned_by(pod, owner.kind, owner.name)) return true;
  if (owner.kind != "Deployment") return false;
  for (const Value& each : at(pod, "metadata.ownerReferences").items()) {
    const std::string name(text_at(each, "name"));
    if (text_at(each, "kind") != "ReplicaSet") continue;
    if (const auto set = objects.find("ReplicaSet", owner.ns, name)) {
      if (owned_by(*set->value, owner.kind, owner.name)) return true;
    } else if (name.substr(0, name.rfind('-')) == owner.name) {
      return true;
    }
  }
  return false;
}

// ---- defaults ----

// written: the spec as it is written, of which this is a copy.
void fill_runtime_class(const ObjectSource& objects, const Value& written, Tree& spec) {
  const auto raw =
      of_cluster(objects, "RuntimeClass", std::string(text_at(written, "runtimeClassName")));
  if (!raw) return;
  // A label that differs is refused (by_class_labels).
  const rules::RuntimeAdds adds = rules::added_by(*raw->value, written);
  for (const auto& [key, value] : adds.labels) spec["nodeSelector"][key] = Tree::of_text(value);
  for (const Value* each : adds.tolerations) spec["tolerations"].items().emplace_back(*each);
  if (adds.overhead != nullptr) spec["overhead"] = Tree(*adds.overhead);
}

void fill_ranges(const std::vector<Range>& ranges, const Value& written, Tree& spec) {
  for (const Range& range : ranges) {
    for (const rules::Filled& one : rules::filled_by(range.items, written)) {
      Tree& container = spec[one.list].items()[one.container];
      Tree& amount = container["resources"][one.limit ? "limits" : "requests"][one.resource];
      if (amount.is_null()) amount = Tree::of_text(one.amount);  // or another range was first
    }
  }
}

// Its class puts pods on nodes with other labels than it asks for itself.
std::optional<Held> by_class_labels(const RawObject& runtime, const PodTemplate& mine) {
  const rules::RuntimeAdds adds = rules::added_by(*runtime.value, *mine.spec);
  if (!adds.clash) return std::nullopt;
  const auto& [key, of_class, of_pod] = *adds.clash;
  return Held{.by = Held::By::kClassLabels,
              .message = fmt::format(
                  "the RuntimeClass {} is for nodes with the label {}={}, and its nodeSelector "
                  "asks for {}={}",
                  runtime.name, key, of_class, key, of_pod),
              .object = runtime.name,
              .name = std::string(key)};
}

std::optional<Held> by_runtime_class(const ObjectSource& objects, const PodTemplate& mine) {
  const std::string name(text_at(mine.spec, "runtimeClassName"));
  const std::vector<RawObject> classes = objects.of_kind("RuntimeClass");
  if (name.empty() || classes.empty()) return std::nullopt;
  if (const auto raw = of_cluster(objects, "RuntimeClass", name)) {
    return mine.fresh > 0 ? by_class_labels(*raw, mine) : std::nullopt;
  }
  std::vector<std::string> names;
  for (const RawObject& raw : classes) names.push_back(raw.name);
  return Held{.by = Held::By::kRuntimeClass,
              .message = "the RuntimeClass " + name + " does not exist",
              .object = name,
              .name = text::nearest(name, names)};
}

// A pod that this scheduler has bound: the name is right, however it reads.
bool binds_pods(const ObjectSource& objects, const std::string& scheduler) {
  const std::vector<RawObject> pods = objects.of_kind("Pod");
  return std::any_of(pods.begin(), pods.end(), [&](const RawObject& pod) {
    return text_at(pod.value, "spec.schedulerName") == scheduler &&
           !text_at(pod.value, "spec.nodeName").empty();
  });
}

std::optional<Held> by_scheduler(const ObjectSource& objects, const PodTemplate& mine) {
  static const std::vector<std::string> kSchedulers = {"default-scheduler", "berth", "volcano",
                                                       "kai-scheduler"};
  const std::string name(text_at(mine.spec, "schedulerName"));
  if (name.empty() ||
      std::find(kSchedulers.begin(), kSchedulers.end(), name) != kSchedulers.end()) {
    return std::nullopt;
  }
  const std::string meant = text::nearest(name, kSchedulers);
  // "my-berth" may well exist; "default-schedular" does not.
  if (meant.empty() || text::edits_between(name, meant, 3) > 2) return std::nullopt;
  if (binds_pods(objects, name)) return std::nullopt;
  return Held{.by = Held::By::kScheduler,
              .message = fmt::format("its schedulerName is {}, which reads like {}", name, meant),
              .object = name,
              .name = meant};
}

// KAI leaves a pod alone whose queue does not exist. A name that is like none of them may well be
// one that is not in the input.
std::optional<Held> by_queue_name(const ObjectSource& objects, const Value* pod) {
  const std::string name = std::string(at(pod, "metadata.labels")[kKaiQueueLabel].string());
  std::vector<std::string> names;
  for (const RawObject& queue : objects.of_kind("Queue")) {
    if (queue.api_version.starts_with("scheduling.run.ai/")) names.push_back(queue.name);
  }
  const bool known = std::find(names.begin(), names.end(), name) != names.end();
  const std::string meant = name.empty() || known ? "" : text::nearest(name, names);
  if (meant.empty()) return std::nullopt;
  return Held{.by = Held::By::kQueueName,
              .message = fmt::format("its queue {} does not exist; there is {}", name, meant),
              .object = name,
              .name = meant};
}

bool is_bound(const ObjectSource& objects, const RawObject& claim) {
  if (!text_at(claim.value, "spec.volumeName").empty() ||
      text_at(claim.value, "status.phase") == "Bound") {
    return true;
  }
  for (const RawObject& volume : objects.of_kind("PersistentVolume")) {
    if (text_at(volume.value, "spec.claimRef.name") == claim.name &&
        text_at(volume.value, "spec.claimRef.namespace") == claim.ns) {
      return true;
    }
  }
  return false;
}

bool is_default_class(const RawObject& storage) {
  const Value& notes = at(storage.value, "metadata.annotations");
  const auto says = [&notes](std::string_view key) { return notes[key].string() == "true"; };
  return says("storageclass.kubernetes.io/is-default-class") ||
         says("storageclass.beta.kubernetes.io/is-default-class");
}

// A volume that nobody has, as large as the claim and of its modes.
bool may_bind(const Value& volume, const std::string& storage, const Value* claim) {
  if (text_at(volume, "spec.storageClassName") != storage ||
      find(volume, "spec.claimRef") != nullptr) {
    return false;
  }
  const model::Amounts has = amounts_of(at(volume, "spec.capacity"));
  const model::Amounts wants = amounts_of(at(claim, "resources.requests"));
  const auto size = has.find("storage"), least = wants.find("storage");
  if (size != has.end() && least != wants.end() && size->second < least->second) return false;
  const auto modes = at(volume, "spec.accessModes").items();
  const auto offers = [&](const Value& wanted) {
    return std::any_of(modes.begin(), modes.end(),
                       [&](const Value& mode) { return mode.string() == wanted.string(); });
  };
  const auto asked = at(claim, "accessModes").items();
  return modes.empty() || std::all_of(asked.begin(), asked.end(), offers);
}

bool has_free_volume(const ObjectSource& objects, const std::string& storage, const Value* claim) {
  const std::vector<RawObject> volumes = objects.of_kind("PersistentVolume");
  return std::any_of(volumes.begin(), volumes.end(), [&](const RawObject& volume) {
    return may_bind(*volume.value, storage, claim);
  });
}

// The storage class of a claim with that spec; empty: none.
std::string class_of(const ObjectSource& objects, const Value* claim) {
  if (find(claim, "storageClassName") != nullptr) {
    return std::string(text_at(claim, "storageClassName"));
  }
  const std::vector<RawObject> classes = objects.of_kind("StorageClass");
  const auto chosen = std::find_if(classes.begin(), classes.end(), is_default_class);
  return chosen == classes.end() ? "" : chosen->name;
}

bool is_made_for_claims(const RawObject& storage) {
  return text_at(storage.value, "provisioner") != "kubernetes.io/no-provisioner";
}

// Why nobody makes a volume for a claim with that spec; empty: somebody does, or it is not known.
// waits: the API server has had the claim for a while.
std::string no_volume_for(const ObjectSource& objects, const Value* claim, bool waits) {
  const std::vector<RawObject> classes = objects.of_kind("StorageClass");
  if (classes.empty()) return "";
  const std::string storage = class_of(objects, claim);
  if (storage.empty()) {
    return has_free_volume(objects, "", claim) ? ""
                                               : "it has no storage class, and no PersistentVolume "
                                                 "without one is free";
  }
  const auto raw = of_cluster(objects, "StorageClass", storage);
  if (!raw) return "its storage class " + storage + " does not exist";
  if (!is_made_for_claims(*raw) && !has_free_volume(objects, storage, claim)) {
    const bool some = has_free_volume(objects, storage, nullptr);
    return fmt::format(
        "no PersistentVolume of its storage class {} is free{}, and nobody makes one", storage,
        some ? " that is large enough and of its access modes" : "");
  }
  if (waits && text_at(raw->value, "volumeBindingMode") != "WaitForFirstConsumer") {
    return fmt::format("its storage class {} binds claims at once, and did not bind this one",
                       storage);
  }
  return "";
}

// Where the volume of a claim that is not bound can be, once its pod has a node: the terms of the
// volumes that are left, or what the class says. Empty: anywhere, or it is not known.
std::vector<Tree> volume_terms(const ObjectSource& objects, const Value* claim) {
  const std::string storage = class_of(objects, claim);
  const auto raw = storage.empty() ? std::nullopt : of_cluster(objects, "StorageClass", storage);
  std::vector<Tree> out;
  if (!raw) return out;
  if (!is_made_for_claims(*raw)) {
    for (const RawObject& volume : objects.of_kind("PersistentVolume")) {
      if (!may_bind(*volume.value, storage, claim)) continue;
      const auto terms = at(volume.value, "spec.nodeAffinity.required.nodeSelectorTerms").items();
      if (terms.empty()) return {};
      for (const Value& term : terms) out.emplace_back(term);
    }
    return out;
  }
  for (const Value& topology : at(raw->value, "allowedTopologies").items()) {
    Tree term;
    for (const Value& label : at(topology, "matchLabelExpressions").items()) {
      Tree requirement(label);
      requirement["operator"] = Tree::of_text("In");
      term["matchExpressions"].items().push_back(std::move(requirement));
    }
    out.push_back(std::move(term));
  }
  return out;
}

// A volume that is thought of, where the one of the claim can be.
void stand_in(const std::string& ns, const std::string& claim, std::vector<Tree> terms,
              Draft& draft) {
  const std::string name = fmt::format("for-{}-{}", ns, claim);
  if (terms.empty() || draft.edit(nullptr, "PersistentVolume", "", name) != nullptr) return;
  Tree made;
  made["apiVersion"] = Tree::of_text("v1");
  made["kind"] = Tree::of_text("PersistentVolume");
  made["metadata"]["name"] = Tree::of_text(name);
  Tree& held = made["spec"]["claimRef"];
  held["namespace"] = Tree::of_text(ns);
  held["name"] = Tree::of_text(claim);
  made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].items() = std::move(terms);
  draft.create(std::move(made));
}

void stand_in_claim(const std::string& ns, const std::string& claim, Tree spec,
                    std::vector<Tree> terms, Draft& draft) {
  Tree made;
  made["apiVersion"] = Tree::of_text("v1");
  made["kind"] = Tree::of_text("PersistentVolumeClaim");
  made["metadata"]["name"] = Tree::of_text(claim);
  made["metadata"]["namespace"] = Tree::of_text(ns);
  made["spec"] = std::move(spec);
  draft.create(std::move(made));
  stand_in(ns, claim, std::move(terms), draft);
}

// Claims in the place of those that pods make of ephemeral volumes, where it is known where their
// volumes can be. written: the spec as it is written.
void fill_ephemeral(const ObjectSource& objects, const TemplatePlace& place, const Value* written,
                    Tree& spec, Draft& draft) {
  Tree* volumes = spec.find("volumes");
  const auto all = at(written, "volumes").items();
  for (std::size_t i = 0; volumes != nullptr && i < all.size(); ++i) {
    const Value* wanted = find(all[i], "ephemeral.volumeClaimTemplate.spec");
    const std::string name(text_at(all[i], "name"));
    if (wanted == nullptr || i >= volumes->items().size()) continue;
    std::vector<Tree> terms = volume_terms(objects, wanted);
    const std::string claim = fmt::format("{}-{}", place.name, name);
    if (terms.empty() || objects.find("PersistentVolumeClaim", place.ns, claim)) continue;
    stand_in_claim(place.ns, claim, Tree(*wanted), std::move(terms), draft);
    Tree& volume = volumes->items()[i];
    volume.erase("ephemeral");
    volume["persistentVolumeClaim"]["claimName"] = Tree::of_text(claim);
  }
}

// The same for the claims that a StatefulSet makes for its pods: the first pod's stand for all.
void fill_own_claims(const ObjectSource& objects, const RawObject& set, Tree& spec, Draft& draft) {
  if (set.kind != "StatefulSet") return;
  for (const Value& each : at(set.value, "spec.volumeClaimTemplates").items()) {
    const std::string name(text_at(each, "metadata.name"));
    const std::string claim = fmt::format("{}-{}-0", name, set.name);
    std::vector<Tree> terms = volume_terms(objects, find(each, "spec"));
    if (terms.empty() || objects.find("PersistentVolumeClaim", set.ns, claim)) continue;
    stand_in_claim(set.ns, claim, Tree(*find(each, "spec")), std::move(terms), draft);
    Tree volume;
    volume["name"] = Tree::of_text(name);
    volume["persistentVolumeClaim"]["claimName"] = Tree::of_text(claim);
    spec["volumes"].items().push_back(std::move(volume));
  }
}

// A volume in the place of the one that is bound or made once the pod has a node: the model knows
// where bound volumes are.
void fill_claims(const ObjectSource& objects, const std::string& ns, const Tree& spec,
                 Draft& draft) {
  const Tree* volumes = spec.find("volumes");
  if (volumes == nullptr) return;
  for (const Tree& volume : volumes->items()) {
    const Tree* source = volume.find("persistentVolumeClaim");
    const Tree* name = source == nullptr ? nullptr : source->find("claimName");
    const auto claim =
        name == nullptr ? std::nullopt : objects.find("PersistentVolumeClaim", ns, name->string());
    if (!claim || is_bound(objects, *claim)) continue;
    stand_in(ns, claim->name, volume_terms(objects, find(claim->value, "spec")), draft);
  }
}

Held unbound(const std::string& claim, const std::string& why) {
  return {.by = Held::By::kStorage,
          .reason = Reason::kVolumeMissing,
          .message = fmt::format("the claim {} is not bound: {}", claim, why),
          .object = claim};
}

std::optional<Held> by_claim(const ObjectSource& objects, const PodTemplate& mine,
                             const std::string& name) {
  const auto claim = objects.find("PersistentVolumeClaim", mine.object->ns, name);
  if (!claim) return std::nullopt;  // the model says so
  if (!is_bound(objects, *claim) && text_at(claim->value, "status.phase") != "Lost") {
    const std::string why =
        no_volume_for(objects, find(claim->value, "spec"), was_admitted(*claim));
    if (!why.empty()) return unbound(name, why);
  }
  const auto modes = at(claim->value, "spec.accessModes").items();
  const bool alone = std::any_of(modes.begin(), modes.end(), [](const Value& mode) {
    return mode.string() == "ReadWriteOncePod";
  });
  if (!alone) return std::nullopt;
  for (const RawObject& pod : objects.in_namespace("Pod", mine.object->ns)) {
    const bool runs = !has_ended(*pod.value) && !text_at(pod.value, "spec.nodeName").empty();
    if (!runs || pod.value == mine.object->value) continue;
    for (const Value& volume : at(pod.value, "spec.volumes").items()) {
      if (text_at(volume, "persistentVolumeClaim.claimName") != name) continue;
      return Held{.by = Held::By::kClaimInUse,
                  .reason = Reason::kVolumeUnreachable,
                  .message = fmt::format(
                      "the claim {} is for one pod at a time (ReadWriteOncePod), and {}/{} has it",
                      name, pod.ns, pod.name),
                  .object = name,
                  .name = pod.name};
    }
  }
  return std::nullopt;
}

// A StatefulSet makes the claims of its pods itself.
std::optional<Held> by_own_claims(const ObjectSource& objects, const RawObject& set) {
  for (const Value& claim : at(set.value, "spec.volumeClaimTemplates").items()) {
    const std::string name(text_at(claim, "metadata.name"));
    // The first pod's claim is there already, and was looked at with it.
    if (objects.find("PersistentVolumeClaim", set.ns, name + '-' + set.name + "-0")) continue;
    const std::string why = no_volume_for(objects, find(claim, "spec"), false);
    if (!why.empty()) return unbound(name, why);
  }
  return std::nullopt;
}

std::optional<Held> by_claims(const ObjectSource& objects, const PodTemplate& mine) {
  if (mine.object->kind == "StatefulSet" && mine.fresh > 0) {
    if (auto held = by_own_claims(objects, *mine.object)) return held;
  }
  for (const Value& volume : at(mine.spec, "volumes").items()) {
    const std::string name(text_at(volume, "persistentVolumeClaim.claimName"));
    if (!name.empty()) {
      if (auto held = by_claim(objects, mine, name)) return held;
      continue;
    }
    const Value* made = find(volume, "ephemeral.volumeClaimTemplate.spec");
    if (made == nullptr) continue;
    const std::string own(text_at(volume, "name"));
    // Its claim has the pod's name and the volume's.
    const bool bound =
        objects.find("PersistentVolumeClaim", mine.object->ns, mine.object->name + '-' + own)
            .has_value();
    const std::string why = bound ? "" : no_volume_for(objects, made, false);
    if (!why.empty()) return unbound(own, why);
  }
  return std::nullopt;
}

// A StatefulSet makes its pods one after the other, each once the one before is ready.
std::optional<Held> by_order(const ObjectSource& objects, const RawObject& set) {
  if (set.kind != "StatefulSet" || text_at(set.value, "spec.podManagementPolicy") == "Parallel") {
    return std::nullopt;
  }
  for (const RawObject& pod : objects.in_namespace("Pod", set.ns)) {
    const bool runs =
        owned_by(*pod.value, set.kind, set.name) && !text_at(pod.value, "spec.nodeName").empty();
    if (!runs) continue;
    for (const Value& each : at(pod.value, "status.conditions").items()) {
      if (text_at(each, "type") != "Ready" || text_at(each, "status") == "True") {
        continue;
      }
      return Held{.by = Held::By::kOrder,
                  .reason = Reason::kWaitingForPodsReady,
                  .message = fmt::format("the next pod is made once {} is ready "
                                         "(podManagementPolicy OrderedReady)",
                                         pod.name),
                  .object = pod.name};
    }
  }
  return std::nullopt;
}

// An object that the pod names and that is not among those of the kind; known: some are listed.
std::optional<Held> missing_device(const ObjectSource& objects, const std::string& kind,
                                   const std::string& ns, const std::string& name, bool known) {
  std::vector<std::string> names;
  for (const RawObject& raw : objects.of_kind(kind)) {
    if (!ns.empty() && raw.ns != ns) continue;
    if (raw.name == name) return std::nullopt;
    names.push_back(raw.name);
  }
  if (name.empty() || !known) return std::nullopt;
  const std::string meant = text::nearest(name, names);
  return Held{.by = Held::By::kDevices,
              .message = fmt::format("the {} {} does not exist{}{}", kind, name,
                                     ns.empty() ? "" : " in " + ns,
                                     meant.empty() ? "" : "; there is " + meant),
              .object = name,
              .resource = kind,
              .name = meant};
}

// The DeviceClasses that a claim's spec names, in either form of a request.
std::optional<Held> by_device_classes(const ObjectSource& objects, const Value* claim) {
  const bool known = !objects.of_kind("DeviceClass").empty();
  for (const Value& request : at(claim, "devices.requests").items()) {
    std::vector<const Value*> forms = {&request, find(request, "exactly")};
    for (const Value& sub : at(request, "firstAvailable").items()) forms.push_back(&sub);
    for (const Value* form : forms) {
      const std::string name(text_at(form, "deviceClassName"));
      if (auto held = missing_device(objects, "DeviceClass", "", name, known)) return held;
    }
  }
  return std::nullopt;
}

// What spec.resourceClaims names. Where nothing of the kind is in the input, no name is wrong.
std::optional<Held> by_devices(const ObjectSource& objects, const PodTemplate& mine) {
  const std::string& ns = mine.object->ns;
  bool known = false;
  for (const char* kind : {"ResourceClaim", "ResourceClaimTemplate", "DeviceClass"}) {
    known |= !objects.of_kind(kind).empty();
  }
  for (const Value& each : at(mine.spec, "resourceClaims").items()) {
    for (const auto& [field, kind] :
         {std::pair("resourceClaimName", "ResourceClaim"),
          std::pair("resourceClaimTemplateName", "ResourceClaimTemplate")}) {
      const std::string name = std::string(each[field].string());
      if (auto held = missing_device(objects, kind, ns, name, known)) return held;
      const auto raw = name.empty() ? std::nullopt : objects.find(kind, ns, name);
      if (!raw) continue;
      const bool direct = std::string_view(kind) == "ResourceClaim";
      const Value* spec = direct ? find(raw->value, "spec") : find(raw->value, "spec.spec");
      if (auto held = by_device_classes(objects, spec)) return held;
    }
  }
  return std::nullopt;
}

// Whether the event is of the object, or of the ReplicaSet of a Deployment.
bool tells_of(const Value& event, const RawObject& object) {
  const Value* of = find(event, "involvedObject");
  if (of == nullptr) of = find(event, "regarding");
  const std::string_view kind = text_at(of, "kind"), name = text_at(of, "name");
  if (text_at(of, "namespace") != object.ns) return false;
  if (kind == object.kind && name == object.name) return true;
  return object.kind == "Deployment" && kind == "ReplicaSet" &&
         name.substr(0, name.rfind('-')) == object.name;
}

// Nobody can tell what a webhook would say: what it said last holds. Other refusals follow from
// rules that are known.
std::optional<Held> by_webhook(const ObjectSource& objects, const RawObject& object) {
  std::string latest, message;
  for (const RawObject& event : objects.in_namespace("Event", object.ns)) {
    const std::string said(text_at(event.value, "message"));
    if (text_at(event.value, "reason") != "FailedCreate" ||
        said.find("webhook") == std::string::npos || !tells_of(*event.value, object)) {
      continue;
    }
    std::string at(text_at(event.value, "lastTimestamp"));
    if (at.empty()) at = text_at(event.value, "eventTime");
    if (std::pair(at, said) < std::pair(latest, message)) continue;
    latest = at;
    message = said;
  }
  if (message.empty()) return std::nullopt;
  return Held{.by = Held::By::kWebhook, .message = "its pods are not made: " + message};
}

std::optional<Held> by_manager(const RawObject& job) {
  const std::string manager(text_at(job.value, "spec.managedBy"));
  if (job.kind != "Job" || manager.empty() || manager == "kubernetes.io/job-controller") {
    return std::nullopt;
  }
  return Held{
      .by = Held::By::kManaged,
      .reason = Reason::kSuspended,
      .message = fmt::format(
          "spec.managedBy is {}: the cluster's own controller makes no pods of it", manager),
      .object = job.name};
}

// The class of pods that name none, or empty.
std::string default_priority(const ObjectSource& objects) {
  for (const RawObject& raw : objects.of_kind("PriorityClass")) {
    const Value* chosen = raw.value->find("globalDefault");
    if (chosen != nullptr && chosen->as_bool()) return raw.name;
  }
  return "";
}

}  // namespace

std::string_view kind_behind(const Held& held) {
  switch (held.by) {
    case Held::By::kQuota:
      return "ResourceQuota";
    case Held::By::kNoAmount:
      return held.message.starts_with("the LimitRange") ? "LimitRange" : "ResourceQuota";
    case Held::By::kLimitRange:
      return "LimitRange";
    case Held::By::kRuntimeClass:
    case Held::By::kClassLabels:
      return "RuntimeClass";
    case Held::By::kStorage:
      return "StorageClass";
    case Held::By::kClaimInUse:
      return "PersistentVolumeClaim";
    case Held::By::kAccount:
      return "ServiceAccount";
    case Held::By::kNamespace:
    case Held::By::kSecurity:
      return "Namespace";
    case Held::By::kScheduler:
    case Held::By::kQueueName:
    case Held::By::kOrder:
    case Held::By::kDeserved:
    case Held::By::kWebhook:
    case Held::By::kManaged:
    case Held::By::kDevices:  // the controller lists none of them
      return "";
  }
  return "";
}

namespace {

constexpr const char* kTaskLabel = "volcano.sh/task-spec";

// The name of the set of pods that stands behind the place.
std::string task_of(const RawObject& object, const TemplatePlace& place) {
  for (MadeSet& set : made_sets(object)) {
    if (set.path == place.path) return std::move(set.name);
  }
  return "";
}

}  // namespace

std::optional<Held> ServerRules::held() const {
  PodReadings own;
  PodReadings& readings = readings_ != nullptr ? *readings_ : own;
  const std::vector<ObjectChange> filled = filled_in(false);
  for (const TemplatePlace& place : places_) {
    const auto raw = objects_.find(place.kind, place.ns, place.name);
    const bool may = raw && (place.kind == "Pod" || place.path.back() == "template");
    if (!may || place.kind == "Workload") continue;
    // As the API server would store it.
    const ChangedObjects stored(objects_, filled);
    const auto now = stored.find(place.kind, place.ns, place.name);
    const Value* at = now ? template_at(*now, place) : nullptr;
    PodTemplate mine;
    mine.object = &*raw;
    mine.whole = at;
    mine.spec = find(at, "spec");
    if (mine.spec == nullptr || !read_spec(*mine.spec, mine)) {
      // A default limit below what is asked for: the range itself says so of what is written.
      const Value* written = template_at(*raw, place);
      mine.pod = {};
      mine.whole = written;
      mine.spec = find(written, "spec");
      if (mine.spec == nullptr || !read_spec(*mine.spec, mine)) continue;
    }
    if (place.kind == "Pod") {
      mine.fresh = was_admitted(*raw) ? 0 : 1;
    } else {
      mine.fresh = pods_at(objects_, *raw, place);
      for (const RawObject& pod : objects_.in_namespace("Pod", raw->ns)) {
        if (mine.fresh == 0) break;
        if (has_ended(*pod.value)) continue;
        const std::string task =
            std::string(text::at(pod.value, "metadata.labels")[kTaskLabel].string());
        const bool of_another = !task.empty() && task != task_of(*raw, place);
        if (!of_another && made_by(objects_, *pod.value, *raw)) --mine.fresh;
      }
    }
    if (mine.pod.priority_class.empty()) mine.pod.priority_class = default_priority(objects_);
    std::optional<Held> out;
    const bool bound = !text_at(mine.spec, "nodeName").empty();
    if (!bound && mine.fresh > 0) out = by_admission(objects_, mine);
    if (!out && !bound) out = by_runtime_class(objects_, mine);
    if (!out && mine.fresh > 0) out = by_ranges(objects_, mine);
    if (!out && mine.fresh > 0) out = by_quotas(objects_, mine, readings);
    if (!out && !bound) out = by_claims(objects_, mine);
    if (!out && !bound) out = by_scheduler(objects_, mine);
    if (!out && !bound) out = by_queue_name(objects_, at);
    if (!out && !bound) out = by_devices(objects_, mine);
    if (!out && mine.fresh > 0) out = by_order(objects_, *raw);
    if (!out && mine.fresh > 0) out = by_manager(*raw);
    if (!out && mine.fresh > 0 && place.kind != "Pod") out = by_webhook(objects_, *raw);
    if (out) return out;
  }
  return by_deserved_quota(objects_, places_);
}

std::vector<ObjectChange> ServerRules::filled_in(bool with_pods) const {
  Draft draft;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const TemplatePlace& place = places_[i];
    const auto raw = objects_.find(place.kind, place.ns, place.name);
    if (!raw || place.kind == "Workload") continue;
    Tree* at = below(draft.edit(&objects_, place.kind, place.ns, place.name), place.path);
    if (at == nullptr || at->find("spec") == nullptr) continue;
    // A pod that exists went through this; its class may have been changed since.
    const Value* written = find(template_at(*raw, place), "spec");
    if (written != nullptr && (place.kind != "Pod" || !was_admitted(*raw))) {
      fill_runtime_class(objects_, *written, (*at)["spec"]);
      fill_ranges(ranges_of(objects_, place.ns), *written, (*at)["spec"]);
    }
    Tree spec = (*at)["spec"];
    fill_ephemeral(objects_, place, written, spec, draft);
    if (with_pods) fill_own_claims(objects_, *raw, spec, draft);
    fill_claims(objects_, place.ns, spec, draft);
    if (i < kMostLimited) keep_off_full_nodes(objects_, place.ns, written, draft);
    // What was created may have moved it.
    at = below(draft.edit(&objects_, place.kind, place.ns, place.name), place.path);
    (*at)["spec"] = std::move(spec);
    // The last place of an object: its templates are as the server stores them.
    const bool last = i + 1 == places_.size() || places_[i + 1].name != place.name;
    if (!with_pods || !last) continue;
    const Tree now = *draft.edit(&objects_, place.kind, place.ns, place.name);
    make_next(objects_, *raw, now, draft);
  }
  std::erase_if(draft.objects,
                [](const ObjectChange& c) { return c.before && c.after && *c.before == *c.after; });
  return std::move(draft.objects);
}

}  // namespace berth::people
