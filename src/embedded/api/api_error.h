// What a request was refused with: the Status object of Kubernetes, worded as kube-apiserver words
// it, because clients show it and some match on it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/schema/schema.h"

namespace berth::sim::api {

using sim::Cause;

struct ApiError {
  int code = 500;
  std::string reason;   // "NotFound"
  std::string message;  // for people
  std::string name, group, kind, uid;
  std::vector<Cause> causes;
  int retry_after_seconds = 0;

  std::string to_json() const;  // the whole Status
};

// Which collection an error speaks of.
struct GroupResource {
  std::string_view group, resource;
  std::string to_string() const;  // "deployments.apps"
};

ApiError not_found(GroupResource resource, std::string_view name);
ApiError already_exists(GroupResource resource, std::string_view name);
ApiError conflict(GroupResource resource, std::string_view name, std::string_view why);
ApiError modified(GroupResource resource, std::string_view name);  // the usual conflict
ApiError forbidden(GroupResource resource, std::string_view name, std::string_view why);
ApiError invalid_object(std::string_view group, std::string_view kind, std::string_view name,
                        std::vector<Cause> causes);
ApiError bad_request(std::string_view message);
ApiError method_not_allowed(GroupResource resource, std::string_view action);
ApiError expired(std::string_view message);
ApiError unauthorized();
ApiError internal_error(std::string_view message);
ApiError body_too_large(std::size_t limit);
ApiError no_room(std::string_view why);  // the disk is full: 507, and what to do
ApiError unsupported_media_type(std::string_view accepted);
ApiError not_acceptable(std::string_view accepted);
ApiError too_many_requests(std::string_view message, int retry_after_seconds);
ApiError path_not_found();  // of resources that no one serves

// The causes of an invalid object, as field errors of Kubernetes print.
Cause required(std::string_view field, std::string_view detail = {});
Cause invalid_value(std::string_view field, std::string_view shown, std::string_view detail);
Cause forbidden_field(std::string_view field, std::string_view detail);
Cause duplicate_value(std::string_view field, std::string_view shown);
Cause not_supported(std::string_view field, std::string_view found,
                    const std::vector<std::string>& supported);

std::string quoted(std::string_view text);  // as Go's %q

}  // namespace berth::sim::api
