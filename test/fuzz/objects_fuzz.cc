// Manifests: whatever the text, the reader ends, the order of the documents does not matter and
// what it hands to the model keeps the model's promises.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "fuzz.h"
#include "kinds/manifest.h"
#include "kinds/names.h"
#include "kinds/readers.h"
#include "text/path.h"
#include "text/yaml.h"

namespace {

using namespace berth;

kinds::Inputs read(const std::vector<text::Document>& documents, bool backwards) {
  kinds::ManifestReader reader({.max_job_pods = 100});
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::size_t at = backwards ? documents.size() - 1 - i : i;
    reader.add("f", static_cast<int>(at), documents[at]);
  }
  return reader.finish();
}

bool in_range(const model::Amounts& amounts) {
  return std::all_of(amounts.begin(), amounts.end(), [](const auto& entry) {
    return entry.second >= 0 && entry.second <= kinds::kMaxAmount;
  });
}

void check_node(const model::NodeSpec& node) {
  fuzz::check(!node.name.empty(), "a node has a name");
  fuzz::check(in_range(node.allocatable), "amounts of nodes are in range");
  fuzz::check(!node.allocatable.contains("nvidia.com/gpu"), "whole GPUs are devices");
  fuzz::check(node.gpus.size() <= model::kMaxGpusPerNode, "at most 16 GPUs");
  fuzz::check(node.shares_per_gpu >= 1 && node.shares_per_gpu <= 1000, "shares are in range");
  int last = -1;
  for (const model::GpuSpec& gpu : node.gpus) {
    fuzz::check(gpu.index > last && gpu.index < model::kMaxGpusPerNode, "indices rise");
    last = gpu.index;
  }
}

void check_pod(const model::PodSpec& pod, const std::set<std::string>& gangs) {
  fuzz::check(!pod.name.empty() && !pod.ns.empty(), "a pod has a name and a namespace");
  fuzz::check(in_range(pod.requests), "requests are in range");
  fuzz::check(pod.gang.empty() || gangs.contains(pod.ns + '/' + pod.gang), "the gang exists");
  const bool asks = pod.gpu.kind != model::GpuDemandSpec::Kind::kNone;
  fuzz::check(asks == (pod.gpu.count > 0), "a demand has a count");
  fuzz::check(pod.gpu.milli >= 0 && pod.gpu.milli <= model::kMilliPerGpu, "milli is in range");
  if (pod.gpu.kind == model::GpuDemandSpec::Kind::kWhole) {
    int sum = 0;
    for (const int count : pod.gpus_by_container) sum += count;
    fuzz::check(sum == pod.gpu.count, "containers add up to the demand");
  }
}

void check_workload(const model::WorkloadSpec& workload, const std::set<std::string>& pods) {
  fuzz::check(!workload.name.empty() && !workload.ns.empty(), "a workload has a name");
  fuzz::check(!workload.finished, "finished workloads are left out");
  fuzz::check(!workload.pod_sets.empty(), "a workload has pod sets");
  fuzz::check(!workload.admitted || workload.admission.has_value(), "who is admitted holds quota");
  std::set<std::string> names;
  for (const model::PodSetSpec& set : workload.pod_sets) {
    fuzz::check(names.insert(set.name).second, "pod sets have names of their own");
    fuzz::check(set.count >= 1, "a pod set has pods");
    fuzz::check(!set.min_count || (*set.min_count >= 1 && *set.min_count <= set.count),
                "the least is in range");
    fuzz::check(in_range(set.requests), "quota requests are in range");
    fuzz::check(std::all_of(set.pods.begin(), set.pods.end(),
                            [&](const std::string& name) { return pods.contains(name); }),
                "pods of a workload are there");
  }
  if (!workload.admission) return;
  fuzz::check(workload.admission->pod_sets.size() == names.size(), "each pod set is admitted");
  for (const auto& set : workload.admission->pod_sets) {
    fuzz::check(names.contains(set.name), "an admission names pod sets");
  }
}

void check_queues(const model::QueueInputs& queues, const std::set<std::string>& pods) {
  std::set<std::string> names, cohorts, workloads;
  for (const auto& queue : queues.queues) {
    fuzz::check(names.insert(queue.name).second, "queues have names of their own");
    for (const auto& group : queue.groups) {
      for (const auto& flavor : group.flavors) {
        fuzz::check(flavor.resources.size() == group.covered.size(), "a quota for each resource");
        for (const auto& quota : flavor.resources) {
          fuzz::check(quota.nominal >= 0 && quota.borrowing_limit.value_or(0) >= 0 &&
                          quota.lending_limit.value_or(0) >= 0,
                      "quotas are in range");
        }
      }
    }
  }
  for (const auto& cohort : queues.cohorts) {
    fuzz::check(cohorts.insert(cohort.name).second, "cohorts have names of their own");
  }
  for (const auto& workload : queues.workloads) {
    fuzz::check(workloads.insert(workload.ns + '/' + workload.name).second,
                "workloads have names of their own");
    check_workload(workload, pods);
  }
}

// Pods that run, by themselves in a document and under a name that no other has: they count,
// whatever else of them can be read.
void check_bound(const std::vector<text::Document>& documents, const std::set<std::string>& pods) {
  std::map<std::string, int> named;
  std::set<std::string> bound;
  for (const text::Document& document : documents) {
    const text::Value& v = document.root();
    const std::string_view kind = text_at(v, "kind");
    if (kind.ends_with("List")) return;  // it may have more of that name
    if (kind != "Pod" || text_at(v, "apiVersion") != "v1") continue;
    const text::Value* ns = find(v, "metadata.namespace");
    std::string key(ns == nullptr ? "default" : ns->string());
    const std::string_view name = text_at(v, "metadata.name");
    if (!kinds::is_dns_label(key) || !kinds::is_dns_subdomain(name)) continue;
    key.append("/").append(name);
    ++named[key];
    const std::string_view phase = text_at(v, "status.phase");
    const bool ended = phase == "Succeeded" || phase == "Failed";
    if (!ended && !text_at(v, "spec.nodeName").empty()) bound.insert(key);
  }
  for (const std::string& key : bound) {
    fuzz::check(named[key] > 1 || pods.contains(key), "a pod that runs counts");
  }
}

// What the order of the documents could change.
bool same_queues(const model::QueueInputs& a, const model::QueueInputs& b) {
  const auto same_workload = [](const model::WorkloadSpec& x, const model::WorkloadSpec& y) {
    const auto same_set = [](const model::PodSetSpec& s, const model::PodSetSpec& t) {
      return s.name == t.name && s.count == t.count && s.min_count == t.min_count &&
             *s.pod == *t.pod && s.requests == t.requests && s.topology == t.topology &&
             s.pods == t.pods;
    };
    return x.ns == y.ns && x.name == y.name && x.queue == y.queue && x.priority == y.priority &&
           x.admission == y.admission && x.incomplete == y.incomplete &&
           std::equal(x.pod_sets.begin(), x.pod_sets.end(), y.pod_sets.begin(), y.pod_sets.end(),
                      same_set);
  };
  return a.config == b.config && a.flavors == b.flavors && a.queues == b.queues &&
         a.local_queues == b.local_queues && a.cohorts == b.cohorts &&
         a.topologies == b.topologies && a.checks == b.checks && a.namespaces == b.namespaces &&
         std::equal(a.workloads.begin(), a.workloads.end(), b.workloads.begin(), b.workloads.end(),
                    same_workload);
}

}  // namespace

BERTH_FUZZ_TARGET(objects) {
  const text::YamlOptions options{.limits = {.max_nodes = 20'000}, .max_alias_nodes = 1'000};
  const auto documents = text::parse_yaml(fuzz::text_of(data, size), options);
  if (!documents.ok()) return 0;
  const kinds::Inputs in = read(*documents, false);
  const kinds::Inputs again = read(*documents, true);
  fuzz::check(in.nodes == again.nodes && in.pods == again.pods && in.gangs == again.gangs &&
                  in.budgets == again.budgets && in.invalid == again.invalid &&
                  in.warnings == again.warnings && in.ignored == again.ignored &&
                  same_queues(in.queues, again.queues),
              "the order of documents does not matter");
  std::set<std::string> gangs, pods;
  for (const model::GangSpec& gang : in.gangs) {
    fuzz::check(gangs.insert(gang.ns + '/' + gang.name).second, "gangs have names of their own");
    fuzz::check(gang.min_member >= 1, "a gang has a minimum");
  }
  for (const model::NodeSpec& node : in.nodes) check_node(node);
  for (const model::PodSpec& pod : in.pods) {
    fuzz::check(pods.insert(pod.ns + '/' + pod.name).second, "pods have names of their own");
    check_pod(pod, gangs);
  }
  check_queues(in.queues, pods);
  check_bound(*documents, pods);
  return 0;
}
