// What kube-apiserver counts of its requests and holds, under its names, as far as this server has
// it: /metrics. On the loop's thread.
#pragma once

#include <string>

#include "base/metrics.h"
#include "embedded/api/request.h"
#include "embedded/api/storage.h"

namespace berth::sim::api {

class ServerMetrics {
 public:
  ServerMetrics();

  void answered(const Request& request, int status);
  // The text of a scrape. Cost: a pass over the shelves.
  std::string render(const Storage& storage, std::size_t streams);

 private:
  MetricsRegistry registry_;
  CounterFamily& requests_;
  GaugeFamily& objects_;
  GaugeFamily& streams_;
};

}  // namespace berth::sim::api
