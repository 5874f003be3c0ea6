#include "edge/kubelet/pod_resources.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "edge/kubelet/client_calls.h"
#include "edge/kubelet/podresources.grpc.pb.h"
#include "edge/kubelet/socket_path.h"

namespace berth::kubelet {
namespace {

constexpr int kMaxListBytes = 16 << 20;

using Held = std::vector<model::HeldDevices>;

// A kubelet tells the devices of each NUMA node apart, and everything in no order.
void add_pod(const v1::PodResources& pod, Held& held) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> found;
  for (const auto& container : pod.containers()) {
    for (const auto& devices : container.devices()) {
      auto& ids = found[{container.name(), devices.resource_name()}];
      ids.insert(ids.end(), devices.device_ids().begin(), devices.device_ids().end());
    }
  }
  for (auto& [key, ids] : found) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    held.push_back({pod.namespace_(), pod.name(), key.first, key.second, std::move(ids)});
  }
}

}  // namespace

struct PodResources::State {
  State(Loop& loop_in, const std::string& path_in) : loop(loop_in), path(path_in) {
    if (check_socket_path(path).ok()) {
      calls = std::make_unique<ClientCalls>(loop, path, kMaxListBytes);
    }
  }

  // False: it was refused.
  bool reachable(const std::function<void(Result<Held>)>& done) const {
    if (calls) return true;
    loop.post(
        [done, error = check_socket_path(path).error().context("pod-resources")] { done(error); });
    return false;
  }

  Loop& loop;
  const std::string path;
  std::unique_ptr<ClientCalls> calls;  // null: the path cannot be one
};

PodResources::PodResources(Loop& loop, const std::string& socket_path)
    : state_(std::make_shared<State>(loop, socket_path)) {}

PodResources::~PodResources() = default;

void PodResources::list(std::int64_t deadline_ns, std::function<void(Result<Held>)> done) {
  if (!state_->reachable(done)) return;
  auto request = std::make_shared<v1::ListPodResourcesRequest>();
  auto response = std::make_shared<v1::ListPodResourcesResponse>();
  state_->calls->call(
      deadline_ns,
      [request, response](const std::shared_ptr<grpc::Channel>& channel,
                          grpc::ClientContext* context,
                          std::function<void(grpc::Status)> finished) {
        v1::PodResourcesLister::NewStub(channel)->async()->List(
            context, request.get(), response.get(),
            [request, response, finished = std::move(finished)](grpc::Status status) {
              finished(std::move(status));
            });
      },
      [response, path = state_->path, done = std::move(done)](const grpc::Status& status) {
        if (!status.ok()) return done(error_of(status, path).context("pod-resources List"));
        Held held;
        for (const auto& pod : response->pod_resources()) add_pod(pod, held);
        std::sort(held.begin(), held.end(), [](const auto& a, const auto& b) {
          return std::tie(a.ns, a.pod, a.container, a.resource) <
                 std::tie(b.ns, b.pod, b.container, b.resource);
        });
        done(std::move(held));
      });
}

void PodResources::get(const std::string& ns, const std::string& pod, std::int64_t deadline_ns,
                       std::function<void(Result<Held>)> done) {
  if (!state_->reachable(done)) return;
  auto request = std::make_shared<v1::GetPodResourcesRequest>();
  request->set_pod_namespace(ns);
  request->set_pod_name(pod);
  auto response = std::make_shared<v1::GetPodResourcesResponse>();
  state_->calls->call(
      deadline_ns,
      [request, response](const std::shared_ptr<grpc::Channel>& channel,
                          grpc::ClientContext* context,
                          std::function<void(grpc::Status)> finished) {
        v1::PodResourcesLister::NewStub(channel)->async()->Get(
            context, request.get(), response.get(),
            [request, response, finished = std::move(finished)](grpc::Status status) {
              finished(std::move(status));
            });
      },
      [response, path = state_->path, where = fmt::format("pod-resources Get {}/{}", ns, pod),
       done = std::move(done)](const grpc::Status& status) {
        if (status.ok()) {
          Held held;
          add_pod(response->pod_resources(), held);
          return done(std::move(held));
        }
        // Kubelets say so without a code.
        const bool gone = status.error_code() == grpc::StatusCode::UNKNOWN &&
                          status.error_message().ends_with("not found");
        done((gone ? Error(Code::kNotFound, status.error_message()) : error_of(status, path))
                 .context(where));
      });
}

}  // namespace berth::kubelet
