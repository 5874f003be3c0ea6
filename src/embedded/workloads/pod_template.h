// Pods from templates: what the Job and the ReplicaSet controller send to the API server.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edge/kube/client.h"
#include "text/json_writer.h"
#include "text/value.h"

namespace berth::sim {

struct PodOwner {
  std::string api_version, kind, name, uid;
};

struct PodDetails {
  std::string ns, name;
  PodOwner owner;
  std::map<std::string, std::string> labels, annotations;  // beside those of the template
  std::vector<std::string> finalizers;
  std::string hostname;     // empty: the template's
  bool with_index = false;  // containers get JOB_COMPLETION_INDEX from the label
};

// pod_template: {metadata, spec}.
std::string pod_from_template(const text::Value& pod_template, const PodDetails& details);

void put_controller_reference(text::JsonWriter& out, const PodOwner& owner);

// Members of an object with some of them replaced or added.
void put_string_map(text::JsonWriter& out, const text::Value& base,
                    const std::map<std::string, std::string>& over);

}  // namespace berth::sim
