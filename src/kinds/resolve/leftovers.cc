#include <algorithm>

#include "kinds/quota_requests.h"
#include "kinds/resolve/stages.h"

namespace berth::kinds {

namespace {

// Who pays for a pod that runs and that no workload holds quota for.
struct Payer {
  std::string queue, local;       // ClusterQueue; LocalQueue, or empty
  OtherSystem* system = nullptr;  // null: Kueue's own
};

class Leftovers : private Part {
 public:
  Leftovers(Resolution& all, const KnownNodes& nodes, const KnownQueues& queues,
            const PodGroups& groups, Workloads& workloads, OtherSystems& systems,
            const PodMarks& marks)
      : Part(all),
        nodes_(nodes),
        queues_(queues),
        groups_(groups),
        workloads_(workloads),
        systems_(systems),
        marks_(marks) {}

  void run() {
    for (model::PodSpec& pod : out_.pods) {
      if (pod.node_name.empty()) continue;
      const std::string name = qualified(pod.ns, pod.name);
      if (marks_.counted.contains(name) || marks_.let_in.contains(name)) continue;
      if (pod.terminating && !nodes_.answers(pod.node_name)) continue;
      if (nodes_.find(pod.node_name) == nullptr) continue;  // nobody runs it
      if (const auto payer = payer_of(pod)) count_leftover(pod, *payer);
    }
  }

 private:
  // The LocalQueue that a pod's devices count in where nothing says who let it in: the one it was
  // started from, the one that it or its group names, or the first of a namespace that requires
  // one; "": none. One that leads to a queue that is not for its namespace lets nobody in, so it is
  // not.
  std::string leftover_local(const model::PodSpec& pod) const {
    const KnownQueues::Locals* own = queues_.locals(pod.ns);
    if (own == nullptr) return "";
    const auto is_one = [&](const std::string& local) {
      const auto known = own->find(local);
      return known != own->end() && queues_.is_open_to(known->second, pod.ns);
    };
    for (const std::string_view key : {kLocalQueueLabel, std::string_view(kQueueLabel)}) {
      const auto label = pod.labels.find(std::string(key));
      if (label != pod.labels.end() && is_one(label->second)) return label->second;
    }
    const std::string* group = groups_.kueue_queue(qualified(pod.ns, pod.gang));
    if (group != nullptr && is_one(*group)) return *group;
    if (!queues_.requires_queue(pod)) return "";
    const auto first = std::find_if(own->begin(), own->end(),
                                    [&](const auto& local) { return is_one(local.first); });
    return first == own->end() ? "" : first->first;
  }

  std::optional<Payer> payer_of(const model::PodSpec& pod) {
    const std::size_t slash = pod.charged.find('/');
    const std::string by = pod.charged.substr(0, slash);
    const std::string queue = slash == std::string::npos ? "" : pod.charged.substr(slash + 1);
    for (OtherSystem* system : systems_.all()) {
      const auto known = system->cluster_queue.find(queue);
      // Whose author wrote it may not use what his namespace may not.
      if (by == system->root && known != system->cluster_queue.end() &&
          systems_.shut_to(pod.ns, queue, *system).empty()) {
        return Payer{known->second, "", system};
      }
    }
    // What stands in its metadata is believed where the queue takes its namespace. Its LocalQueues
    // say nothing here: whoever is to pay could make one that leads to another's queue, and take
    // away the one that he came by.
    if (pod.charged.starts_with(kKueueCharge) && queues_.is_open_to(queue, pod.ns)) {
      return Payer{queue, queues_.local_to(queue, pod.ns)};
    }
    const std::string local = leftover_local(pod);
    if (local.empty()) return std::nullopt;
    return Payer{queues_.locals(pod.ns)->at(local), local};
  }

  // Of its queue's flavors the ones of the node that it is on.
  void flavors_of_node(const std::string& name, model::WorkloadSpec& spec) const {
    const model::NodeSpec* node = nodes_.find(name);
    const model::QueueSpec* queue = queues_.queue_named(spec.admission->queue);
    if (node == nullptr || queue == nullptr) return;
    const auto is_of = [&](const std::string& named) {
      const model::FlavorSpec* flavor = queues_.flavor_named(named);
      if (flavor == nullptr) return false;
      const auto& wanted = flavor->node_labels;
      return std::all_of(wanted.begin(), wanted.end(), [&](const auto& want) {
        const auto has = node->labels.find(want.first);
        return has != node->labels.end() && has->second == want.second;
      });
    };
    for (const model::ResourceGroup& group : queue->groups) {
      const auto flavor = std::find_if(group.flavors.begin(), group.flavors.end(),
                                       [&](const auto& f) { return is_of(f.flavor); });
      if (flavor == group.flavors.end()) continue;
      for (const std::string& resource : group.covered) {
        if (!spec.pod_sets.front().requests.contains(resource)) continue;
        spec.admission->pod_sets.front().flavors[resource] = flavor->flavor;
      }
    }
  }

  void count_leftover(model::PodSpec& pod, const Payer& payer) {
    model::Amounts requests = quota_requests(pod, out_.queues.config);
    if (!model::has_devices(requests)) return;
    pod.leftover = true;
    model::WorkloadSpec spec = workload_of(pod, payer.local);
    spec.leftover = true;
    spec.charge = pod.charged;
    if (const auto named = pod.labels.find(kClassLabel); named != pod.labels.end()) {
      spec.priority = queues_.workload_class(named->second).value_or(spec.priority);
    }
    model::PodSetSpec set;
    set.name = "main";
    set.pods = {qualified(pod.ns, pod.name)};
    set.pod = std::make_shared<const model::PodSpec>(as_template(pod));
    set.requests = std::move(requests);
    spec.pod_sets.push_back(std::move(set));
    spec.admission.emplace();
    spec.admission->pod_sets.push_back({.name = "main", .count = 1});
    spec.admitted = true;
    spec.reserved_ns = spec.admitted_ns = std::max(pod.created_ns, pod.started_ns);
    if (pod.terminating) {  // it is on its way: nobody need be told to leave for that room
      spec.evicted = "Deleted";
      spec.evicted_ns = spec.reserved_ns;
    }
    spec.admission->queue = payer.queue;
    if (payer.system != nullptr) {
      for (const auto& [resource, amount] : spec.pod_sets.front().requests) {
        payer.system->resources.insert(resource);
        spec.admission->pod_sets.front().flavors[resource] = systems_.flavor();
      }
    } else {
      flavors_of_node(pod.node_name, spec);
    }
    queues_.fill_admission(spec);
    workloads_.add(std::move(spec));
  }

  const KnownNodes& nodes_;
  const KnownQueues& queues_;
  const PodGroups& groups_;
  Workloads& workloads_;
  OtherSystems& systems_;
  const PodMarks& marks_;
};

}  // namespace

void count_leftovers(Resolution& all, const KnownNodes& nodes, const KnownQueues& queues,
                     const PodGroups& groups, Workloads& workloads, OtherSystems& systems,
                     const PodMarks& marks) {
  if (!all.options.live) return;
  Leftovers(all, nodes, queues, groups, workloads, systems, marks).run();
}

}  // namespace berth::kinds
