// Manifests: whatever the text, the reader ends, the order of the documents does not matter and
// what it hands to the model keeps the model's promises.
#include <algorithm>
#include <set>
#include <vector>

#include "fuzz.h"
#include "objects/manifest.h"
#include "objects/readers.h"
#include "text/yaml.h"

namespace {

using namespace berth;

objects::Inputs read(const std::vector<text::Document>& documents, bool backwards) {
  objects::ManifestReader reader({.max_job_pods = 100});
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::size_t at = backwards ? documents.size() - 1 - i : i;
    reader.add("f", static_cast<int>(at), documents[at]);
  }
  return reader.finish();
}

bool in_range(const model::Amounts& amounts) {
  return std::all_of(amounts.begin(), amounts.end(), [](const auto& entry) {
    return entry.second >= 0 && entry.second <= objects::kMaxAmount;
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

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const text::YamlOptions options{.limits = {.max_nodes = 20'000}, .max_alias_nodes = 1'000};
  const auto documents = text::parse_yaml(fuzz::text_of(data, size), options);
  if (!documents.ok()) return 0;
  const objects::Inputs in = read(*documents, false);
  const objects::Inputs again = read(*documents, true);
  fuzz::check(in.nodes == again.nodes && in.pods == again.pods && in.gangs == again.gangs &&
                  in.budgets == again.budgets && in.invalid == again.invalid &&
                  in.warnings == again.warnings && in.ignored == again.ignored,
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
  return 0;
}
