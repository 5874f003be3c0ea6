#include "edge/kubelet/device_plugin.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/utf8.h"
#include "edge/kubelet/deviceplugin.grpc.pb.h"
#include "edge/kubelet/grpc_quiet.h"
#include "edge/kubelet/loop_gate.h"
#include "edge/kubelet/socket_path.h"

namespace berth::kubelet {
namespace {

namespace wire = ::v1beta1;

constexpr int kMaxMessageBytes = 4 << 20;  // what a kubelet accepts too
constexpr std::size_t kMaxDevices = 32'768;
constexpr std::size_t kMaxIdBytes = 63;
constexpr std::size_t kMaxUnary = 64;  // under way at once; a kubelet has one or two
constexpr std::size_t kMaxStreams = 16;
constexpr int kMaxContainers = 128;       // in one request; a kubelet asks for one
constexpr std::size_t kMaxError = 1'024;  // it travels in a header
constexpr std::chrono::milliseconds kFarewell{20};

using Ids = std::vector<std::string>;
using DeviceList = std::shared_ptr<const wire::ListAndWatchResponse>;

Ids ids_of(const google::protobuf::RepeatedPtrField<std::string>& field) {
  return {field.begin(), field.end()};
}

grpc::Status status_of(const Error& error) {
  const auto code = [&] {
    switch (error.code()) {
      case Code::kInvalid:
        return grpc::StatusCode::INVALID_ARGUMENT;
      case Code::kNotFound:
        return grpc::StatusCode::NOT_FOUND;
      case Code::kConflict:
        return grpc::StatusCode::FAILED_PRECONDITION;
      case Code::kExhausted:
        return grpc::StatusCode::RESOURCE_EXHAUSTED;
      case Code::kUnavailable:
        return grpc::StatusCode::UNAVAILABLE;
      case Code::kInternal:
        break;
    }
    return grpc::StatusCode::INTERNAL;
  }();
  std::string text = error.to_string();
  if (text.size() > kMaxError) {
    std::size_t end = kMaxError;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text.resize(end);
  }
  return {code, text};
}

Status check_device(const PluginDevice& device, const std::set<std::string_view>& seen) {
  if (device.id.empty()) return invalid("a device without id");
  if (device.id.size() > kMaxIdBytes) {
    return invalid(fmt::format("device id '{}' has {} bytes; a kubelet takes at most {}", device.id,
                               device.id.size(), kMaxIdBytes));
  }
  if (!is_utf8(device.id)) return invalid("a device id is not UTF-8");
  if (seen.contains(device.id)) return invalid(fmt::format("two devices have id '{}'", device.id));
  if (seen.size() == kMaxDevices) {
    return Error(Code::kExhausted,
                 fmt::format("more than {} devices of one resource", kMaxDevices));
  }
  return {};
}

// What cannot be told to a kubelet is left out, and the first reason is kept.
DeviceList list_of(const std::vector<PluginDevice>& devices, std::optional<Error>& refused) {
  auto list = std::make_shared<wire::ListAndWatchResponse>();
  std::set<std::string_view> seen;
  for (const PluginDevice& device : devices) {
    if (Status good = check_device(device, seen); !good.ok()) {
      if (!refused) refused = std::move(good).error();
      continue;
    }
    seen.insert(device.id);
    wire::Device& told = *list->add_devices();
    told.set_id(device.id);
    told.set_health(device.healthy ? "Healthy" : "Unhealthy");
    if (device.numa >= 0) told.mutable_topology()->add_nodes()->set_id(device.numa);
  }
  return list;
}

void write_grant(const model::ContainerGrant& grant, wire::ContainerAllocateResponse& out) {
  for (const auto& [name, value] : grant.environment) (*out.mutable_envs())[name] = value;
  for (const auto& [name, value] : grant.annotations) (*out.mutable_annotations())[name] = value;
  for (const auto& mount : grant.mounts) {
    wire::Mount& told = *out.add_mounts();
    told.set_container_path(mount.container);
    told.set_host_path(mount.host);
    told.set_read_only(mount.read_only);
  }
  for (const auto& node : grant.nodes) {
    wire::DeviceSpec& told = *out.add_devices();
    told.set_container_path(node.container);
    told.set_host_path(node.host);
    told.set_permissions(node.permissions);
  }
  for (const std::string& name : grant.cdi) out.add_cdi_devices()->set_name(name);
}

// The right to finish one unary call. Whoever comes first has it: the handler's answer, the
// kubelet's cancellation, or the end of the plugin. Until then the response is there to be written.
class Answer {
 public:
  void belongs_to(grpc::ServerUnaryReactor* reactor) {
    MutexLock lock(mutex_);
    reactor_ = reactor;
  }
  template <class Fill>
  void finish(const grpc::Status& status, const Fill& fill) {
    grpc::ServerUnaryReactor* reactor = nullptr;
    {
      MutexLock lock(mutex_);
      std::swap(reactor, reactor_);
    }
    if (reactor == nullptr) return;
    fill();
    reactor->Finish(status);
  }
  void finish(const grpc::Status& status) {
    finish(status, [] {});
  }

 private:
  Mutex mutex_;
  grpc::ServerUnaryReactor* reactor_ BERTH_GUARDED_BY(mutex_) = nullptr;
};

// One open ListAndWatch. A reader that is slow misses lists, never the last one.
class Stream {
 public:
  void belongs_to(grpc::ServerWriteReactor<wire::ListAndWatchResponse>* reactor) {
    MutexLock lock(mutex_);
    reactor_ = reactor;
  }
  void send(DeviceList list) {
    MutexLock lock(mutex_);
    if (reactor_ == nullptr) return;
    if (writing_) {
      waiting_ = std::move(list);
    } else {
      writing_ = std::move(list);
      reactor_->StartWrite(writing_.get());
    }
  }
  void wrote() {
    DeviceList next;
    {
      MutexLock lock(mutex_);
      writing_.reset();
      next.swap(waiting_);
    }
    if (next) send(std::move(next));
  }
  void finish(const grpc::Status& status) {
    grpc::ServerWriteReactor<wire::ListAndWatchResponse>* reactor = nullptr;
    {
      MutexLock lock(mutex_);
      std::swap(reactor, reactor_);
    }
    if (reactor != nullptr) reactor->Finish(status);
  }

 private:
  Mutex mutex_;
  grpc::ServerWriteReactor<wire::ListAndWatchResponse>* reactor_ BERTH_GUARDED_BY(mutex_) = nullptr;
  DeviceList writing_ BERTH_GUARDED_BY(mutex_);
  DeviceList waiting_ BERTH_GUARDED_BY(mutex_);
};

// What gRPC's threads and the loop share.
class Hub {
 public:
  Hub(Loop& loop, PluginHandler handler_in, DeviceList list)
      : gate(loop), handler(std::move(handler_in)), list_(std::move(list)) {}

  LoopGate gate;
  const PluginHandler handler;  // called on the loop alone
  // The loop's alone.
  bool ended = false;
  int told_streams = 0;

  // False: the plugin ends, or too many are under way.
  bool open(const std::shared_ptr<Answer>& answer) {
    MutexLock lock(mutex_);
    if (closed_ || answers_.size() >= kMaxUnary) return false;
    return answers_.insert(answer).second;
  }
  // Sends the list as well, in order with update().
  bool open(const std::shared_ptr<Stream>& stream) {
    MutexLock lock(mutex_);
    if (closed_ || streams_.size() >= kMaxStreams) return false;
    stream->send(list_);
    return streams_.insert(stream).second;
  }
  void forget(const std::shared_ptr<Answer>& answer) {
    MutexLock lock(mutex_);
    answers_.erase(answer);
  }
  void forget(const std::shared_ptr<Stream>& stream) {
    MutexLock lock(mutex_);
    streams_.erase(stream);
  }
  int streams() {
    MutexLock lock(mutex_);
    return static_cast<int>(streams_.size());
  }
  void update(DeviceList list) {
    MutexLock lock(mutex_);
    list_ = std::move(list);
    for (const auto& stream : streams_) stream->send(list_);
  }
  void close() {
    std::set<std::shared_ptr<Answer>> answers;
    std::set<std::shared_ptr<Stream>> streams;
    {
      MutexLock lock(mutex_);
      closed_ = true;
      answers = answers_;
      streams = streams_;
    }
    const grpc::Status status(grpc::StatusCode::UNAVAILABLE, "the device plugin ends");
    for (const auto& answer : answers) answer->finish(status);
    for (const auto& stream : streams) stream->finish(status);
  }

 private:
  Mutex mutex_;
  bool closed_ BERTH_GUARDED_BY(mutex_) = false;
  DeviceList list_ BERTH_GUARDED_BY(mutex_);
  std::set<std::shared_ptr<Answer>> answers_ BERTH_GUARDED_BY(mutex_);
  std::set<std::shared_ptr<Stream>> streams_ BERTH_GUARDED_BY(mutex_);
};

void tell_streams(const std::shared_ptr<Hub>& hub) {
  hub->gate.post([hub] {
    const int open = hub->streams();
    if (hub->ended || open == hub->told_streams) return;
    hub->told_streams = open;
    if (hub->handler.streams) hub->handler.streams(open);
  });
}

grpc::Status cancelled() { return {grpc::StatusCode::CANCELLED, "the kubelet cancelled the call"}; }
grpc::Status no_room() {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          "the device plugin ends, or too many calls are under way"};
}

class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(std::shared_ptr<Hub> hub, std::shared_ptr<Answer> answer)
      : hub_(std::move(hub)), answer_(std::move(answer)) {
    answer_->belongs_to(this);
  }
  void OnCancel() override { answer_->finish(cancelled()); }
  void OnDone() override {
    hub_->forget(answer_);
    delete this;
  }

 private:
  const std::shared_ptr<Hub> hub_;
  const std::shared_ptr<Answer> answer_;
};

class WatchCall final : public grpc::ServerWriteReactor<wire::ListAndWatchResponse> {
 public:
  WatchCall(std::shared_ptr<Hub> hub, std::shared_ptr<Stream> stream)
      : hub_(std::move(hub)), stream_(std::move(stream)) {
    stream_->belongs_to(this);
  }
  void OnWriteDone(bool ok) override { ok ? stream_->wrote() : stream_->finish(cancelled()); }
  void OnCancel() override { stream_->finish(cancelled()); }
  void OnDone() override {
    hub_->forget(stream_);
    tell_streams(hub_);
    delete this;
  }

 private:
  const std::shared_ptr<Hub> hub_;
  const std::shared_ptr<Stream> stream_;
};

// Asks the handler for one container after the other.
struct AllocateRun {
  std::weak_ptr<Hub> plugin;  // the handler may keep what it has to answer
  std::shared_ptr<Answer> answer;
  wire::AllocateResponse* response;  // written by whoever finishes, and not after
  std::vector<Ids> asked;
  std::vector<model::ContainerGrant> grants;

  static void next(const std::shared_ptr<AllocateRun>& run) {
    const std::shared_ptr<Hub> hub = run->plugin.lock();
    if (!hub || hub->ended) return;
    if (run->grants.size() == run->asked.size()) {
      return run->answer->finish(grpc::Status::OK, [&] {
        for (const auto& grant : run->grants) {
          write_grant(grant, *run->response->add_container_responses());
        }
      });
    }
    hub->handler.allocate(std::move(run->asked[run->grants.size()]),
                          [run](Result<model::ContainerGrant> grant) {
                            if (!grant.ok()) {
                              return run->answer->finish(status_of(grant.error()));
                            }
                            run->grants.push_back(std::move(grant).value());
                            next(run);
                          });
  }
};

struct PreferRun {
  struct Asked {
    Ids available, must_include;
    int size = 0;
  };
  std::weak_ptr<Hub> plugin;
  std::shared_ptr<Answer> answer;
  wire::PreferredAllocationResponse* response;
  std::vector<Asked> asked;
  std::vector<Ids> chosen;

  static void next(const std::shared_ptr<PreferRun>& run) {
    const std::shared_ptr<Hub> hub = run->plugin.lock();
    if (!hub || hub->ended) return;
    if (run->chosen.size() == run->asked.size()) {
      return run->answer->finish(grpc::Status::OK, [&] {
        for (const Ids& ids : run->chosen) {
          auto& told = *run->response->add_container_responses();
          for (const std::string& id : ids) told.add_deviceids(id);
        }
      });
    }
    Asked& ask = run->asked[run->chosen.size()];
    hub->handler.prefer(std::move(ask.available), std::move(ask.must_include), ask.size,
                        [run](Result<Ids> ids) {
                          if (!ids.ok()) return run->answer->finish(status_of(ids.error()));
                          run->chosen.push_back(std::move(ids).value());
                          next(run);
                        });
  }
};

class Service final : public wire::DevicePlugin::CallbackService {
 public:
  explicit Service(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}

  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                   const wire::Empty*,
                                                   wire::DevicePluginOptions* options) override {
    options->set_pre_start_required(static_cast<bool>(hub_->handler.pre_start));
    options->set_get_preferred_allocation_available(static_cast<bool>(hub_->handler.prefer));
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<wire::ListAndWatchResponse>* ListAndWatch(grpc::CallbackServerContext*,
                                                                     const wire::Empty*) override {
    auto stream = std::make_shared<Stream>();
    auto* call = new WatchCall(hub_, stream);
    if (hub_->open(stream)) {
      tell_streams(hub_);
    } else {
      stream->finish(no_room());
    }
    return call;
  }

  grpc::ServerUnaryReactor* GetPreferredAllocation(
      grpc::CallbackServerContext*, const wire::PreferredAllocationRequest* request,
      wire::PreferredAllocationResponse* response) override {
    auto run = std::make_shared<PreferRun>(PreferRun{hub_, nullptr, response, {}, {}});
    for (const auto& ask : request->container_requests()) {
      run->asked.push_back({ids_of(ask.available_deviceids()), ids_of(ask.must_include_deviceids()),
                            ask.allocation_size()});
    }
    return answer_on_loop(request->container_requests_size(),
                          static_cast<bool>(hub_->handler.prefer),
                          [run](std::shared_ptr<Answer> answer) {
                            run->answer = std::move(answer);
                            PreferRun::next(run);
                          });
  }

  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext*,
                                     const wire::AllocateRequest* request,
                                     wire::AllocateResponse* response) override {
    auto run = std::make_shared<AllocateRun>(AllocateRun{hub_, nullptr, response, {}, {}});
    for (const auto& ask : request->container_requests()) {
      run->asked.push_back(ids_of(ask.devices_ids()));
    }
    return answer_on_loop(request->container_requests_size(),
                          static_cast<bool>(hub_->handler.allocate),
                          [run](std::shared_ptr<Answer> answer) {
                            run->answer = std::move(answer);
                            AllocateRun::next(run);
                          });
  }

  grpc::ServerUnaryReactor* PreStartContainer(grpc::CallbackServerContext*,
                                              const wire::PreStartContainerRequest* request,
                                              wire::PreStartContainerResponse*) override {
    return answer_on_loop(
        1, true,
        [hub = hub_, ids = ids_of(request->devices_ids())](std::shared_ptr<Answer> answer) {
          if (!hub->handler.pre_start) return answer->finish(grpc::Status::OK);
          hub->handler.pre_start(ids, [answer](const Status& status) {
            answer->finish(status.ok() ? grpc::Status::OK : status_of(status.error()));
          });
        });
  }

 private:
  // The request is gone when the kubelet cancels: run owns what it needs of it.
  grpc::ServerUnaryReactor* answer_on_loop(int containers, bool served,
                                           std::function<void(std::shared_ptr<Answer>)> run) {
    auto answer = std::make_shared<Answer>();
    auto* call = new UnaryCall(hub_, answer);
    if (!served) {
      answer->finish({grpc::StatusCode::UNIMPLEMENTED, "this device plugin does not offer that"});
    } else if (containers > kMaxContainers) {
      answer->finish({grpc::StatusCode::INVALID_ARGUMENT,
                      fmt::format("{} containers in one request, at most {} are allowed",
                                  containers, kMaxContainers)});
    } else if (!hub_->open(answer)) {
      answer->finish(no_room());
    } else {
      hub_->gate.post([hub = hub_, answer, run = std::move(run)] {
        if (!hub->ended) run(answer);
      });
    }
    return call;
  }

  const std::shared_ptr<Hub> hub_;
};

class GrpcDevicePlugin final : public DevicePlugin {
 public:
  GrpcDevicePlugin(std::string path, std::vector<PluginDevice> devices, std::shared_ptr<Hub> hub)
      : path_(std::move(path)),
        devices_(std::move(devices)),
        hub_(std::move(hub)),
        service_(hub_) {}

  ~GrpcDevicePlugin() override {
    if (socket_is_ours()) unlink(path_.c_str());
    hub_->ended = true;
    hub_->gate.shut();
    hub_->close();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + kFarewell);
    server_.reset();
  }

  Status listen() {
    const std::string staging = staging_path(path_);
    grpc::ServerBuilder builder;
    grpc::ResourceQuota quota("device-plugin");
    quota.Resize(16 << 20);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.SetMaxSendMessageSize(kMaxMessageBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 100);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddListeningPort(unix_target(staging), grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (!server_) return why_not_bound(staging);
    BERTH_TRY(identity_, move_in_place(path_));
    return {};
  }

  void update(std::vector<PluginDevice> devices) override {
    if (devices == devices_) return;
    devices_ = std::move(devices);
    std::optional<Error> refused;
    hub_->update(list_of(devices_, refused));
  }
  bool socket_is_ours() const override {
    const Result<SocketIdentity> found = socket_at(path_);
    return identity_ && found.ok() && *found == *identity_;
  }
  const std::string& socket_path() const override { return path_; }

 private:
  const std::string path_;
  std::vector<PluginDevice> devices_;
  const std::shared_ptr<Hub> hub_;
  Service service_;
  std::optional<SocketIdentity> identity_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<DevicePlugin>> DevicePlugin::start(Loop& loop,
                                                          const std::string& socket_path,
                                                          std::vector<PluginDevice> devices,
                                                          PluginHandler handler) {
  quiet_grpc();
  BERTH_CHECK(check_socket_path(socket_path));
  for (const std::string& path : {socket_path, staging_path(socket_path)}) {
    const Result<SocketIdentity> there = socket_at(path);
    if (!there.ok() && there.error().code() != Code::kNotFound) return there.error();
  }
  std::optional<Error> refused;
  DeviceList list = list_of(devices, refused);
  if (refused) return *refused;
  auto plugin = std::make_unique<GrpcDevicePlugin>(
      socket_path, std::move(devices),
      std::make_shared<Hub>(loop, std::move(handler), std::move(list)));
  BERTH_CHECK(plugin->listen());
  return std::unique_ptr<DevicePlugin>(std::move(plugin));
}

}  // namespace berth::kubelet
