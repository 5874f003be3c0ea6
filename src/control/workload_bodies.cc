#include "control/workload_bodies.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "objects/kueue_workload.h"
#include "objects/readers.h"
#include "text/json.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::control {

using text::JsonWriter;
using text::Value;

namespace {

std::string whole_seconds(std::int64_t now_ns) {
  return text::format_rfc3339(now_ns / 1'000'000'000 * 1'000'000'000);
}

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

std::string toleration_json(const model::Toleration& t) {
  JsonWriter out;
  out.object([&] {
    if (!t.key.empty()) out.field("key", t.key);
    out.field("operator", t.op == model::Toleration::Op::kExists ? "Exists" : "Equal");
    if (!t.value.empty()) out.field("value", t.value);
    if (t.effect) out.field("effect", effect_name(*t.effect));
  });
  return std::move(out).take();
}

void write_topology_request(JsonWriter& out, const model::TopologyAsk& ask) {
  using Mode = model::TopologyAsk::Mode;
  if (!ask.asks()) return;
  out.object("topologyRequest", [&] {
    if (ask.mode == Mode::kRequired) out.field("required", ask.level);
    if (ask.mode == Mode::kPreferred) out.field("preferred", ask.level);
    if (ask.mode == Mode::kUnconstrained) out.field("unconstrained", true);
    if (!ask.group.empty()) out.field("podSetGroupName", ask.group);
    if (ask.slices.size() == 1) {
      out.field("podSetSliceRequiredTopology", ask.slices.front().level);
      out.field("podSetSliceSize", ask.slices.front().size);
    } else if (!ask.slices.empty()) {
      out.array("podsetSliceRequiredTopologyConstraints", [&] {
        for (const auto& slice : ask.slices) {
          out.object([&] {
            out.field("topology", slice.level);
            out.field("size", slice.size);
          });
        }
      });
    }
  });
}

// A pod as a template: what the API server put there for this one pod is left out.
void write_pod_as_template(JsonWriter& out, const Value& pod) {
  out.object([&] {
    out.object("metadata", [&] {
      for (const std::string_view key : {"labels", "annotations"}) {
        const Value* found = pod["metadata"].find(key);
        if (found != nullptr && found->size() > 0) out.field(key, *found);
      }
    });
    out.object("spec", [&] {
      const Value* spec = pod.find("spec");
      if (spec != nullptr) {
        for (const text::Member& member : spec->members()) {
          if (member.key == "nodeName" || member.key == "schedulingGates") continue;
          out.field(member.key, member.value);
        }
      }
    });
  });
}

void write_topology_assignment(JsonWriter& out, const model::TopologyAssignment& topology) {
  out.object("topologyAssignment", [&] {
    out.list("levels", topology.levels);
    out.array("slices", [&] {
      for (const auto& domain : topology.domains) {
        out.object([&] {
          out.field("domainCount", 1);
          out.array("valuesPerLevel", [&] {
            for (const std::string& value : domain.values) {
              out.object([&] { out.field("universal", value); });
            }
          });
          out.object("podCounts", [&] { out.field("universal", domain.count); });
        });
      }
    });
  });
}

void write_admission(JsonWriter& out, const model::Admission& admission) {
  out.object([&] {
    out.field("clusterQueue", admission.queue);
    out.array("podSetAssignments", [&] {
      for (const model::PodSetAdmission& set : admission.pod_sets) {
        out.object([&] {
          out.field("name", set.name);
          out.field("count", set.count);
          out.object("flavors", [&] {
            for (const auto& [resource, flavor] : set.flavors) out.field(resource, flavor);
          });
          out.object("resourceUsage", [&] {
            for (const auto& [resource, amount] : set.usage) {
              out.field(resource, amount_text(resource, amount));
            }
          });
          if (set.topology) write_topology_assignment(out, *set.topology);
        });
      }
    });
  });
}

}  // namespace

std::string amount_text(std::string_view resource, std::int64_t amount) {
  if (resource != "cpu") return std::to_string(amount);
  return amount % 1000 == 0 ? std::to_string(amount / 1000) : std::to_string(amount) + "m";
}

std::string workload_name(std::string_view kind, std::string_view name, std::string_view uid) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const std::string_view part : {kind, name, uid}) {
    for (const char c : part) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    h = (h ^ 0xff) * 0x100000001b3u;
  }
  std::string out;
  for (const char c : kind) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  out += '-';
  out += name.substr(0, 200);
  return fmt::format("{}-{:05x}", out, h & 0xfffff);
}

namespace {

void write_class(JsonWriter& out, std::string_view priority_class) {
  out.object("priorityClassRef", [&] {
    out.field("group", "kueue.x-k8s.io");
    out.field("kind", "WorkloadPriorityClass");
    out.field("name", priority_class);
  });
}

void write_owners(JsonWriter& out, const std::vector<WorkloadOwner>& owners) {
  out.array("ownerReferences", [&] {
    for (const WorkloadOwner& owner : owners) {
      out.object([&] {
        out.field("apiVersion", owner.version);
        out.field("kind", owner.kind);
        out.field("name", owner.name);
        out.field("uid", owner.uid);
        if (owner.controller) {
          out.field("controller", true);
          out.field("blockOwnerDeletion", true);
        }
      });
    }
  });
}

}  // namespace

std::string move_patch(std::string_view queue, std::string_view priority_class) {
  JsonWriter out;
  out.object([&] {
    out.object("spec", [&] {
      if (!queue.empty()) out.field("queueName", queue);
      if (!priority_class.empty()) write_class(out, priority_class);
    });
  });
  return std::move(out).take();
}

std::string owners_patch(const std::vector<WorkloadOwner>& owners) {
  JsonWriter out;
  out.object([&] { out.object("metadata", [&] { write_owners(out, owners); }); });
  return std::move(out).take();
}

std::string workload_body(const model::WorkloadSpec& spec, const std::string& name,
                          const std::vector<WorkloadOwner>& owners,
                          const std::vector<PodSetTemplate>& templates,
                          const std::string& priority_class) {
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "kueue.x-k8s.io/v1beta2");
    out.field("kind", "Workload");
    out.object("metadata", [&] {
      out.field("name", name);
      out.field("namespace", spec.ns);
      if (owners.size() == 1) {
        out.object("labels", [&] { out.field("kueue.x-k8s.io/job-uid", owners.front().uid); });
      }
      if (!spec.replaces.empty()) {
        out.object("annotations", [&] {
          out.field("kueue.x-k8s.io/workload-slice-replacement-for", spec.replaces);
        });
      }
      write_owners(out, owners);
    });
    out.object("spec", [&] {
      out.field("active", true);
      out.field("queueName", spec.queue);
      out.field("priority", spec.priority);
      if (!priority_class.empty()) write_class(out, priority_class);
      if (spec.max_execution_s > 0) out.field("maximumExecutionTimeSeconds", spec.max_execution_s);
      out.array("podSets", [&] {
        for (std::size_t i = 0; i < spec.pod_sets.size() && i < templates.size(); ++i) {
          const model::PodSetSpec& set = spec.pod_sets[i];
          out.object([&] {
            out.field("name", set.name);
            out.field("count", set.count);
            if (set.min_count) out.field("minCount", *set.min_count);
            write_topology_request(out, set.topology);
            out.key("template");
            if (templates[i].whole_pod) {
              write_pod_as_template(out, *templates[i].pod_template);
            } else {
              out.value(*templates[i].pod_template);
            }
          });
        }
      });
    });
  });
  return std::move(out).take();
}

// ---- beside the status ----

std::string_view waiting_reason(model::Reason reason) {
  using R = model::Reason;
  switch (reason) {
    case R::kPendingEvaluation:
    case R::kWaitingForQuota:
    case R::kExceedsMaxQuota:
    case R::kNoMatchingFlavor:
    case R::kTopologyPlacementFailed:
    case R::kWaitingForPreemptedWorkloads:
    case R::kWaitingForPodsReady:
    case R::kMisconfigured:
    case R::kOnHold:
    case R::kAdmissionGated:
    case R::kDeactivated:
      return model::name(reason);
    case R::kQueueRequired:
    case R::kQueueNotAllowed:
      return "Misconfigured";
    case R::kPreemptionGated:
      return "WaitingForQuota";
    case R::kNone:
    case R::kGangIncomplete:
      return "PendingEvaluation";
    default:
      return "TopologyPlacementFailed";  // quota would do, nodes do not
  }
}

std::string seats_text(const std::vector<KnownPlace>& places) {
  std::map<std::string_view, std::vector<const KnownPlace*>> sets;
  for (const KnownPlace& place : places) sets[place.pod_set].push_back(&place);
  JsonWriter out;
  out.object([&] {
    for (const auto& [set, list] : sets) {
      out.array(set, [&] {
        for (const KnownPlace* place : list) {
          out.object([&] {
            out.field("node", place->node);
            if (!place->gpus.empty()) {
              out.array("gpus", [&] {
                for (const int gpu : place->gpus) out.value(gpu);
              });
            }
          });
        }
      });
    }
  });
  return std::move(out).take();
}

std::string preemption_times(const std::vector<std::int64_t>& before, std::int64_t now_ns) {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  constexpr std::int64_t kHourNs = 3600 * kSecondNs;
  constexpr std::size_t kMost = objects::kMostPreemptions;
  std::vector<std::int64_t> times;
  for (const std::int64_t time : before) {
    if (now_ns - time < kHourNs) times.push_back(time);
  }
  times.push_back(now_ns / kSecondNs * kSecondNs);
  if (times.size() > kMost) {
    times.erase(times.begin(), times.end() - static_cast<std::ptrdiff_t>(kMost));
  }
  std::string out;
  for (const std::int64_t time : times) {
    out += (out.empty() ? "" : ",") + text::format_rfc3339(time);
  }
  return out;
}

std::string annotation_patch(std::string_view key, std::string_view value) {
  JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] { out.object("annotations", [&] { out.field(key, value); }); });
  });
  return std::move(out).take();
}

bool deactivates(const model::Eviction& eviction) {
  return eviction.reason.starts_with("DeactivatedDueTo");
}

// ---- status of a Workload ----

WorkloadStatus::WorkloadStatus(const Value& workload, std::int64_t now_ns)
    : now_(whole_seconds(now_ns)) {
  version_ = text_at(workload, "metadata.resourceVersion");
  generation_ = int_at(workload, "metadata.generation", generation_);
  if (const Value* list = text::find(workload, "status.conditions")) {
    for (const Value& c : list->items()) {
      Condition one{std::string(text_at(c, "type")), std::string(text_at(c, "status")),
                    std::string(text_at(c, "reason")), std::string(text_at(c, "message")),
                    std::string(text_at(c, "lastTransitionTime"))};
      if (const Value* g = c.find("observedGeneration")) one.generation = g->as_int64().value_or(0);
      conditions_.push_back(std::move(one));
    }
  }
  if (const Value* list = text::find(workload, "status.unhealthyNodes")) {
    for (const Value& node : list->items()) unhealthy_.emplace_back(text_at(node, "name"));
  }
  if (const Value* list = text::find(workload, "status.admissionChecks")) {
    for (const Value& c : list->items()) {
      Check one{std::string(text_at(c, "name")), std::string(text_at(c, "state")),
                std::string(text_at(c, "message")), std::string(text_at(c, "lastTransitionTime"))};
      if (const Value* r = c.find("retryCount")) one.retries = r->as_int64().value_or(0);
      checks_.push_back(std::move(one));
    }
  }
}

void WorkloadStatus::forget_node(std::string_view node) {
  const auto gone = std::erase_if(
      unhealthy_, [&](const std::string& one) { return node.empty() || one == node; });
  if (gone > 0) nodes_changed_ = changed_ = true;
}

WorkloadStatus::Condition* WorkloadStatus::find(std::string_view type) {
  for (Condition& c : conditions_) {
    if (c.type == type) return &c;
  }
  return nullptr;
}
const WorkloadStatus::Condition* WorkloadStatus::find(std::string_view type) const {
  return const_cast<WorkloadStatus*>(this)->find(type);
}
bool WorkloadStatus::has(std::string_view type) const { return find(type) != nullptr; }
bool WorkloadStatus::is_true(std::string_view type) const {
  const Condition* c = find(type);
  return c != nullptr && c->status == "True";
}
std::string_view WorkloadStatus::reason(std::string_view type) const {
  const Condition* c = find(type);
  return c == nullptr ? std::string_view{} : c->reason;
}

void WorkloadStatus::set(std::string_view type, bool status, std::string_view reason,
                         std::string_view message) {
  const std::string_view word = status ? "True" : "False";
  Condition* c = find(type);
  if (c != nullptr && c->status == word && c->reason == reason && c->message == message) return;
  if (c == nullptr) {
    conditions_.push_back({.type = std::string(type)});
    c = &conditions_.back();
  }
  if (c->status != word) c->since = now_;
  c->status = word;
  c->reason = reason;
  c->message = message.substr(0, 32 * 1024);
  c->generation = generation_;
  changed_ = true;
}

void WorkloadStatus::clear(std::string_view type, std::string_view reason,
                           std::string_view message) {
  if (is_true(type)) set(type, false, reason, message);
}

void WorkloadStatus::admit(const model::Admission& admission) {
  JsonWriter out;
  write_admission(out, admission);
  admission_ = std::move(out).take();
  changed_ = true;
}

void WorkloadStatus::release() {
  admission_ = "null";
  forget_node("");
  for (Check& check : checks_) {
    check.message = "Reset to Pending after eviction. Previously: " + check.state;
    if (check.state == "Retry") ++check.retries;
    check.state = "Pending";
    check.since = now_;
    checks_changed_ = true;
  }
  changed_ = true;
}

void WorkloadStatus::want_checks(const std::vector<std::string>& checks) {
  for (const std::string& name : checks) {
    const bool there = std::any_of(checks_.begin(), checks_.end(),
                                   [&](const Check& check) { return check.name == name; });
    if (there) continue;
    checks_.push_back({name, "Pending", "", now_});
    checks_changed_ = changed_ = true;
  }
}

bool WorkloadStatus::checks_ready() const {
  return std::all_of(checks_.begin(), checks_.end(),
                     [](const Check& check) { return check.state == "Ready"; });
}

void WorkloadStatus::requeue_at(int count, std::int64_t at_ns) {
  requeue_ = fmt::format(R"({{"count":{},"requeueAt":"{}"}})", count, whole_seconds(at_ns));
  changed_ = true;
}

std::string WorkloadStatus::patch() const {
  JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] { out.field("resourceVersion", version_); });
    out.object("status", [&] {
      out.array("conditions", [&] {
        for (const Condition& c : conditions_) {
          out.object([&] {
            out.field("type", c.type);
            out.field("status", c.status);
            out.field("reason", c.reason);
            out.field("message", c.message);
            out.field("lastTransitionTime", c.since.empty() ? now_ : c.since);
            if (c.generation > 0) out.field("observedGeneration", c.generation);
          });
        }
      });
      if (!admission_.empty()) {
        out.key("admission");
        out.raw(admission_);
      }
      if (!requeue_.empty()) {
        out.key("requeueState");
        out.raw(requeue_);
      }
      if (nodes_changed_) {
        out.array("unhealthyNodes", [&] {
          for (const std::string& node : unhealthy_) {
            out.object([&] { out.field("name", node); });
          }
        });
      }
      if (checks_changed_) {
        out.array("admissionChecks", [&] {
          for (const Check& c : checks_) {
            out.object([&] {
              out.field("name", c.name);
              out.field("state", c.state);
              out.field("message", c.message);
              out.field("lastTransitionTime", c.since.empty() ? now_ : c.since);
              if (c.retries > 0) out.field("retryCount", c.retries);
            });
          }
        });
      }
    });
  });
  return std::move(out).take();
}

// ---- starting ----

namespace {

// One that may run with fewer pods has had its number lowered by an earlier start.
bool changes_count(const Value* spec, const model::PodSetAdmission& admitted,
                   const model::WorkloadSpec& workload) {
  const Value* parallelism = find(spec, "parallelism");
  const std::int64_t now = parallelism == nullptr ? 1 : parallelism->as_int64().value_or(1);
  const bool fewer = !workload.pod_sets.empty() && workload.pod_sets.front().min_count.has_value();
  return admitted.count > 0 && (now > admitted.count || (fewer && now != admitted.count));
}

}  // namespace

std::string job_start_patch(const Value& job, const Value& original,
                            const model::PodSetAdmission& admitted,
                            const std::vector<const model::FlavorSpec*>& flavors,
                            const model::WorkloadSpec& workload) {
  const std::string& cluster_queue = workload.admission->queue;
  const std::string& local_queue = workload.queue;
  const Value* spec = job.find("spec");
  std::map<std::string, std::string> selector;
  const Value* first = find(original, "spec.nodeSelector");
  if (first != nullptr) {
    for (const text::Member& m : first->members()) selector.emplace(m.key, m.value.string());
  }
  for (const model::FlavorSpec* flavor : flavors) {
    for (const auto& [key, value] : flavor->node_labels) selector[key] = value;
  }
  JsonWriter out;
  out.object([&] {
    out.object("spec", [&] {
      out.field("suspend", false);
      if (changes_count(spec, admitted, workload)) out.field("parallelism", admitted.count);
      out.object("template", [&] {
        out.object("metadata", [&] {
          out.object("labels", [&] {
            out.field("kueue.x-k8s.io/podset", admitted.name);
            if (cluster_queue.size() <= 63)
              out.field("kueue.x-k8s.io/cluster-queue-name", cluster_queue);
            if (local_queue.size() <= 63) out.field("kueue.x-k8s.io/local-queue-name", local_queue);
          });
          out.object("annotations", [&] { out.field("kueue.x-k8s.io/workload", workload.name); });
        });
        out.object("spec", [&] {
          out.object("nodeSelector", [&] {
            for (const auto& [key, value] : selector) out.field(key, value);
            // Labels of flavors that an earlier start gave it.
            if (const Value* has = find(spec, "template.spec.nodeSelector")) {
              for (const text::Member& m : has->members()) {
                if (selector.contains(std::string(m.key))) continue;
                out.key(m.key);
                out.null();
              }
            }
          });
          out.array("tolerations", [&] {
            std::set<std::string> seen;
            if (const Value* has = find(original, "spec.tolerations")) {
              for (const Value& toleration : has->items()) {
                if (seen.insert(text::to_json(toleration)).second) out.value(toleration);
              }
            }
            for (const model::FlavorSpec* flavor : flavors) {
              for (const model::Toleration& toleration : flavor->tolerations) {
                std::string json = toleration_json(toleration);
                if (seen.insert(json).second) out.raw(json);
              }
            }
          });
        });
      });
    });
  });
  return std::move(out).take();
}

std::string pod_start_patch(const model::PodSetAdmission&,
                            const std::vector<const model::FlavorSpec*>& flavors) {
  JsonWriter out;
  out.object([&] {
    out.object("spec", [&] {
      out.array("schedulingGates", [&] {
        for (const std::string_view gate :
             {"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"}) {
          out.object([&] {
            out.field("$patch", "delete");
            out.field("name", gate);
          });
        }
      });
      bool any = false;
      for (const model::FlavorSpec* flavor : flavors) any = any || !flavor->node_labels.empty();
      if (any) {
        out.object("nodeSelector", [&] {
          std::map<std::string, std::string> selector;
          for (const model::FlavorSpec* flavor : flavors) {
            for (const auto& [key, value] : flavor->node_labels) selector[key] = value;
          }
          for (const auto& [key, value] : selector) out.field(key, value);
        });
      }
    });
  });
  return std::move(out).take();
}

// ---- queues ----

namespace {

void write_flavors(JsonWriter& out, std::string_view name, const QueueCounts& counts,
                   const std::vector<model::ResourceGroup>& groups, bool used, bool borrowed) {
  out.array(name, [&] {
    for (const model::ResourceGroup& group : groups) {
      for (const model::FlavorQuota& quota : group.flavors) {
        out.object([&] {
          out.field("name", quota.flavor);
          out.array("resources", [&] {
            for (const model::ResourceQuota& resource : quota.resources) {
              std::int64_t amount = 0;
              if (const auto f = counts.use.find(quota.flavor); f != counts.use.end()) {
                if (const auto r = f->second.find(resource.resource); r != f->second.end()) {
                  amount = used ? r->second.second : r->second.first;
                }
              }
              out.object([&] {
                out.field("name", resource.resource);
                out.field("total", amount_text(resource.resource, amount));
                if (borrowed) {
                  const std::int64_t over = std::max<std::int64_t>(0, amount - resource.nominal);
                  out.field("borrowed", amount_text(resource.resource, over));
                }
              });
            }
          });
        });
      }
    }
  });
}

bool says_already(const Value* status, const Value& wanted) {
  if (status == nullptr) return false;
  for (const text::Member& member : wanted.members()) {
    const Value* has = status->find(member.key);
    if (has == nullptr || !text::equal(*has, member.value)) return false;
  }
  return true;
}

}  // namespace

std::string queue_status_patch(const Value& queue, const QueueCounts& counts,
                               const std::vector<model::ResourceGroup>& groups, bool cluster_queue,
                               std::string_view inactive, std::int64_t now_ns) {
  const Value* status = queue.find("status");
  const std::size_t colon = inactive.find(": ");
  const std::string_view reason = inactive.empty() ? "Ready" : inactive.substr(0, colon);
  const std::string_view message = inactive.empty()                  ? "Can admit new workloads"
                                   : colon == std::string_view::npos ? inactive
                                                                     : inactive.substr(colon + 2);
  const std::string_view word = inactive.empty() ? "True" : "False";
  std::string since = whole_seconds(now_ns);
  if (const Value* list = find(status, "conditions")) {
    for (const Value& c : list->items()) {
      if (text_at(c, "type") == "Active" && text_at(c, "status") == word) {
        since = text_at(c, "lastTransitionTime");
      }
    }
  }
  JsonWriter out;
  out.object([&] {
    out.field("pendingWorkloads", counts.pending);
    out.field("reservingWorkloads", counts.reserving);
    out.field("admittedWorkloads", counts.admitted);
    write_flavors(out, "flavorsReservation", counts, groups, false, cluster_queue);
    write_flavors(out, "flavorsUsage", counts, groups, true, cluster_queue);
    if (counts.weighted_share) {
      out.object("fairSharing", [&] { out.field("weightedShare", *counts.weighted_share); });
    }
    out.array("conditions", [&] {
      out.object([&] {
        out.field("type", "Active");
        out.field("status", word);
        out.field("reason", reason);
        out.field("message", message);
        out.field("lastTransitionTime", since);
      });
    });
  });
  std::string wanted = std::move(out).take();
  const auto document = text::parse_json(wanted);
  if (document.ok() && says_already(status, document->root())) return {};
  return R"({"status":)" + wanted + "}";
}

}  // namespace berth::control
