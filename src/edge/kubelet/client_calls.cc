#include "edge/kubelet/client_calls.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/mutex.h"
#include "edge/kubelet/grpc_quiet.h"
#include "edge/kubelet/loop_gate.h"
#include "edge/kubelet/socket_path.h"

namespace berth::kubelet {
namespace {

constexpr std::size_t kMaxCalls = 16;
constexpr std::int64_t kMaxDeadline = 600'000'000'000;

std::shared_ptr<grpc::Channel> channel_to(const std::string& path, int max_message_bytes) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(max_message_bytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);  // how long one attempt may take
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return grpc::CreateCustomChannel(unix_target(path), grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace

struct ClientCalls::Open {
  explicit Open(Loop& loop) : gate(loop) {}

  LoopGate gate;
  Mutex mutex;
  CondVar none;
  // A context is dropped under the lock, so that the channel outlives it.
  std::map<std::uint64_t, std::unique_ptr<grpc::ClientContext>> contexts BERTH_GUARDED_BY(mutex);
};

ClientCalls::ClientCalls(Loop& loop, const std::string& socket_path, int max_message_bytes)
    : open_(std::make_shared<Open>(loop)), waiting_(std::make_shared<Waiting>()) {
  quiet_grpc();
  channel_ = channel_to(socket_path, max_message_bytes);
}

ClientCalls::~ClientCalls() {
  open_->gate.shut();
  {
    MutexLock lock(open_->mutex);
    for (auto& [id, context] : open_->contexts) context->TryCancel();
    while (!open_->contexts.empty()) open_->none.wait(open_->mutex);
  }
  waiting_->clear();
}

void ClientCalls::call(std::int64_t deadline_ns, const Begin& begin, Told told) {
  const std::uint64_t id = ++last_;
  grpc::ClientContext* context = nullptr;
  {
    MutexLock lock(open_->mutex);
    if (open_->contexts.size() < kMaxCalls) {
      context = (open_->contexts[id] = std::make_unique<grpc::ClientContext>()).get();
    }
  }
  waiting_->emplace(id, std::move(told));
  auto tell = [open = open_.get(), weak = std::weak_ptr<Waiting>(waiting_),
               id](grpc::Status status) {
    open->gate.post([weak, id, status = std::move(status)] {
      const std::shared_ptr<Waiting> waiting = weak.lock();
      if (!waiting) return;
      const auto found = waiting->extract(id);
      if (!found.empty()) found.mapped()(status);
    });
  };
  if (context == nullptr) {
    return tell({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls are under way"});
  }
  context->set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::nanoseconds(std::clamp<std::int64_t>(deadline_ns, 0, kMaxDeadline)));
  begin(channel_, context, [open = open_, tell, id](grpc::Status status) {
    tell(std::move(status));
    MutexLock lock(open->mutex);
    open->contexts.erase(id);
    if (open->contexts.empty()) open->none.notify_all();
  });
}

Error error_of(const grpc::Status& status, const std::string& socket_path) {
  const std::string& text = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {Code::kUnavailable,
              fmt::format("the kubelet at {} did not answer in time; it may still be starting",
                          socket_path)};
    case grpc::StatusCode::UNAVAILABLE:
      return {Code::kUnavailable,
              fmt::format("cannot reach the kubelet at {}: {}", socket_path, text)};
    case grpc::StatusCode::UNIMPLEMENTED:
      return invalid(
          fmt::format("what listens at {} does not offer this call: {}", socket_path, text));
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {Code::kExhausted,
              fmt::format("the kubelet at {} has enough for now: {}", socket_path, text)};
    case grpc::StatusCode::NOT_FOUND:
      return {Code::kNotFound, text};
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
      return {Code::kUnavailable,
              fmt::format("the kubelet at {} broke off: {}", socket_path, text)};
    default:  // a kubelet's own errors have no code
      return invalid(fmt::format("the kubelet at {} says: {}", socket_path, text));
  }
}

}  // namespace berth::kubelet
