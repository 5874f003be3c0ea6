#include "lint/checks.h"

namespace berth::lint {

namespace {

constexpr std::string_view kKeda = "keda.sh";

// Triggers of KEDA whose metadata must have these; the values of all of it are strings.
struct Trigger {
  std::string_view type;
  std::vector<std::string_view> needs;
};
const std::vector<Trigger>& triggers() {
  static const std::vector<Trigger> table = {
      {"cron", {"timezone", "start", "end", "desiredReplicas"}},
      {"aws-sqs-queue", {"queueURL", "awsRegion"}},
      {"prometheus", {"serverAddress", "query", "threshold"}},
      {"kafka", {"topic"}},
  };
  return table;
}

void check_trigger(const Place& trigger, Reporter& out) {
  const Place metadata = trigger["metadata"];
  for (const Place& entry : metadata.members()) {
    if (entry.value().is_string() || entry.value().is_null()) continue;
    if (!entry.value().is_number() && !entry.value().is_bool()) continue;
    out.add("keda-not-string", entry,
            "found " + entry.word() + " for " + entry.key() +
                ", want a string: metadata of triggers is text",
            "put it in quotes: \"" + entry.word() + "\"",
            one_change(set_text(entry.path(), entry.word())));
  }
  for (const Trigger& known : triggers()) {
    if (!trigger["type"].is(known.type)) continue;
    for (const std::string_view need : known.needs) {
      if (metadata.has(need) || metadata.has(std::string(need) + "FromEnv")) continue;
      out.add("keda-trigger-field", metadata[need],
              "the trigger " + std::string(known.type) + " has no " + std::string(need),
              "add " + std::string(need) + " to its metadata");
    }
  }
  if (trigger["type"].text().starts_with("aws-") && !trigger.has("authenticationRef") &&
      !metadata["identityOwner"].is("operator")) {
    out.add("keda-no-auth", trigger,
            "the trigger " + trigger["type"].word() + " names no authenticationRef",
            "add authenticationRef: {name: ...} of a TriggerAuthentication, or identityOwner: "
            "operator");
  }
}

void check_scaled_object(const Object& object, Reporter& out) {
  const Place spec = object.root()["spec"];
  const Place least = spec["minReplicaCount"];
  const Place most = spec["maxReplicaCount"];
  const auto low = least.value().as_int64();
  const auto high = most.value().as_int64();
  if (low && high && *low > *high) {
    out.add("replicas-order", least,
            "minReplicaCount " + least.word() + " is above maxReplicaCount " + most.word(),
            "make the minimum at most the maximum");
  }
  for (const Place& trigger : spec["triggers"].items()) check_trigger(trigger, out);
}

void check_autoscaler(const Object& object, Reporter& out) {
  const Place spec = object.root()["spec"];
  const auto low = spec["minReplicas"].value().as_int64();
  const auto high = spec["maxReplicas"].value().as_int64();
  if (low && high && *low > *high) {
    out.add("replicas-order", spec["minReplicas"],
            "minReplicas " + spec["minReplicas"].word() + " is above maxReplicas " +
                spec["maxReplicas"].word(),
            "make the minimum at most the maximum");
  }
  for (const Place& metric : spec["metrics"].items()) {
    const Place name = metric["resource"]["name"];
    if (!metric["type"].is("Resource") || !name || name.is("cpu") || name.is("memory")) continue;
    out.add("hpa-resource-metric", name,
            "found the resource metric " + name.word() + ", want cpu or memory",
            "serve GPU metrics as custom metrics and use type: Pods with metric.name: "
            "gpu_utilization");
  }
}

}  // namespace

void check_scalers(const Object& object, Reporter& out) {
  if (object.kind == "ScaledObject" && object.group.ends_with(kKeda)) {
    check_scaled_object(object, out);
  }
  if (object.is("autoscaling", "HorizontalPodAutoscaler")) check_autoscaler(object, out);
}

}  // namespace berth::lint
