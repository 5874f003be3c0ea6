#include "app/views/gpu_loads.h"

#include <algorithm>

#include "app/page/agent_loads.h"
#include "base/run_loop.h"
#include "edge/kube/curl_transport.h"
#include "kinds/readers.h"
#include "plans/account/history.h"
#include "text/http.h"
#include "text/path.h"

namespace berth::app {

namespace {

constexpr std::size_t kMostAsked = 2000;
constexpr std::size_t kLongestMetrics = 4 * 1024 * 1024;

// Anybody can label a pod: what says how busy GPUs are runs in a namespace where tenants make none.
// NVIDIA's operator and chart are told to use these.
constexpr std::string_view kExporterNamespaces[] = {"gpu-operator", "nvidia-gpu-operator",
                                                    "dcgm-exporter", "kube-system"};

bool is_exporter(const ObjectFacts& pod, const std::string& agents) {
  const std::string_view name = text_at(*pod.value, "metadata.labels[app.kubernetes.io/name]");
  const std::string_view part = text_at(*pod.value, "metadata.labels[app.kubernetes.io/component]");
  if (name == "berth" && part == "agent") {
    return pod.ns == agents && text_at(*pod.value, "spec.serviceAccountName") == kAgentAccount;
  }
  return std::find(std::begin(kExporterNamespaces), std::end(kExporterNamespaces), pod.ns) !=
             std::end(kExporterNamespaces) &&
         (name == "dcgm-exporter" ||
          text_at(*pod.value, "metadata.labels.app") == "nvidia-dcgm-exporter");
}

// The one that it calls "metrics", else the usual one.
std::string port_of_pod(const ObjectFacts& pod) {
  const text::Value* containers = find(*pod.value, "spec.containers");
  for (std::size_t i = 0; containers != nullptr && i < containers->items().size(); ++i) {
    const text::Value* ports = containers->items()[i].find("ports");
    for (std::size_t j = 0; ports != nullptr && j < ports->items().size(); ++j) {
      const text::Value* name = ports->items()[j].find("name");
      const text::Value* number = ports->items()[j].find("containerPort");
      if (name == nullptr || name->string() != "metrics" || number == nullptr) continue;
      const std::int64_t port = number->as_int64().value_or(0);
      if (port > 0 && port <= UINT16_MAX) return std::to_string(port);
    }
  }
  return std::to_string(kMetricsPort);
}

}  // namespace

std::map<std::string, std::string> load_targets(const ClusterView& view, const people::Fleet& fleet,
                                                const std::string& agents) {
  const std::string port = std::to_string(kMetricsPort);
  std::map<std::string, std::string> pods;
  for (const ObjectFacts& pod : view.of_kind("Pod")) {
    if (!is_exporter(pod, agents) || text_at(*pod.value, "status.phase") != "Running") continue;
    const std::string_view node = text_at(*pod.value, "spec.nodeName");
    if (node.empty()) continue;
    pods.emplace(node, "/api/v1/namespaces/" + text::percent_encode(pod.ns) + "/pods/" +
                           text::percent_encode(pod.name) + ':' + port_of_pod(pod) +
                           "/proxy/metrics");
  }
  std::map<std::string, std::string> out;
  for (const people::FleetNode& node : fleet.nodes) {
    if (node.gpus.empty() || !node.ready || out.size() == kMostAsked) continue;
    const auto pod = pods.find(node.name);
    out.emplace(node.name, pod != pods.end() ? pod->second
                                             : "/api/v1/nodes/" + text::percent_encode(node.name) +
                                                   ':' + port + "/proxy/metrics");
  }
  return out;
}

void take_loads(std::string_view page, people::FleetNode& node) {
  constexpr int kMostMib = 16 * 1024 * 1024;
  const std::vector<int> busy = account::busy_of_metrics(page);
  const std::vector<int> used = account::gauge_of_metrics(page, "DCGM_FI_DEV_FB_USED", kMostMib);
  const std::vector<int> left = account::gauge_of_metrics(page, "DCGM_FI_DEV_FB_FREE", kMostMib);
  for (people::FleetGpu& gpu : node.gpus) {
    if (gpu.index < 0) continue;
    const auto index = static_cast<std::size_t>(gpu.index);
    if (index < busy.size()) gpu.busy_percent = busy[index];
    if (index >= used.size() || index >= left.size() || used[index] < 0 || left[index] < 0)
      continue;
    gpu.memory_used_mib = used[index];
    gpu.memory_mib = used[index] + left[index];
  }
}

void ask_loads(const ViewOptions& options, const ClusterView& view, Terminal& terminal,
               people::Fleet& fleet) {
  if (view.saved) return;
  const Result<kube::Config> config = kube::find_config(options, terminal.environment);
  const std::map<std::string, std::string> targets =
      load_targets(view, fleet, options.agent_namespace);
  if (!config.ok() || targets.empty()) return;
  RunLoop loop(terminal.monotonic, terminal.wall);
  kube::CurlTransport transport(loop, *config, terminal.environment,
                                {.max_answer_bytes = kLongestMetrics});
  std::size_t open = 0;
  for (people::FleetNode& node : fleet.nodes) {
    const auto target = targets.find(node.name);
    if (target == targets.end()) continue;
    text::HttpRequest request;
    request.method = "GET";
    request.target = target->second;
    request.headers = {{"Accept", "text/plain"}, {"User-Agent", "berth-cli"}};
    ++open;
    transport.send(std::move(request), {.timeout_ns = kLoadsNs},
                   [&](const text::HttpResponse& answer, const kube::TransportError* error) {
                     if (error == nullptr && answer.status == 200) take_loads(answer.body, node);
                     if (--open == 0) loop.stop();
                   });
  }
  loop.after(kLoadsNs, [&loop] { loop.stop(); });
  loop.run();
}

}  // namespace berth::app
