#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "edge/kubelet/client_calls.h"
#include "edge/kubelet/device_plugin.h"
#include "edge/kubelet/deviceplugin.grpc.pb.h"
#include "edge/kubelet/socket_path.h"

namespace berth::kubelet {
namespace {

constexpr int kMaxRegisterBytes = 64 << 10;

Status check_registration(const std::string& kubelet_socket, const std::string& endpoint,
                          const std::string& resource) {
  BERTH_CHECK(check_socket_path(kubelet_socket));
  BERTH_CHECK(check_endpoint(endpoint));
  BERTH_CHECK(
      check_socket_path(kubelet_socket.substr(0, kubelet_socket.rfind('/') + 1) + endpoint));
  const std::size_t slash = resource.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == resource.size() ||
      resource.size() > 317) {
    return invalid(
        fmt::format("'{}' is not the name of an extended resource (domain/name)", resource));
  }
  const Result<SocketIdentity> there = socket_at(kubelet_socket);
  if (there.ok()) return {};
  if (there.error().code() != Code::kNotFound) return there.error();
  return Error(Code::kUnavailable,
               fmt::format("no kubelet listens at {}: it is not running, or its device-plugins "
                           "folder is not this one",
                           kubelet_socket));
}

}  // namespace

void register_plugin(Loop& loop, const std::string& kubelet_socket, const std::string& endpoint,
                     const std::string& resource, bool pre_start, std::int64_t deadline_ns,
                     std::function<void(Status)> done) {
  if (Status good = check_registration(kubelet_socket, endpoint, resource); !good.ok()) {
    loop.post([done = std::move(done),
               error = std::move(good).error().context("register " + resource)] { done(error); });
    return;
  }
  auto request = std::make_shared<v1beta1::RegisterRequest>();
  request->set_version("v1beta1");
  request->set_endpoint(endpoint);
  request->set_resource_name(resource);
  request->mutable_options()->set_pre_start_required(pre_start);
  request->mutable_options()->set_get_preferred_allocation_available(true);
  auto response = std::make_shared<v1beta1::Empty>();

  // The timer owns it, so that it ends with the loop at the latest.
  auto calls = std::make_shared<ClientCalls>(loop, kubelet_socket, kMaxRegisterBytes);
  ClientCalls& started = *calls;
  auto answer = [done = std::move(done), kubelet_socket, resource](const grpc::Status& status) {
    if (status.ok()) return done({});
    done(error_of(status, kubelet_socket).context("register " + resource));
  };
  const Loop::Timer timer = loop.after(deadline_ns, [calls = std::move(calls), answer]() mutable {
    calls.reset();
    answer({grpc::StatusCode::DEADLINE_EXCEEDED, ""});
  });
  started.call(
      deadline_ns,
      [request, response](const std::shared_ptr<grpc::Channel>& channel,
                          grpc::ClientContext* context,
                          std::function<void(grpc::Status)> finished) {
        v1beta1::Registration::NewStub(channel)->async()->Register(
            context, request.get(), response.get(),
            [request, response, finished = std::move(finished)](grpc::Status status) {
              finished(std::move(status));
            });
      },
      [&loop, timer, answer](const grpc::Status& status) {
        loop.cancel(timer);
        answer(status);
      });
}

}  // namespace berth::kubelet
