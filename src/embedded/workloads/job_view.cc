#include "embedded/workloads/job_view.h"

#include <algorithm>
#include <limits>

#include "embedded/workloads/read.h"
#include "text/json_writer.h"
#include "text/path.h"

namespace berth::sim {

namespace {

using text::JsonWriter;
using text::Value;

constexpr int kNoIndexes = std::numeric_limits<int>::max();

std::optional<int> small_at(const Value& v, std::string_view key) {
  const Value* found = v.find(key);
  if (found == nullptr || !found->as_int64()) return std::nullopt;
  return static_cast<int>(std::clamp<std::int64_t>(*found->as_int64(), 0, kNoIndexes));
}

std::optional<std::int64_t> seconds_at(const Value& v, std::string_view key) {
  const Value* found = v.find(key);
  if (found == nullptr || !found->as_int64()) return std::nullopt;
  return std::clamp<std::int64_t>(*found->as_int64(), 0, 3'000'000'000);
}

FailureRule read_failure_rule(const Value& v) {
  FailureRule rule;
  const std::string_view action = text_at(v, "action");
  rule.action = action == "FailJob"     ? FailureRule::Action::kFailJob
                : action == "FailIndex" ? FailureRule::Action::kFailIndex
                : action == "Ignore"    ? FailureRule::Action::kIgnore
                                        : FailureRule::Action::kCount;
  const Value& codes = at(v, "onExitCodes");
  rule.by_exit_code = codes.is_object();
  rule.container = text_at(codes, "containerName");
  rule.in = text_at(codes, "operator") != "NotIn";
  for (const Value& code : at(codes, "values").items()) {
    rule.codes.push_back(static_cast<int>(code.as_int64().value_or(0)));
  }
  for (const Value& c : at(v, "onPodConditions").items()) {
    std::string status(text_at(c, "status"));
    rule.conditions.emplace_back(text_at(c, "type"), status.empty() ? "True" : status);
  }
  return rule;
}

void read_job_rules(const Value& spec, JobView& out) {
  out.has_failure_policy = at(spec, "podFailurePolicy").is_object();
  for (const Value& rule : at(spec, "podFailurePolicy.rules").items()) {
    out.failure_rules.push_back(read_failure_rule(rule));
  }
  for (const Value& v : at(spec, "successPolicy.rules").items()) {
    SuccessRule rule;
    if (v.find("succeededIndexes") != nullptr) {
      rule.indexes =
          IndexSet::parse(text_at(v, "succeededIndexes"), out.completions.value_or(kNoIndexes));
    }
    rule.count = small_at(v, "succeededCount");
    out.success_rules.push_back(std::move(rule));
  }
  const std::string_view replace = text_at(spec, "podReplacementPolicy");
  out.replace_failed_only = replace.empty() ? out.has_failure_policy : replace == "Failed";
}

void read_job_spec(const Value& spec, JobView& out) {
  out.parallelism = small_at(spec, "parallelism").value_or(1);
  out.completions = small_at(spec, "completions");
  out.indexed = text_at(spec, "completionMode") == "Indexed";
  // The API server defaults both to 1 only when neither is given.
  if (!out.completions && spec.find("parallelism") == nullptr) out.completions = 1;
  out.backoff_limit_per_index = small_at(spec, "backoffLimitPerIndex");
  out.max_failed_indexes = small_at(spec, "maxFailedIndexes");
  out.backoff_limit =
      small_at(spec, "backoffLimit").value_or(out.backoff_limit_per_index ? kNoIndexes : 6);
  out.deadline_seconds = seconds_at(spec, "activeDeadlineSeconds");
  out.ttl_seconds = seconds_at(spec, "ttlSecondsAfterFinished");
  out.suspend = true_at(spec, "suspend");
  out.restarts_on_failure = text_at(spec, "template.spec.restartPolicy") == "OnFailure";
  const std::string_view manager = text_at(spec, "managedBy");
  out.managed_here = manager.empty() || manager == "kubernetes.io/job-controller";
  read_job_rules(spec, out);
}

void read_job_status(const Value& status, int limit, JobStatus& out) {
  const auto count = [&status](std::string_view key) {
    return static_cast<int>(
        std::clamp<std::int64_t>(status[key].as_int64().value_or(0), 0, kNoIndexes));
  };
  out.start_ns = time_at(status, "startTime");
  out.completion_ns = time_at(status, "completionTime");
  out.active = count("active");
  out.ready = count("ready");
  out.terminating = count("terminating");
  out.succeeded = count("succeeded");
  out.failed = count("failed");
  out.completed = IndexSet::parse(text_at(status, "completedIndexes"), limit);
  out.has_failed_indexes = status.find("failedIndexes") != nullptr;
  out.failed_indexes = IndexSet::parse(text_at(status, "failedIndexes"), limit);
  const auto uids = [&status](std::string_view key, std::vector<std::string>& list) {
    for (const Value& uid : at(status, "uncountedTerminatedPods")[key].items()) {
      list.emplace_back(uid.string());
    }
  };
  uids("succeeded", out.uncounted_succeeded);
  uids("failed", out.uncounted_failed);
  for (const Value& c : at(status, "conditions").items()) {
    out.conditions.push_back({std::string(text_at(c, "type")), std::string(text_at(c, "status")),
                              std::string(text_at(c, "reason")), std::string(text_at(c, "message")),
                              time_at(c, "lastProbeTime"), time_at(c, "lastTransitionTime")});
  }
}

void put_time(JsonWriter& out, std::string_view key, std::int64_t ns) {
  out.key(key);
  if (ns == 0) {
    out.null();
  } else {
    out.value(seconds_text(ns));
  }
}

// Counts of zero are not written by Kubernetes; an old one is taken away.
void put_count(JsonWriter& out, std::string_view key, int count) {
  out.key(key);
  if (count == 0) {
    out.null();
  } else {
    out.value(count);
  }
}

void put_uids(JsonWriter& out, std::string_view key, const std::vector<std::string>& uids) {
  out.key(key);
  if (uids.empty()) return out.null();
  out.list(uids);
}

void put_job_condition(JsonWriter& out, const JobCondition& c) {
  out.object([&] {
    out.field("type", c.type);
    out.field("status", c.status);
    if (c.probe_ns != 0) out.field("lastProbeTime", seconds_text(c.probe_ns));
    if (c.transition_ns != 0) out.field("lastTransitionTime", seconds_text(c.transition_ns));
    if (!c.reason.empty()) out.field("reason", c.reason);
    if (!c.message.empty()) out.field("message", c.message);
  });
}

}  // namespace

const JobCondition* JobStatus::condition(std::string_view type) const {
  for (const JobCondition& c : conditions) {
    if (c.type == type && c.status == "True") return &c;
  }
  return nullptr;
}

bool JobView::finished() const {
  return status.condition("Complete") != nullptr || status.condition("Failed") != nullptr;
}

JobView read_job(const Value& job) {
  JobView out;
  const Value& meta = at(job, "metadata");
  out.key = {std::string(text_at(meta, "namespace")), std::string(text_at(meta, "name"))};
  out.uid = text_at(meta, "uid");
  out.version = text_at(meta, "resourceVersion");
  out.generation = int_at(meta, "generation");
  out.deleting = meta.find("deletionTimestamp") != nullptr;
  read_job_spec(at(job, "spec"), out);
  read_job_status(at(job, "status"), out.completions.value_or(kNoIndexes), out.status);
  return out;
}

std::string job_status_patch(const JobStatus& s, const std::string& version) {
  JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] { out.field("resourceVersion", version); });
    out.object("status", [&] {
      put_time(out, "startTime", s.start_ns);
      put_time(out, "completionTime", s.completion_ns);
      put_count(out, "active", s.active);
      put_count(out, "succeeded", s.succeeded);
      put_count(out, "failed", s.failed);
      out.field("ready", s.ready);
      out.field("terminating", s.terminating);
      out.key("completedIndexes");
      if (s.completed.empty()) {
        out.null();
      } else {
        out.value(s.completed.to_string());
      }
      if (s.has_failed_indexes) out.field("failedIndexes", s.failed_indexes.to_string());
      out.object("uncountedTerminatedPods", [&] {
        put_uids(out, "succeeded", s.uncounted_succeeded);
        put_uids(out, "failed", s.uncounted_failed);
      });
      out.array("conditions", [&] {
        for (const JobCondition& c : s.conditions) put_job_condition(out, c);
      });
    });
  });
  return std::move(out).take();
}

}  // namespace berth::sim
