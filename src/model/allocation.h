// What a container gets together with its devices: the content of an answer to Allocate.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace berth::model {

struct ContainerGrant {
  struct Mount {
    std::string container, host;
    bool read_only = true;
    friend bool operator==(const Mount&, const Mount&) = default;
  };
  struct Node {
    std::string container, host, permissions;
    friend bool operator==(const Node&, const Node&) = default;
  };
  std::map<std::string, std::string> environment, annotations;
  std::vector<Mount> mounts;
  std::vector<Node> nodes;
  std::vector<std::string> cdi;  // qualified names
  friend bool operator==(const ContainerGrant&, const ContainerGrant&) = default;
};

// Where a process runs.
struct ContainerPlace {
  std::string pod_uid, container_id;
  friend bool operator==(const ContainerPlace&, const ContainerPlace&) = default;
};

// Who holds what, as the kubelet says it (pod-resources).
struct HeldDevices {
  std::string ns, pod, container, resource;
  std::vector<std::string> ids;
  friend bool operator==(const HeldDevices&, const HeldDevices&) = default;
};

}  // namespace berth::model
