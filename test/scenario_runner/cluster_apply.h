// Manifests of a scenario as writes to an API server. Private to the cluster engines.
#pragma once

#include <string>
#include <vector>

#include "edge/kube/client.h"
#include "scenario.h"

namespace berth::scenario {

// Where objects of a kind live; guesses the plural as kubectl's authors named them.
kube::Resource resource_of(const std::string& api_version, const std::string& kind,
                           bool namespaced);

struct Prepared {
  kube::Resource resource;
  kube::Key key;
  std::string body;             // without status
  std::string status;           // {"status":...}, or empty
  std::vector<int> priorities;  // classes that it names, made by priority_class()
};
// A pod gets the scheduler's name, and a class for a bare priority; references to owners that do
// not exist are dropped.
Result<Prepared> prepare(const Object& object);
// Every time in a JSON text, so much later: "an hour ago" holds whenever the scenario is run.
std::string times_moved(const std::string& json, std::int64_t by_ns);

std::string priority_class_name(int priority);
std::string priority_class(int priority);  // the manifest

}  // namespace berth::scenario
