// "pod web/a: 1 GPU, service web, label app=web", "gang ml/train: 4 pods x 8 GPUs, required rack"
// and "budget web/b: allows 0, label app=web" as manifests.
#include <map>
#include <optional>

#include "line_words.h"
#include "shorthand.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::scenario {

namespace {

using text::JsonWriter;
using Pairs = std::map<std::string, std::string>;

struct NearTerm {
  bool apart = false, preferred = false;
  std::string key, value, topology;  // app=web by zone
  int weight = 1;
};
struct SpreadTerm {
  std::string topology, key, value;
  int skew = 1, min_domains = 0;
  bool soft = false;
};
struct NodeTerm {
  std::string key, op = "In", value;
  int weight = 0;  // 0: required
};
struct Tolerance {
  std::string key, op = "Exists", value, effect;
};

struct PodWords {
  std::string ns, name, node;
  std::vector<int> container_gpus;  // nvidia.com/gpu of each container
  Pairs labels, annotations, selector, requests = {{"cpu", "1"}, {"memory", "1Gi"}};
  std::string owner_kind, owner;
  std::vector<Tolerance> tolerations;
  std::vector<NearTerm> near;
  std::vector<SpreadTerm> spread;
  std::vector<NodeTerm> node_terms;
  std::vector<std::string> claims;
  std::vector<int> host_ports;
  std::optional<int> priority;
  bool never_preempts = false, gated = false;
  std::int64_t created_ns = kStart, started_ns = kStart;
};

Error bad_pod_item(std::string_view item, std::string_view want) {
  return invalid("found \"" + std::string(item) + "\", want " + std::string(want));
}

bool split_pair(std::string_view text, std::string& key, std::string& value) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  key = text.substr(0, equals);
  value = text.substr(equals + 1);
  return true;
}

// "4 GPUs", "4 GPUs (0,1,2,3)", "4 GPUs in containers 2+2", "0.5 GPU", "2 x 0.5 GPU",
// "20000 MiB of a GPU", "2 shares", "3 x mig-1g.10gb", "no GPUs".
bool read_gpus(const std::vector<std::string>& w, PodWords& out) {
  const auto is_gpu = [](const std::string& word) { return word == "GPU" || word == "GPUs"; };
  if (w.size() >= 2 && w[0] == "no" && is_gpu(w[1])) {
    out.container_gpus = {0};
    return w.size() == 2;
  }
  if (w.size() >= 2 && is_gpu(w[1])) {
    const auto count = number_of(w[0]);
    if (!count) {
      out.annotations["gpu-fraction"] = w[0];
      if (w.size() == 3 && w[2].size() > 2)
        out.annotations["berth.dev/gpus"] = w[2].substr(1, w[2].size() - 2);
      return w.size() <= 3 && w[0].find('.') != std::string::npos;
    }
    out.container_gpus = {*count};
    if (w.size() == 2) return true;
    if (w.size() == 3 && w[2].size() > 2 && w[2].front() == '(' && w[2].back() == ')') {
      const auto indices = ranges_of(std::string_view(w[2]).substr(1, w[2].size() - 2));
      if (!indices) return false;
      std::string list;
      for (const int i : *indices) list += (list.empty() ? "" : ",") + std::to_string(i);
      out.annotations["berth.dev/gpus"] = list;
      return true;
    }
    if (w.size() == 5 && w[2] == "in" && w[3] == "containers") {
      out.container_gpus.clear();
      for (const std::string& part : split_at(w[4], "+")) {
        const auto n = number_of(part);
        if (!n) return false;
        out.container_gpus.push_back(*n);
      }
      return true;
    }
    return false;
  }
  if (w.size() == 4 && w[1] == "x" && is_gpu(w[3]) && number_of(w[0])) {
    out.annotations["gpu-fraction"] = w[2];
    out.annotations["gpu-fraction-num-devices"] = w[0];
    return true;
  }
  if (w.size() == 5 && w[1] == "MiB" && w[4] == "GPU") {
    out.annotations["gpu-memory"] = w[0];
    return true;
  }
  if (w.size() == 2 && (w[1] == "share" || w[1] == "shares") && number_of(w[0])) {
    out.requests["nvidia.com/gpu.shared"] = w[0];
    return true;
  }
  if (w.size() == 3 && w[1] == "x" && w[2].starts_with("mig-") && number_of(w[0])) {
    out.requests["nvidia.com/" + w[2]] = w[0];
    return true;
  }
  return false;
}

// "near app=web by zone", "prefers apart from app=web by host weight 10"
bool read_near(std::vector<std::string> w, PodWords& out) {
  NearTerm term;
  if (w[0] == "prefers") {
    term.preferred = true;
    w.erase(w.begin());
  }
  if (w.size() >= 2 && w[0] == "apart" && w[1] == "from") {
    term.apart = true;
    w.erase(w.begin());
  }
  if (w.size() != 4 && !(w.size() == 6 && w[4] == "weight" && number_of(w[5]))) return false;
  if (w[2] != "by" || !split_pair(w[1], term.key, term.value)) return false;
  term.topology = topology_label(w[3]);
  if (w.size() == 6) term.weight = *number_of(w[5]);
  out.near.push_back(std::move(term));
  return true;
}

// "spread app=web by zone [skew 2] [min domains 3] [soft]"
bool read_spread_item(const std::vector<std::string>& w, PodWords& out) {
  SpreadTerm term;
  if (w.size() < 4 || w[2] != "by" || !split_pair(w[1], term.key, term.value)) return false;
  term.topology = topology_label(w[3]);
  for (std::size_t i = 4; i < w.size(); ++i) {
    if (w[i] == "soft") {
      term.soft = true;
    } else if (w[i] == "skew" && i + 1 < w.size() && number_of(w[i + 1])) {
      term.skew = *number_of(w[++i]);
    } else if (w[i] == "min" && i + 2 < w.size() && number_of(w[i + 2])) {
      term.min_domains = *number_of(w[i + 2]);
      i += 2;
    } else {
      return false;
    }
  }
  out.spread.push_back(std::move(term));
  return true;
}

// "tolerates everything", "tolerates key", "tolerates key=value", "...:Effect"
bool read_tolerates(const std::vector<std::string>& w, PodWords& out) {
  if (w.size() != 2) return false;
  Tolerance t;
  std::string text = w[1];
  if (text != "everything") {
    if (const std::size_t colon = text.rfind(':'); colon != std::string::npos) {
      t.effect = text.substr(colon + 1);
      text.resize(colon);
    }
    t.key = text;
    if (split_pair(text, t.key, t.value)) t.op = "Equal";
  }
  out.tolerations.push_back(std::move(t));
  return true;
}

// "needs node disk=ssd", "needs node gen Gt 8", "prefers node disk=ssd weight 10"
bool read_node_term(const std::vector<std::string>& w, PodWords& out) {
  NodeTerm term;
  const bool preferred = w[0] == "prefers";
  std::size_t at = 2;
  if (w.size() > at && split_pair(w[at], term.key, term.value)) {
    ++at;
  } else if (w.size() > at + 1) {
    term.key = w[at];
    term.op = w[at + 1];
    at += 2;
    if (term.op != "Exists" && term.op != "DoesNotExist") {
      if (w.size() <= at) return false;
      term.value = w[at++];
    }
  } else {
    return false;
  }
  if (preferred) {
    term.weight = 1;
    if (w.size() == at + 2 && w[at] == "weight" && number_of(w[at + 1])) {
      term.weight = *number_of(w[at + 1]);
      at += 2;
    }
  }
  out.node_terms.push_back(std::move(term));
  return at == w.size();
}

bool read_ago(const std::vector<std::string>& w, std::int64_t& out) {
  if (w.size() != 3 || w[2] != "ago") return false;
  const auto duration = text::parse_go_duration(w[1]);
  if (!duration.ok()) return false;
  out = kStart - *duration;
  return true;
}

bool read_where_item(const std::vector<std::string>& w, PodWords& out) {
  if (w[0] == "tolerates") return read_tolerates(w, out);
  if (w.size() >= 3 && (w[0] == "needs" || w[0] == "prefers") && w[1] == "node") {
    return read_node_term(w, out);
  }
  if (w[0] == "near" || w[0] == "apart" || w[0] == "prefers") return read_near(w, out);
  if (w[0] == "spread") return read_spread_item(w, out);
  std::string key, value;
  if (w[0] == "selector" && w.size() == 2 && split_pair(w[1], key, value)) {
    out.selector[key] = value;
    return true;
  }
  return false;
}

bool read_size_item(const std::vector<std::string>& w, PodWords& out) {
  if (w.size() == 2 && (w[0] == "cpu" || w[0] == "memory")) {
    out.requests[w[0]] = w[1];
  } else if (w.size() == 2 && w[0] == "storage") {
    out.requests["ephemeral-storage"] = w[1];
  } else if (w.size() == 3 && w[0] == "resource") {
    out.requests[w[1]] = w[2];
  } else if (w.size() >= 2 && w[0] == "model") {
    std::string list;
    for (std::size_t i = 1; i < w.size(); ++i) {
      if (w[i] != "or") list += (list.empty() ? "" : ",") + product_of(w[i]);
    }
    out.annotations["berth.dev/gpu-model"] = list;
  } else if (w.size() == 5 && w[1] == "memory" && w[0] == "gpu") {  // gpu memory at least 40Gi
    out.annotations["berth.dev/gpu-memory-min"] = w[4];
  } else if (w.size() == 3 && w[0] == "host" && w[1] == "port" && number_of(w[2])) {
    out.host_ports.push_back(*number_of(w[2]));
  } else {
    return false;
  }
  return true;
}

bool read_identity_item(const std::vector<std::string>& w, PodWords& out) {
  std::string key, value;
  if (w.size() == 2 && w[0] == "service") {
    out.owner_kind = "ReplicaSet";
    out.owner = w[1];
  } else if (w.size() == 2 && w[0] == "job") {
    out.owner_kind = "Job";
    out.owner = w[1];
  } else if (w.size() == 2 && w[0] == "label" && split_pair(w[1], key, value)) {
    out.labels[key] = value;
  } else if (w.size() == 2 && w[0] == "priority" && number_of(w[1])) {
    out.priority = *number_of(w[1]);
  } else if (w.size() == 2 && w[0] == "never" && w[1] == "preempts") {
    out.never_preempts = true;
  } else if (w.size() == 2 && w[0] == "gang") {
    out.labels["scheduling.x-k8s.io/pod-group"] = w[1];
  } else if (w.size() == 2 && w[0] == "subgroup") {
    out.labels["kai.scheduler/subgroup-name"] = w[1];
  } else if (w.size() == 2 && w[0] == "queue") {
    out.labels["kueue.x-k8s.io/queue-name"] = w[1];
  } else if (w.size() == 2 && w[0] == "claim") {
    out.claims.push_back(w[1]);
  } else if (w.size() == 1 && w[0] == "gated") {
    out.gated = true;
  } else if (w[0] == "created") {
    return read_ago(w, out.created_ns);
  } else if (w[0] == "started") {
    return read_ago(w, out.started_ns);
  } else {
    return false;
  }
  return true;
}

Status read_pod_item(const std::string& item, PodWords& out) {
  const std::vector<std::string> w = words_of(item);
  if (w.empty()) return invalid("found an empty item between commas");
  if (read_gpus(w, out) || read_where_item(w, out) || read_size_item(w, out) ||
      read_identity_item(w, out)) {
    return {};
  }
  return bad_pod_item(item, "one of the items of a pod that docs/scenarios.md lists");
}

// ---- manifests ----

void put_pairs(JsonWriter& out, const char* key, const Pairs& pairs) {
  if (pairs.empty()) return;
  out.object(key, [&] {
    for (const auto& [k, v] : pairs) out.field(k, v);
  });
}

void put_selector(JsonWriter& out, const std::string& key, const std::string& value) {
  out.object("labelSelector", [&] { put_pairs(out, "matchLabels", {{key, value}}); });
}

void put_expression(JsonWriter& out, const NodeTerm& term) {
  out.object([&] {
    out.array("matchExpressions", [&] {
      out.object([&] {
        out.field("key", term.key);
        out.field("operator", term.op);
        if (!term.value.empty()) {
          out.list("values", split_at(term.value, "|"));
        }
      });
    });
  });
}

void put_node_affinity(JsonWriter& out, const PodWords& pod) {
  if (pod.node_terms.empty()) return;
  out.object("nodeAffinity", [&] {
    bool required = false;
    for (const NodeTerm& term : pod.node_terms) required |= term.weight == 0;
    if (required) {
      out.object("requiredDuringSchedulingIgnoredDuringExecution", [&] {
        out.array("nodeSelectorTerms", [&] {
          for (const NodeTerm& term : pod.node_terms) {
            if (term.weight == 0) put_expression(out, term);
          }
        });
      });
    }
    out.array("preferredDuringSchedulingIgnoredDuringExecution", [&] {
      for (const NodeTerm& term : pod.node_terms) {
        if (term.weight == 0) continue;
        out.object([&] {
          out.field("weight", term.weight);
          out.key("preference");
          put_expression(out, term);
        });
      }
    });
  });
}

void put_near(JsonWriter& out, const PodWords& pod, bool apart) {
  out.object(apart ? "podAntiAffinity" : "podAffinity", [&] {
    for (const bool preferred : {false, true}) {
      out.array(preferred ? "preferredDuringSchedulingIgnoredDuringExecution"
                          : "requiredDuringSchedulingIgnoredDuringExecution",
                [&] {
                  for (const NearTerm& term : pod.near) {
                    if (term.apart != apart || term.preferred != preferred) continue;
                    const auto rest = [&] {
                      out.field("topologyKey", term.topology);
                      put_selector(out, term.key, term.value);
                    };
                    out.object([&] {
                      if (!preferred) return rest();
                      out.field("weight", term.weight);
                      out.object("podAffinityTerm", rest);
                    });
                  }
                });
    }
  });
}

void put_spread(JsonWriter& out, const PodWords& pod) {
  if (pod.spread.empty()) return;
  out.array("topologySpreadConstraints", [&] {
    for (const SpreadTerm& term : pod.spread) {
      out.object([&] {
        out.field("maxSkew", term.skew);
        out.field("topologyKey", term.topology);
        out.field("whenUnsatisfiable", term.soft ? "ScheduleAnyway" : "DoNotSchedule");
        if (term.min_domains > 0) out.field("minDomains", term.min_domains);
        put_selector(out, term.key, term.value);
      });
    }
  });
}

void put_containers(JsonWriter& out, const PodWords& pod) {
  out.array("containers", [&] {
    const std::vector<int> gpus =
        pod.container_gpus.empty() ? std::vector<int>{0} : pod.container_gpus;
    for (std::size_t c = 0; c < gpus.size(); ++c) {
      Pairs requests = c == 0 ? pod.requests : Pairs{};
      if (gpus[c] != 0) requests["nvidia.com/gpu"] = std::to_string(gpus[c]);
      Pairs limits;
      for (const auto& [k, v] : requests) {
        if (k.find('/') != std::string::npos) limits[k] = v;
      }
      out.object([&] {
        out.field("name", "c" + std::to_string(c));
        out.field("image", "example");
        out.object("resources", [&] {
          put_pairs(out, "requests", requests);
          put_pairs(out, "limits", limits);
        });
        if (c == 0 && !pod.host_ports.empty()) {
          out.array("ports", [&] {
            for (const int port : pod.host_ports) {
              out.object([&] {
                out.field("containerPort", port);
                out.field("hostPort", port);
              });
            }
          });
        }
      });
    }
  });
}

void put_tolerations(JsonWriter& out, const PodWords& pod) {
  if (pod.tolerations.empty()) return;
  out.array("tolerations", [&] {
    for (const Tolerance& t : pod.tolerations) {
      Pairs fields = {{"operator", t.op}};
      if (!t.key.empty()) fields["key"] = t.key;
      if (!t.value.empty()) fields["value"] = t.value;
      if (!t.effect.empty()) fields["effect"] = t.effect;
      out.object([&] {
        for (const auto& [k, v] : fields) out.field(k, v);
      });
    }
  });
}

void put_pod_meta(JsonWriter& out, const PodWords& pod, const std::string& name) {
  out.object("metadata", [&] {
    out.field("name", name);
    out.field("namespace", pod.ns);
    out.field("creationTimestamp", text::format_rfc3339(pod.created_ns));
    put_pairs(out, "labels", pod.labels);
    put_pairs(out, "annotations", pod.annotations);
    if (!pod.owner.empty()) {
      out.array("ownerReferences", [&] {
        out.object([&] {
          out.field("apiVersion", pod.owner_kind == "Job" ? "batch/v1" : "apps/v1");
          out.field("kind", pod.owner_kind);
          out.field("name", pod.owner);
          out.field("uid", pod.owner);
          out.field("controller", true);
        });
      });
    }
  });
}

void put_claims(JsonWriter& out, const PodWords& pod) {
  if (pod.claims.empty()) return;
  out.array("volumes", [&] {
    for (const std::string& claim : pod.claims) {
      out.object([&] {
        out.field("name", claim);
        out.object("persistentVolumeClaim", [&] { out.field("claimName", claim); });
      });
    }
  });
}

std::string pod_json(const PodWords& pod, const std::string& name) {
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "v1");
    out.field("kind", "Pod");
    put_pod_meta(out, pod, name);
    out.object("spec", [&] {
      if (!pod.node.empty()) out.field("nodeName", pod.node);
      if (pod.priority) out.field("priority", *pod.priority);
      if (pod.never_preempts) out.field("preemptionPolicy", "Never");
      if (pod.gated) {
        out.array("schedulingGates",
                  [&] { out.object([&] { out.field("name", "example.com/gate"); }); });
      }
      put_pairs(out, "nodeSelector", pod.selector);
      put_tolerations(out, pod);
      if (!pod.node_terms.empty() || !pod.near.empty()) {
        out.object("affinity", [&] {
          put_node_affinity(out, pod);
          put_near(out, pod, false);
          put_near(out, pod, true);
        });
      }
      put_spread(out, pod);
      put_containers(out, pod);
      put_claims(out, pod);
    });
    if (!pod.node.empty()) {
      out.object("status", [&] {
        out.field("phase", "Running");
        out.field("startTime", text::format_rfc3339(pod.started_ns));
      });
    }
  });
  return std::move(out).take();
}

Status split_name(std::string_view full, std::string& ns, std::string& name) {
  const std::size_t slash = full.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == full.size()) {
    return bad_pod_item(full, "NAMESPACE/NAME");
  }
  ns = full.substr(0, slash);
  name = full.substr(slash + 1);
  return {};
}

struct GangWords {
  int pods = 0, min = -1;
  std::string required, preferred;
  struct Subgroup {
    std::string name, required;
    int min = 0;
  };
  std::vector<Subgroup> subgroups;
  PodWords pod;
};

// True when the item is about the gang and not about its pods.
Result<bool> read_gang_item(const std::string& item, GangWords& out) {
  const std::vector<std::string> w = words_of(item);
  if (w.size() == 2 && w[0] == "min" && number_of(w[1])) {
    out.min = *number_of(w[1]);
  } else if (w.size() == 2 && (w[0] == "required" || w[0] == "preferred")) {
    (w[0] == "required" ? out.required : out.preferred) = w[1];
  } else if (w.size() >= 2 && number_of(w[0]) && (w[1] == "pods" || w[1] == "pod")) {
    out.pods = *number_of(w[0]);
    if (w.size() > 3 && w[2] == "x") {
      std::vector<std::string> rest(w.begin() + 3, w.end());
      if (!read_gpus(rest, out.pod)) return bad_pod_item(item, "\"4 pods x 8 GPUs\"");
    } else if (w.size() != 2) {
      return bad_pod_item(item, "\"4 pods x 8 GPUs\"");
    }
  } else if (w.size() >= 4 && w[0] == "subgroup" && w[2] == "min" && number_of(w[3])) {
    GangWords::Subgroup subgroup;
    subgroup.name = w[1];
    subgroup.min = *number_of(w[3]);
    if (w.size() == 6 && w[4] == "required") {
      subgroup.required = topology_label(w[5]);
    } else if (w.size() != 4) {
      return bad_pod_item(item, "\"subgroup a min 2\" or \"subgroup a min 2 required rack\"");
    }
    out.subgroups.push_back(std::move(subgroup));
  } else {
    return false;
  }
  return true;
}

std::string group_json(const GangWords& gang) {
  const bool kai = !gang.subgroups.empty();
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", kai ? "scheduling.run.ai/v2alpha2" : "scheduling.x-k8s.io/v1alpha1");
    out.field("kind", "PodGroup");
    out.object("metadata", [&] {
      out.field("name", gang.pod.name);
      out.field("namespace", gang.pod.ns);
      out.field("creationTimestamp", text::format_rfc3339(gang.pod.created_ns));
      Pairs annotations;
      if (!gang.required.empty()) annotations["berth.dev/topology-required"] = gang.required;
      if (!gang.preferred.empty()) annotations["berth.dev/topology-preferred"] = gang.preferred;
      put_pairs(out, "annotations", annotations);
    });
    out.object("spec", [&] {
      out.field("minMember", gang.min < 0 ? gang.pods : gang.min);
      if (kai) {
        out.array("subGroups", [&] {
          for (const GangWords::Subgroup& s : gang.subgroups) {
            out.object([&] {
              out.field("name", s.name);
              out.field("minMember", s.min);
              if (!s.required.empty()) {
                out.object("topologyConstraint",
                           [&] { out.field("requiredTopologyLevel", s.required); });
              }
            });
          }
        });
      }
    });
  });
  return std::move(out).take();
}

}  // namespace

Result<std::vector<Object>> read_pods(const std::vector<std::string>& head, std::string_view body) {
  // "pod ns/name", "pod ns/name on node", "3 pods ns/name"
  PodWords pod;
  const bool many = head.size() >= 3 && head[1] == "pods" && number_of(head[0]);
  const std::size_t at = many ? 2 : 1;
  if (!many && (head.size() < 2 || head[0] != "pod")) return invalid("want \"pod NS/NAME: ...\"");
  BERTH_CHECK(split_name(head[at], pod.ns, pod.name));
  if (head.size() == at + 3 && head[at + 1] == "on") {
    pod.node = head[at + 2];
  } else if (head.size() != at + 1) {
    return invalid("want \"pod NS/NAME: ...\" or \"pod NS/NAME on NODE: ...\"");
  }
  for (const std::string& item : split_at(body, ", ")) BERTH_CHECK(read_pod_item(item, pod));
  std::vector<Object> out;
  const int count = many ? *number_of(head[0]) : 1;
  for (int i = 0; i < count; ++i) {
    const std::string name = many ? pod.name + '-' + std::to_string(i) : pod.name;
    out.push_back({"Pod", pod.ns + '/' + name, pod_json(pod, name)});
  }
  return out;
}

Result<std::vector<Object>> read_gang(const std::vector<std::string>& head, std::string_view body) {
  if (head.size() != 2) return invalid("want \"gang NS/NAME: ...\"");
  GangWords gang;
  BERTH_CHECK(split_name(head[1], gang.pod.ns, gang.pod.name));
  for (const std::string& item : split_at(body, ", ")) {
    BERTH_TRY(const bool known, read_gang_item(item, gang));
    if (!known) BERTH_CHECK(read_pod_item(item, gang.pod));
  }
  if (gang.pods == 0 && gang.min < 0)
    return invalid("a gang wants \"4 pods x 8 GPUs\" or \"min 4\"");
  std::vector<Object> out;
  out.push_back({"PodGroup", gang.pod.ns + '/' + gang.pod.name, group_json(gang)});
  gang.pod.labels["scheduling.x-k8s.io/pod-group"] = gang.pod.name;
  for (int i = 0; i < gang.pods; ++i) {
    const std::string name = gang.pod.name + '-' + std::to_string(i);
    out.push_back({"Pod", gang.pod.ns + '/' + name, pod_json(gang.pod, name)});
  }
  return out;
}

Result<std::vector<Object>> read_budget(const std::vector<std::string>& head,
                                        std::string_view body) {
  std::string ns, name, key, value;
  if (head.size() != 2) return invalid("want \"budget NS/NAME: allows 0, label app=web\"");
  BERTH_CHECK(split_name(head[1], ns, name));
  int allows = -1;
  for (const std::string& item : split_at(body, ", ")) {
    const std::vector<std::string> w = words_of(item);
    if (w.size() == 2 && w[0] == "allows" && number_of(w[1])) {
      allows = *number_of(w[1]);
    } else if (w.size() != 2 || w[0] != "label" || !split_pair(w[1], key, value)) {
      return bad_pod_item(item, "\"allows 0\" or \"label app=web\"");
    }
  }
  if (allows < 0 || key.empty()) return invalid("want \"budget NS/NAME: allows 0, label app=web\"");
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "policy/v1");
    out.field("kind", "PodDisruptionBudget");
    out.object("metadata", [&] {
      out.field("name", name);
      out.field("namespace", ns);
    });
    out.object("spec", [&] {
      out.field("maxUnavailable", allows);
      out.object("selector", [&] { put_pairs(out, "matchLabels", {{key, value}}); });
    });
    out.object("status", [&] { out.field("disruptionsAllowed", allows); });
  });
  return std::vector<Object>{{"PodDisruptionBudget", ns + '/' + name, std::move(out).take()}};
}

Result<std::vector<Object>> read_shorthand(std::string_view head, std::string_view body, int line) {
  const std::vector<std::string> words = words_of(head);
  if (words.empty()) return invalid("want a node, pod, gang or budget before the colon");
  const std::string& kind = words.size() > 2 && number_of(words[0]) ? words[1] : words[0];
  Result<std::vector<Object>> out = invalid(
      "found \"" + kind + "\", want node, pod, gang, budget, yaml or one of the words of queues");
  if (kind == "node" || kind == "nodes") out = read_nodes(words, body);
  if (kind == "pod" || kind == "pods") out = read_pods(words, body);
  if (kind == "gang") out = read_gang(words, body);
  if (kind == "budget") out = read_budget(words, body);
  if (out.ok()) {
    for (Object& object : *out) object.line = line;
  }
  return out;
}

}  // namespace berth::scenario
