// What containers ask for, and what that makes the pod ask for.
//
// The rules are those of k8s.io/component-helpers/resource: limits stand in for missing requests;
// app containers and sidecars (init containers with restartPolicy Always) add up; a plain init
// container counts beside the sidecars started before it; the pod needs the larger of the two, or
// what spec.resources says for cpu, memory and huge pages; overhead is added at the end.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kinds/readers.h"
#include "model/spec.h"

namespace berth::kinds {

struct Resources {
  model::Amounts requests;  // limits stand in for what is not stated
  model::Amounts limits;
  model::Amounts stated;  // requests as written
  bool read = true;       // nothing of it is wrong
};
void decode(const text::Value& v, Resources& out, text::Decoder& d);

struct ContainerPort {
  std::string protocol = "TCP", host_ip;
  int container_port = 0, host_port = 0;
};

struct Container {
  std::string name;
  Resources resources;
  std::vector<ContainerPort> ports;
  bool restarts_always = false;
};
void decode(const text::Value& v, Container& out, text::Decoder& d);

struct Containers {
  std::vector<Container> init, app;
};

// A pod that runs may be in the middle of a resize. It then has the most of what its spec asks for
// and of what its kubelet says that it set aside and gave; what the kubelet calls infeasible it
// does not have. Unreadable parts of the status count as if they were not there.
void count_resize(const text::Value& status, Containers& containers,
                  std::optional<Resources>& pod_level);

bool is_gpu_resource(std::string_view name);  // whole, shared or a slice
// cpu, memory and huge pages may be given for the pod as a whole.
bool is_pod_level_resource(std::string_view name);
// Whole numbers only, requests equal to limits: extended resources and huge pages.
bool is_exact_resource(std::string_view name);

// Effective requests of the pod. pod_level may be null. False when a sum is above kMaxAmount.
bool effective_requests(const Containers& containers, const Resources* pod_level,
                        const model::Amounts& overhead, model::Amounts& out);

// An amount of Amounts as Kubernetes writes it: CPU in millis, others whole.
std::string amount_text(std::string_view resource, std::int64_t amount);

}  // namespace berth::kinds
