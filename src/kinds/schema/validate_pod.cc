// Rules of pod specs that a schema cannot say.
#include <set>

#include "kinds/schema/rules.h"
#include "text/members.h"
#include "text/path.h"
#include "text/quantity.h"

namespace berth::sim {
namespace {

using text::Member;
using text::Value;

struct PodNames {
  std::set<std::string, std::less<>> volumes;
  std::set<std::string, std::less<>> claims;
};

bool is_native_resource(std::string_view name) {
  return name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != name.npos;
}

// Extended resources come in whole numbers and cannot be overcommitted.
bool is_extended(std::string_view name) {
  return !is_native_resource(name) && !name.starts_with("requests.");
}

bool is_container_resource(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
         name.starts_with("hugepages-");
}

void check_resource_name(std::string_view name, Path& path, Causes& out) {
  if (const std::string wrong = check_label_key(name); !wrong.empty()) {
    out.add(invalid_text(path.text(), name, wrong));
  } else if (name.find('/') == std::string_view::npos && !is_container_resource(name)) {
    const bool standard = name == "pods" || name == "services" || name == "storage" ||
                          name == "secrets" || name == "configmaps" ||
                          name == "persistentvolumeclaims" || name == "replicationcontrollers" ||
                          name == "resourcequotas" || name.starts_with("requests.") ||
                          name.starts_with("limits.");
    if (!standard) {
      out.add(
          invalid_text(path.text(), name, "must be a standard resource type or fully qualified"));
    }
    out.add(invalid_text(path.text(), name, "must be a standard resource for containers"));
  }
}

void check_amount(std::string_view name, const Value& amount, Path& path, Causes& out) {
  const auto quantity = text::parse_quantity(amount.string());
  if (!quantity.ok()) return;
  if (quantity->is_negative()) {
    out.add(invalid_value(path.text(), amount, "must be greater than or equal to 0"));
  }
  if (is_extended(name) && !quantity->is_integer()) {
    out.add(invalid_value(path.text(), amount, "must be an integer"));
  }
}

void check_amounts(const Value& resources, std::string_view which, Path& path, Causes& out) {
  at_field(resources, which, path, [&](const Value& list) {
    for (const Member& member : list.members()) {
      const Path::Mark mark = path.mark();
      path.key(member.key);
      check_resource_name(member.key, path, out);
      check_amount(member.key, member.value, path, out);
      path.back(mark);
    }
  });
}

void check_resources(const Value& resources, const PodNames& names, Path& path, Causes& out) {
  check_amounts(resources, "limits", path, out);
  check_amounts(resources, "requests", path, out);
  text::MemberIndex limits(at(resources, "limits"));
  for (const Member& request : at(resources, "requests").members()) {
    const Value* limit = limits.find(request.key);
    if (limit == nullptr) {
      if (is_extended(request.key)) {
        out.add(required_value(path.with("limits"),
                               "Limit must be set for non overcommitable resources"));
      }
      continue;
    }
    const auto asked = text::parse_quantity(request.value.string());
    const auto most = text::parse_quantity(limit->string());
    if (!asked.ok() || !most.ok()) continue;
    const std::string named =
        std::string(request.key) + " limit of " + std::string(limit->string());
    if (is_extended(request.key) && *asked != *most) {
      out.add(invalid_value(path.with("requests"), request.value, "must be equal to " + named));
    } else if (*asked > *most) {
      out.add(invalid_value(path.with("requests"), request.value,
                            "must be less than or equal to " + named));
    }
  }
  std::set<std::string, std::less<>> seen;
  each_item(resources, "claims", path, [&](const Value& claim) {
    const std::string_view name = text_at(claim, "name");
    if (name.empty()) {
      out.add(required_value(path.with("name")));
    } else if (!names.claims.contains(name)) {
      Cause cause = not_found(path.text(), name);
      cause.message += ": must be one of the names in pod.spec.resourceClaims";
      if (names.claims.empty()) cause.message += " which is empty";
      out.add(std::move(cause));
    }
    if (!seen.insert(text::to_json(claim)).second) out.add(duplicate_value(path.text(), claim));
  });
}

void check_ports(const Value& container, Path& path, Causes& out) {
  std::set<std::string, std::less<>> seen;
  each_item(container, "ports", path, [&](const Value& port) {
    const std::string_view name = text_at(port, "name");
    if (!name.empty()) {
      if (name.size() > 15) {
        out.add(invalid_text(path.with("name"), name, "must be no more than 15 bytes"));
      } else if (!seen.insert(std::string(name)).second) {
        out.add(duplicate_value(path.with("name"), at(port, "name")));
      }
    }
    if (at(port, "containerPort").as_int64().value_or(0) == 0) {
      out.add(required_value(path.with("containerPort")));
    } else {
      check_range(port, "containerPort", 1, 65535, path, out);
    }
    if (at(port, "hostPort").as_int64().value_or(0) != 0) {
      check_range(port, "hostPort", 1, 65535, path, out);
    }
  });
}

void check_mounts(const Value& container, const PodNames& names, Path& path, Causes& out) {
  std::set<std::string, std::less<>> paths;
  each_item(container, "volumeMounts", path, [&](const Value& mount) {
    const std::string_view name = text_at(mount, "name");
    if (!name.empty() && !names.volumes.contains(name)) {
      out.add(not_found(path.with("name"), name));
    }
    if (!paths.insert(std::string(text_at(mount, "mountPath"))).second) {
      out.add(invalid_value(path.with("mountPath"), at(mount, "mountPath"), "must be unique"));
    }
  });
}

void check_probe(const Value& container, std::string_view which, Path& path, Causes& out) {
  at_field(container, which, path, [&](const Value& probe) {
    for (const std::string_view field : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                         "successThreshold", "failureThreshold"}) {
      check_not_negative(probe, field, path, out);
    }
    std::size_t handlers = 0;
    for (const std::string_view handler : {"exec", "httpGet", "tcpSocket", "grpc"}) {
      handlers += probe.find(handler) != nullptr ? 1 : 0;
    }
    if (handlers == 0) out.add(required_value(path.text(), "must specify a handler type"));
    if (handlers > 1) {
      out.add(forbidden_value(path.text(), "may not specify more than 1 handler type"));
    }
    if (which != "readinessProbe" && at(probe, "successThreshold").as_int64().value_or(1) != 1) {
      out.add(
          invalid_value(path.with("successThreshold"), at(probe, "successThreshold"), "must be 1"));
    }
  });
}

void check_container(const Value& container, const PodNames& names, Path& path, Causes& out) {
  const std::string_view name = text_at(container, "name");
  if (!name.empty()) {
    if (const std::string wrong = check_dns1123_label(name); !wrong.empty()) {
      out.add(invalid_text(path.with("name"), name, wrong));
    }
  }
  const std::string_view image = text_at(container, "image");
  if (image.empty()) {
    out.add(required_value(path.with("image")));
  } else if (image.front() == ' ' || image.back() == ' ') {
    out.add(
        invalid_text(path.with("image"), image, "must not have leading or trailing whitespace"));
  }
  check_ports(container, path, out);
  check_mounts(container, names, path, out);
  for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    check_probe(container, probe, path, out);
  }
  at_field(container, "resources", path,
           [&](const Value& resources) { check_resources(resources, names, path, out); });
}

// It comes to a pod that runs: nothing that the pod would have to be placed or kept alive for.
void check_ephemeral(const Value& container, const Path& path, Causes& out) {
  for (const std::string_view field :
       {"lifecycle", "livenessProbe", "ports", "readinessProbe", "resizePolicy", "resources",
        "restartPolicy", "startupProbe"}) {
    const Value* value = container.find(field);
    const bool none = value == nullptr || value->is_null() ||
                      (value->size() == 0 && (field == "resources" || value->is_array()));
    if (!none) {
      out.add(forbidden_value(path.with(field), "cannot be set for an Ephemeral Container"));
    }
  }
}

// What the containers of a pod share: no devices.
void check_pod_resources(const Value& resources, Path& path, Causes& out) {
  for (const std::string_view which : {"limits", "requests"}) {
    at_field(resources, which, path, [&](const Value& list) {
      for (const Member& member : list.members()) {
        const Path::Mark mark = path.mark();
        path.key(member.key);
        const bool shared =
            member.key == "cpu" || member.key == "memory" || member.key.starts_with("hugepages-");
        if (!shared) {
          out.add(not_supported(path.text(), Value::make_string(member.key, 0),
                                {"cpu", "hugepages-", "memory"}));
        }
        check_amount(member.key, member.value, path, out);
        path.back(mark);
      }
    });
  }
}

void check_containers(const Value& spec, const PodNames& names, Path& path, Causes& out) {
  std::set<std::string, std::less<>> seen;
  for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    each_item(spec, list, path, [&](const Value& container) {
      check_container(container, names, path, out);
      const std::string_view name = text_at(container, "name");
      if (!name.empty() && !seen.insert(std::string(name)).second) {
        out.add(duplicate_value(path.with("name"), at(container, "name")));
      }
      if (list == "ephemeralContainers") check_ephemeral(container, path, out);
    });
  }
}

void check_toleration(const Value& toleration, Path& path, Causes& out) {
  const std::string_view key = text_at(toleration, "key");
  const std::string_view op = text_at(toleration, "operator");
  const std::string_view value = text_at(toleration, "value");
  if (!key.empty()) {
    if (const std::string wrong = check_label_key(key); !wrong.empty()) {
      out.add(invalid_text(path.with("key"), key, wrong));
    }
  } else if (op != "Exists") {
    out.add(invalid_text(path.with("operator"), op,
                         "operator must be Exists when `key` is empty, which means \"match all "
                         "values and all keys\""));
  }
  if (toleration.find("tolerationSeconds") != nullptr &&
      text_at(toleration, "effect") != "NoExecute") {
    out.add(invalid_text(path.with("effect"), text_at(toleration, "effect"),
                         "effect must be 'NoExecute' when `tolerationSeconds` is set"));
  }
  if (op == "Exists" && !value.empty()) {
    out.add(invalid_text(path.with("operator"), value,
                         "value must be empty when `operator` is 'Exists'"));
  } else if (op.empty() || op == "Equal") {
    if (const std::string wrong = check_label_value(value); !wrong.empty()) {
      out.add(invalid_text(path.with("operator"), value, wrong));
    }
  }
}

void check_node_requirement(const Value& rule, Path& path, Causes& out) {
  const std::string_view op = text_at(rule, "operator");
  const std::size_t values = at(rule, "values").size();
  if ((op == "In" || op == "NotIn") && values == 0) {
    out.add(required_value(path.with("values"),
                           "must be specified when `operator` is 'In' or 'NotIn'"));
  } else if ((op == "Exists" || op == "DoesNotExist") && values > 0) {
    out.add(forbidden_value(path.with("values"),
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
  } else if ((op == "Gt" || op == "Lt") && values != 1) {
    out.add(required_value(path.with("values"),
                           "must be specified single value when `operator` is 'Lt' or 'Gt'"));
  }
  if (const std::string wrong = check_label_key(text_at(rule, "key")); !wrong.empty()) {
    out.add(invalid_text(path.with("key"), text_at(rule, "key"), wrong));
  }
}

void check_node_term(const Value& term, Path& path, Causes& out) {
  each_item(term, "matchExpressions", path,
            [&](const Value& rule) { check_node_requirement(rule, path, out); });
}

void check_pod_term(const Value& term, Path& path, Causes& out) {
  at_field(term, "labelSelector", path,
           [&](const Value& selector) { check_label_selector(selector, path, out); });
  const std::string_view key = text_at(term, "topologyKey");
  if (key.empty()) return;  // the schema says it is required
  if (const std::string wrong = check_label_key(key); !wrong.empty()) {
    out.add(invalid_text(path.with("topologyKey"), key, wrong));
  }
}

void check_weight(const Value& term, Path& path, Causes& out) {
  const std::int64_t weight = at(term, "weight").as_int64().value_or(0);
  if (weight <= 0 || weight > 100) {
    out.add({"FieldValueInvalid", path.with("weight"),
             "Invalid value: " + std::to_string(weight) + ": must be in the range 1-100"});
  }
}

void check_affinity(const Value& affinity, Path& path, Causes& out) {
  constexpr std::string_view kHard = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr std::string_view kSoft = "preferredDuringSchedulingIgnoredDuringExecution";
  at_field(affinity, "nodeAffinity", path, [&](const Value& node) {
    at_field(node, kHard, path, [&](const Value& selector) {
      each_item(selector, "nodeSelectorTerms", path,
                [&](const Value& term) { check_node_term(term, path, out); });
    });
    each_item(node, kSoft, path, [&](const Value& term) {
      check_weight(term, path, out);
      at_field(term, "preference", path,
               [&](const Value& preference) { check_node_term(preference, path, out); });
    });
  });
  for (const std::string_view which : {"podAffinity", "podAntiAffinity"}) {
    at_field(affinity, which, path, [&](const Value& pods) {
      each_item(pods, kHard, path, [&](const Value& term) { check_pod_term(term, path, out); });
      each_item(pods, kSoft, path, [&](const Value& term) {
        check_weight(term, path, out);
        at_field(term, "podAffinityTerm", path,
                 [&](const Value& inner) { check_pod_term(inner, path, out); });
      });
    });
  }
}

void check_spread(const Value& spec, Path& path, Causes& out) {
  std::set<std::string> seen;
  each_item(spec, "topologySpreadConstraints", path, [&](const Value& constraint) {
    const std::int64_t skew = at(constraint, "maxSkew").as_int64().value_or(0);
    if (skew <= 0) {
      out.add({"FieldValueInvalid", path.with("maxSkew"),
               "Invalid value: " + std::to_string(skew) + ": must be greater than zero"});
    }
    const std::string pair = "{" + std::string(text_at(constraint, "topologyKey")) + ", " +
                             std::string(text_at(constraint, "whenUnsatisfiable")) + "}";
    if (!seen.insert(pair).second) {
      out.add({"FieldValueDuplicate", path.with("{topologyKey, whenUnsatisfiable}"),
               "Duplicate value: " + go_quote(pair)});
    }
    at_field(constraint, "labelSelector", path,
             [&](const Value& selector) { check_label_selector(selector, path, out); });
  });
}

void check_volumes(const Value& spec, PodNames& names, Path& path, Causes& out) {
  each_item(spec, "volumes", path, [&](const Value& volume) {
    const std::string_view name = text_at(volume, "name");
    if (name.empty()) return;
    if (const std::string wrong = check_dns1123_label(name); !wrong.empty()) {
      out.add(invalid_text(path.with("name"), name, wrong));
    }
    if (!names.volumes.insert(std::string(name)).second) {
      out.add(duplicate_value(path.with("name"), at(volume, "name")));
    }
    if (volume.size() > 2) {
      const std::string_view second = volume.members()[2].key;
      out.add(forbidden_value(path.with(second), "may not specify more than 1 volume type"));
    }
  });
}

void check_claims(const Value& spec, PodNames& names, Path& path, Causes& out) {
  each_item(spec, "resourceClaims", path, [&](const Value& claim) {
    const std::string_view name = text_at(claim, "name");
    if (!name.empty() && !names.claims.insert(std::string(name)).second) {
      out.add(duplicate_value(path.with("name"), at(claim, "name")));
    }
    const bool direct = claim.find("resourceClaimName") != nullptr;
    const bool made = claim.find("resourceClaimTemplateName") != nullptr;
    if (direct && made) {
      out.add(invalid_value(path.text(), claim,
                            "at most one of `resourceClaimName` or `resourceClaimTemplateName` "
                            "may be specified"));
    } else if (!direct && !made && claim.size() <= 1) {
      out.add(invalid_value(path.text(), claim,
                            "must specify one of: `resourceClaimName`, "
                            "`resourceClaimTemplateName`"));
    }
  });
}

void check_gates(const Value& spec, Path& path, Causes& out) {
  std::set<std::string, std::less<>> seen;
  each_item(spec, "schedulingGates", path, [&](const Value& gate) {
    const std::string_view name = text_at(gate, "name");
    if (const std::string wrong = check_label_key(name); !wrong.empty()) {
      out.add(invalid_text(path.text(), name, wrong));
    }
    if (!seen.insert(std::string(name)).second) {
      out.add(duplicate_value(path.text(), at(gate, "name")));
    }
  });
}

}  // namespace

void validate_pod_spec(const Value& spec, Path& path, Causes& out) {
  PodNames names;
  check_volumes(spec, names, path, out);
  check_claims(spec, names, path, out);
  check_containers(spec, names, path, out);
  at_field(spec, "resources", path,
           [&](const Value& resources) { check_pod_resources(resources, path, out); });
  at_field(spec, "nodeSelector", path,
           [&](const Value& labels) { validate_labels(labels, path, out); });
  each_item(spec, "tolerations", path,
            [&](const Value& toleration) { check_toleration(toleration, path, out); });
  at_field(spec, "affinity", path,
           [&](const Value& affinity) { check_affinity(affinity, path, out); });
  check_spread(spec, path, out);
  check_gates(spec, path, out);
  if (spec.find("activeDeadlineSeconds") != nullptr) {
    check_range(spec, "activeDeadlineSeconds", 1, INT32_MAX, path, out);
  }
  for (const std::string_view name : {"serviceAccountName", "nodeName", "priorityClassName"}) {
    const std::string_view text = spec[name].string();
    if (text.empty()) continue;
    if (const std::string wrong = check_dns1123_subdomain(text); !wrong.empty()) {
      out.add(invalid_text(path.with(name), text, wrong));
    }
  }
}

void validate_template(const Value& pod_template, Path& path, Causes& out) {
  at_field(pod_template, "metadata", path, [&](const Value& meta) {
    at_field(meta, "labels", path,
             [&](const Value& labels) { validate_labels(labels, path, out); });
  });
  const Path::Mark mark = path.mark();
  path.child("spec");
  const Value& spec = at(pod_template, "spec");
  if (spec.is_null()) out.add(required_value(path.with("containers")));
  validate_pod_spec(spec, path, out);
  path.back(mark);
}

}  // namespace berth::sim
