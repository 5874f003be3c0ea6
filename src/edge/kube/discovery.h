// What a server is and what it has: its version, its groups and resources.
//
// By the aggregated discovery (two requests) where the server knows it, group by group otherwise.
// On the loop's thread; done is called once, unless the Client ends before.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "edge/kube/client.h"

namespace berth::kube {

struct ServerVersion {
  int major = 0, minor = 0;
  std::string text;  // "v1.37.0"
};
void ask_version(Client& client, std::function<void(Result<ServerVersion>)> done);

struct FoundResource {
  Resource resource;
  std::vector<std::string> verbs;
  std::vector<std::string> subresources;
};

class ServerResources {
 public:
  bool has(const Resource& resource) const;  // by group, version and plural
  bool has_group(const std::string& group, const std::string& version) const;
  const FoundResource* find(const std::string& group, const std::string& plural) const;  // newest
  const std::vector<FoundResource>& all() const { return all_; }

  // What berth may rely on.
  bool device_claims() const { return has_group("resource.k8s.io", "v1"); }
  bool pod_groups() const;  // scheduling.k8s.io has them
  bool kueue() const { return has_group("kueue.x-k8s.io", "v1beta2"); }

  void add(FoundResource found);

 private:
  std::vector<FoundResource> all_;  // in the server's order: the preferred version of a group first
  std::set<std::string> names_;     // "group/version/plural"
  std::set<std::string> groups_;    // "group/version"
};
void ask_resources(Client& client, std::function<void(Result<ServerResources>)> done);

// Reads an APIGroupDiscoveryList into `out`; false: it is something else.
bool read_group_discovery(const text::Value& list, ServerResources& out);
// Reads an APIResourceList.
void read_resource_list(const text::Value& list, ServerResources& out);

}  // namespace berth::kube
