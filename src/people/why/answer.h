// The answer to "why does it wait?": everything that the table and the JSON of berth why say.
// docs/why.md names every field. A plain value; amounts of GPUs are in thousandths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "people/view/reasons.h"
#include "people/why/draft.h"

namespace berth::people {

struct Cause {
  model::Reason reason = model::Reason::kNone;
  std::string message;
  friend bool operator==(const Cause&, const Cause&) = default;
};

struct Need {
  int pods = 0;
  std::int64_t each_milli = 0, all_milli = 0;
  std::string each;  // "4 GPUs", "0.5 of a GPU"
  std::string model, topology, queue;
  int priority = 0;
};

struct QuotaCell {
  std::string flavor, resource, nominal, used, available, borrowable;  // as Kubernetes writes them
  bool short_of = false;  // less is available than it asks for
};
struct Quota {
  std::string queue, cohort;
  std::vector<QuotaCell> cells;
};

struct NodeFree {
  std::string node;
  std::int64_t free_milli = 0;
};
struct Have {
  int nodes = 0, eligible = 0, with_room = 0;
  std::int64_t free_milli = 0, largest_milli = 0;
  std::vector<NodeFree> free_by_node;  // most first
};

struct Fragmentation {
  std::int64_t free_milli = 0, largest_milli = 0, needed_milli = 0, stranded_milli = 0;
};

struct FunnelStep {
  model::Constraint constraint = model::Constraint::kCount;
  int removed = 0, only = 0, left = 0;
  std::vector<std::string> nodes;  // some of those it removes
};

struct BlockedNode {
  std::string name;
  std::int64_t free_milli = 0;
  std::vector<model::Constraint> blockers;
};

struct HolderView {
  std::string node, pod;  // pod: "ns/name", or "another team"
  std::int64_t milli = 0;
  int priority = 0;
  std::optional<std::int64_t> ends_ns;  // where it says how long it runs
};

struct Ahead {
  int position = 0, workloads = 0;
  std::int64_t gpus_milli = 0;
};

struct HealthView {
  std::string node;
  int gpu = -1;  // -1: the node itself
  std::string reason;
};

// A group of nodes that an autoscaler makes: a node group of a cloud, a NodePool.
struct PoolLimit {
  std::string resource, limit, used;  // as Kubernetes writes them
};
struct PoolView {
  std::string name, by;  // by: "cluster-autoscaler", "karpenter"
  std::int64_t nodes = 0, in_flight = 0;
  std::optional<std::int64_t> min, max;  // nodes
  std::vector<PoolLimit> limits;         // of all its nodes together
  std::string at_limit;                  // "8 nodes": it may not grow for this workload
  bool healthy = true;
  std::string scale_up;  // as it calls it: "NoActivity", "InProgress", "Backoff"
  std::string failure;   // the last, in its words
  std::string awaits;    // what nodes on their way lack
};
struct Autoscaler {
  struct Event {
    std::string reason, message;
    std::optional<std::int64_t> at_ns;
  };
  struct Request {  // ProvisioningRequest
    std::string name, state, message;
  };
  std::vector<PoolView> pools;  // those of nodes that could take the workload first
  int fitting = 0;              // so many
  int pools_more = 0;
  std::optional<Event> event;  // the latest of its pods
  std::optional<Request> request;
};

// A change that was tried on a copy of the cluster and lets the workload start.
struct Fix {
  std::string title, kind;
  int disturbance = 1;  // 1: the owner's own object .. 5: new machines
  int restarts = 0;     // pods that are stopped for it
  std::vector<ObjectChange> changes;
};

// What would help, and may not be done.
struct Refused {
  std::string title, because;  // "preempt team/eval", "same priority"
};

struct Start {
  std::optional<std::int64_t> at_ns;
  std::string because;
};

// By whom it waits: the last decision of a controller.
struct Decided {
  std::string id;  // empty: none is known
  std::int64_t at_ns = 0;
  std::string version;  // the newest resourceVersion that it knew
};

struct Evidence {
  std::vector<RawObject> objects;
  Decided decided;
  std::string digest, replay;
  std::vector<std::string> partial;     // what the caller could not see
  std::vector<std::string> summarised;  // what the answer knows and does not name to him
};

// What of the API server's rules holds it: the kind of the object, and what was told of it.
struct Rule {
  std::string kind, message;
};

struct Answer {
  std::string kind, ns, name;
  Standing standing = Standing::kWaiting;
  std::string line, message;
  model::Reason reason = model::Reason::kNone;
  Stage stage = Stage::kBind;
  std::vector<Cause> also;
  Rule rule;
  std::optional<std::int64_t> since_ns;
  std::int64_t evaluated_ns = 0;
  Need need;
  std::optional<Quota> quota;
  Have have;
  std::optional<Fragmentation> fragmentation;
  std::vector<FunnelStep> funnel;
  std::vector<BlockedNode> nodes;
  int nodes_more = 0;
  std::vector<HolderView> holders;
  int holders_more = 0;
  std::optional<Ahead> ahead;
  std::optional<Autoscaler> autoscaler;
  std::vector<HealthView> health;
  std::vector<Fix> fixes;
  std::vector<std::string> in_vain;  // tried, and it does not start
  std::vector<Refused> refused;
  Start start;
  Evidence evidence;
  std::vector<std::string> where;  // running: "n1, GPUs 0-3"
};

// Keys in a fixed order: the same answer gives the same bytes.
std::string why_json(const Answer& answer);
// For people: the answer first, at most 80 columns. all_holders: a line for each node that others
// hold, not only the few nearest to having room.
std::string why_table(const Answer& answer, bool all_holders = false);

}  // namespace berth::people
