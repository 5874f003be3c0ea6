// Who waits where: heaps, parking, the sticky preemptor, classes of equal workloads, scan progress,
// and the usage that local queues had.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "judge/queue_flavors.h"
#include "judge/queue_tree.h"
#include "model/workload.h"

namespace berth::judging::quota {

enum class Place { kOut, kHeap, kParked, kHolding };

struct ScanProgress {
  std::int64_t cycle = 0, generation = 0;
  std::string shape;
  Tried tried;
};

struct Record {
  model::WorkloadSpec spec;
  Place place = Place::kOut;
  bool leaving = false;      // evicted by a cycle, its pods not gone yet
  bool backing_off = false;  // parked until spec.requeue_at_ns
  std::optional<ScanProgress> scan;
};

class Book {
 public:
  Book(model::QueueInputs inputs, std::int64_t now_ns);

  const model::QueueInputs& inputs() const { return inputs_; }  // without workloads
  const QuotaTree& tree() const { return tree_; }
  const std::map<std::string, Record>& records() const { return records_; }
  const model::WorkloadSpec& spec(const std::string& name) const { return records_.at(name).spec; }
  const std::map<std::string, std::string>& preemptors() const { return preemptors_; }

  // ---- what happens to workloads ----
  void add(const model::WorkloadSpec& spec);
  void finish(const std::string& name);
  void evictions_done();
  void ready(const std::string& name);

  // ---- for the cycle ----
  void begin(std::int64_t now_ns);
  std::vector<std::string> take_heads();  // one of each active queue, in the order of queues
  QuotaState snapshot() const;
  Asker asker(const std::string& name) const;
  std::string queue_of(const model::WorkloadSpec& spec) const;  // the ClusterQueue, or empty
  const model::QueueSpec* queue(const std::string& name) const;
  bool namespace_matches(const std::string& name) const;
  bool waiting_for_pods() const;  // somebody admitted is not ready, and that blocks

  Tried progress(const std::string& name) const;
  void remember(const std::string& name, const Tried& tried);
  void admit(const std::string& name, const model::AdmissionSpec& admission);
  void evict(const std::string& name, const std::string& reason);
  bool requeue(const std::string& name, const std::string& reason);  // whether it was parked

  double past_usage(const std::string& local_queue) const;
  bool active(const model::QueueSpec& queue) const;

 private:
  bool waits(const model::WorkloadSpec& spec) const;
  void line_up(Record& record);
  bool pops_before(const Record& a, const Record& b, const model::QueueSpec& queue) const;
  void flush(const std::string& queue);
  void bump(const std::string& queue);
  std::vector<NodeName> whole_tree(const std::string& queue) const;
  Holding holding(const std::string& name, const Record& record) const;
  std::int64_t queue_ns(const model::WorkloadSpec& spec) const;
  void unstick(const std::string& name);
  void park_equals(const std::string& queue, const std::string& shape);
  bool fair_by_usage(const model::QueueSpec& queue) const;
  void sample();
  void charge(const std::string& name, const Record& record);

  model::QueueInputs inputs_;
  QuotaTree tree_;
  std::int64_t now_ns_, cycle_ = 0;
  std::map<std::string, Record> records_;
  std::map<std::string, std::string> preemptors_;               // by queue
  std::map<std::string, std::set<std::string>> parked_shapes_;  // by queue
  std::map<std::string, std::int64_t> generations_;             // by queue

  using Past = std::map<std::string, double>;                     // by resource
  std::map<std::string, Past> consumed_;                          // by local queue
  std::map<std::string, std::map<std::string, Past>> penalties_;  // by local queue, workload
  std::int64_t sampled_ns_;
};

std::string full_name(const model::WorkloadSpec& spec);  // "ns/name"
// Equal for workloads that the same attempt would end the same way for.
std::string shape_of(const model::WorkloadSpec& spec);

}  // namespace berth::judging::quota
