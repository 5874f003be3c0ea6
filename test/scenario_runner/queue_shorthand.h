// The one-line forms of what queues are made of, and the manifests they stand for.
//
// One reader for a whole scenario: it remembers flavors, topologies and queues, so that a later
// line may name them ("admitted on a100", "domains n0=2") and the flavor "default" and LocalQueues
// need not be written out.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenario.h"

namespace berth::scenario {

class QueueShorthand {
 public:
  // Whether read() knows the word before the name: flavor, topology, cohort, queue, local,
  // namespace, check, config, class, workload, job.
  static bool knows(std::string_view word);

  // head: "queue a", "workload ml/train"; body: what follows the colon; now_ns: of the step.
  Result<std::vector<Object>> read(const std::vector<std::string>& head, std::string_view body,
                                   std::int64_t now_ns);

 private:
  struct KnownQueue {
    std::set<std::string> resources;
  };

  Result<std::vector<Object>> read_flavor(const std::string& name, std::string_view body);
  Result<std::vector<Object>> read_topology(const std::string& name, std::string_view body);
  Result<std::vector<Object>> read_queue(const std::string& name, std::string_view body,
                                         bool cohort);
  Result<std::vector<Object>> read_local(const std::string& name, std::string_view body);
  Result<std::vector<Object>> read_workload(const std::string& name, std::string_view body,
                                            std::int64_t now_ns, bool job);
  void add_local(const std::string& ns, const std::string& queue, std::vector<Object>& out);

  std::map<std::string, std::string> topology_of_flavor_;
  std::map<std::string, std::vector<std::string>> levels_;  // of a topology: label keys
  std::map<std::string, KnownQueue> queues_;
  std::map<std::string, std::string> locals_;  // ClusterQueue by "ns/name"
};

// ---- pieces that both files of the shorthand use ----

inline constexpr const char* kGpuResource = "nvidia.com/gpu";

// "8 GPUs", "cpu 10", "memory 64Gi", "resource NAME 10" at the start of w: the resource and the
// amount, and how many words they are; 0 when it is none of these.
struct AmountWords {
  std::string resource, amount;
  std::size_t words = 0;
};
AmountWords amount_words(const std::vector<std::string>& w, std::size_t at);

// "k[=v][:Effect]" as a toleration, "k=v:Effect" as a taint, as JSON.
std::string toleration_json(std::string text);
std::string taint_json(std::string text);

std::string quoted_json(std::string_view text);
std::string listed(const std::vector<std::string>& parts);  // with commas between
bool split_equals(std::string_view text, std::string& key, std::string& value);

}  // namespace berth::scenario
