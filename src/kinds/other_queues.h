// Queues and jobs of other schedulers, as their objects say them; resolve_other_queues.cc gives
// them their meaning.
//
// Read: scheduling.volcano.sh/v1beta1 Queue, scheduling.run.ai/v2 Queue (KAI), batch.volcano.sh/
// v1alpha1 Job, scheduling.k8s.io/v1beta1 Workload (its templates are checked; what is scheduled is
// the PodGroups made from them). A field that nothing here can stand for is a warning that names
// it. Amounts are as in Amounts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kinds/job.h"

namespace berth::kinds {

struct VolcanoQueue {
  Meta meta;
  int weight = 1;
  std::string parent;  // empty: under the root
  model::Amounts capability, guarantee, deserved;
  bool fifo = false;    // dequeueStrategy
  bool closed = false;  // status.state, or it cannot be read in full
};
void decode(const text::Value& v, VolcanoQueue& out, text::Decoder& d);

struct KaiShare {
  std::optional<double> quota, limit;  // in GPUs, milli-cpus, or megabytes; absent: unlimited
  double weight = 1;                   // overQuotaWeight
};
struct KaiQueue {
  Meta meta;
  std::string parent;
  std::map<std::string, KaiShare> shares;  // gpu, cpu, memory, as far as given
  bool closed = false;                     // it cannot be read in full
};
void decode(const text::Value& v, KaiQueue& out, text::Decoder& d);

struct VolcanoTask {
  std::string name;
  int replicas = 1;
  std::optional<int> min_available;
  PodObject pod;
};
struct VolcanoJob {
  Meta meta;
  int min_available = 0;
  std::string queue, priority_class;
  bool finished = false;  // also one that is stopping
  std::vector<VolcanoTask> tasks;
};
void decode(const text::Value& v, VolcanoJob& out, text::Decoder& d);

struct UpstreamWorkload {
  Meta meta;
  std::map<std::string, int> templates;  // podGroupTemplates: the gang's minCount, 0 for basic
};
void decode(const text::Value& v, UpstreamWorkload& out, text::Decoder& d);

}  // namespace berth::kinds
