// One resolve(): made of what was gathered, run once. Private to this folder.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "kinds/gathered.h"
#include "kinds/object_set.h"
#include "kinds/queue_forest.h"
#include "kinds/queue_marks.h"
#include "kinds/quota_left.h"

namespace berth::kinds {

class Resolver {
 public:
  Resolver(Gathered& gathered, const ManifestOptions& options) : in_(gathered), options_(options) {}

  Inputs run() &&;
  QueueDemands demands() &&;

 private:
  using NameSet = std::set<std::string, std::less<>>;

  // The stages of run(): each builds on those before it.
  void drop_duplicates();
  void nodes();
  void indexes();
  void queues();
  void groups();
  void workloads();
  void makers();
  void jobs();
  void volcano_jobs();
  void pods();
  void queued_pods();
  void make_variants();
  void other_queues();
  void count_leftovers();
  void plant_other_queues();
  void hold_outsiders();
  void budgets();
  Inputs finish();

  // Priority and group of a pod or a job's template; false when it is refused. T is what the
  // notes go to.
  template <class T>
  bool settle(const Found<T>& at, const std::string& path, PodObject& pod);
  template <class T>
  bool settle_priority(const Found<T>& at, const std::string& path, PodObject& pod);
  template <class T>
  bool settle_group(const Found<T>& at, const std::string& path, PodObject& pod);
  template <class T>
  void take_topology(const Found<T>& at, const Membership& member, const model::PodSpec& pod,
                     model::GangSpec& gang);
  void expand(Found<JobObject>& job, std::vector<PodObject*>& existing, const NameSet& taken);
  bool make_job_gang(Found<JobObject>& job, std::vector<PodObject*>& existing);
  void check_indices(const Found<PodObject>& at, model::PodSpec& pod);
  void add_pod(Found<PodObject>& found);

  // Queues (resolve_queues.cc).
  // Whether Kueue looks after what a namespace holds without being asked by a label.
  bool selects(const text::Selector& selector, const std::string& ns) const;
  bool is_open_to(const std::string& queue, const std::string& ns) const;  // a ClusterQueue
  bool managed(const std::string& ns) const;
  // Whether nothing may start there outside of queues: by the namespace's label, or because Kueue's
  // Configuration says so.
  bool requires_queue(const std::string& ns) const;
  bool requires_queue(const model::PodSpec& pod) const;
  // Whether what made the object (a JobSet, say) waits or runs as a whole, or its workload holds
  // quota: then the object waits for nothing by itself.
  bool made_by_queued(const Meta& meta) const;
  // The priority of a class of workloads; absent when there is none of that name.
  std::optional<int> workload_class(const std::string& name) const;
  template <class T>
  void say_no_queues(const Found<T>& at);  // once
  // Under a name of its own; its place in out_.queues.workloads.
  std::size_t add_workload(model::WorkloadSpec spec);
  bool settle_workload(const Found<WorkloadObject>& found, model::WorkloadSpec& spec);
  int template_priority(const WorkloadObject& object, bool& gone) const;
  void keep_priorities();
  void check_slices();
  void settle_templates(Found<WorkloadObject>& found, model::WorkloadSpec& spec);
  // Of a holder that cannot be read in full: what it does not say of its queue and amounts.
  void mend_admission(model::WorkloadSpec& spec) const;
  void meaning_of(model::TopologyAsk& ask) const;  // short names of levels
  void finish_queues();

  struct OtherSystem;

  // What waits in them (resolve_queued.cc).
  struct PodGroupOf;                                                // pods of one Kueue pod group
  std::optional<std::string> queue_of(const JobObject& job) const;  // absent: in none
  std::optional<std::string> default_queue_of(const Meta& meta) const;  // or label; the same
  // Other kinds that wait as a whole (resolve_makers.cc).
  std::optional<std::string> queue_of(const QueuedMaker& maker) const;
  void queue_maker(Found<QueuedMaker>& maker);
  bool add_sets(Found<QueuedMaker>& maker, const std::string& queue, model::WorkloadSpec& spec);
  void ask_as_now(const QueuedMaker& maker, const std::vector<std::size_t>& places);
  // What a template is in a workload.
  template <class T>
  model::PodSpec made_pod(const Found<T>& at, const std::string& path, const PodObject& from,
                          const std::string& queue, const std::string& owner);
  // Room for that many more pods of pending workloads in the namespace; else how many there are.
  bool take_waiting(const std::string& ns, int count, std::size_t& room);
  // True when a workload stands for the Job, so that its pods are not made here.
  bool waits_in_queue(Found<JobObject>& job, const std::vector<PodObject*>& existing);
  void queue_job(Found<JobObject>& job, const std::string& queue, const std::string& replaces = {});
  void ask_as_now(const JobObject& job, const std::vector<std::size_t>& places);
  struct Taken {  // of an admitted set
    int pods = 0;
    model::Amounts let_in;  // its usage as the status says it
    model::Amounts actual;  // what those of its pods that run have
  };
  Taken& taken_of(std::size_t workload, std::size_t set);
  bool rest_fits(const model::PodSpec& pod, const model::AdmissionSpec& admission,
                 const model::PodSetSpec& set, const Taken& taken);
  bool end_stale_slices(const JobObject& job, const std::vector<std::size_t>& places);
  static void count_as_admitted(model::WorkloadSpec& spec);
  bool asks_no_more(const model::PodSpec& pod, const model::PodSetSpec& set,
                    const std::optional<model::AdmissionSpec>& admission) const;
  const model::NodeSpec* node_known(const std::string& name) const;  // null: it is not there
  bool node_answers(const std::string& name) const;
  void flavors_of_node(const std::string& node, model::WorkloadSpec& spec) const;
  std::vector<std::size_t> of_owner(const std::vector<std::size_t>& places,
                                    const std::string& uid) const;
  void attach_started(model::PodSpec& pod, const std::string& workload);
  bool was_started_by(const model::PodSpec& pod, const std::string& workload,
                      const std::vector<std::size_t>& of_owner_now);
  // Of those that hold quota.
  std::optional<std::size_t> holder_named(const std::string& ns, const std::string& workload);
  const model::FlavorSpec* flavor_named(const std::string& name) const;  // null: there is none
  const model::QueueSpec* queue_named(const std::string& name) const;    // the same
  bool may_run_in(const model::PodSpec& pod, const model::AdmissionSpec& admission,
                  const model::PodSetSpec& set) const;
  bool covers(const std::string& queue, const std::string& resource) const;
  void keep_to_flavors(model::PodSpec& pod, const model::WorkloadSpec& workload,
                       const model::PodSetSpec& set) const;
  bool has_workload(const std::string& owner, const std::string& uid) const;
  void attach_replacement(model::PodSpec& pod);
  bool take_room_of_group(model::PodSpec& pod, const std::string& group);
  // Who pays for a pod that runs and that no workload holds quota for.
  struct Payer {
    std::string queue, local;       // ClusterQueue; LocalQueue, or empty
    OtherSystem* system = nullptr;  // null: Kueue's own
  };
  std::optional<Payer> payer_of(const model::PodSpec& pod);
  std::string leftover_local(const model::PodSpec& pod) const;
  std::string local_to(const std::string& queue, const std::string& ns) const;
  void count_leftover(model::PodSpec& pod, const Payer& payer);
  std::string kueue_charge(const model::WorkloadSpec& workload) const;
  model::PodSetSpec* take_room(const model::PodSpec& pod, std::size_t workload);
  QuotaLeft& quota_left();
  void count_actual(const model::PodSpec& pod, const model::PodSetSpec& set, Taken& taken,
                    model::AdmissionSpec& admission);
  void attach(model::PodSpec& pod, const std::vector<std::size_t>& workloads);
  void attach_pods();
  void hold(model::PodSpec& pod);  // until its workload starts
  template <class T>
  bool class_priority(const Found<T>& at, const Meta& meta, int& priority);
  void queue_pod(const Found<PodObject>& found, model::PodSpec& pod, const std::string& queue);
  // The queue of a pod that names none, or "".
  std::string default_queue(const Meta& meta) const;
  bool runs_already(const PodGroupOf& group);
  void queue_pod_group(PodGroupOf& group);
  void warn_two_queues(const Found<PodObject>& found, const model::PodSpec& pod);
  void drop_pod(const Found<PodObject>& found, const BadMark& bad);

  // Groups of any scheduler whose pods wait in Kueue's queues (resolve_other_groups.cc).
  void queue_kueue_gangs();
  std::map<std::string, std::vector<model::PodSpec*>, std::less<>> unpaid_members();
  void queue_alone(model::PodSpec& pod, const std::string& queue);  // as a workload of its own
  std::string kueue_queue(const std::string& gang, const std::vector<model::PodSpec*>& pods,
                          std::string& trouble) const;
  void check_workload_refs();

  // Slices of elastic Jobs, variants of workloads (resolve_variants.cc).
  void scale_job(Found<JobObject>& job, const std::vector<std::size_t>& places,
                 const std::vector<PodObject*>& existing);
  std::size_t place_for(const std::vector<std::size_t>& places, bool bound) const;
  void know_variants();  // of the input

  // Queues of Volcano and KAI (resolve_other_queues.cc, resolve_other_groups.cc).
  struct OtherSystem {
    std::string root;                                  // "volcano", "kai"
    std::map<std::string, std::string> cluster_queue;  // by queue
    std::set<std::string> resources;                   // that its queues count
    std::vector<ForestQueue> queues;
    std::map<std::string, QueueDoor> doors;  // by queue; its own, or of the nearest above it
  };
  void name_other_queues();
  void find_doors(OtherSystem& system);
  // Why a queue may not be used from the namespace, or "".
  std::string shut_to(const std::string& ns, const std::string& queue,
                      const OtherSystem& system) const;
  void straighten(OtherSystem& system);  // parents that are missing, too deep or in a circle
  OtherSystem* system_of(const std::string& queue, bool kai);
  std::string local_queue(const std::string& ns, const std::string& queue,
                          const OtherSystem& system);
  void queue_gangs();
  void queue_gang(const model::GangSpec& gang, const std::vector<model::PodSpec*>& pods,
                  OtherSystem& system);
  static std::string charge_in(const OtherSystem& system, const std::string& queue) {
    return system.root + '/' + queue;
  }
  void queue_surplus(const model::GangSpec& gang, model::PodSpec& pod, const model::PodSpec* beside,
                     std::int64_t since_ns, OtherSystem& system);
  void queue_other_pods();
  void add_other_workload(model::WorkloadSpec spec, const std::vector<model::PodSpec*>& pods,
                          OtherSystem& system, bool runs);
  std::string volcano_gang(const Found<VolcanoJob>& job, std::string name,
                           std::vector<PodObject*>& existing);
  void expand_task(const Found<VolcanoJob>& job, std::size_t task, const std::string& gang,
                   const NameSet& taken);

  struct Holding {
    std::string node;
    std::vector<int> indices;
  };

  Gathered& in_;
  ManifestOptions options_;
  Inputs out_;
  PriorityIndex priorities_;
  VolumeIndex volumes_;
  std::map<std::string, model::GangSpec, std::less<>> gangs_;  // by ns/name
  std::map<std::string, Holding, std::less<>> holders_;        // by pod UID
  NameSet node_label_keys_;

  bool kueue_decides_ = false;  // a ClusterQueue is there
  bool said_no_queues_ = false;
  std::map<std::string, int, std::less<>> workload_classes_;
  std::optional<text::Selector> managed_namespaces_;
  bool default_pods_ = true;  // pods wait in default queues: Kueue's integration is on
  std::map<std::string, std::string, std::less<>> group_queues_;  // ns/PodGroup: Kueue's label
  // Of Kueue's own, by name: places in out_.queues.
  std::map<std::string, std::size_t, std::less<>> queue_at_, flavor_at_;
  NameSet default_queues_;  // namespaces with a LocalQueue "default"
  NameSet workload_names_;  // ns/name
  // By ns/Kind/name of what owns them: places in out_.queues.workloads. Empty: a workload stands
  // for it and was refused.
  std::map<std::string, std::vector<std::size_t>, std::less<>> workloads_of_;
  NameSet running_makers_;                                  // ns/owner of which a pod is bound
  std::map<std::string, std::size_t, std::less<>> pod_at_;  // by ns/name: place in out_.pods
  OtherSystem volcano_{
      .root = "volcano", .cluster_queue = {}, .resources = {}, .queues = {}, .doors = {}};
  OtherSystem kai_{.root = "kai", .cluster_queue = {}, .resources = {}, .queues = {}, .doors = {}};
  std::string any_flavor_ = "default";
  std::map<std::string, std::string, std::less<>> local_targets_;  // ClusterQueue by ns/LocalQueue
  NameSet kai_groups_;                                             // ns/name
  NameSet queued_groups_;  // ns/name of groups that a workload stands for
  std::map<std::string, std::pair<Origin, std::string>, std::less<>> gang_places_;
  NameSet required_namespaces_;  // by their label
  NameSet let_in_;               // pods whose workload holds quota
  // By namespace and LocalQueue, of Kueue's own: its ClusterQueue.
  std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>> own_locals_;
  std::map<std::string, std::size_t, std::less<>> holder_at_;  // by ns/name; for attach_started
  std::map<std::size_t, NameSet> owner_uids_;                  // by workload; none: not known
  std::optional<QuotaLeft> quota_left_;                        // made when somebody needs it
  std::map<std::string, std::set<std::string>, std::less<>> uids_of_;  // by ns/owner of Workloads
  std::map<std::string, std::size_t, std::less<>> group_holders_;      // by ns/group: who has quota
  std::map<std::string, int, std::less<>> classless_;  // by ns/name of workloads: their number
  NameSet counted_;       // pods that run within what their workload holds
  NameSet kueue_gated_;   // pods that only Kueue's gates hold
  NameSet dropped_pods_;  // ns/name
  // By namespace: pods of pending workloads, made from Jobs and Workloads.
  std::map<std::string, std::size_t, std::less<>> waiting_pods_;
  std::map<std::pair<std::size_t, std::size_t>, Taken> taken_;  // by workload and set
};

QueueDemands demands_of(Gathered&& gathered, const ManifestOptions& options);

std::string qualified(const std::string& ns, const std::string& name);

// A pod that is a workload of its own, without its set.
model::WorkloadSpec workload_of(const model::PodSpec& pod, const std::string& queue);
// A pod as a template: what it is apart from which one it is and where.
model::PodSpec as_template(const model::PodSpec& pod);
// Whether two pods differ in nothing but their names, times, labels and places.
bool same_role(const model::PodSpec& a, const model::PodSpec& b);

}  // namespace berth::kinds
