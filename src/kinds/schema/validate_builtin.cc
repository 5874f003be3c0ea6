// Rules of built-in kinds that a schema cannot say.
#include <algorithm>
#include <set>

#include "kinds/schema/rules.h"
#include "text/path.h"
#include "text/quantity.h"
#include "text/selector.h"

namespace berth::sim {

using text::Member;
using text::Value;

Cause not_found(std::string field, std::string_view value) {
  return {"FieldValueNotFound", std::move(field), "Not found: " + go_quote(value)};
}

void check_not_negative(const Value& object, std::string_view key, Path& path, Causes& out) {
  const auto number = object[key].as_int64();
  if (number && *number < 0) {
    out.add(invalid_value(path.with(key), object[key], "must be greater than or equal to 0"));
  }
}

void check_range(const Value& object, std::string_view key, std::int64_t low, std::int64_t high,
                 Path& path, Causes& out) {
  const auto number = object[key].as_int64();
  if (number && (*number < low || *number > high)) {
    out.add(invalid_value(
        path.with(key), object[key],
        "must be between " + std::to_string(low) + " and " + std::to_string(high) + ", inclusive"));
  }
}

void check_label_selector(const Value& selector, Path& path, Causes& out) {
  at_field(selector, "matchLabels", path,
           [&](const Value& labels) { validate_labels(labels, path, out); });
  each_item(selector, "matchExpressions", path, [&](const Value& rule) {
    const std::string_view op = text_at(rule, "operator");
    const std::size_t values = at(rule, "values").size();
    if ((op == "In" || op == "NotIn") && values == 0) {
      out.add(required_value(path.with("values"),
                             "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if ((op == "Exists" || op == "DoesNotExist") && values > 0) {
      out.add(
          forbidden_value(path.with("values"),
                          "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
    if (const std::string wrong = check_label_key(text_at(rule, "key")); !wrong.empty()) {
      out.add(invalid_text(path.with("key"), text_at(rule, "key"), wrong));
    }
  });
}

bool selector_matches(const Value& selector, const Value& labels) {
  text::Decoder decoder;
  text::Selector parsed;
  text::decode_label_selector(selector, parsed, decoder);
  if (!decoder.ok()) return true;  // said elsewhere
  return text::matches(parsed, [&](std::string_view key) -> std::optional<std::string_view> {
    const Value* value = labels.find(key);
    if (value == nullptr) return std::nullopt;
    return value->string();
  });
}

void validate_resource_list(const Value& list, Path& path, Causes& out) {
  for (const Member& member : list.members()) {
    const Path::Mark mark = path.mark();
    path.key(member.key);
    if (const std::string wrong = check_label_key(member.key); !wrong.empty()) {
      out.add(invalid_text(path.text(), member.key, wrong));
    }
    const auto quantity = text::parse_quantity(member.value.string());
    if (quantity.ok() && quantity->is_negative()) {
      out.add(invalid_value(path.text(), member.value, "must be greater than or equal to 0"));
    }
    path.back(mark);
  }
}

namespace {

// Deployment, ReplicaSet, DaemonSet, StatefulSet: selector, template, restart policy.
void rules_of_controller(const Kind& kind, const Value& spec, Path& path, Causes& out) {
  check_not_negative(spec, "replicas", path, out);
  check_not_negative(spec, "minReadySeconds", path, out);
  check_not_negative(spec, "revisionHistoryLimit", path, out);
  const Value& selector = at(spec, "selector");
  const Value& labels = at(spec, "template.metadata.labels");
  if (selector.is_null()) {
    out.add(required_value(path.with("selector")));
    out.add(invalid_value(path.with("template.metadata.labels"), labels,
                          "`selector` does not match template `labels`"));
  } else {
    at_field(spec, "selector", path, [&](const Value& s) { check_label_selector(s, path, out); });
    const std::size_t rules =
        at(selector, "matchLabels").size() + at(selector, "matchExpressions").size();
    const std::string word = kind.kind == "DaemonSet"     ? "daemonset"
                             : kind.kind == "StatefulSet" ? "statefulset"
                                                          : "deployment";
    if (rules == 0) {
      out.add(
          invalid_value(path.with("selector"), selector, "empty selector is invalid for " + word));
    } else if (!selector_matches(selector, labels)) {
      out.add(invalid_value(path.with("template.metadata.labels"), labels,
                            "`selector` does not match template `labels`"));
    }
  }
  const Value& pod = at(spec, "template");
  const Path::Mark mark = path.mark();
  path.child("template");
  validate_template(pod, path, out);
  const std::string_view restart = text_at(pod, "spec.restartPolicy");
  if (!restart.empty() && restart != "Always") {
    out.add(
        not_supported(path.with("spec.restartPolicy"), at(pod, "spec.restartPolicy"), {"Always"}));
  }
  if (at(pod, "spec").find("activeDeadlineSeconds") != nullptr) {
    out.add(forbidden_value(path.with("spec.activeDeadlineSeconds"),
                            "activeDeadlineSeconds in " +
                                (kind.kind == "Deployment" ? "ReplicaSet" : kind.kind) +
                                " is not Supported"));
  }
  path.back(mark);
}

bool is_zero_amount(const Value& amount) {
  return amount.is_string() ? amount.string() == "0%" : amount.as_int64() == 0;
}

void rules_of_deployment(const Value& spec, Path& path, Causes& out) {
  const Value& strategy = at(spec, "strategy");
  const Value& rolling = at(strategy, "rollingUpdate");
  if (text_at(strategy, "type") == "Recreate" && !rolling.is_null()) {
    out.add(forbidden_value(path.with("strategy.rollingUpdate"),
                            "may not be specified when strategy `type` is 'Recreate'"));
  }
  if (!rolling.is_null() && is_zero_amount(at(rolling, "maxUnavailable")) &&
      is_zero_amount(at(rolling, "maxSurge"))) {
    out.add(invalid_value(path.with("strategy.rollingUpdate.maxUnavailable"),
                          at(rolling, "maxUnavailable"), "may not be 0 when `maxSurge` is 0"));
  }
  const auto deadline = at(spec, "progressDeadlineSeconds").as_int64();
  if (deadline && *deadline <= at(spec, "minReadySeconds").as_int64().value_or(0)) {
    out.add(invalid_value(path.with("progressDeadlineSeconds"), at(spec, "progressDeadlineSeconds"),
                          "must be greater than minReadySeconds"));
  }
}

void rules_of_job_modes(const Value& spec, Path& path, Causes& out) {
  const bool indexed = text_at(spec, "completionMode") == "Indexed";
  if (indexed && spec.find("completions") == nullptr) {
    out.add(required_value(path.with("completions"), "when completion mode is Indexed"));
  }
  if (indexed && at(spec, "parallelism").as_int64().value_or(0) > 100'000) {
    out.add(invalid_value(path.with("parallelism"), at(spec, "parallelism"),
                          "must be less than or equal to 100000 when completion mode is Indexed"));
  }
  for (const std::string_view field : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
    if (!indexed && spec.find(field) != nullptr) {
      out.add(invalid_value(path.with(field), spec[field], "requires indexed completion mode"));
    }
  }
  if (spec.find("maxFailedIndexes") != nullptr && spec.find("backoffLimitPerIndex") == nullptr) {
    out.add(
        required_value(path.with("backoffLimitPerIndex"), "when maxFailedIndexes is specified"));
  }
  if (!indexed && spec.find("successPolicy") != nullptr) {
    out.add(invalid_value(path.with("successPolicy"), at(spec, "successPolicy"),
                          "requires indexed completion mode"));
  }
}

void rules_of_failure_policy(const Value& spec, Path& path, Causes& out) {
  const Path::Mark mark = path.mark();
  path.child("podFailurePolicy");
  each_item(at(spec, "podFailurePolicy"), "rules", path, [&](const Value& rule) {
    const bool codes = rule.find("onExitCodes") != nullptr;
    const bool conditions = at(rule, "onPodConditions").size() > 0;
    if (codes && conditions) {
      out.add(invalid_value(path.text(), rule,
                            "specifying both OnExitCodes and OnPodConditions is not supported"));
    } else if (!codes && !conditions) {
      out.add(invalid_value(path.text(), rule,
                            "specifying one of OnExitCodes and OnPodConditions is required"));
    }
    if (text_at(rule, "action") == "FailIndex" && spec.find("backoffLimitPerIndex") == nullptr) {
      out.add(invalid_value(path.with("action"), at(rule, "action"),
                            "requires the backoffLimitPerIndex to be set"));
    }
  });
  path.back(mark);
}

// selector: a Job itself, not the template of one in a CronJob.
void rules_of_job(const Value& spec, bool selector, Path& path, Causes& out) {
  for (const std::string_view field :
       {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
        "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    check_not_negative(spec, field, path, out);
  }
  rules_of_job_modes(spec, path, out);
  rules_of_failure_policy(spec, path, out);
  const Value& pod = at(spec, "template");
  if (selector) {
    const Value& labels = at(pod, "metadata.labels");
    if (spec.find("selector") == nullptr) {
      out.add(required_value(path.with("selector")));
    } else if (!selector_matches(at(spec, "selector"), labels)) {
      out.add(invalid_value(path.with("template.metadata.labels"), labels,
                            "`selector` does not match template `labels`"));
    }
  }
  const Path::Mark mark = path.mark();
  path.child("template");
  validate_template(pod, path, out);
  const std::string_view restart = text_at(pod, "spec.restartPolicy");
  if (restart.empty() || restart == "Always") {
    out.add(
        required_value(path.with("spec.restartPolicy"), "valid values: \"OnFailure\", \"Never\""));
  } else if (spec.find("podFailurePolicy") != nullptr && restart != "Never") {
    out.add(invalid_text(path.with("spec.restartPolicy"), restart,
                         "only \"Never\" is supported when podFailurePolicy is specified"));
  }
  path.back(mark);
}

void rules_of_cron_job(const Value& spec, Path& path, Causes& out) {
  const std::string_view schedule = text_at(spec, "schedule");
  std::size_t words = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    words += schedule[i] != ' ' && (i == 0 || schedule[i - 1] == ' ') ? 1 : 0;
  }
  if (!schedule.empty() && schedule.front() != '@' && words != 5) {
    out.add(invalid_text(path.with("schedule"), schedule,
                         "expected exactly 5 fields, found " + std::to_string(words) + ": [" +
                             std::string(schedule) + "]"));
  }
  const Path::Mark mark = path.mark();
  path.child("jobTemplate.spec");
  rules_of_job(at(spec, "jobTemplate.spec"), false, path, out);
  path.back(mark);
}

void rules_of_service(const Value& spec, Path& path, Causes& out) {
  const bool external = text_at(spec, "type") == "ExternalName";
  const bool headless = text_at(spec, "clusterIP") == "None";
  const std::size_t ports = at(spec, "ports").size();
  if (ports == 0 && !external && !headless) out.add(required_value(path.with("ports")));
  if (external && text_at(spec, "externalName").empty()) {
    out.add(required_value(path.with("externalName")));
  }
  std::set<std::string, std::less<>> names;
  each_item(spec, "ports", path, [&](const Value& port) {
    const std::string_view name = text_at(port, "name");
    if (ports > 1 && name.empty()) out.add(required_value(path.with("name")));
    if (!name.empty() && !names.insert(std::string(name)).second) {
      out.add(duplicate_value(path.with("name"), at(port, "name")));
    }
    if (!at(port, "port").as_int64()) out.add(required_value(path.with("port")));
    check_range(port, "port", 1, 65535, path, out);
  });
  at_field(spec, "selector", path,
           [&](const Value& labels) { validate_labels(labels, path, out); });
}

void rules_of_node(const Value& spec, Causes& out) {
  std::set<std::string> seen;
  Path path;  // Kubernetes itself names this field so
  path.child("metadata");
  each_item(spec, "taints", path, [&](const Value& taint) {
    const std::string_view key = text_at(taint, "key");
    if (const std::string wrong = check_label_key(key); !wrong.empty()) {
      out.add(invalid_text(path.with("key"), key, wrong));
    }
    if (const std::string wrong = check_label_value(text_at(taint, "value")); !wrong.empty()) {
      out.add(invalid_text(path.with("value"), text_at(taint, "value"), wrong));
    }
    const std::string pair = std::string(text_at(taint, "effect")) + " " + std::string(key);
    if (!seen.insert(pair).second) {
      out.add({"FieldValueDuplicate", path.text(),
               "Duplicate value: " + show_value(taint) +
                   ": taints must be unique by key and effect pair"});
    }
  });
}

void rules_of_budget(const Value& spec, Path& path, Causes& out) {
  if (spec.find("minAvailable") != nullptr && spec.find("maxUnavailable") != nullptr) {
    out.add(invalid_value(path.text(), spec, "minAvailable and maxUnavailable cannot be both set"));
  }
  for (const std::string_view field : {"minAvailable", "maxUnavailable"}) {
    check_not_negative(spec, field, path, out);
  }
  at_field(spec, "selector", path, [&](const Value& s) { check_label_selector(s, path, out); });
}

void rules_of_claim(const Value& spec, Path& path, Causes& out) {
  if (at(spec, "accessModes").size() == 0) {
    out.add(required_value(path.with("accessModes"), "at least 1 access mode is required"));
  }
  const Value* storage = at(spec, "resources.requests").find("storage");
  if (storage == nullptr) out.add(required_value(path.with("resources[storage]")));
}

void rules_of_priority(const Value& object, Causes& out) {
  const std::string_view name = text_at(object, "metadata.name");
  const std::int64_t value = at(object, "value").as_int64().value_or(0);
  if (name.starts_with("system-")) {
    if (name != "system-node-critical" && name != "system-cluster-critical") {
      out.add(forbidden_value("metadata.name",
                              "priority class names with 'system-' prefix are "
                              "reserved for system use only"));
    }
  } else if (value > 1'000'000'000) {
    out.add(forbidden_value("value",
                            "maximum allowed value of a user defined priority is "
                            "1000000000"));
  }
}

void rules_of_lease(const Value& spec, Path& path, Causes& out) {
  const auto duration = at(spec, "leaseDurationSeconds").as_int64();
  if (duration && *duration <= 0) {
    out.add(invalid_value(path.with("leaseDurationSeconds"), at(spec, "leaseDurationSeconds"),
                          "must be greater than 0"));
  }
  check_not_negative(spec, "leaseTransitions", path, out);
}

// https://host[/path], and nothing else that a URL may have.
void rules_of_webhook_url(std::string_view url, const std::string& field, Causes& out) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  const auto refuse = [&](std::string_view found, std::string_view why) {
    out.add(invalid_text(field, found, why));
  };
  const auto cut = [&](char mark) {
    const std::size_t at = url.find(mark);
    const std::string_view rest = at == std::string_view::npos ? "" : url.substr(at + 1);
    url = url.substr(0, at);
    return rest;
  };
  const std::string_view fragment = cut('#');
  const std::string_view query = cut('?');
  const std::size_t colon = url.find("://");
  const std::string_view scheme = colon == std::string_view::npos ? "" : url.substr(0, colon);
  url.remove_prefix(colon == std::string_view::npos ? url.size() : colon + 3);
  const std::string_view host = url.substr(0, url.find('/'));
  const std::size_t user = host.rfind('@');
  if (scheme != "https") {
    refuse(scheme, "'https' is the only allowed URL scheme" + std::string(kForm));
  }
  if (host.empty()) refuse(host, "host must be specified" + std::string(kForm));
  if (user != std::string_view::npos) {
    refuse(host.substr(0, user), "user information is not permitted in the URL");
  }
  if (!fragment.empty()) refuse(fragment, "fragments are not permitted in the URL");
  if (!query.empty()) refuse(query, "query parameters are not permitted in the URL");
}

void rules_of_webhooks(const Value& object, Causes& out) {
  Path path;
  std::set<std::string, std::less<>> names;
  each_item(object, "webhooks", path, [&](const Value& hook) {
    if (!names.insert(std::string(text_at(hook, "name"))).second) {
      out.add(duplicate_value(path.with("name"), at(hook, "name")));
    }
    const std::string_view name = text_at(hook, "name");
    if (!name.empty() && std::count(name.begin(), name.end(), '.') < 2) {
      out.add(invalid_text(path.with("name"), name,
                           "should be a domain with at least three segments separated by dots"));
    }
    const auto timeout = at(hook, "timeoutSeconds").as_int64();
    if (timeout && (*timeout < 1 || *timeout > 30)) {
      out.add(invalid_value(path.with("timeoutSeconds"), at(hook, "timeoutSeconds"),
                            "the timeout value must be between 1 and 30 seconds"));
    }
    each_item(hook, "rules", path, [&](const Value& rule) {
      for (const std::string_view field : {"operations", "apiGroups", "apiVersions", "resources"}) {
        if (rule[field].size() == 0) out.add(required_value(path.with(field)));
      }
    });
    const Value& config = at(hook, "clientConfig");
    const bool url = config.find("url") != nullptr;
    if (url == (config.find("service") != nullptr)) {
      out.add(
          required_value(path.with("clientConfig"), "exactly one of url or service is required"));
    } else if (url) {
      rules_of_webhook_url(text_at(config, "url"), path.with("clientConfig.url"), out);
    }
  });
}

// Without a domain only a few words are finalizers.
void check_finalizers(const Value& object, Causes& out) {
  for (std::size_t i = 0; const Value& one : at(object, "metadata.finalizers").items()) {
    const std::string_view name = one.string();
    const bool known = name == "kubernetes" || name == "orphan" || name == "foregroundDeletion";
    if (!known && name.find('/') == std::string_view::npos) {
      out.add(invalid_text("metadata.finalizers[" + std::to_string(i) + "]", name,
                           "name is neither a standard finalizer name nor is it fully qualified"));
    }
    ++i;
  }
}

bool is_config_key(std::string_view key) {
  for (const char c : key) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!word && c != '-' && c != '_' && c != '.') return false;
  }
  return !key.empty() && key != "." && key != ".." && key.size() <= 253;
}

void rules_of_claim_requests(const Value& devices, Path& path, Causes& out) {
  const Path::Mark mark = path.mark();
  path.child("devices");
  each_item(devices, "requests", path, [&](const Value& request) {
    const bool exactly = request.find("exactly") != nullptr;
    const bool first = at(request, "firstAvailable").size() > 0;
    if (exactly == first) {
      out.add(exactly ? invalid_value(path.text(), request,
                                      "exactly one of `exactly` or `firstAvailable` is required, "
                                      "but multiple fields are set")
                      : required_value(path.text(),
                                       "exactly one of `exactly` or `firstAvailable` is required"));
    }
  });
  path.back(mark);
}

void rules_of_core(const Kind& kind, const Value& object, const Value& spec, Path& path,
                   Causes& out) {
  if (kind.kind == "Pod") {
    if (object.find("spec") == nullptr) out.add(required_value("spec.containers"));
    validate_pod_spec(spec, path, out);
    if (at(spec, "schedulingGates").size() > 0 && !text_at(spec, "nodeName").empty()) {
      out.add(forbidden_value("spec.nodeName",
                              "cannot be set until all schedulingGates have been cleared"));
    }
  } else if (kind.kind == "Service") {
    rules_of_service(spec, path, out);
  } else if (kind.kind == "Node") {
    rules_of_node(spec, out);
  } else if (kind.kind == "PersistentVolumeClaim") {
    rules_of_claim(spec, path, out);
  } else if (kind.kind == "ReplicationController" && at(spec, "selector").size() == 0) {
    out.add(required_value(path.with("selector")));
  } else if (kind.kind == "ResourceQuota") {
    at_field(spec, "hard", path,
             [&](const Value& hard) { validate_resource_list(hard, path, out); });
  } else if (kind.kind == "ConfigMap" || kind.kind == "Secret") {
    constexpr std::size_t kMost = 1024 * 1024;
    std::size_t total = 0;
    for (const std::string_view data : {"data", "binaryData"}) {
      for (const Member& member : object[data].members()) {
        total += member.value.string().size();
        if (is_config_key(member.key)) continue;
        out.add(invalid_text(std::string(data) + "[" + std::string(member.key) + "]", member.key,
                             "a valid config key must consist of alphanumeric characters, '-', "
                             "'_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex "
                             "used for validation is '[-._a-zA-Z0-9]+')"));
      }
    }
    if (total > kMost) out.add(too_long("", static_cast<std::int64_t>(kMost)));
  }
}

}  // namespace

void validate_builtin(const Kind& kind, const Value& object, Causes& out) {
  const Value& spec = at(object, "spec");
  Path path;
  path.child("spec");
  // The server of CustomResourceDefinitions is another one, without that rule.
  if (kind.group != "apiextensions.k8s.io") check_finalizers(object, out);
  if (kind.group.empty()) return rules_of_core(kind, object, spec, path, out);
  if (kind.group == "apps" && kind.kind != "ControllerRevision") {
    rules_of_controller(kind, spec, path, out);
    if (kind.kind == "Deployment") rules_of_deployment(spec, path, out);
  } else if (kind.group == "batch" && kind.kind == "Job") {
    rules_of_job(spec, true, path, out);
  } else if (kind.group == "batch") {
    rules_of_cron_job(spec, path, out);
  } else if (kind.kind == "HorizontalPodAutoscaler") {
    rules_of_autoscaler(spec, path, out);
  } else if (kind.group == "flowcontrol.apiserver.k8s.io") {
    rules_of_flow(kind, object, path, out);
  } else if (kind.kind == "CertificateSigningRequest") {
    rules_of_signing_request(object, path, out);
  } else if (kind.group == "policy") {
    rules_of_budget(spec, path, out);
  } else if (kind.kind == "PriorityClass") {
    rules_of_priority(object, out);
  } else if (kind.group == "coordination.k8s.io" && kind.kind == "Lease") {
    rules_of_lease(spec, path, out);
  } else if (kind.group == "admissionregistration.k8s.io") {
    rules_of_webhooks(object, out);
  } else if (kind.kind == "ResourceClaim" || kind.kind == "ResourceClaimTemplate") {
    const bool inner = kind.kind == "ResourceClaimTemplate";
    if (inner) path.child("spec");
    rules_of_claim_requests(at(inner ? at(spec, "spec") : spec, "devices"), path, out);
  } else if (kind.group == "apiextensions.k8s.io") {
    validate_crd(object, out);
  }
}

}  // namespace berth::sim
