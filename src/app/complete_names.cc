// Names for completion, from the cluster that the words are about.
#include <algorithm>
#include <optional>

#include "app/complete.h"
#include "base/run_loop.h"
#include "kube/client.h"
#include "kube/curl_transport.h"
#include "objects/readers.h"
#include "text/path.h"

namespace berth::app {

namespace {

constexpr int kMostNames = 500;

std::optional<kube::Resource> completed_kind(std::string_view what) {
  namespace r = kube::resources;
  if (what == "pods") return r::pods();
  if (what == "jobs") return r::jobs();
  if (what == "workloads") return r::workloads();
  if (what == "podgroups") {
    return kube::Resource{"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", true};
  }
  if (what == "localqueues") return r::local_queues();
  if (what == "clusterqueues") return r::cluster_queues();
  if (what == "namespaces") return r::namespaces();
  if (what == "priorityclasses") return r::priority_classes();
  static const kube::Resource kMadeBy[] = {
      {"apps", "v1", "deployments", "Deployment", true},
      {"apps", "v1", "replicasets", "ReplicaSet", true},
      {"apps", "v1", "statefulsets", "StatefulSet", true},
      {"batch", "v1", "cronjobs", "CronJob", true},
      {"jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", true},
      {"leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", true},
      {"ray.io", "v1", "rayjobs", "RayJob", true},
      {"ray.io", "v1", "rayclusters", "RayCluster", true},
      {"ray.io", "v1", "rayservices", "RayService", true},
      {"trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", true},
      {"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", true},
      {"kubeflow.org", "v2beta1", "mpijobs", "MPIJob", true},
      {"kubeflow.org", "v1", "tfjobs", "TFJob", true},
      {"kubeflow.org", "v1", "xgboostjobs", "XGBoostJob", true},
      {"kubeflow.org", "v1", "paddlejobs", "PaddleJob", true},
      {"kubeflow.org", "v1", "jaxjobs", "JAXJob", true},
  };
  for (const kube::Resource& resource : kMadeBy) {
    if (resource.plural == what) return resource;
  }
  return std::nullopt;
}

}  // namespace

CompletionNames names_of_cluster(Terminal& terminal) {
  return [&terminal](const CompletionAsk& ask) -> std::vector<std::string> {
    const kube::ConfigNames known = kube::config_names(ask.cluster, terminal.environment);
    if (ask.what == "contexts") return known.contexts;
    if (ask.what == "clusters") return known.clusters;
    if (ask.what == "users") return known.users;
    const std::optional<kube::Resource> resource = completed_kind(ask.what);
    const Result<kube::Config> config = kube::find_config(ask.cluster, terminal.environment);
    if (!resource || !config.ok()) return {};
    RunLoop loop(terminal.monotonic, terminal.wall);
    kube::CurlTransport transport(loop, *config, terminal.environment);
    kube::Client client(transport, loop, Random(1),
                        {.user_agent = "berth-cli", .max_tries = 1, .timeout_ns = kCompletionNs});
    kube::ListOptions options;
    if (resource->namespaced) options.ns = ask.ns.empty() ? config->ns : ask.ns;
    options.limit = kMostNames;
    std::vector<std::string> out;
    client.list(*resource, options, [&](const kube::Answer& answer) {
      const text::Value* items = answer.ok() ? answer.body.root().find("items") : nullptr;
      if (items != nullptr) {
        for (const text::Value& item : items->items()) {
          const text::Value* name = find(item, "metadata.name");
          if (name != nullptr) out.emplace_back(name->string());
        }
      }
      loop.stop();
    });
    loop.after(kCompletionNs, [&loop] { loop.stop(); });  // whatever the server does
    loop.run();
    std::sort(out.begin(), out.end());
    return out;
  };
}

}  // namespace berth::app
