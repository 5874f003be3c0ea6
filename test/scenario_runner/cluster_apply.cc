#include "cluster_apply.h"

#include <fmt/format.h>

#include "text/json.h"
#include "text/json_writer.h"
#include "text/patch.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::scenario {

namespace {

std::string plural_of(const std::string& kind) {
  std::string out;
  for (const char c : kind) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (out.ends_with("s")) return out + "es";
  if (out.ends_with("y")) return out.substr(0, out.size() - 1) + "ies";
  return out + "s";
}

// The changes that a pod's spec needs, as members of a merge patch.
std::string pod_changes(const text::Value& spec, std::vector<int>& priorities) {
  std::string out;
  if (text_at(spec, "schedulerName").empty()) out += R"("schedulerName":"berth")";
  const text::Value* priority = spec.find("priority");
  if (priority != nullptr && text_at(spec, "priorityClassName").empty()) {
    const int value = static_cast<int>(priority->as_int64().value_or(0));
    priorities.push_back(value);
    out += fmt::format(R"({}"priority":null,"priorityClassName":"{}")", out.empty() ? "" : ",",
                       priority_class_name(value));
  }
  return out;
}

// In a cluster that lives a number counts for as much as its class.
std::string class_of_workload(const text::Value& spec, std::vector<int>& priorities) {
  if (spec.find("priorityClassRef") != nullptr || spec.find("podSets") == nullptr) return "";
  const int value = static_cast<int>(spec.find("priority")->as_int64().value_or(0));
  priorities.push_back(value);
  return fmt::format(
      R"("priorityClassRef":{{"group":"scheduling.k8s.io","kind":"PriorityClass","name":"{}"}})",
      priority_class_name(value));
}

// Kueue's Configuration is a file; a cluster has it in a ConfigMap.
Prepared configuration(const Object& object) {
  Prepared out;
  out.resource = kube::resources::config_maps();
  out.key = {"kueue-system", "kueue-manager-config"};
  text::JsonWriter body;
  body.object([&] {
    body.field("apiVersion", "v1");
    body.field("kind", "ConfigMap");
    body.object("metadata", [&] { body.field("name", out.key.name); });
    body.object("data", [&] { body.field("controller_manager_config.yaml", object.json); });
  });
  out.body = std::move(body).take();
  return out;
}

}  // namespace

std::string times_moved(const std::string& json, std::int64_t by_ns) {
  constexpr std::size_t kTimeLength = sizeof "2025-01-01T12:00:00Z" - 1;
  if (by_ns == 0) return json;
  std::string out = json;
  for (std::size_t at = out.find('"'); at != std::string::npos; at = out.find('"', at + 1)) {
    if (at + kTimeLength + 1 >= out.size() || out[at + kTimeLength + 1] != '"') continue;
    const auto time = text::parse_rfc3339(std::string_view(out).substr(at + 1, kTimeLength));
    if (!time.ok()) continue;
    constexpr std::int64_t kSecondNs = 1'000'000'000;
    const std::string moved = text::format_rfc3339((*time + by_ns) / kSecondNs * kSecondNs);
    out.replace(at + 1, kTimeLength, moved);
  }
  return out;
}

kube::Resource resource_of(const std::string& api_version, const std::string& kind,
                           bool namespaced) {
  const std::size_t slash = api_version.find('/');
  const bool core = slash == std::string::npos;
  return {core ? "" : api_version.substr(0, slash),
          core ? api_version : api_version.substr(slash + 1), plural_of(kind), kind, namespaced};
}

std::string priority_class_name(int priority) {
  return priority < 0 ? fmt::format("scn-minus-{}", -static_cast<std::int64_t>(priority))
                      : fmt::format("scn-{}", priority);
}

std::string priority_class(int priority) {
  return fmt::format(
      R"({{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{{"name":"{}"}},)"
      R"("value":{}}})",
      priority_class_name(priority), priority);
}

Result<Prepared> prepare(const Object& object) {
  if (object.kind == "Configuration") return configuration(object);
  BERTH_TRY(const text::Document document, text::parse_json(object.json));
  const text::Value& root = document.root();
  Prepared out;
  const std::size_t slash = object.name.find('/');
  const bool namespaced = slash != std::string::npos;
  out.key = namespaced ? kube::Key{object.name.substr(0, slash), object.name.substr(slash + 1)}
                       : kube::Key{"", object.name};
  out.resource = resource_of(std::string(text_at(root, "apiVersion")), object.kind, namespaced);
  std::string patch = R"({"status":null,"metadata":{"creationTimestamp":null,"uid":null,)"
                      R"("resourceVersion":null,"ownerReferences":null})";
  if (const text::Value* spec = root.find("spec"); spec != nullptr) {
    if (object.kind == "Workload" && spec->find("priority") != nullptr) {
      patch += R"(,"spec":{)" + class_of_workload(*spec, out.priorities) + "}";
    } else if (object.kind == "Pod") {
      patch += R"(,"spec":{)" + pod_changes(*spec, out.priorities) + "}";
    } else if (object.kind == "Job") {
      const text::Value* pod = spec->find("template");
      const text::Value* pod_spec = pod == nullptr ? nullptr : pod->find("spec");
      if (pod_spec != nullptr) {
        patch +=
            R"(,"spec":{"template":{"spec":{)" + pod_changes(*pod_spec, out.priorities) + "}}}";
      }
    }
  }
  BERTH_TRY(const text::Document change, text::parse_json(patch + "}"));
  BERTH_TRY(const text::Document body, text::apply_merge_patch(root, change.root()));
  out.body = text::to_json(body.root());
  if (const text::Value* status = root.find("status"); status != nullptr) {
    out.status = R"({"status":)" + text::to_json(*status) + "}";
  }
  return out;
}

}  // namespace berth::scenario
