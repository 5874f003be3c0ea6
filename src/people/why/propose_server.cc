// Fixes of what the API server holds a workload by: quota of its namespace, ranges, classes.
#include <fmt/format.h>

#include <algorithm>

#include "people/view/words.h"
#include "people/why/fixes.h"
#include "people/why/kai_rules.h"
#include "people/why/makers.h"
#include "people/why/pod_security.h"
#include "text/quantity.h"

namespace berth::people {

namespace {

using model::PodSpec;

void against(Proposals& out, std::string title, const char* kind, int disturbance,
             std::function<bool(Draft&)> apply, int restarts = 0) {
  out.push_back({.title = std::move(title),
                 .kind = kind,
                 .disturbance = disturbance,
                 .restarts = restarts,
                 .objects_only = true,
                 .against_held = true,
                 .apply = std::move(apply)});
}

std::function<bool(Draft&)> in_templates(const Situation& s, std::function<void(Tree&)> edit) {
  return [&s, edit = std::move(edit)](Draft& draft) {
    return edit_pods(s, draft, [](PodSpec&) {}, [&edit](Tree&, Tree& spec) { edit(spec); });
  };
}

void for_containers(Tree& spec, const std::function<void(Tree&)>& edit) {
  for (const char* list : {"initContainers", "containers"}) {
    if (spec.find(list) == nullptr) continue;
    for (Tree& container : spec[list].items()) edit(container);
  }
}

// Pods that nobody makes anew, and Jobs with theirs: what ends gives its quota back.
void end_others(const Situation& s, Proposals& out) {
  std::vector<std::pair<int, const PodSpec*>> order;
  for (const PodSpec& pod : s.inputs().pods) {
    const bool other =
        pod.ns == s.unit.ns && !pod.node_name.empty() &&
        std::find(s.unit.running.begin(), s.unit.running.end(), &pod) == s.unit.running.end();
    if (other && pod.owner.empty()) order.emplace_back(pod.gpu.count, &pod);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (order.size() > 6) order.resize(6);
  for (const auto& [gpus, pod] : order) {
    against(
        out,
        fmt::format("delete {}/{}{} on {}", pod->ns, pod->name,
                    gpus > 0 ? fmt::format(" ({})", gpus) : std::string(), pod->node_name),
        "delete-pod", 3,
        [&s, holder = pod](Draft& draft) {
          draft.remove(s.objects(), "Pod", holder->ns, holder->name);
          return !draft.objects.empty();
        },
        1);
  }
}

void namespace_quota(const Situation& s, const Held& held, Proposals& out) {
  const bool job_alone = s.unit.places.size() == 1 && s.unit.places.front().kind == "Job" &&
                         s.unit.places.front().path.size() == 2;
  if (held.too_many > 0 && job_alone) {
    const TemplatePlace& place = s.unit.places.front();
    const auto job = s.objects()->find("Job", place.ns, place.name);
    const int fewer = job ? pods_at(*s.objects(), *job, place) - held.too_many : 0;
    if (fewer > 0) {
      against(out, fmt::format("run {} at a time", show_count(fewer, "pod")), "fewer-pods", 2,
              [&s, place, fewer](Draft& draft) {
                Tree* object = draft.edit(s.objects(), "Job", place.ns, place.name);
                if (object == nullptr) return false;
                (*object)["spec"]["parallelism"] = Tree::of_number(fewer);
                return true;
              });
    }
  }
  against(out, fmt::format("ResourceQuota {}: {} {}", held.object, held.enough, held.resource),
          "namespace-quota", 3, [&s, held](Draft& draft) {
            Tree* quota = draft.edit(s.objects(), "ResourceQuota", s.unit.ns, held.object);
            if (quota == nullptr) return false;
            (*quota)["spec"]["hard"][held.resource] = Tree::of_text(held.enough);
            return true;
          });
  end_others(s, out);
}

// "limits.cpu": of every container that states none; what it requests is enough.
void state_amounts(const Situation& s, const Held& held, Proposals& out) {
  const bool limits = held.resource.starts_with("limits.");
  const std::string resource = held.resource.substr(held.resource.find('.') + 1);
  const std::string amount = resource == "cpu" ? "1" : "1Gi";
  const char* list = limits ? "limits" : "requests";
  against(out, fmt::format("state {} of {} in its containers", list, resource), "state-amount", 1,
          in_templates(s, [=](Tree& spec) {
            for_containers(spec, [&](Tree& container) {
              Tree& resources = container["resources"];
              const Tree* asked = resources["requests"].find(resource);
              const std::string value = asked == nullptr ? amount : asked->string();
              if (resources[list].find(resource) == nullptr) {
                resources[list][resource] = Tree::of_text(value);
              }
              if (resources["requests"].is_null()) resources.erase("requests");
            });
          }));
}

// "4" and "4000m" are the same.
bool says_amount(const Tree* at, const std::string& amount) {
  if (at == nullptr) return false;
  const auto has = text::parse_quantity(at->string()), want = text::parse_quantity(amount);
  return has.ok() && want.ok() && *has == *want;
}

void limit_range(const Situation& s, const Held& held, Proposals& out) {
  const bool gpus = held.resource.find("gpu") != std::string::npos;
  against(out, fmt::format("ask for {} {} a container", held.enough, held.resource),
          gpus ? "fewer-gpus" : "fewer-resources", 2, in_templates(s, [held](Tree& spec) {
            for_each_amounts(spec, [&held](Tree& amounts) {
              Tree* now = amounts.find(held.resource);
              if (says_amount(now, held.asked)) *now = Tree::of_text(held.enough);
            });
          }));
  if (!held.name.empty()) {
    return against(out,
                   fmt::format("LimitRange {}: limits of {} times the request of {}", held.object,
                               held.name, held.resource),
                   "limit-range", 3, [&s, held](Draft& draft) {
                     Tree* range = draft.edit(s.objects(), "LimitRange", s.unit.ns, held.object);
                     if (range == nullptr) return false;
                     for (Tree& item : (*range)["spec"]["limits"].items()) {
                       Tree* ratios = item.find("maxLimitRequestRatio");
                       Tree* now = ratios == nullptr ? nullptr : ratios->find(held.resource);
                       if (now != nullptr) *now = Tree::of_text(held.name);
                     }
                     return true;
                   });
  }
  against(out, fmt::format("LimitRange {}: {} {}", held.object, held.asked, held.resource),
          "limit-range", 3, [&s, held](Draft& draft) {
            Tree* range = draft.edit(s.objects(), "LimitRange", s.unit.ns, held.object);
            if (range == nullptr) return false;
            for (Tree& item : (*range)["spec"]["limits"].items()) {
              for (const char* bound : {"max", "min", "default"}) {
                Tree* amounts = item.find(bound);
                Tree* now = amounts == nullptr ? nullptr : amounts->find(held.resource);
                if (says_amount(now, held.enough)) *now = Tree::of_text(held.asked);
              }
            }
            return true;
          });
}

// The class or the label: one of them is not meant.
void class_labels(const Situation& s, const Held& held, Proposals& out) {
  against(out, "do without the label " + held.name + " in its nodeSelector", "drop-selector", 1,
          in_templates(s, [held](Tree& spec) {
            Tree& selector = spec["nodeSelector"];
            selector.erase(held.name);
            if (selector.members().empty()) spec.erase("nodeSelector");
          }));
  against(out, "do without the runtimeClassName " + held.object, "drop-class", 2,
          in_templates(s, [](Tree& spec) { spec.erase("runtimeClassName"); }));
}

void runtime_class(const Situation& s, const Held& held, Proposals& out) {
  if (!held.name.empty()) {
    against(out, fmt::format("runtimeClassName {} instead of {}", held.name, held.object),
            "other-class", 1, in_templates(s, [held](Tree& spec) {
              spec["runtimeClassName"] = Tree::of_text(held.name);
            }));
  }
  against(out, "do without the runtimeClassName " + held.object, "drop-class", 2,
          in_templates(s, [](Tree& spec) { spec.erase("runtimeClassName"); }));
  against(out, "create the RuntimeClass " + held.object, "create-class", 3, [held](Draft& draft) {
    Tree made;
    made["apiVersion"] = Tree::of_text("node.k8s.io/v1");
    made["kind"] = Tree::of_text("RuntimeClass");
    made["metadata"]["name"] = Tree::of_text(held.object);
    made["handler"] = Tree::of_text(held.object);
    draft.create(std::move(made));
    return true;
  });
}

void storage(const Situation& s, const Held& held, Proposals& out) {
  for (const RawObject& raw : s.objects()->of_kind("StorageClass")) {
    if (out.size() > 3) break;
    against(out, fmt::format("make the claim {} anew, of storage class {}", held.object, raw.name),
            "claim", 2, [&s, held, storage_class = raw.name](Draft& draft) {
              Tree* claim =
                  draft.edit(s.objects(), "PersistentVolumeClaim", s.unit.ns, held.object);
              if (claim == nullptr) return false;
              (*claim)["spec"]["storageClassName"] = Tree::of_text(storage_class);
              claim->erase("status");  // it is a new one
              (*claim)["metadata"].erase("uid");
              return true;
            });
  }
  against(out, "do without the volume of claim " + held.object, "drop-volume", 2,
          in_templates(s, [held](Tree& spec) { drop_claims(spec, {held.object}); }));
  for (const RawObject& raw : s.objects()->of_kind("StorageClass")) {
    if (out.size() > 6) break;
    against(out, fmt::format("storage class {} for the volume {}", raw.name, held.object), "claim",
            1, in_templates(s, [held, storage_class = raw.name](Tree& spec) {
              if (spec.find("volumes") == nullptr) return;
              for (Tree& volume : spec["volumes"].items()) {
                Tree* made = volume.find("ephemeral");
                const Tree* name = volume.find("name");
                if (made == nullptr || name == nullptr || name->string() != held.object) continue;
                (*made)["volumeClaimTemplate"]["spec"]["storageClassName"] =
                    Tree::of_text(storage_class);
              }
            }));
  }
}

// Claims that a StatefulSet makes; the field cannot be changed, so the set is made anew.
void own_claims(const Situation& s, const Held& held, Proposals& out) {
  const bool set = !s.unit.places.empty() && s.unit.places.front().kind == "StatefulSet";
  if (!set) return;
  for (const RawObject& raw : s.objects()->of_kind("StorageClass")) {
    if (out.size() > 9) break;
    against(out,
            fmt::format("make the StatefulSet anew, its claims {} of storage class {}", held.object,
                        raw.name),
            "claim", 2, [&s, held, storage_class = raw.name](Draft& draft) {
              const TemplatePlace& place = s.unit.places.front();
              Tree* object = draft.edit(s.objects(), place.kind, place.ns, place.name);
              Tree* claims = below(object, {"spec", "volumeClaimTemplates"});
              bool changed = false;
              for (std::size_t i = 0; claims != nullptr && i < claims->items().size(); ++i) {
                Tree& claim = claims->items()[i];
                const Tree* name = below(&claim, {"metadata", "name"});
                if (name == nullptr || name->string() != held.object) continue;
                claim["spec"]["storageClassName"] = Tree::of_text(storage_class);
                changed = true;
              }
              return changed;
            });
  }
}

void account(const Situation& s, const Held& held, Proposals& out) {
  const auto set = [&](std::string title, const std::string& name) {
    against(out, std::move(title), "service-account", 1, in_templates(s, [name](Tree& spec) {
              spec.erase("serviceAccount");
              spec.erase("serviceAccountName");
              if (!name.empty()) spec["serviceAccountName"] = Tree::of_text(name);
            }));
  };
  if (!held.name.empty()) {
    set(fmt::format("serviceAccountName {} instead of {}", held.name, held.object), held.name);
  }
  against(out, "create the ServiceAccount " + held.object, "create-account", 3,
          [&s, held](Draft& draft) {
            Tree made;
            made["apiVersion"] = Tree::of_text("v1");
            made["kind"] = Tree::of_text("ServiceAccount");
            made["metadata"]["name"] = Tree::of_text(held.object);
            made["metadata"]["namespace"] = Tree::of_text(s.unit.ns);
            draft.create(std::move(made));
            return true;
          });
  set("use the default ServiceAccount", "");
}

// Work of KAI that may not be preempted: it may be, or the queue deserves more.
void deserved(const Situation& s, const Held& held, Proposals& out) {
  against(out, "let it be preempted: " + std::string(kPreemptibilityLabel) + " preemptible",
          "preemptible", 1, [&s](Draft& draft) {
            for (const RawObject& group : s.objects()->in_namespace("PodGroup", s.unit.ns)) {
              if (group.name != s.unit.name || s.unit.queued == nullptr) continue;
              Tree* object = draft.edit(s.objects(), "PodGroup", group.ns, group.name);
              if (object != nullptr)
                (*object)["spec"]["preemptibility"] = Tree::of_text("preemptible");
            }
            return edit_pods(
                s, draft, [](PodSpec&) {},
                [](Tree& meta, Tree&) {
                  meta["labels"][kPreemptibilityLabel] = Tree::of_text("preemptible");
                });
          });
  against(out, fmt::format("quota of the queue {}: {} {}", held.object, held.enough, held.name),
          "raise-quota", 3, [&s, held](Draft& draft) {
            Tree* queue = draft.edit(s.objects(), "Queue", "", held.object);
            Tree* share = below(queue, {"spec", "resources", held.resource});
            if (share == nullptr) return false;
            const std::int64_t enough = std::stoll(held.enough);
            (*share)["quota"] = Tree::of_number(enough);
            const Tree* limit = share->find("limit");
            const auto most = text::parse_quantity(limit == nullptr ? "-1" : limit->string());
            const bool less = most.ok() && !most->is_negative() && most->value() < enough;
            if (less) (*share)["limit"] = Tree::of_number(enough);
            return true;
          });
}

void security(const Situation& s, const Held& held, Proposals& out) {
  against(out, fmt::format("keep to the Pod Security Standard {} in its template", held.name),
          "security-context", 1,
          in_templates(s, [held](Tree& spec) { meet_standard(spec, held.name); }));
  for (const char* standard : {"baseline", "privileged"}) {
    if (held.name == standard) continue;
    against(out, fmt::format("enforce {} in the namespace {}", standard, held.object),
            "namespace-standard", 3, [&s, held, standard](Draft& draft) {
              Tree* ns = draft.edit(s.objects(), "Namespace", "", held.object);
              if (ns == nullptr) return false;
              (*ns)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] =
                  Tree::of_text(standard);
              return true;
            });
  }
}

}  // namespace

void propose_server(const Situation& s, Proposals& out) {
  if (s.held == nullptr || s.objects() == nullptr) return;
  const Held& held = *s.held;
  switch (held.by) {
    case Held::By::kQuota:
      return namespace_quota(s, held, out);
    case Held::By::kNoAmount:
      return state_amounts(s, held, out);
    case Held::By::kLimitRange:
      return limit_range(s, held, out);
    case Held::By::kRuntimeClass:
      return runtime_class(s, held, out);
    case Held::By::kClassLabels:
      return class_labels(s, held, out);
    case Held::By::kStorage:
      storage(s, held, out);
      return own_claims(s, held, out);
    case Held::By::kClaimInUse:
      against(
          out, fmt::format("delete {}/{}", s.unit.ns, held.name), "delete-pod", 3,
          [&s, held](Draft& draft) {
            draft.remove(s.objects(), "Pod", s.unit.ns, held.name);
            return !draft.objects.empty();
          },
          1);
      return against(out, "do without the volume of claim " + held.object, "drop-volume", 2,
                     in_templates(s, [held](Tree& spec) { drop_claims(spec, {held.object}); }));
    case Held::By::kNamespace:
    case Held::By::kDevices:
    case Held::By::kWebhook:
      return;  // nothing brings it back; whether a claim can be met, what a webhook says: unknown
    case Held::By::kManaged:
      return against(out, "make the Job anew without spec.managedBy", "remove-field", 2,
                     [&s, held](Draft& draft) {
                       Tree* job = draft.edit(s.objects(), "Job", s.unit.ns, held.object);
                       return job != nullptr && (*job)["spec"].erase("managedBy");
                     });
    case Held::By::kOrder:
      return against(out, "make its pods side by side (podManagementPolicy Parallel)",
                     "side-by-side", 2, [&s](Draft& draft) {
                       Tree* set = draft.edit(s.objects(), "StatefulSet", s.unit.ns, s.unit.name);
                       if (set == nullptr) return false;
                       (*set)["spec"]["podManagementPolicy"] = Tree::of_text("Parallel");
                       return true;
                     });
    case Held::By::kDeserved:
      return deserved(s, held, out);
    case Held::By::kAccount:
      return account(s, held, out);
    case Held::By::kSecurity:
      return security(s, held, out);
    case Held::By::kQueueName:
      return against(out, fmt::format("use the queue {}", held.name), "other-queue", 1,
                     [&s, held](Draft& draft) {
                       return edit_pods(
                           s, draft, [](PodSpec&) {},
                           [&held](Tree& meta, Tree&) {
                             meta["labels"][kKaiQueueLabel] = Tree::of_text(held.name);
                           });
                     });
    case Held::By::kScheduler:
      return against(out, fmt::format("schedulerName {} instead of {}", held.name, held.object),
                     "scheduler-name", 1, in_templates(s, [held](Tree& spec) {
                       spec["schedulerName"] = Tree::of_text(held.name);
                     }));
  }
}

}  // namespace berth::people
