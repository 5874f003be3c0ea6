#include <cctype>
#include <cstdlib>

#include "people/lint/checks.h"

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

// Does a comment promise that something happens above this very number: "when > 70 %"?
bool promises_above(std::string_view comment, std::string_view number) {
  for (const std::string_view word :
       {">", "above ", "over ", "more than ", "exceeds ", "beyond "}) {
    for (std::size_t at = comment.find(word); at != std::string_view::npos;
         at = comment.find(word, at + 1)) {
      std::string_view rest = comment.substr(at + word.size());
      rest.remove_prefix(std::min(rest.find_first_not_of(" ="), rest.size()));
      if (!rest.starts_with(number)) continue;
      const char next = rest.size() > number.size() ? rest[number.size()] : ' ';
      if (std::isdigit(static_cast<unsigned char>(next)) == 0 && next != '.') return true;
    }
  }
  return false;
}

std::string tenth_more(double value) {
  const double acts = value * 1.1;
  std::string out = std::to_string(acts);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

// Triggers whose number is a target for each replica.
struct PerReplica {
  std::string_view type, key;
};
constexpr PerReplica kPerReplica[] = {
    {"aws-sqs-queue", "queueLength"}, {"azure-queue", "queueLength"}, {"kafka", "lagThreshold"},
    {"redis", "listLength"},          {"rabbitmq", "value"},          {"prometheus", "threshold"}};

void check_promise(const Object& object, const Place& trigger, Reporter& out) {
  for (const PerReplica& known : kPerReplica) {
    const Place length = trigger["metadata"][known.key];
    if (!trigger["type"].is(known.type) || !length) continue;
    if (!promises_above(comment_of(object, length), length.word())) continue;
    const Place least = object.root()["spec"]["minReplicaCount"];
    const auto replicas = least.value().as_int64().value_or(0);
    const double each = std::strtod(length.word().c_str(), nullptr);
    if (replicas < 1 || each <= 0) continue;
    out.add("comment-threshold", length,
            "the comment says above " + length.word() + ": it is meant for each replica, so " +
                std::to_string(replicas) + " replicas grow above " +
                tenth_more(each * static_cast<double>(replicas)),
            "say so in the comment, or change the number");
  }
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
  for (const Place& trigger : spec["triggers"].items()) {
    check_trigger(trigger, out);
    check_promise(object, trigger, out);
  }
}

// The autoscaler does nothing within a tenth of its target.
void check_tolerance(const Object& object, const Place& metric, Reporter& out) {
  if (object.root()["spec"]["behavior"]["scaleUp"].has("tolerance")) return;
  for (const char* kind : {"pods", "resource", "containerResource", "object", "external"}) {
    for (const char* field : {"averageValue", "averageUtilization", "value"}) {
      const Place target = metric[kind]["target"][field];
      const std::string word = target.word();
      const double value = std::strtod(word.c_str(), nullptr);
      if (!target || value <= 0 || !promises_above(comment_of(object, target), word)) continue;
      out.add("comment-threshold", target,
              "the comment says above " + word + ": the autoscaler tolerates 10 % and acts above " +
                  tenth_more(value),
              "say so in the comment, or set behavior.scaleUp.tolerance");
    }
  }
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
    check_tolerance(object, metric, out);
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
