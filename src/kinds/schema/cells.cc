// What `kubectl get` shows of the built-in kinds whose cells are more than a field.
#include <algorithm>

#include "kinds/schema/columns.h"
#include "text/path.h"
#include "text/rfc3339.h"
#include "text/selector.h"

namespace berth::sim {
namespace {

using text::Member;
using text::Value;

bool holds_condition(const Value& status, std::string_view type) {
  const Value* condition = find_type(at(status, "conditions"), type);
  return condition != nullptr && text_at(*condition, "status") == "True";
}

std::string_view name_of(const Value& object) { return text_at(object, "metadata.name"); }

std::string labels_text(const Value& labels) {
  std::vector<std::string> words;
  for (const Member& member : labels.members()) {
    words.push_back(std::string(member.key) + "=" + std::string(member.value.string()));
  }
  std::sort(words.begin(), words.end());
  return words.empty() ? "<none>" : joined_words(words, ",");
}

std::string selector_text(const Value& selector) {
  if (selector.is_null()) return "<none>";
  text::Decoder decoder;
  text::Selector parsed;
  text::decode_label_selector(selector, parsed, decoder);
  if (!decoder.ok()) return "<error>";
  const std::string text = text::print_label_selector(parsed);
  return text.empty() ? "<none>" : text;
}

void container_cells(const Value& pod_spec, text::JsonWriter& out) {
  std::vector<std::string> names;
  std::vector<std::string> images;
  for (const Value& container : at(pod_spec, "containers").items()) {
    names.emplace_back(text_at(container, "name"));
    images.emplace_back(text_at(container, "image"));
  }
  out.value(joined_words(names, ","));
  out.value(joined_words(images, ","));
}

std::string ended_reason(const Value& ended, std::string_view prefix) {
  const std::string_view reason = text_at(ended, "reason");
  if (!reason.empty()) return std::string(prefix) + std::string(reason);
  const std::int64_t signal = int_at(ended, "signal");
  if (signal != 0) return std::string(prefix) + "Signal:" + std::to_string(signal);
  return std::string(prefix) + "ExitCode:" + std::to_string(int_at(ended, "exitCode"));
}

struct PodRow {
  std::string reason;
  std::int64_t ready = 0, total = 0, restarts = 0;
  std::string last_restart;
  bool initializing = false;
};

void count_restarts(const Value& container, PodRow& row) {
  row.restarts += int_at(container, "restartCount");
  const std::string_view ended = text_at(container, "lastState.terminated.finishedAt");
  if (ended > row.last_restart) row.last_restart = ended;
}

bool is_sidecar(const Value& spec, std::string_view name) {
  for (const Value& container : at(spec, "initContainers").items()) {
    if (text_at(container, "name") == name) return text_at(container, "restartPolicy") == "Always";
  }
  return false;
}

// The first init container that has not done its part gives the reason.
void init_part(const Value& spec, const Value& status, PodRow& row, PodRow& sidecars) {
  const auto statuses = at(status, "initContainerStatuses").items();
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const Value& container = statuses[i];
    count_restarts(container, row);
    const bool sidecar = is_sidecar(spec, text_at(container, "name"));
    if (sidecar) count_restarts(container, sidecars);
    const Value& state = at(container, "state");
    const Value* ended = state.find("terminated");
    if (ended != nullptr && int_at(*ended, "exitCode") == 0) continue;
    if (sidecar && at(container, "started").as_bool()) {
      row.ready += at(container, "ready").as_bool() ? 1 : 0;
      continue;
    }
    const std::string_view waiting = text_at(state, "waiting.reason");
    if (ended != nullptr) {
      row.reason = ended_reason(*ended, "Init:");
    } else if (!waiting.empty() && waiting != "PodInitializing") {
      row.reason = "Init:" + std::string(waiting);
    } else {
      row.reason =
          "Init:" + std::to_string(i) + "/" + std::to_string(at(spec, "initContainers").size());
    }
    row.initializing = true;
    return;
  }
}

void main_part(const Value& status, PodRow& row) {
  bool running = false;
  std::string failed;
  const auto statuses = at(status, "containerStatuses").items();
  for (std::size_t i = statuses.size(); i > 0; --i) {
    const Value& container = statuses[i - 1];
    count_restarts(container, row);
    const Value& state = at(container, "state");
    const std::string_view waiting = text_at(state, "waiting.reason");
    if (!waiting.empty()) {
      row.reason = waiting;
    } else if (const Value* ended = state.find("terminated"); ended != nullptr) {
      row.reason = ended_reason(*ended, "");
      if (int_at(*ended, "exitCode") != 0) failed = row.reason;
    } else if (at(container, "ready").as_bool() && state.find("running") != nullptr) {
      running = true;
      ++row.ready;
    }
  }
  if (row.reason != "Completed") return;
  if (running && holds_condition(status, "Ready")) {
    row.reason = "Running";
  } else if (!failed.empty()) {
    row.reason = failed;
  } else if (running) {
    row.reason = "NotReady";
  }
}

PodRow pod_row(const Value& pod) {
  const Value& spec = at(pod, "spec");
  const Value& status = at(pod, "status");
  PodRow row;
  row.total = static_cast<std::int64_t>(at(spec, "containers").size());
  for (const Value& container : at(spec, "initContainers").items()) {
    row.total += text_at(container, "restartPolicy") == "Always" ? 1 : 0;
  }
  const std::string_view phase = text_at(status, "phase");
  row.reason = text_at(status, "reason").empty() ? phase : text_at(status, "reason");
  const Value* scheduled = find_type(at(status, "conditions"), "PodScheduled");
  if (scheduled != nullptr && text_at(*scheduled, "reason") == "SchedulingGated") {
    row.reason = "SchedulingGated";
  }
  PodRow sidecars;
  init_part(spec, status, row, sidecars);
  if (!row.initializing || holds_condition(status, "Initialized")) {
    row.restarts = sidecars.restarts;
    row.last_restart = sidecars.last_restart;
    main_part(status, row);
  }
  if (!at(pod, "metadata.deletionTimestamp").is_null()) {
    if (text_at(status, "reason") == "NodeLost") {
      row.reason = "Unknown";
    } else if (phase != "Succeeded" && phase != "Failed") {
      row.reason = "Terminating";
    }
  }
  return row;
}

std::string gates_text(const Value& spec, const Value& status) {
  const auto gates = at(spec, "readinessGates").items();
  if (gates.empty()) return "<none>";
  std::size_t good = 0;
  for (const Value& gate : gates) {
    good += holds_condition(status, text_at(gate, "conditionType")) ? 1 : 0;
  }
  return std::to_string(good) + "/" + std::to_string(gates.size());
}

void pod_cells(const Value& pod, const std::string& age, std::int64_t now, text::JsonWriter& out) {
  const PodRow row = pod_row(pod);
  const Value& spec = at(pod, "spec");
  const Value& status = at(pod, "status");
  out.value(name_of(pod));
  out.value(std::to_string(row.ready) + "/" + std::to_string(row.total));
  out.value(row.reason);
  std::string restarts = std::to_string(row.restarts);
  if (row.restarts != 0 && !row.last_restart.empty()) {
    restarts += " (" + age_of(Value::make_string(row.last_restart, 0), now) + " ago)";
  }
  out.value(restarts);
  out.value(age);
  const auto addresses = at(status, "podIPs").items();
  out.value(or_none(addresses.empty() ? text_at(status, "podIP") : text_at(addresses[0], "ip")));
  out.value(or_none(text_at(spec, "nodeName")));
  out.value(or_none(text_at(status, "nominatedNodeName")));
  out.value(gates_text(spec, status));
}

std::string node_address(const Value& status, std::string_view type) {
  for (const Value& address : at(status, "addresses").items()) {
    if (text_at(address, "type") == type) return std::string(text_at(address, "address"));
  }
  return "<none>";
}

std::string node_roles(const Value& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::vector<std::string> roles;
  for (const Member& label : at(node, "metadata.labels").members()) {
    if (label.key.starts_with(kPrefix) && label.key.size() > kPrefix.size()) {
      roles.emplace_back(label.key.substr(kPrefix.size()));
    } else if (label.key == "kubernetes.io/role" && !label.value.string().empty()) {
      roles.emplace_back(label.value.string());
    }
  }
  std::sort(roles.begin(), roles.end());
  return roles.empty() ? "<none>" : joined_words(roles, ",");
}

void node_cells(const Value& node, const std::string& age, text::JsonWriter& out) {
  const Value& status = at(node, "status");
  const Value& info = at(status, "nodeInfo");
  const Value* ready = find_type(at(status, "conditions"), "Ready");
  std::string state = ready == nullptr                      ? "Unknown"
                      : text_at(*ready, "status") == "True" ? "Ready"
                                                            : "NotReady";
  if (at(node, "spec.unschedulable").as_bool()) state += ",SchedulingDisabled";
  out.value(name_of(node));
  out.value(state);
  out.value(node_roles(node));
  out.value(age);
  out.value(text_at(info, "kubeletVersion"));
  out.value(node_address(status, "InternalIP"));
  out.value(node_address(status, "ExternalIP"));
  const auto known = [&](std::string_view field) {
    const std::string_view text = info[field].string();
    return text.empty() ? std::string("<unknown>") : std::string(text);
  };
  out.value(known("osImage"));
  std::string kernel = known("kernelVersion");
  if (!text_at(info, "architecture").empty()) {
    kernel += " (" + std::string(text_at(info, "architecture")) + ")";
  }
  out.value(kernel);
  out.value(known("containerRuntimeVersion"));
}

std::string job_state(const Value& job) {
  const Value& status = at(job, "status");
  if (holds_condition(status, "Complete")) return "Complete";
  if (holds_condition(status, "Failed")) return "Failed";
  if (!at(job, "metadata.deletionTimestamp").is_null()) return "Terminating";
  for (const std::string_view type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (holds_condition(status, type)) return std::string(type);
  }
  return "Running";
}

void job_cells(const Value& job, const std::string& age, std::int64_t now, text::JsonWriter& out) {
  const Value& spec = at(job, "spec");
  const Value& status = at(job, "status");
  std::string done = std::to_string(int_at(status, "succeeded"));
  const auto completions = at(spec, "completions").as_int64();
  const std::int64_t parallelism = int_at(spec, "parallelism");
  done += "/" + std::to_string(completions.value_or(1));
  if (!completions && parallelism > 1) done += " of " + std::to_string(parallelism);
  std::string took;
  const auto start = text::parse_rfc3339(text_at(status, "startTime"));
  if (start.ok()) {
    const auto end = text::parse_rfc3339(text_at(status, "completionTime"));
    took = human_duration((end.ok() ? *end : now) - *start);
  }
  out.value(name_of(job));
  out.value(job_state(job));
  out.value(done);
  out.value(took);
  out.value(age);
  container_cells(at(spec, "template.spec"), out);
  out.value(selector_text(at(spec, "selector")));
}

void cron_job_cells(const Value& job, const std::string& age, std::int64_t now,
                    text::JsonWriter& out) {
  const Value& spec = at(job, "spec");
  const Value& last = at(job, "status.lastScheduleTime");
  out.value(name_of(job));
  out.value(text_at(spec, "schedule"));
  out.value(or_none(text_at(spec, "timeZone")));
  out.value(at(spec, "suspend").as_bool() ? "True" : "False");
  out.value(static_cast<std::int64_t>(at(job, "status.active").size()));
  out.value(last.is_null() ? "<none>" : age_of(last, now));
  out.value(age);
  const Value& inner = at(spec, "jobTemplate.spec");
  container_cells(at(inner, "template.spec"), out);
  out.value(selector_text(at(inner, "selector")));
}

void deployment_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& spec = at(object, "spec");
  const Value& status = at(object, "status");
  out.value(name_of(object));
  out.value(std::to_string(int_at(status, "readyReplicas")) + "/" +
            std::to_string(int_at(spec, "replicas")));
  out.value(int_at(status, "updatedReplicas"));
  out.value(int_at(status, "availableReplicas"));
  out.value(age);
  container_cells(at(spec, "template.spec"), out);
  out.value(selector_text(at(spec, "selector")));
}

void stateful_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& spec = at(object, "spec");
  out.value(name_of(object));
  out.value(std::to_string(int_at(object, "status.readyReplicas")) + "/" +
            std::to_string(int_at(spec, "replicas")));
  out.value(age);
  container_cells(at(spec, "template.spec"), out);
}

void replica_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& spec = at(object, "spec");
  const Value& status = at(object, "status");
  out.value(name_of(object));
  out.value(int_at(spec, "replicas"));
  out.value(int_at(status, "replicas"));
  out.value(int_at(status, "readyReplicas"));
  out.value(age);
  container_cells(at(spec, "template.spec"), out);
  const Value& selector = at(spec, "selector");
  const bool plain = selector.find("matchLabels") == nullptr &&
                     selector.find("matchExpressions") == nullptr && selector.size() > 0;
  out.value(plain ? labels_text(selector) : selector_text(selector));
}

void daemon_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& spec = at(object, "spec");
  const Value& status = at(object, "status");
  out.value(name_of(object));
  for (const std::string_view field :
       {"desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled",
        "numberAvailable"}) {
    out.value(status[field].as_int64().value_or(0));
  }
  out.value(labels_text(at(spec, "template.spec.nodeSelector")));
  out.value(age);
  container_cells(at(spec, "template.spec"), out);
  out.value(selector_text(at(spec, "selector")));
}

std::string external_address(const Value& object) {
  const Value& spec = at(object, "spec");
  const std::string_view type = text_at(spec, "type");
  if (type == "ExternalName") return std::string(text_at(spec, "externalName"));
  std::vector<std::string> all;
  if (type == "LoadBalancer") {
    for (const Value& one : at(object, "status.loadBalancer.ingress").items()) {
      const std::string_view ip = text_at(one, "ip");
      all.emplace_back(ip.empty() ? text_at(one, "hostname") : ip);
    }
  }
  for (const Value& ip : at(spec, "externalIPs").items()) all.emplace_back(ip.string());
  if (!all.empty()) return joined_words(all, ",");
  return type == "LoadBalancer" ? "<pending>" : "<none>";
}

void service_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& spec = at(object, "spec");
  out.value(name_of(object));
  out.value(text_at(spec, "type"));
  const auto addresses = at(spec, "clusterIPs").items();
  out.value(or_none(addresses.empty() ? text_at(spec, "clusterIP") : addresses[0].string()));
  out.value(external_address(object));
  std::vector<std::string> ports;
  for (const Value& port : at(spec, "ports").items()) {
    std::string text = std::to_string(int_at(port, "port"));
    if (int_at(port, "nodePort") > 0) text += ":" + std::to_string(int_at(port, "nodePort"));
    ports.push_back(text + "/" + std::string(text_at(port, "protocol")));
  }
  out.value(ports.empty() ? "<none>" : joined_words(ports, ","));
  out.value(age);
  out.value(labels_text(at(spec, "selector")));
}

// Events of both groups; the newer one renamed most fields.
void event_cells(const Value& event, std::int64_t now, text::JsonWriter& out) {
  const bool core = event.find("involvedObject") != nullptr;
  const Value& object = event[core ? "involvedObject" : "regarding"];
  const Value& given_first = event[core ? "firstTimestamp" : "deprecatedFirstTimestamp"];
  const std::string first =
      age_of(given_first.is_null() ? at(event, "eventTime") : given_first, now);
  const Value& given_last = event[core ? "lastTimestamp" : "deprecatedLastTimestamp"];
  std::string last = given_last.is_null() ? first : age_of(given_last, now);
  std::int64_t count = event[core ? "count" : "deprecatedCount"].as_int64().value_or(0);
  const Value& series = at(event, "series");
  if (!series.is_null()) {
    last = age_of(at(series, "lastObservedTime"), now);
    count = int_at(series, "count");
  } else if (count == 0) {
    count = 1;
  }
  std::string target = lower_case(text_at(object, "kind"));
  if (!text_at(object, "name").empty()) target += "/" + std::string(text_at(object, "name"));
  const Value& source = event[core ? "source" : "deprecatedSource"];
  std::string from(text_at(source, "component"));
  if (from.empty()) from = event[core ? "reportingComponent" : "reportingController"].string();
  std::string host(text_at(source, "host"));
  if (host.empty()) host = text_at(event, "reportingInstance");
  if (!host.empty()) from += ", " + host;
  out.value(last);
  out.value(text_at(event, "type"));
  out.value(text_at(event, "reason"));
  out.value(target);
  out.value(text_at(object, "fieldPath"));
  out.value(from);
  out.value(event[core ? "message" : "note"].string());
  out.value(first);
  out.value(count);
  out.value(name_of(event));
}

void quota_cells(const Value& quota, const std::string& age, text::JsonWriter& out) {
  std::vector<std::string> names;
  for (const Member& member : at(quota, "status.hard").members()) {
    names.emplace_back(member.key);
  }
  std::sort(names.begin(), names.end());
  std::vector<std::string> requests;
  std::vector<std::string> limits;
  for (const std::string& name : names) {
    const std::string_view used = at(quota, "status.used")[name].string();
    const std::string text = name + ": " + std::string(used.empty() ? "0" : used) + "/" +
                             std::string(at(quota, "status.hard")[name].string());
    (name.starts_with("limits.") ? limits : requests).push_back(text);
  }
  out.value(name_of(quota));
  out.value(joined_words(requests, ", "));
  out.value(joined_words(limits, ", "));
  out.value(age);
}

std::string access_modes(const Value& modes) {
  static constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"ReadWriteOnce", "RWO"},
      {"ReadOnlyMany", "ROX"},
      {"ReadWriteMany", "RWX"},
      {"ReadWriteOncePod", "RWOP"}};
  std::vector<std::string> out;
  for (const auto& [mode, word] : kShort) {
    for (const Value& given : modes.items()) {
      if (given.string() == mode) out.emplace_back(word);
    }
  }
  return joined_words(out, ",");
}

std::string volume_phase(const Value& object) {
  if (!at(object, "metadata.deletionTimestamp").is_null()) return "Terminating";
  return std::string(text_at(object, "status.phase"));
}

std::string or_unset(std::string_view text) { return text.empty() ? "<unset>" : std::string(text); }

void volume_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& spec = at(object, "spec");
  const Value& claim = at(spec, "claimRef");
  out.value(name_of(object));
  out.value(text_at(spec, "capacity.storage"));
  out.value(access_modes(at(spec, "accessModes")));
  out.value(text_at(spec, "persistentVolumeReclaimPolicy"));
  out.value(volume_phase(object));
  out.value(claim.is_null() ? ""
                            : std::string(text_at(claim, "namespace")) + "/" +
                                  std::string(text_at(claim, "name")));
  out.value(text_at(spec, "storageClassName"));
  out.value(or_unset(text_at(spec, "volumeAttributesClassName")));
  out.value(text_at(object, "status.reason"));
  out.value(age);
  out.value(or_unset(text_at(spec, "volumeMode")));
}

void claim_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& spec = at(object, "spec");
  const Value& status = at(object, "status");
  const bool bound = !text_at(spec, "volumeName").empty();
  out.value(name_of(object));
  out.value(volume_phase(object));
  out.value(text_at(spec, "volumeName"));
  out.value(bound ? text_at(status, "capacity.storage") : std::string_view());
  out.value(bound ? access_modes(at(status, "accessModes")) : "");
  out.value(text_at(spec, "storageClassName"));
  out.value(or_unset(text_at(spec, "volumeAttributesClassName")));
  out.value(age);
  out.value(or_unset(text_at(spec, "volumeMode")));
}

void role_binding_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& role = at(object, "roleRef");
  out.value(name_of(object));
  out.value(std::string(text_at(role, "kind")) + "/" + std::string(text_at(role, "name")));
  out.value(age);
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::vector<std::string> accounts;
  for (const Value& subject : at(object, "subjects").items()) {
    const std::string name(text_at(subject, "name"));
    if (text_at(subject, "kind") == "User") users.push_back(name);
    if (text_at(subject, "kind") == "Group") groups.push_back(name);
    if (text_at(subject, "kind") == "ServiceAccount") {
      accounts.push_back(std::string(text_at(subject, "namespace")) + "/" + name);
    }
  }
  out.value(joined_words(users, ", "));
  out.value(joined_words(groups, ", "));
  out.value(joined_words(accounts, ", "));
}

std::string endpoints_text(const Value& object) {
  std::vector<std::string> list;
  std::size_t count = 0;
  for (const Value& subset : at(object, "subsets").items()) {
    const auto addresses = at(subset, "addresses").items();
    const auto ports = at(subset, "ports").items();
    for (std::size_t p = 0; p < std::max<std::size_t>(ports.size(), 1); ++p) {
      for (const Value& address : addresses) {
        ++count;
        if (list.size() >= 3) continue;
        std::string text(text_at(address, "ip"));
        if (p < ports.size()) text += ":" + std::to_string(int_at(ports[p], "port"));
        list.push_back(text);
      }
    }
  }
  if (list.empty()) return "<none>";
  const std::string text = joined_words(list, ",");
  return count > 3 ? text + " + " + std::to_string(count - 3) + " more..." : text;
}

std::string claim_state(const Value& claim) {
  std::vector<std::string> states;
  const Value& status = at(claim, "status");
  if (!at(claim, "metadata.deletionTimestamp").is_null()) states.emplace_back("deleted");
  if (at(status, "allocation").is_null()) {
    if (states.empty()) states.emplace_back("pending");
  } else {
    states.emplace_back("allocated");
    if (at(status, "reservedFor").size() > 0) states.emplace_back("reserved");
  }
  return joined_words(states, ",");
}

// Who serves an API group, and whether it is there: what nobody else does, the server itself.
void api_service_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& service = at(object, "spec.service");
  out.value(name_of(object));
  out.value(service.is_null() ? "Local"
                              : std::string(text_at(service, "namespace")) + "/" +
                                    std::string(text_at(service, "name")));
  const Value* told = find_type(at(object, "status.conditions"), "Available");
  std::string state = told == nullptr ? "Unknown" : std::string(text_at(*told, "status"));
  if (told != nullptr && state != "True" && !text_at(*told, "reason").empty()) {
    state += " (" + std::string(text_at(*told, "reason")) + ")";
  }
  out.value(state);
  out.value(age);
}

void pod_group_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& spec = at(object, "spec");
  const Value& status = at(object, "status");
  std::string state = "Pending";
  if (const Value* done = find_type(at(status, "conditions"), "PodGroupInitiallyScheduled");
      done != nullptr) {
    state = text_at(*done, "status") == "True" ? "Scheduled" : "Unschedulable";
  }
  if (const Value* out_of = find_type(at(status, "conditions"), "DisruptionTarget");
      out_of != nullptr) {
    state = text_at(*out_of, "reason");
  }
  out.value(name_of(object));
  out.value(at(spec, "schedulingPolicy.gang").is_null() ? "Basic" : "Gang");
  out.value(or_none(text_at(spec, "workloadRef.workloadName")));
  out.value(state);
  out.value(age);
}

// "cpu: 10%/80%"; of other metrics only the wanted value is shown.
std::string metric_text(const Value& metric) {
  const Value& resource = at(metric, "resource");
  const Value& target = at(resource.is_null() ? metric : resource, "target");
  const auto percent = at(target, "averageUtilization").as_int64();
  const std::string want =
      percent ? std::to_string(*percent) + "%" : std::string(text_at(target, "averageValue"));
  const std::string name(text_at(resource, "name"));
  return (name.empty() ? "" : name + ": ") + "<unknown>/" + (want.empty() ? "<auto>" : want);
}

void autoscaler_cells(const Value& object, const std::string& age, text::JsonWriter& out) {
  const Value& spec = at(object, "spec");
  const Value& target = at(spec, "scaleTargetRef");
  std::vector<std::string> metrics;
  for (const Value& metric : at(spec, "metrics").items()) metrics.push_back(metric_text(metric));
  out.value(name_of(object));
  out.value(std::string(text_at(target, "kind")) + "/" + std::string(text_at(target, "name")));
  out.value(metrics.empty() ? "<none>" : joined_words(metrics, ", "));
  const auto least = at(spec, "minReplicas").as_int64();
  out.value(least ? std::to_string(*least) : "<unset>");
  out.value(int_at(spec, "maxReplicas"));
  out.value(int_at(object, "status.currentReplicas"));
  out.value(age);
}

bool small_cells(const Kind& kind, const Value& object, const std::string& age,
                 text::JsonWriter& out) {
  const auto three = [&](const auto& middle) {
    out.value(name_of(object));
    out.value(middle);
    out.value(age);
    return true;
  };
  if (kind.kind == "ConfigMap") {
    return three(
        static_cast<std::int64_t>(at(object, "data").size() + at(object, "binaryData").size()));
  }
  if (kind.kind == "Secret") {
    out.value(name_of(object));
    out.value(text_at(object, "type"));
    out.value(static_cast<std::int64_t>(at(object, "data").size()));
    out.value(age);
    return true;
  }
  if (kind.kind == "Endpoints") return three(endpoints_text(object));
  if (kind.kind == "ResourceClaim") return three(claim_state(object));
  if (kind.kind == "NetworkPolicy") {
    return three(selector_text(at(object, "spec.podSelector")));
  }
  if (kind.kind == "CSINode") {
    return three(static_cast<std::int64_t>(at(object, "spec.drivers").size()));
  }
  if (kind.group == "admissionregistration.k8s.io") {
    return three(static_cast<std::int64_t>(at(object, "webhooks").size()));
  }
  if (kind.kind == "Namespace") return three(volume_phase(object));
  return false;
}

}  // namespace

bool special_cells(const Kind& kind, const Value& object, std::int64_t now_ns,
                   text::JsonWriter& out) {
  const std::string age = age_of(at(object, "metadata.creationTimestamp"), now_ns);
  const std::string& name = kind.kind;
  if (small_cells(kind, object, age, out)) return true;
  if (name == "Pod") return pod_cells(object, age, now_ns, out), true;
  if (name == "Node") return node_cells(object, age, out), true;
  if (name == "Job") return job_cells(object, age, now_ns, out), true;
  if (name == "CronJob") return cron_job_cells(object, age, now_ns, out), true;
  if (name == "Deployment") return deployment_cells(object, age, out), true;
  if (name == "StatefulSet") return stateful_cells(object, age, out), true;
  if (name == "DaemonSet") return daemon_cells(object, age, out), true;
  if (name == "Service") return service_cells(object, age, out), true;
  if (name == "Event") return event_cells(object, now_ns, out), true;
  if (name == "ResourceQuota") return quota_cells(object, age, out), true;
  if (name == "PersistentVolume") return volume_cells(object, age, out), true;
  if (name == "PersistentVolumeClaim") return claim_cells(object, age, out), true;
  if (name == "HorizontalPodAutoscaler") return autoscaler_cells(object, age, out), true;
  if (name == "APIService") return api_service_cells(object, age, out), true;
  if (name == "CertificateSigningRequest") return signing_request_cells(object, age, out), true;
  if (kind.group == "flowcontrol.apiserver.k8s.io") return flow_cells(kind, object, age, out), true;
  if (name == "PodGroup") return pod_group_cells(object, age, out), true;
  if (name == "ReplicaSet" || name == "ReplicationController") {
    return replica_cells(object, age, out), true;
  }
  if (name == "RoleBinding" || name == "ClusterRoleBinding") {
    return role_binding_cells(object, age, out), true;
  }
  return false;
}

}  // namespace berth::sim
