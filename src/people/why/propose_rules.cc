// Fixes of what a pod says about nodes and other pods.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "decide/schedule/rule_memo.h"
#include "people/view/words.h"
#include "people/why/fixes.h"
#include "text/nearest.h"

namespace berth::people {

namespace {

using model::Constraint;
using model::PodSpec;

const char* effect_name(model::TaintEffect effect) {
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

bool is_tolerated(const PodSpec& pod, const model::Taint& taint) {
  return taint.effect == model::TaintEffect::kPreferNoSchedule ||
         std::any_of(pod.tolerations.begin(), pod.tolerations.end(),
                     [&](const auto& t) { return tolerates(t, taint); });
}

std::string taint_text(const model::Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : '=' + taint.value);
}

// The nodes that count, those with the fewest other blockers first; a few.
std::vector<const NodeView*> nodes_behind(const Situation& s, Constraint constraint) {
  std::vector<const NodeView*> out;
  for (const NodeView& view : s.picture->nodes) {
    const bool blocked = ((view.blockers | view.lasting) & schedule::bit(constraint)) != 0;
    if (!view.small && blocked) out.push_back(&view);
  }
  std::stable_sort(out.begin(), out.end(), [](const NodeView* a, const NodeView* b) {
    return std::popcount(a->blockers) < std::popcount(b->blockers);
  });
  return out;
}

void tolerate(const Situation& s, Proposals& out) {
  std::set<std::vector<model::Taint>> seen;
  for (const NodeView* view : nodes_behind(s, Constraint::kTaints)) {
    std::vector<model::Taint> taints;
    bool condition = false;
    for (const model::Taint& taint : s.state->info(view->slot).taints) {
      if (is_tolerated(s.sample, taint)) continue;
      condition |= schedule::is_passing_taint(taint.key);
      taints.push_back(taint);
    }
    if (taints.empty() || condition || seen.size() >= 4 || !seen.insert(taints).second) continue;
    std::string list;
    for (const model::Taint& taint : taints) {
      list += (list.empty() ? "" : " and ") + taint_text(taint);
    }
    out.push_back({.title = "tolerate the taint " + list,
                   .kind = "tolerate",
                   .apply = [&s, taints](Draft& draft) {
                     return edit_pods(
                         s, draft,
                         [&](PodSpec& pod) {
                           for (const model::Taint& taint : taints) {
                             pod.tolerations.push_back({.key = taint.key,
                                                        .op = taint.value.empty()
                                                                  ? model::Toleration::Op::kExists
                                                                  : model::Toleration::Op::kEqual,
                                                        .value = taint.value,
                                                        .effect = taint.effect});
                           }
                         },
                         [&](Tree&, Tree& spec) {
                           for (const model::Taint& taint : taints) {
                             Tree toleration;
                             toleration["key"] = Tree::of_text(taint.key);
                             toleration["operator"] =
                                 Tree::of_text(taint.value.empty() ? "Exists" : "Equal");
                             if (!taint.value.empty())
                               toleration["value"] = Tree::of_text(taint.value);
                             toleration["effect"] = Tree::of_text(effect_name(taint.effect));
                             spec["tolerations"].items().push_back(std::move(toleration));
                           }
                         });
                   }});
  }
}

// A value of the label that nodes of the right size have: the one written most like it, else the
// one of most nodes; empty: none.
std::string usual_value(const Situation& s, const std::string& key, const std::string& not_this) {
  std::map<std::string, int> values;
  for (const NodeView& view : s.picture->nodes) {
    if (view.small) continue;
    const auto value = s.state->inventory().label(s.state->info(view.slot), key);
    if (value && *value != not_this) ++values[std::string(*value)];
  }
  std::vector<std::string> names;
  for (const auto& [value, nodes] : values) names.push_back(value);
  if (std::string meant = text::nearest(not_this, names); !meant.empty()) return meant;
  const auto most =
      std::max_element(values.begin(), values.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == values.end() ? "" : most->first;
}

// A label of such nodes that is written like the key and has the value.
std::string usual_key(const Situation& s, const std::string& key, const std::string& value) {
  std::set<std::string> keys;
  for (const NodeView& view : s.picture->nodes) {
    if (view.small || keys.size() > 256) continue;
    const auto& nodes = s.inputs().nodes;
    const std::string& name = s.state->info(view.slot).name;
    const auto it = std::lower_bound(nodes.begin(), nodes.end(), name,
                                     [](const auto& n, const auto& k) { return n.name < k; });
    if (it == nodes.end() || it->name != name) continue;
    for (const auto& [label, has] : it->labels) {
      if (has == value) keys.insert(label);
    }
  }
  return text::nearest(key, {keys.begin(), keys.end()});
}

// The selector by another key.
void rename_key(const Situation& s, const std::string& from, const std::string& to,
                const std::string& value, Proposals& out) {
  out.push_back({.title = fmt::format("nodeSelector {} instead of {}: {}", to, from, value),
                 .kind = "other-selector",
                 .apply = [&s, from, to, value](Draft& draft) {
                   return edit_pods(
                       s, draft,
                       [&](PodSpec& pod) {
                         pod.node_selector.erase(from);
                         pod.node_selector[to] = value;
                       },
                       [&](Tree&, Tree& spec) {
                         spec["nodeSelector"].erase(from);
                         spec["nodeSelector"][to] = Tree::of_text(value);
                       });
                 }});
}

void set_selector(const Situation& s, const std::string& key, const std::string& value,
                  const std::string& title, int disturbance, Proposals& out) {
  out.push_back({.title = title,
                 .kind = value.empty() ? "drop-selector" : "other-selector",
                 .disturbance = disturbance,
                 .apply = [&s, key, value](Draft& draft) {
                   return edit_pods(
                       s, draft,
                       [&](PodSpec& pod) {
                         if (value.empty()) {
                           pod.node_selector.erase(key);
                         } else {
                           pod.node_selector[key] = value;
                         }
                       },
                       [&](Tree&, Tree& spec) {
                         Tree& selector = spec["nodeSelector"];
                         if (!value.empty()) {
                           selector[key] = Tree::of_text(value);
                           return;
                         }
                         selector.erase(key);
                         if (selector.members().empty()) spec.erase("nodeSelector");
                       });
                 }});
}

void selectors(const Situation& s, Proposals& out) {
  const bool blocked = !nodes_behind(s, Constraint::kNodeSelector).empty();
  if (!blocked) return;
  for (const auto& [key, value] : s.sample.node_selector) {
    const std::string shown = key + '=' + value;
    const std::string other_key = usual_key(s, key, value);
    if (!other_key.empty()) rename_key(s, key, other_key, value, out);
    const std::string other = usual_value(s, key, value);
    if (!other.empty()) {
      set_selector(s, key, other,
                   fmt::format("nodeSelector {}: {} instead of {}", key, other, value), 1, out);
    }
    set_selector(s, key, "", "drop nodeSelector " + shown, 1, out);
  }
  if (s.sample.node_selector.size() > 1) {
    out.push_back(
        {.title = "drop nodeSelector", .kind = "drop-selector", .apply = [&s](Draft& draft) {
           return edit_pods(
               s, draft, [](PodSpec& pod) { pod.node_selector.clear(); },
               [](Tree&, Tree& spec) { spec.erase("nodeSelector"); });
         }});
  }
}

void node_affinity(const Situation& s, Proposals& out) {
  if (s.sample.required_nodes.empty() || nodes_behind(s, Constraint::kNodeAffinity).empty()) return;
  if (s.sample.owner.starts_with("DaemonSet/")) return;  // it is for that node, and made anew so
  out.push_back({.title = "drop the required node affinity",
                 .kind = "drop-affinity",
                 .apply = [&s](Draft& draft) {
                   return edit_pods(
                       s, draft, [](PodSpec& pod) { pod.required_nodes.clear(); },
                       [](Tree&, Tree& spec) {
                         Tree& affinity = spec["affinity"];
                         affinity["nodeAffinity"].erase(
                             "requiredDuringSchedulingIgnoredDuringExecution");
                         if (affinity["nodeAffinity"].members().empty()) {
                           affinity.erase("nodeAffinity");
                         }
                         if (affinity.members().empty()) spec.erase("affinity");
                       });
                 }});
}

void drop_pod_terms(const char* field, Tree& spec) {
  Tree& affinity = spec["affinity"];
  affinity[field].erase("requiredDuringSchedulingIgnoredDuringExecution");
  if (affinity[field].members().empty()) affinity.erase(field);
  if (affinity.members().empty()) spec.erase("affinity");
}

void pod_affinity(const Situation& s, Proposals& out) {
  if (!s.sample.affinity.empty()) {
    out.push_back({.title = "drop the required pod affinity",
                   .kind = "drop-pod-affinity",
                   .apply = [&s](Draft& draft) {
                     return edit_pods(
                         s, draft, [](PodSpec& pod) { pod.affinity.clear(); },
                         [](Tree&, Tree& spec) { drop_pod_terms("podAffinity", spec); });
                   }});
  }
  if (!s.sample.anti_affinity.empty()) {
    out.push_back({.title = "drop the required pod anti-affinity",
                   .kind = "drop-pod-anti-affinity",
                   .apply = [&s](Draft& draft) {
                     return edit_pods(
                         s, draft, [](PodSpec& pod) { pod.anti_affinity.clear(); },
                         [](Tree&, Tree& spec) { drop_pod_terms("podAntiAffinity", spec); });
                   }});
  }
  const bool hard = std::any_of(s.sample.spread.begin(), s.sample.spread.end(),
                                [](const auto& constraint) { return constraint.hard; });
  if (!hard) return;
  out.push_back({.title = "spread with ScheduleAnyway instead of DoNotSchedule",
                 .kind = "soft-spread",
                 .apply = [&s](Draft& draft) {
                   return edit_pods(
                       s, draft,
                       [](PodSpec& pod) {
                         for (auto& constraint : pod.spread) constraint.hard = false;
                       },
                       [](Tree&, Tree& spec) {
                         for (Tree& each : spec["topologySpreadConstraints"].items()) {
                           each["whenUnsatisfiable"] = Tree::of_text("ScheduleAnyway");
                           each.erase("minDomains");
                         }
                       });
                 }});
}

void host_ports(const Situation& s, Proposals& out) {
  if (s.sample.host_ports.empty()) return;
  out.push_back(
      {.title = "use no host port", .kind = "drop-host-port", .apply = [&s](Draft& draft) {
         return edit_pods(
             s, draft, [](PodSpec& pod) { pod.host_ports.clear(); },
             [](Tree&, Tree& spec) {
               for (const char* list : {"containers", "initContainers"}) {
                 if (spec.find(list) == nullptr) continue;
                 for (Tree& container : spec[list].items()) {
                   if (container.find("ports") == nullptr) continue;
                   for (Tree& port : container["ports"].items()) port.erase("hostPort");
                 }
               }
               spec.erase("hostNetwork");
             });
       }});
}

void set_annotation(Tree& meta, const char* key, const std::string& value) {
  if (value.empty()) {
    if (Tree* notes = meta.find("annotations")) {
      notes->erase(key);
      if (notes->members().empty()) meta.erase("annotations");
    }
    return;
  }
  meta["annotations"][key] = Tree::of_text(value);
}

// GPU model and memory.
void devices(const Situation& s, Proposals& out) {
  if (!s.sample.gpu_models.empty()) {
    out.push_back(
        {.title = "take any GPU model", .kind = "any-model", .apply = [&s](Draft& draft) {
           return edit_pods(
               s, draft, [](PodSpec& pod) { pod.gpu_models.clear(); },
               [](Tree& meta, Tree&) { set_annotation(meta, "berth.dev/gpu-model", ""); });
         }});
  }
  std::int64_t most = 0;
  for (const NodeView& view : s.picture->nodes) {
    const model::NodeInfo& info = s.state->info(view.slot);
    if (view.gpus > 0 && info.ready) most = std::max(most, info.gpu_memory_mib);
  }
  if (s.sample.gpu_min_memory_mib > most && most > 0) {
    out.push_back({.title = fmt::format("accept GPUs of {} MiB", most),
                   .kind = "less-gpu-memory",
                   .apply = [&s, most](Draft& draft) {
                     return edit_pods(
                         s, draft, [&](PodSpec& pod) { pod.gpu_min_memory_mib = most; },
                         [&](Tree& meta, Tree&) {
                           set_annotation(meta, "berth.dev/gpu-memory-min",
                                          std::to_string(most) + "Mi");
                         });
                   }});
  }
  const bool share = s.sample.gpu.kind == model::GpuDemandSpec::Kind::kMemory;
  if (share && s.sample.gpu.memory_mib > most && most > 0) {
    out.push_back({.title = fmt::format("ask for {} MiB of a GPU", most),
                   .kind = "less-gpu-memory",
                   .apply = [&s, most](Draft& draft) {
                     return edit_pods(
                         s, draft, [&](PodSpec& pod) { pod.gpu.memory_mib = most; },
                         [&](Tree& meta, Tree&) {
                           set_annotation(meta, "gpu-memory", std::to_string(most));
                         });
                   }});
  }
}

}  // namespace

void propose_rules(const Situation& s, Proposals& out) {
  if (s.picture == nullptr) return;
  tolerate(s, out);
  selectors(s, out);
  node_affinity(s, out);
  pod_affinity(s, out);
  host_ports(s, out);
  devices(s, out);
}

}  // namespace berth::people
