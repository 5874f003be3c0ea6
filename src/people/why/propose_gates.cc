// Fixes of what holds a workload back before anything is counted: gates, suspension, claims,
// queues that do not exist or are stopped.
#include <fmt/format.h>

#include <algorithm>

#include "people/view/words.h"
#include "people/why/attach.h"
#include "people/why/details.h"
#include "people/why/fixes.h"
#include "text/nearest.h"

namespace berth::people {

namespace {

using model::PodSpec;
using model::Reason;

void add(Proposals& out, std::string title, const char* kind, int disturbance,
         std::function<bool(Draft&)> apply) {
  out.push_back({.title = std::move(title),
                 .kind = kind,
                 .disturbance = disturbance,
                 .objects_only = true,
                 .apply = std::move(apply)});
}

// The queue's own gate stays: the queue opens it when it admits the pod.
void open_gates(Tree& spec, bool queued) {
  Tree* gates = queued ? spec.find("schedulingGates") : nullptr;
  if (gates != nullptr) {
    std::erase_if(gates->items(), [](const Tree& gate) {
      const Tree* name = gate.find("name");
      return name == nullptr || !name->string().starts_with("kueue.x-k8s.io/");
    });
  }
  if (gates == nullptr || gates->items().empty()) spec.erase("schedulingGates");
}

void gates(const Situation& s, Proposals& out) {
  const bool gated = s.sample.gated || std::any_of(s.unit.pending.begin(), s.unit.pending.end(),
                                                   [](const PodSpec* pod) { return pod->gated; });
  if (!gated) return;
  out.push_back(
      {.title = "remove its scheduling gates", .kind = "remove-gate", .apply = [&s](Draft& draft) {
         if (model::WorkloadSpec* spec = edit_queued(s, draft)) spec->incomplete.clear();
         const bool queued = s.unit.queued != nullptr;
         return edit_pods(
             s, draft, [](PodSpec& pod) { pod.gated = false; },
             [queued](Tree&, Tree& spec) { open_gates(spec, queued); });
       }});
}

}  // namespace

void drop_claims(Tree& spec, const std::vector<std::string>& claims) {
  Tree* volumes = spec.find("volumes");
  if (volumes == nullptr) return;
  std::vector<std::string> gone;
  std::erase_if(volumes->items(), [&](const Tree& volume) {
    const Tree* source = volume.find("persistentVolumeClaim");
    const Tree* claim = source == nullptr ? nullptr : source->find("claimName");
    const Tree* name = volume.find("name");
    const bool made = volume.find("ephemeral") != nullptr && name != nullptr;
    // A claim that is made of an ephemeral volume has the pod's name before that of the volume.
    const bool drop = std::any_of(claims.begin(), claims.end(), [&](const std::string& each) {
      return (claim != nullptr && each == claim->string()) ||
             (made && each.ends_with('-' + name->string()));
    });
    if (drop && name != nullptr) gone.push_back(name->string());
    return drop;
  });
  if (volumes->items().empty()) spec.erase("volumes");
  for (const char* list : {"containers", "initContainers"}) {
    if (spec.find(list) == nullptr) continue;
    for (Tree& container : spec[list].items()) {
      Tree* mounts = container.find("volumeMounts");
      if (mounts == nullptr) continue;
      std::erase_if(mounts->items(), [&](const Tree& mount) {
        const Tree* name = mount.find("name");
        return name != nullptr && std::find(gone.begin(), gone.end(), name->string()) != gone.end();
      });
      if (mounts->items().empty()) container.erase("volumeMounts");
    }
  }
}

namespace {

std::vector<std::string> class_names(const Situation& s) {
  std::vector<std::string> out;
  for (const RawObject& raw : s.objects()->of_kind("StorageClass")) out.push_back(raw.name);
  return out;
}

// A claim of the namespace that is written like the one that is missing.
void other_claim(const Situation& s, const std::string& missing, Proposals& out) {
  std::vector<std::string> names;
  for (const RawObject& raw : s.objects()->of_kind("PersistentVolumeClaim")) {
    if (raw.ns == s.unit.ns) names.push_back(raw.name);
  }
  const std::string meant = text::nearest(missing, names);
  if (meant.empty()) return;
  add(out, fmt::format("use the claim {} instead of {}", meant, missing), "other-claim", 1,
      [&s, missing, meant](Draft& draft) {
        return edit_pods(
            s, draft, [](PodSpec&) {},
            [&](Tree&, Tree& spec) {
              if (spec.find("volumes") == nullptr) return;
              for (Tree& volume : spec["volumes"].items()) {
                Tree* claim = volume.find("persistentVolumeClaim");
                Tree* name = claim == nullptr ? nullptr : claim->find("claimName");
                if (name != nullptr && name->string() == missing) *name = Tree::of_text(meant);
              }
            });
      });
}

void missing_claim(const Situation& s, const std::string& missing, Proposals& out) {
  other_claim(s, missing, out);
  const bool exists = s.objects()->find("PersistentVolumeClaim", s.unit.ns, missing).has_value();
  for (const std::string& storage : class_names(s)) {
    add(out,
        exists ? fmt::format("storage class {} for the claim {}", storage, missing)
               : fmt::format("create the claim {} of storage class {}", missing, storage),
        "claim", 2, [&s, storage, missing, exists](Draft& draft) {
          if (exists) {
            Tree* claim = draft.edit(s.objects(), "PersistentVolumeClaim", s.unit.ns, missing);
            if (claim == nullptr) return false;
            (*claim)["spec"]["storageClassName"] = Tree::of_text(storage);
            return true;
          }
          Tree claim;
          claim["apiVersion"] = Tree::of_text("v1");
          claim["kind"] = Tree::of_text("PersistentVolumeClaim");
          claim["metadata"]["name"] = Tree::of_text(missing);
          claim["metadata"]["namespace"] = Tree::of_text(s.unit.ns);
          claim["spec"]["accessModes"].items().push_back(Tree::of_text("ReadWriteOnce"));
          claim["spec"]["resources"]["requests"]["storage"] = Tree::of_text("100Gi");
          claim["spec"]["storageClassName"] = Tree::of_text(storage);
          draft.create(std::move(claim));
          return true;
        });
  }
  out.push_back({.title = "do without the volume of claim " + missing,
                 .kind = "drop-volume",
                 .disturbance = 2,
                 .apply = [&s, missing](Draft& draft) {
                   return edit_pods(
                       s, draft,
                       [&](PodSpec& pod) {
                         if (pod.volume_missing == missing) pod.volume_missing.clear();
                       },
                       [&](Tree&, Tree& spec) { drop_claims(spec, {missing}); });
                 }});
}

void distant_claims(const Situation& s, Proposals& out) {
  for (const model::VolumeLimit& volume : s.sample.volumes) {
    if (volume.node_terms.empty()) continue;
    out.push_back({.title = "do without the volume of claim " + volume.claim,
                   .kind = "drop-volume",
                   .disturbance = 2,
                   .apply = [&s, claim = volume.claim](Draft& draft) {
                     return edit_pods(
                         s, draft,
                         [&](PodSpec& pod) {
                           std::erase_if(pod.volumes,
                                         [&](const auto& v) { return v.claim == claim; });
                         },
                         [&](Tree&, Tree& spec) { drop_claims(spec, {claim}); });
                   }});
  }
}

// Nodes that can attach no more volumes: a pod that nobody makes anew gives its own back.
void attached(const Situation& s, Proposals& out) {
  if (s.objects() == nullptr || s.reason != Reason::kVolumeUnreachable) return;
  for (const FullNode& full : full_nodes(*s.objects(), s.unit.places)) {
    for (const std::string& holder : full.holders) {
      const auto pod =
          std::find_if(s.inputs().pods.begin(), s.inputs().pods.end(),
                       [&](const PodSpec& p) { return p.ns + '/' + p.name == holder; });
      if (out.size() > 24 || pod == s.inputs().pods.end() || !pod->owner.empty()) continue;
      out.push_back({.title = fmt::format("delete {} on {}, which has volumes of {}", holder,
                                          full.node, full.driver),
                     .kind = "delete-pod",
                     .disturbance = 3,
                     .restarts = 1,
                     .objects_only = true,
                     .apply = [&s, pod](Draft& draft) {
                       draft.remove(s.objects(), "Pod", pod->ns, pod->name);
                       return !draft.objects.empty();
                     }});
    }
  }
}

void claims(const Situation& s, Proposals& out) {
  std::string missing = s.sample.volume_missing;
  for (const PodSpec* pod : s.unit.pending) {
    if (missing.empty()) missing = pod->volume_missing;
  }
  if (!missing.empty() && s.objects() != nullptr) missing_claim(s, missing, out);
  distant_claims(s, out);
  attached(s, out);
  if (!s.sample.unread_claims) return;
  out.push_back({.title = "ask for no devices by resource claims",
                 .kind = "drop-resource-claims",
                 .disturbance = 2,
                 .apply = [&s](Draft& draft) {
                   return edit_pods(
                       s, draft, [](PodSpec& pod) { pod.unread_claims = false; },
                       [](Tree&, Tree& spec) {
                         spec.erase("resourceClaims");
                         for (Tree& container : spec["containers"].items()) {
                           Tree* resources = container.find("resources");
                           if (resources != nullptr) resources->erase("claims");
                         }
                       });
                 }});
}

void node_name(const Situation& s, Proposals& out) {
  if (s.reason != Reason::kNodeNameNotFound) return;
  add(out, "remove spec.nodeName", "drop-node-name", 1, [&s](Draft& draft) {
    for (const PodSpec* pod : s.unit.running) {
      Tree* object = draft.edit(s.objects(), "Pod", pod->ns, pod->name);
      if (object == nullptr) return false;
      (*object)["spec"].erase("nodeName");
      object->erase("status");
    }
    return true;
  });
}

void suspended(const Situation& s, Proposals& out) {
  if (s.reason != Reason::kSuspended) return;
  const char* title = s.unit.told.starts_with("spec.suspend") ? "set spec.suspend false"
                      : s.unit.told.starts_with("spec.runPolicy")
                          ? "set spec.runPolicy.suspend false"
                      : s.unit.told.starts_with("spec.replicas") ? "set spec.replicas 1"
                      : s.unit.told.starts_with("spec.paused")   ? "set spec.paused false"
                                                                 : "set spec.parallelism 1";
  add(out, title, "unsuspend", 1, [&s](Draft& draft) {
    draft.objects = unsuspended(s.objects(), s.unit);
    return !draft.objects.empty();
  });
}

// The value at a path as notes write it ("spec.tasks[0].template"); null: none there.
Tree* plain_path(Tree* at, std::string_view path) {
  while (at != nullptr && !path.empty()) {
    const bool index = path.front() == '[';
    const std::size_t end = index ? std::min(path.find(']'), path.size() - 1)
                                  : std::min(path.find_first_of(".["), path.size());
    std::string_view token = index ? path.substr(1, end - 1) : path.substr(0, end);
    const bool quoted = token.size() > 1 && token.front() == '"';
    if (quoted) token = token.substr(1, token.size() - 2);
    at = quoted ? at->find(token) : below(at, {std::string(token)});
    path.remove_prefix(index ? end + 1 : end);
    if (!path.empty() && path.front() == '.') path.remove_prefix(1);
  }
  return at;
}

// It names a PriorityClass, or a class of Kueue, that does not exist.
void wrong_class(const Situation& s, const kinds::Note& note, Proposals& out) {
  const bool of_kueue = note.path.ends_with("priority-class\"]");
  const char* kind = of_kueue ? "WorkloadPriorityClass" : "PriorityClass";
  Draft look;
  Tree* object = look.edit(s.objects(), s.unit.kind, s.unit.ns, s.unit.name);
  const Tree* now = plain_path(object, note.path);
  if (now == nullptr || now->string().empty()) return;
  const std::string wrong = now->string();
  std::vector<std::string> names;
  for (const RawObject& raw : s.objects()->of_kind(kind)) names.push_back(raw.name);
  const std::string meant = text::nearest(wrong, names);
  const char* field_name = of_kueue ? "priority class" : "priorityClassName";
  if (!meant.empty()) {
    add(out, fmt::format("{} {} instead of {}", field_name, meant, wrong), "other-class", 1,
        [&s, meant, path = note.path](Draft& draft) {
          Tree* field =
              plain_path(draft.edit(s.objects(), s.unit.kind, s.unit.ns, s.unit.name), path);
          if (field == nullptr) return false;
          *field = Tree::of_text(meant);
          return true;
        });
  }
  const std::string version = of_kueue ? "kueue.x-k8s.io/v1beta2" : "scheduling.k8s.io/v1";
  add(out, fmt::format("create the {} {}", kind, wrong), "create-class", 3,
      [wrong, version, kind](Draft& draft) {
        Tree made;
        made["apiVersion"] = Tree::of_text(version);
        made["kind"] = Tree::of_text(kind);
        made["metadata"]["name"] = Tree::of_text(wrong);
        made["value"] = Tree::of_number(0);
        draft.create(std::move(made));
        return true;
      });
}

// Of what a pod asks for GPUs by, one way stays: a resource, or "annotation gpu-fraction".
bool keep_one_way(Tree& made_of, const std::vector<std::string>& ways, const std::string& kept) {
  constexpr std::string_view kNote = "annotation ";
  for (const std::string& way : ways) {
    if (way == kept) continue;
    if (!way.starts_with(kNote)) {
      for_each_amounts(made_of["spec"], [&way](Tree& amounts) { amounts.erase(way); });
      continue;
    }
    Tree* notes = plain_path(&made_of, "metadata.annotations");
    if (notes == nullptr || !notes->erase(way.substr(kNote.size()))) return false;
  }
  return true;
}

// It asks for GPUs in two ways: by two resources, or by one and an annotation. One of them stays.
void two_ways(const Situation& s, const kinds::Note& note, Proposals& out) {
  constexpr std::string_view kFound = "found ", kWant = ", want one way of asking";
  const std::size_t end = note.message.find(kWant);
  if (end == std::string::npos || !note.message.starts_with(kFound)) return;
  std::vector<std::string> ways;
  std::string_view rest = std::string_view(note.message).substr(0, end);
  rest.remove_prefix(kFound.size());
  while (!rest.empty()) {
    const std::size_t at = std::min(rest.find(" and "), rest.size());
    ways.emplace_back(rest.substr(0, at));
    rest.remove_prefix(std::min(rest.size(), at + 5));
  }
  for (const std::string& kept : ways) {
    const bool noted = kept.starts_with("annotation ");
    add(out, fmt::format("ask for GPUs by {}{} alone", noted ? "the " : "", kept), "one-way", 1,
        [&s, ways, kept, path = note.path](Draft& draft) {
          Tree* made_of =
              plain_path(draft.edit(s.objects(), s.unit.kind, s.unit.ns, s.unit.name), path);
          return made_of != nullptr && keep_one_way(*made_of, ways, kept);
        });
  }
}

// An object that was refused: without the fields that are wrong, or with what it names.
void complaints(const Situation& s, Proposals& out) {
  if (s.unit.state != Unit::State::kInvalid) return;
  std::string fields;
  for (const kinds::Note* note : s.unit.complaints) {
    fields += (fields.empty() ? "" : ", ") + note->path;
  }
  constexpr std::string_view kGroup = "found group \"";
  for (const kinds::Note* note : s.unit.complaints) {
    const bool of_a_class = note->path.ends_with("priorityClassName") ||
                            note->path.ends_with("kueue.x-k8s.io/priority-class\"]");
    if (of_a_class) wrong_class(s, *note, out);
  }
  add(out, "remove " + fields, "remove-field", 1, [&s](Draft& draft) {
    draft.objects = without_complaints(s.objects(), s.unit);
    return !draft.objects.empty();
  });
  for (const kinds::Note* note : s.unit.complaints) {
    two_ways(s, *note, out);
    const std::size_t at = note->message.find(kGroup);
    if (at == std::string::npos) continue;
    const std::size_t from = at + kGroup.size();
    const std::string group = note->message.substr(from, note->message.find('"', from) - from);
    add(out, "create the PodGroup " + group, "create-group", 2, [&s, group](Draft& draft) {
      Tree object;
      object["apiVersion"] = Tree::of_text("scheduling.x-k8s.io/v1alpha1");
      object["kind"] = Tree::of_text("PodGroup");
      object["metadata"]["name"] = Tree::of_text(group);
      object["metadata"]["namespace"] = Tree::of_text(s.unit.ns);
      object["spec"]["minMember"] = Tree::of_number(1);
      draft.create(std::move(object));
      return true;
    });
  }
}

// Of a Workload object.
void workload(const Situation& s, Proposals& out) {
  if (s.unit.queued == nullptr) return;
  const std::string& name = s.unit.queued->name;
  const auto edit = [&s, name](Draft& draft) {
    return draft.edit(s.objects(), "Workload", s.unit.ns, name);
  };
  if (s.reason == Reason::kDeactivated) {
    add(out, "set spec.active true", "activate", 1, [edit](Draft& draft) {
      Tree* object = edit(draft);
      return object != nullptr && (*object)["spec"].erase("active");
    });
  }
  if (s.reason == Reason::kAdmissionGated) {
    add(out, "remove the annotation that holds it", "remove-gate", 1, [edit, &s](Draft& draft) {
      Tree* object = edit(draft);
      if (object == nullptr) object = draft.edit(s.objects(), "Job", s.unit.ns, s.unit.name);
      Tree* meta = object == nullptr ? nullptr : object->find("metadata");
      Tree* notes = meta == nullptr ? nullptr : meta->find("annotations");
      return notes != nullptr && notes->erase("kueue.x-k8s.io/admission-gated-by");
    });
  }
  if (s.reason == Reason::kPreemptionGated) {
    add(out, "open its preemption gates", "remove-gate", 2, [edit](Draft& draft) {
      Tree* object = edit(draft);
      return object != nullptr && (*object)["spec"].erase("preemptionGates");
    });
  }
}

void stopped(const Situation& s, Proposals& out) {
  if (s.unit.queued == nullptr || s.reason != Reason::kOnHold) return;
  const auto& queues = s.inputs().queues;
  for (const model::LocalQueueSpec& local : queues.local_queues) {
    if (local.ns != s.unit.queued->ns || local.name != s.unit.queued->queue) continue;
    const bool cluster =
        std::any_of(queues.queues.begin(), queues.queues.end(), [&](const auto& queue) {
          return queue.name == local.queue && queue.stop != model::StopPolicy::kNone;
        });
    add(out, "let the queue " + local.name + " go on", "resume-queue", 3,
        [&s, local, cluster](Draft& draft) {
          bool changed = false;
          if (local.stop != model::StopPolicy::kNone) {
            Tree* object = draft.edit(s.objects(), "LocalQueue", local.ns, local.name);
            changed |= object != nullptr && (*object)["spec"].erase("stopPolicy");
          }
          if (cluster) {
            Tree* object = draft.edit(s.objects(), "ClusterQueue", "", local.queue);
            changed |= object != nullptr && (*object)["spec"].erase("stopPolicy");
          }
          return changed;
        });
  }
  for (const RawObject& raw :
       s.objects() == nullptr ? std::vector<RawObject>() : s.objects()->of_kind("Queue")) {
    if (raw.name != s.unit.queued->queue) continue;
    add(out, "open the queue " + raw.name, "resume-queue", 3, [&s, name = raw.name](Draft& draft) {
      Tree* object = draft.edit(s.objects(), "Queue", "", name);
      if (object == nullptr) return false;
      (*object)["status"]["state"] = Tree::of_text("Open");
      return true;
    });
  }
}

// A LocalQueue that does not exist, or one of a ClusterQueue that cannot admit.
void queue_objects(const Situation& s, Proposals& out) {
  if (s.unit.queued == nullptr || s.objects() == nullptr) return;
  const std::string ns = s.unit.queued->ns, name = s.unit.queued->queue;
  if (s.reason != Reason::kMisconfigured) return;
  const bool exists = s.objects()->find("LocalQueue", ns, name).has_value();
  for (const RawObject& raw : s.objects()->of_kind("ClusterQueue")) {
    if (exists || name.empty() || out.size() > 64) break;
    add(out, fmt::format("create the LocalQueue {} for {}", name, raw.name), "create-queue", 3,
        [ns, name, raw](Draft& draft) {
          Tree queue;
          queue["apiVersion"] = Tree::of_text(raw.api_version);
          queue["kind"] = Tree::of_text("LocalQueue");
          queue["metadata"]["name"] = Tree::of_text(name);
          queue["metadata"]["namespace"] = Tree::of_text(ns);
          queue["spec"]["clusterQueue"] = Tree::of_text(raw.name);
          draft.create(std::move(queue));
          return true;
        });
  }
  for (const model::LocalQueueSpec& local : s.inputs().queues.local_queues) {
    if (local.ns != ns || local.name != name) continue;
    const std::string cluster = local.queue;
    add(out, "let " + cluster + " take every namespace", "open-queue", 4,
        [&s, cluster](Draft& draft) {
          Tree* object = draft.edit(s.objects(), "ClusterQueue", "", cluster);
          if (object == nullptr) return false;
          Tree everything;
          everything["all"];
          everything.erase("all");
          (*object)["spec"]["namespaceSelector"] = everything;
          return true;
        });
  }
}

// What a ClusterQueue asks beyond quota.
void queue_rules(const Situation& s, Proposals& out) {
  if (s.unit.queued == nullptr || s.objects() == nullptr) return;
  for (const model::LocalQueueSpec& local : s.inputs().queues.local_queues) {
    if (local.ns != s.unit.queued->ns || local.name != s.unit.queued->queue) continue;
    const std::string cluster = local.queue;
    const bool checks =
        s.reason == Reason::kUnsatisfiedAdmissionChecks || s.reason == Reason::kMisconfigured;
    if (checks) {
      add(out, "take the admission checks off " + cluster, "drop-checks", 4,
          [&s, cluster](Draft& draft) {
            Tree* object = draft.edit(s.objects(), "ClusterQueue", "", cluster);
            if (object == nullptr) return false;
            Tree& spec = (*object)["spec"];
            const bool strategy = spec.erase("admissionChecksStrategy");
            return spec.erase("admissionChecks") || strategy;
          });
    }
    const bool strict =
        std::any_of(s.inputs().queues.queues.begin(), s.inputs().queues.queues.end(),
                    [&](const auto& queue) { return queue.name == cluster && queue.strict_fifo; });
    if (strict) {
      add(out, "queueingStrategy BestEffortFIFO for " + cluster, "best-effort-fifo", 3,
          [&s, cluster](Draft& draft) {
            Tree* object = draft.edit(s.objects(), "ClusterQueue", "", cluster);
            if (object == nullptr) return false;
            (*object)["spec"]["queueingStrategy"] = Tree::of_text("BestEffortFIFO");
            return true;
          });
    }
  }
}

}  // namespace

void propose_gates(const Situation& s, Proposals& out) {
  gates(s, out);
  claims(s, out);
  if (s.objects() == nullptr) return;
  node_name(s, out);
  complaints(s, out);
  suspended(s, out);
  workload(s, out);
  stopped(s, out);
  queue_objects(s, out);
  queue_rules(s, out);
}

}  // namespace berth::people
