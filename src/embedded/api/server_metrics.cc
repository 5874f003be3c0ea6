#include "embedded/api/server_metrics.h"

namespace berth::sim::api {

namespace {

std::string verb_of(const Request& request) {
  const std::string& method = request.method();
  if (method == "GET") {
    if (request.query_true("watch")) return "WATCH";
    return request.name.empty() && request.type ? "LIST" : "GET";
  }
  if (method == "PATCH") return request.applies ? "APPLY" : "PATCH";
  if (method == "DELETE") return request.name.empty() ? "DELETECOLLECTION" : "DELETE";
  const bool known = method == "POST" || method == "PUT" || method == "CONNECT";
  return known ? method : "other";  // a stranger's word is no label
}

}  // namespace

ServerMetrics::ServerMetrics()
    : requests_(registry_.counter(
          {.name = "apiserver_request_total",
           .help = "Counter of apiserver requests broken out for each verb, dry run value, group, "
                   "version, resource, scope, component, and HTTP response code.",
           .labels = {"code", "component", "dry_run", "group", "resource", "scope", "subresource",
                      "verb", "version"},
           .max_series = 5'000})),
      objects_(registry_.gauge(
          {.name = "apiserver_storage_objects",
           .help = "Number of stored objects at the time of last check split by kind.",
           .labels = {"resource"}})),
      streams_(registry_.gauge({.name = "apiserver_longrunning_requests",
                                .help = "Gauge of all active long-running apiserver requests.",
                                .labels = {"component", "verb"}})) {}

void ServerMetrics::answered(const Request& request, int status) {
  const bool known = request.type != nullptr;
  const std::string scope = !known                  ? ""
                            : !request.name.empty() ? "resource"
                            : request.ns.empty()    ? "cluster"
                                                    : "namespace";
  // What no one serves is no label either.
  const bool of_kind = known && status != 404;
  requests_
      .with({std::to_string(status), "apiserver", request.dry_run ? "All" : "",
             known ? request.type->kind->group : "", known ? request.type->kind->plural : "", scope,
             of_kind ? request.subresource : "", verb_of(request),
             known ? request.type->kind->version : ""})
      .add();
}

std::string ServerMetrics::render(const Storage& storage, std::size_t streams) {
  for (const auto& [name, shelf] : storage.shelves()) {
    objects_.with({name}).set(static_cast<double>(shelf->committed_size));
  }
  streams_.with({"apiserver", "WATCH"}).set(static_cast<double>(streams));
  return registry_.render(MetricFormat::kPrometheusText);
}

}  // namespace berth::sim::api
