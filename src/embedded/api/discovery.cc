// What the server says about itself: groups, resources, OpenAPI, version, health.
#include <algorithm>

#include "base/sha256.h"
#include "embedded/api/server.h"
#include "text/base64.h"
#include "text/json_writer.h"

namespace berth::sim::api {

namespace {

std::vector<std::string_view> verbs_of(const Type& type) {
  if (type.role == Role::kReview) return {"create"};
  if (type.role == Role::kNamespace) {
    return {"create", "delete", "get", "list", "patch", "update", "watch"};
  }
  return {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
}

struct SubresourceForm {
  std::string_view name;
  std::string_view group, version, kind;  // kind "": the resource's own
  std::vector<std::string_view> verbs;
};

std::vector<SubresourceForm> subresources_of(const Type& type) {
  std::vector<SubresourceForm> out;
  const Kind& kind = *type.kind;
  if (kind.has_scale()) {
    out.push_back({"scale", "autoscaling", "v1", "Scale", {"get", "patch", "update"}});
  }
  if (kind.status) out.push_back({"status", "", "", "", {"get", "patch", "update"}});
  if (type.role == Role::kPod) {
    out.push_back({"attach", "", "v1", "PodAttachOptions", {"create", "get"}});
    out.push_back({"binding", "", "v1", "Binding", {"create"}});
    out.push_back({"eviction", "policy", "v1", "Eviction", {"create"}});
    out.push_back({"exec", "", "v1", "PodExecOptions", {"create", "get"}});
    out.push_back({"log", "", "v1", "Pod", {"get"}});
  }
  if (type.role == Role::kSigningRequest) {
    out.push_back({"approval", "", "", "", {"get", "patch", "update"}});
  }
  if (type.role == Role::kNamespace) out.push_back({"finalize", "", "v1", "Namespace", {"update"}});
  std::sort(out.begin(), out.end(),
            [](const SubresourceForm& a, const SubresourceForm& b) { return a.name < b.name; });
  return out;
}

// Which version of the kind is stored, as kube-apiserver says it; "": none is.
std::string storage_hash(const Type& type) {
  if (type.shelf == nullptr || !type.shelf->kind || type.kind->plural == "bindings") return {};
  const Kind& stored = *type.shelf->kind;
  const std::string hex = sha256_hex(stored.group + "/" + stored.version + "/" + stored.kind);
  std::string bytes;
  const auto digit = [&](std::size_t i) {
    return hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10;
  };
  for (std::size_t i = 0; i < 16; i += 2) {
    bytes.push_back(static_cast<char>(digit(i) * 16 + digit(i + 1)));
  }
  return text::base64_encode(bytes);
}

void write_strings(text::JsonWriter& out, std::string_view key, const auto& list) {
  out.array(key, [&] {
    for (const auto& item : list) out.value(std::string_view(item));
  });
}

struct GroupVersions {
  std::string group;
  std::vector<std::string> versions;  // preferred first
};

std::vector<GroupVersions> groups_of(const Registry& registry) {
  std::vector<GroupVersions> out;
  for (const TypePtr& type : registry.types()) {
    if (!type->kind->served) continue;
    auto found = std::find_if(out.begin(), out.end(), [&](const GroupVersions& group) {
      return group.group == type->kind->group;
    });
    if (found == out.end()) found = out.insert(out.end(), {type->kind->group, {}});
    if (std::find(found->versions.begin(), found->versions.end(), type->kind->version) ==
        found->versions.end()) {
      found->versions.push_back(type->kind->version);
    }
  }
  return out;
}

// ---- aggregated ------------------------------------------------------------------------------

void write_response_kind(text::JsonWriter& out, std::string_view group, std::string_view version,
                         std::string_view kind) {
  out.object("responseKind", [&] {
    out.field("group", group);
    out.field("version", version);
    out.field("kind", kind);
  });
}

void write_aggregated_resource(text::JsonWriter& out, const Type& type) {
  const Kind& kind = *type.kind;
  out.object([&] {
    out.field("resource", kind.plural);
    write_response_kind(out, kind.group, kind.version, kind.kind);
    out.field("scope", kind.namespaced ? "Namespaced" : "Cluster");
    out.field("singularResource", kind.singular);
    write_strings(out, "verbs", verbs_of(type));
    if (!kind.short_names.empty()) write_strings(out, "shortNames", kind.short_names);
    if (!kind.categories.empty()) write_strings(out, "categories", kind.categories);
    const auto subresources = subresources_of(type);
    if (!subresources.empty()) {
      out.array("subresources", [&] {
        for (const SubresourceForm& sub : subresources) {
          out.object([&] {
            out.field("subresource", sub.name);
            if (sub.kind.empty()) {
              write_response_kind(out, kind.group, kind.version, kind.kind);
            } else {
              write_response_kind(out, sub.group, sub.version, sub.kind);
            }
            write_strings(out, "verbs", sub.verbs);
          });
        }
      });
    }
  });
}

std::string aggregated(const Registry& registry, bool core) {
  text::JsonWriter out;
  out.object([&] {
    out.field("kind", "APIGroupDiscoveryList");
    out.field("apiVersion", "apidiscovery.k8s.io/v2");
    out.object("metadata", [&] {});
    out.array("items", [&] {
      for (const GroupVersions& group : groups_of(registry)) {
        if (group.group.empty() != core) continue;
        out.object([&] {
          out.object("metadata", [&] {
            if (!core) out.field("name", group.group);
            out.field("creationTimestamp", Value());
          });
          out.array("versions", [&] {
            for (const std::string& version : group.versions) {
              out.object([&] {
                out.field("version", version);
                out.array("resources", [&] {
                  for (const TypePtr& type : registry.types()) {
                    if (type->kind->served && type->kind->group == group.group &&
                        type->kind->version == version) {
                      write_aggregated_resource(out, *type);
                    }
                  }
                });
                out.field("freshness", "Current");
              });
            }
          });
        });
      }
    });
  });
  return std::move(out).take();
}

// ---- one by one ------------------------------------------------------------------------------

void write_group_version(text::JsonWriter& out, const std::string& group,
                         const std::string& version) {
  out.object([&] {
    out.field("groupVersion", group + "/" + version);
    out.field("version", version);
  });
}

void write_group(text::JsonWriter& out, const GroupVersions& group, bool whole) {
  out.object([&] {
    if (whole) {
      out.field("kind", "APIGroup");
      out.field("apiVersion", "v1");
    }
    out.field("name", group.group);
    out.array("versions", [&] {
      for (const std::string& version : group.versions)
        write_group_version(out, group.group, version);
    });
    out.key("preferredVersion");
    write_group_version(out, group.group, group.versions.front());
  });
}

std::string group_list(const Registry& registry) {
  text::JsonWriter out;
  out.object([&] {
    out.field("kind", "APIGroupList");
    out.field("apiVersion", "v1");
    out.array("groups", [&] {
      for (const GroupVersions& group : groups_of(registry)) {
        if (!group.group.empty()) write_group(out, group, false);
      }
    });
  });
  return std::move(out).take();
}

std::string resource_list(const Registry& registry, std::string_view group,
                          std::string_view version) {
  text::JsonWriter out;
  out.object([&] {
    out.field("kind", "APIResourceList");
    if (!group.empty()) out.field("apiVersion", "v1");
    out.field("groupVersion", group.empty() ? std::string(version)
                                            : std::string(group) + "/" + std::string(version));
    out.array("resources", [&] {
      for (const TypePtr& type : registry.types()) {
        const Kind& kind = *type->kind;
        if (!kind.served || kind.group != group || kind.version != version) continue;
        out.object([&] {
          out.field("name", kind.plural);
          out.field("singularName", kind.singular);
          out.field("namespaced", kind.namespaced);
          out.field("kind", kind.kind);
          write_strings(out, "verbs", verbs_of(*type));
          if (!kind.short_names.empty()) write_strings(out, "shortNames", kind.short_names);
          if (!kind.categories.empty()) write_strings(out, "categories", kind.categories);
          if (const std::string hash = storage_hash(*type); !hash.empty()) {
            out.field("storageVersionHash", hash);
          }
        });
        for (const SubresourceForm& sub : subresources_of(*type)) {
          out.object([&] {
            out.field("name", kind.plural + "/" + std::string(sub.name));
            out.field("singularName", "");
            out.field("namespaced", kind.namespaced);
            if (!sub.group.empty()) out.field("group", sub.group);
            if (!sub.group.empty()) out.field("version", sub.version);
            out.field("kind", sub.kind.empty() ? std::string_view(kind.kind) : sub.kind);
            write_strings(out, "verbs", sub.verbs);
          });
        }
      }
    });
  });
  return std::move(out).take();
}

std::string core_versions() {
  return R"({"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]})";
}

std::string version_json(const std::string& version) {
  std::string major = "1", minor = "37";
  const std::size_t first = version.find('.');
  if (version.starts_with("v") && first != std::string::npos) {
    major = version.substr(1, first - 1);
    minor = version.substr(first + 1, version.find('.', first + 1) - first - 1);
  }
  text::JsonWriter out;
  out.object([&] {
    out.field("major", major);
    out.field("minor", minor);
    out.field("gitVersion", version);
    out.field("gitCommit", "");
    out.field("gitTreeState", "clean");
    out.field("buildDate", "1970-01-01T00:00:00Z");
    out.field("goVersion", "");
    out.field("compiler", "");
    out.field("platform", "linux/amd64");
  });
  return std::move(out).take();
}

bool wants_aggregated(const Request& request) {
  const auto accept = text::find_header(request.http.headers, "Accept");
  if (!accept) return false;
  const std::string_view first = accept->substr(0, accept->find(','));
  return first.find("as=APIGroupDiscoveryList") != std::string_view::npos &&
         accept->find("v=v2;") != std::string_view::npos &&
         accept->find("application/json") != std::string_view::npos;
}

void answer_aggregated(Request& request, const Registry& registry, bool core) {
  text::HttpResponse response =
      request.head(200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  response.body = aggregated(registry, core);
  request.exchange->respond(std::move(response));
}

// A field of protobuf that is text, or a message; under 128 bytes.
std::string short_field(unsigned number, std::string_view bytes) {
  std::string out;
  out.push_back(static_cast<char>(number << 3U | 2U));
  out.push_back(static_cast<char>(bytes.size() & 0x7fU));
  return out + std::string(bytes.substr(0, 0x7f));
}

// kubectl reads version 2 as protobuf where version 3 does not know a kind. A document without
// definitions says the same of that kind, and of others that the server has to check their fields.
void answer_empty_openapi(Request& request, const std::string& version) {
  text::HttpResponse response =
      request.head(200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  response.body = short_field(1, "2.0") +
                  short_field(2, short_field(1, "Kubernetes") + short_field(2, version));
  request.exchange->respond(std::move(response));
}

}  // namespace

void Server::discover(const RequestPtr& request) {
  const std::vector<std::string>& path = request->target.path;
  const std::string_view first = path.empty() ? std::string_view{} : path[0];
  if (request->method() != "GET") {
    return request->fail(method_not_allowed({}, ""));
  }
  if (first == "api" && path.size() == 1) {
    if (wants_aggregated(*request)) return answer_aggregated(*request, registry, true);
    return request->answer(200, core_versions());
  }
  if (first == "apis" && path.size() == 1) {
    if (wants_aggregated(*request)) return answer_aggregated(*request, registry, false);
    return request->answer(200, group_list(registry));
  }
  if (first == "api" && path.size() == 2 && path[1] == "v1") {
    return request->answer(200, resource_list(registry, "", "v1"));
  }
  if (first == "apis" && path.size() == 2) {
    for (const GroupVersions& group : groups_of(registry)) {
      if (group.group != path[1]) continue;
      text::JsonWriter out;
      write_group(out, group, true);
      return request->answer(200, std::move(out).take());
    }
  }
  if (first == "apis" && path.size() == 3 && registry.serves(path[1], path[2])) {
    return request->answer(200, resource_list(registry, path[1], path[2]));
  }
  if (first == "version") return request->answer(200, version_json(options.version));
  if (first == "healthz" || first == "readyz" || first == "livez") {
    return request->answer_text(200, "ok");
  }
  if (first == "metrics" && path.size() == 1) {
    text::HttpResponse response = request->head(200, content_type(MetricFormat::kPrometheusText));
    response.body = metrics.render(storage, hub.size());
    return request->exchange->respond(std::move(response));
  }
  if (first == "openapi" && path.size() >= 2) {
    if (path[1] == "v2") {
      const auto accept = text::find_header(request->http.headers, "Accept");
      if (accept && accept->find("protobuf") != std::string_view::npos &&
          accept->find("json") == std::string_view::npos &&
          accept->find("*/*") == std::string_view::npos) {
        return answer_empty_openapi(*request, options.version);
      }
      return request->answer(200, openapi.at("v2"));
    }
    std::string of;
    for (std::size_t i = 2; i < path.size(); ++i) of += (i > 2 ? "/" : "") + path[i];
    const std::string& document = openapi.at(of);
    if (!document.empty()) return request->answer(200, document);
  }
  if (path.empty()) {
    return request->answer(200, R"({"paths":["/api","/api/v1","/apis","/healthz","/livez",)"
                                R"("/metrics","/openapi/v2","/openapi/v3","/readyz","/version"]})");
  }
  request->answer_text(404, "404 page not found\n");
}

}  // namespace berth::sim::api
