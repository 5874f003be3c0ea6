// Which pods are of which workload of Kueue's queues, and what they may have of its quota.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kinds/resolve/known_nodes.h"
#include "kinds/resolve/known_queues.h"
#include "kinds/resolve/pod_marks.h"
#include "kinds/resolve/quota_asks.h"
#include "kinds/resolve/quota_left.h"
#include "kinds/resolve/resolution.h"
#include "kinds/resolve/workloads.h"

namespace berth::kinds {

class Members : private Part {
 public:
  // Every pod to the workload that stands for it, or for what made the Job that made it. Those that
  // run come first: they have their room already.
  Members(Resolution& all, const KnownNodes& nodes, const KnownQueues& queues,
          const Workloads& workloads, PodMarks& marks);

  // Whether a Workload holds quota for the group ("ns/name").
  bool hold_for_group(const std::string& group) const { return group_holders_.contains(group); }
  // A pod that comes for one that is gone, to such a group: it has that one's room. False: there is
  // none.
  bool take_room_of_group(model::PodSpec& pod, const std::string& group);

 private:
  struct Taken {  // of an admitted set
    int pods = 0;
    model::Amounts let_in;  // its usage as the status says it
    model::Amounts actual;  // what those of its pods that run have
  };
  struct Told {  // by a pod's own metadata
    std::string owner_uid, workload;
  };
  using Names = std::map<std::string, std::string, std::less<>>;

  std::map<std::string, Told, std::less<>> what_pods_tell() const;
  Names makers_of_jobs() const;  // ns/Kind/name by ns/Job/name
  void attach_all();
  bool attach_to_owner(model::PodSpec& pod, const Told& told, const Names& makers);
  void attach(model::PodSpec& pod, const Workloads::Places& places);
  void attach_replacement(model::PodSpec& pod);
  std::size_t place_for(const Workloads::Places& places, bool bound) const;
  bool was_started_by_another(const model::PodSpec& pod, const Told& told,
                              const Workloads::Places& of_owner_now);
  // Of those that hold quota.
  std::optional<std::size_t> holder_named(const std::string& ns, const std::string& workload);

  model::PodSetSpec* take_room(const model::PodSpec& pod, std::size_t workload);
  Taken& taken_of(std::size_t workload, std::size_t set);
  bool asks_no_more(const model::PodSpec& pod, const model::PodSetSpec& set,
                    const std::optional<model::AdmissionSpec>& admission) const;
  bool rest_fits(const model::PodSpec& pod, const model::AdmissionSpec& admission,
                 const model::PodSetSpec& set, const Taken& taken);
  void count_actual(const model::PodSpec& pod, const model::PodSetSpec& set, Taken& taken,
                    model::WorkloadSpec& workload);
  bool may_run_in(const model::PodSpec& pod, const model::AdmissionSpec& admission,
                  const model::PodSetSpec& set) const;
  void keep_to_flavors(model::PodSpec& pod, const model::WorkloadSpec& workload,
                       const model::PodSetSpec& set) const;
  bool take_rest(const model::PodSpec& pod, const std::string& set, const std::string& queue,
                 std::vector<QuotaLeft::Ask> more);
  QuotaLeft& quota_left();

  QuotaAsks* const asks_;         // of a kin; null: quota is taken here
  const NameSet* const granted_;  // of it
  QuotaAsks::Turn turn_ = QuotaAsks::Turn::kRuns;
  const KnownNodes& nodes_;
  const KnownQueues& queues_;
  const Workloads& workloads_;
  PodMarks& marks_;
  std::map<std::string, std::size_t, std::less<>> group_holders_;  // by ns/group: who has quota
  std::map<std::string, std::size_t, std::less<>> holder_at_;      // by ns/name; holder_named()
  std::map<std::pair<std::size_t, std::size_t>, Taken> taken_;     // by workload and set
  std::optional<QuotaLeft> quota_left_;                            // made when somebody needs it
};

}  // namespace berth::kinds
