// What stands between an object and a pod that could be placed: the pods that somebody has yet to
// make of it, the defaults that the API server fills in, what it refuses, and claims that nobody
// binds.
//
// Kubernetes applies these rules before a scheduler sees a pod (ResourceQuota, LimitRange,
// RuntimeClass) or beside it (StorageClass, ReadWriteOncePod). The model of the cluster does not
// hold them, and a plan does not know them: they are read from the objects of the subject's
// namespace. What is not in the input is not asked for: without any RuntimeClass no name of one is
// wrong. Pure. Costs a pass over the pods of the namespace where it has a ResourceQuota.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/reason.h"
#include "people/why/unit.h"

namespace berth::people {

// The first rule that holds the workload.
struct Held {
  enum class By : std::uint8_t {
    kQuota,         // a ResourceQuota is used up, or too small
    kNoAmount,      // a ResourceQuota or LimitRange wants an amount that a container does not state
    kLimitRange,    // a container or pod asks for more or less than a LimitRange allows
    kRuntimeClass,  // its class does not exist
    kClassLabels,   // its class is for other nodes than it asks for
    kStorage,       // nobody binds a claim
    kClaimInUse,    // another pod has the claim for itself
    kScheduler,     // the name of its scheduler is written wrong
    kQueueName,     // that of its KAI queue is
    kNamespace,     // the namespace is being deleted
    kAccount,       // its service account does not exist
    kSecurity,      // the namespace's Pod Security Standard forbids it
    kOrder,         // a StatefulSet makes the next pod once the one before is ready
    kDeserved,      // KAI: it may not be preempted, and the quota of its queue is used
    kWebhook,       // a webhook does not let its pods be made, or does not answer
    kManaged,       // another controller than the cluster's makes the pods of the Job
    kDevices,       // a ResourceClaim, its template or a DeviceClass does not exist
  };
  By by = By::kQuota;
  model::Reason reason = model::Reason::kMisconfigured;
  std::string message;
  bool never = false;
  std::string object;    // the quota, range, class or claim
  std::string resource;  // as the object writes it: "requests.nvidia.com/gpu"
  std::string enough;    // of it, as Kubernetes writes amounts
  std::string asked;     // by a container
  std::string name;      // what was meant, the pod or label in the way, the ratio that would do
  int too_many = 0;      // pods beyond what the quota takes
};

inline constexpr const char* kKaiQueueLabel = "kai.scheduler/queue";

// The kind whose objects tell what the message says; empty: it tells of the workload alone.
std::string_view kind_behind(const Held& held);

class PodReadings;  // pod_template.h

class ServerRules {
 public:
  // places: where the pods are described. Keeps the source. readings: of the same objects, and of
  // changes of them; null: of its own.
  ServerRules(const ObjectSource& objects, std::vector<TemplatePlace> places,
              PodReadings* readings = nullptr)
      : objects_(objects), places_(std::move(places)), readings_(readings) {}

  std::optional<Held> held() const;
  // Templates as the API server stores pods of them; with_pods: and the pods of what has made none.
  std::vector<ObjectChange> filled_in(bool with_pods) const;

 private:
  const ObjectSource& objects_;
  std::vector<TemplatePlace> places_;
  PodReadings* readings_;
};

}  // namespace berth::people
