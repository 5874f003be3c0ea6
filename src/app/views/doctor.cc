#include "app/views/doctor.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "kinds/readers.h"
#include "text/path.h"

namespace berth::app {

namespace {

constexpr std::size_t kNamedObjects = 3;

// "Node n1", "Node n2" are "2 nodes: n1, n2".
std::string joined_objects(const std::vector<std::string>& objects) {
  if (objects.size() == 1) return objects.front();
  std::set<std::string> kinds;
  std::string names;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::size_t blank = objects[i].find(' ');
    if (blank == std::string::npos) {
      kinds.insert("");
    } else {
      kinds.insert(objects[i].substr(0, blank));
    }
    if (i >= kNamedObjects) continue;
    names += (i > 0 ? ", " : "") +
             (blank == std::string::npos ? objects[i] : objects[i].substr(blank + 1));
  }
  const std::string kind = kinds.size() == 1 ? *kinds.begin() : "object";
  std::string out = std::to_string(objects.size()) + ' ' + kind + "s: " + names;
  if (objects.size() > kNamedObjects) {
    out += ", +" + std::to_string(objects.size() - kNamedObjects) + " more";
  }
  return out;
}

}  // namespace

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kInfo:
      return "info";
  }
  return "";
}

void Findings::add(std::string_view id, Severity severity, std::string object, std::string message,
                   std::string fix) {
  all_.push_back(
      {std::string(id), severity, std::move(object), std::move(message), std::move(fix)});
}

std::vector<Finding> Findings::take() {
  using Key = std::tuple<Severity, std::string, std::string, std::string>;
  std::map<Key, std::vector<std::string>> groups;
  for (Finding& finding : all_) {
    groups[{finding.severity, finding.id, finding.message, finding.fix}].push_back(
        std::move(finding.object));
  }
  std::vector<Finding> out;
  for (auto& [key, objects] : groups) {
    std::sort(objects.begin(), objects.end());
    objects.erase(std::unique(objects.begin(), objects.end()), objects.end());
    const auto& [severity, id, message, fix] = key;
    out.push_back({id, severity, joined_objects(objects), message, fix});
  }
  std::sort(out.begin(), out.end(), [](const Finding& a, const Finding& b) {
    return std::tie(a.severity, a.id, a.object, a.message) <
           std::tie(b.severity, b.id, b.object, b.message);
  });
  all_.clear();
  return out;
}

const std::vector<std::string>& doctor_checks() {
  static const std::vector<std::string> kChecks = {
      "no-nodes",
      "node-not-ready",
      "node-lease-stale",
      "agent-missing",
      "agent-not-ready",
      "agent-version-skew",
      "driver-skew",
      "gpunode-orphan",
      "gpu-unhealthy",
      "allocatable-below-discovered",
      "taint-nobody-tolerates",
      "controller-lease-missing",
      "controller-lease-stale",
      "kueue-also-leads",
      "crd-missing",
      "crd-version-unknown",
      "policy-not-in-force",
      "policy-flags",
      "webhook-ca-missing",
      "webhook-ca-invalid",
      "webhook-ca-expired",
      "webhook-ca-expiring",
      "webhook-no-endpoints",
      "webhook-fails-closed",
      "queue-inactive",
      "queue-without-local-queue",
      "local-queue-dangling",
      "flavor-without-nodes",
      "quota-above-capacity",
      "gpus-without-quota",
      "gpus-unreachable",
      "namespace-without-queue",
      "queue-not-required",
      "queue-open-to-all",
      "queue-takes-nobody",
      "group-too-small",
      "foreign-gpu-pods",
      "workload-never-fits",
      "invalid-object",
  };
  return kChecks;
}

Diagnosis diagnose(const DoctorInput& input) {
  Findings findings;
  check_nodes(input, findings);
  check_control(input, findings);
  check_webhooks(input, findings);
  check_queues(input, findings);
  check_loads(input, findings);
  Diagnosis out;
  out.checks = doctor_checks();
  out.findings = findings.take();
  for (const Finding& finding : out.findings) {
    out.errors += finding.severity == Severity::kError ? 1 : 0;
    out.warnings += finding.severity == Severity::kWarning ? 1 : 0;
  }
  for (const std::string& unseen : input.view.unseen) out.skipped.push_back(unseen);
  return out;
}

}  // namespace berth::app
