#include "edge/kubelet/fake_kubelet_for_test.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "edge/kubelet/deviceplugin.grpc.pb.h"
#include "edge/kubelet/grpc_quiet.h"
#include "edge/kubelet/podresources.grpc.pb.h"
#include "edge/kubelet/socket_path.h"

namespace berth::kubelet {
namespace {

namespace device = ::v1beta1;

constexpr std::chrono::seconds kPatience{120};

grpc::Status says(const std::string& text) { return {grpc::StatusCode::UNKNOWN, text}; }

Error answered(const grpc::Status& status) {
  return {
      status.error_code() == grpc::StatusCode::UNAVAILABLE ? Code::kUnavailable : Code::kInvalid,
      status.error_message()};
}

model::ContainerGrant grant_of(const device::ContainerAllocateResponse& answer) {
  model::ContainerGrant grant;
  grant.environment.insert(answer.envs().begin(), answer.envs().end());
  grant.annotations.insert(answer.annotations().begin(), answer.annotations().end());
  for (const auto& mount : answer.mounts()) {
    grant.mounts.push_back({mount.container_path(), mount.host_path(), mount.read_only()});
  }
  for (const auto& node : answer.devices()) {
    grant.nodes.push_back({node.container_path(), node.host_path(), node.permissions()});
  }
  for (const auto& cdi : answer.cdi_devices()) grant.cdi.push_back(cdi.name());
  return grant;
}

// One plugin that registered. Its thread reads the stream.
struct FakeEndpoint {
  std::string resource, name;
  std::shared_ptr<grpc::Channel> channel;
  std::shared_ptr<device::DevicePlugin::Stub> stub;
  grpc::ClientContext watch;
  std::thread reader;
  // A second registration of the same socket failed: the kubelet forgot that it has to look after
  // this one, and its end goes unnoticed.
  bool orphan = false;
};

struct FakeResource {
  std::map<std::string, FakeEndpoint*> endpoints;  // by name
  FakeEndpoint* primary = nullptr;
  std::map<std::string, PluginDevice> devices;
  bool listed = false;
  std::optional<std::int64_t> stopped_at;
};

}  // namespace

struct FakeKubelet::State final : device::Registration::Service, v1::PodResourcesLister::Service {
  State(const std::string& folder_in, FakeKubeletOptions options_in)
      : folder(folder_in),
        options(options_in),
        socket(folder + "/kubelet.sock"),
        pod_socket(folder + "/pod-resources.sock") {}

  const std::string folder;
  const FakeKubeletOptions options;
  const std::string socket, pod_socket;

  mutable Mutex mutex;
  mutable CondVar changed;
  bool running BERTH_GUARDED_BY(mutex) = false;
  bool hang BERTH_GUARDED_BY(mutex) = false;
  bool paused BERTH_GUARDED_BY(mutex) = false;
  int refuse_next BERTH_GUARDED_BY(mutex) = 0;
  std::string refusal BERTH_GUARDED_BY(mutex);
  std::int64_t passed BERTH_GUARDED_BY(mutex) = 0;
  std::vector<FakeKubelet::Registration> registrations BERTH_GUARDED_BY(mutex);
  std::vector<FakeKubelet::List> lists BERTH_GUARDED_BY(mutex);
  std::map<std::string, FakeResource> resources BERTH_GUARDED_BY(mutex);
  std::vector<model::HeldDevices> held BERTH_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<FakeEndpoint>> endpoints BERTH_GUARDED_BY(mutex);
  std::unique_ptr<grpc::Server> server, pod_server;  // start() and stop() alone

  std::int64_t time() const BERTH_REQUIRES(mutex) { return now_ns() + passed; }

  grpc::Status Register(grpc::ServerContext*, const device::RegisterRequest* request,
                        device::Empty*) override;
  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* response) override;
  grpc::Status Get(grpc::ServerContext*, const v1::GetPodResourcesRequest* request,
                   v1::GetPodResourcesResponse* response) override;

  std::string dial_back(FakeEndpoint& endpoint, FakeKubelet::Registration& told);
  std::string connect(std::unique_ptr<FakeEndpoint> endpoint);
  void read(FakeEndpoint& endpoint);
  void disconnected(FakeEndpoint& endpoint);
  bool limited();
  void add_pod(const std::string& ns, const std::string& name, v1::PodResources& out) const
      BERTH_REQUIRES(mutex);
  std::shared_ptr<device::DevicePlugin::Stub> plugin(const std::string& resource);
};

std::int64_t FakeKubelet::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// ---- registration ----

grpc::Status FakeKubelet::State::Register(grpc::ServerContext*,
                                          const device::RegisterRequest* request, device::Empty*) {
  FakeKubelet::Registration told{request->version(),
                                 request->endpoint(),
                                 request->resource_name(),
                                 false,
                                 false,
                                 {},
                                 now_ns()};
  {
    MutexLock lock(mutex);
    while (hang && running) changed.wait(mutex);
    told.error = refusal;
  }
  if (told.error.empty() && told.version != "v1beta1") {
    told.error = fmt::format("unsupported version {}", told.version);
  }
  if (told.error.empty()) {
    auto endpoint = std::make_unique<FakeEndpoint>();
    endpoint->resource = told.resource;
    endpoint->name = told.endpoint;
    told.error = dial_back(*endpoint, told);
    if (told.error.empty()) told.error = connect(std::move(endpoint));
  }
  MutexLock lock(mutex);
  registrations.push_back(told);
  changed.notify_all();
  return told.error.empty() ? grpc::Status::OK : says(told.error);
}

std::string FakeKubelet::State::dial_back(FakeEndpoint& endpoint, FakeKubelet::Registration& told) {
  const std::string path = folder + "/" + endpoint.name;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, options.path_as_authority ? path : "localhost");
  endpoint.channel =
      grpc::CreateCustomChannel(unix_target(path), grpc::InsecureChannelCredentials(), arguments);
  endpoint.stub = device::DevicePlugin::NewStub(endpoint.channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  device::DevicePluginOptions plugin_options;
  const grpc::Status status = endpoint.stub->GetDevicePluginOptions(&context, {}, &plugin_options);
  if (!status.ok()) return "failed to get device plugin options: " + status.error_message();
  told.pre_start = plugin_options.pre_start_required();
  told.preferred = plugin_options.get_preferred_allocation_available();
  return {};
}

std::string FakeKubelet::State::connect(std::unique_ptr<FakeEndpoint> endpoint) {
  MutexLock lock(mutex);
  if (!running) return "the kubelet stops";
  FakeResource& resource = resources[endpoint->resource];
  if (options.several_endpoints) {
    if (const auto found = resource.endpoints.find(endpoint->name);
        found != resource.endpoints.end()) {
      found->second->orphan = true;
      return "device plugin already connected: " + folder + "/" + endpoint->name;
    }
  } else {
    resource.endpoints.clear();
  }
  resource.endpoints[endpoint->name] = endpoint.get();
  resource.primary = endpoint.get();
  resource.stopped_at.reset();
  FakeEndpoint& kept = *endpoints.emplace_back(std::move(endpoint));
  kept.reader = std::thread([this, &kept] { read(kept); });
  return {};
}

void FakeKubelet::State::read(FakeEndpoint& endpoint) {
  const auto stream = endpoint.stub->ListAndWatch(&endpoint.watch, {});
  device::ListAndWatchResponse message;
  while (true) {
    {
      MutexLock lock(mutex);
      while (paused && running) changed.wait(mutex);
    }
    if (!stream->Read(&message)) break;
    FakeKubelet::List list{endpoint.resource, endpoint.name, {}, now_ns()};
    for (const auto& told : message.devices()) {
      list.devices.push_back({told.id(), told.health() == "Healthy",
                              told.topology().nodes_size() > 0
                                  ? static_cast<int>(told.topology().nodes(0).id())
                                  : -1});
    }
    MutexLock lock(mutex);
    FakeResource& resource = resources[endpoint.resource];
    resource.listed = true;
    resource.devices.clear();
    for (const PluginDevice& told : list.devices) resource.devices[told.id] = told;
    lists.push_back(std::move(list));
    changed.notify_all();
  }
  endpoint.watch.TryCancel();
  static_cast<void>(stream->Finish());
  disconnected(endpoint);
}

void FakeKubelet::State::disconnected(FakeEndpoint& endpoint) {
  MutexLock lock(mutex);
  FakeResource& resource = resources[endpoint.resource];
  const auto found = resource.endpoints.find(endpoint.name);
  if (found == resource.endpoints.end() || found->second != &endpoint || endpoint.orphan) return;
  resource.endpoints.erase(found);
  if (resource.endpoints.empty()) {
    resource.stopped_at = time();
    resource.listed = true;
    for (auto& [id, told] : resource.devices) told.healthy = false;
  } else if (resource.primary == &endpoint) {
    resource.primary = resource.endpoints.begin()->second;
  }
  changed.notify_all();
}

// ---- pod-resources ----

bool FakeKubelet::State::limited() {
  MutexLock lock(mutex);
  return refuse_next > 0 && refuse_next-- > 0;
}

// As a kubelet writes it: an entry for each device, in no order.
void FakeKubelet::State::add_pod(const std::string& ns, const std::string& name,
                                 v1::PodResources& out) const {
  out.set_namespace_(ns);
  out.set_name(name);
  std::map<std::string, v1::ContainerResources*> containers;
  for (const model::HeldDevices& entry : held) {
    if (entry.ns != ns || entry.pod != name) continue;
    v1::ContainerResources*& container = containers[entry.container];
    if (container == nullptr) {
      container = out.add_containers();
      container->set_name(entry.container);
    }
    for (auto id = entry.ids.rbegin(); id != entry.ids.rend(); ++id) {
      v1::ContainerDevices& devices = *container->add_devices();
      devices.set_resource_name(entry.resource);
      devices.add_device_ids(*id);
    }
  }
}

grpc::Status FakeKubelet::State::List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                                      v1::ListPodResourcesResponse* response) {
  if (limited()) return {grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit"};
  MutexLock lock(mutex);
  std::set<std::pair<std::string, std::string>> pods;
  for (const model::HeldDevices& entry : held) pods.insert({entry.ns, entry.pod});
  for (auto pod = pods.rbegin(); pod != pods.rend(); ++pod) {
    add_pod(pod->first, pod->second, *response->add_pod_resources());
  }
  return grpc::Status::OK;
}

grpc::Status FakeKubelet::State::Get(grpc::ServerContext*,
                                     const v1::GetPodResourcesRequest* request,
                                     v1::GetPodResourcesResponse* response) {
  if (limited()) return {grpc::StatusCode::RESOURCE_EXHAUSTED, "rejected by rate limit"};
  MutexLock lock(mutex);
  const std::string& ns = request->pod_namespace();
  const std::string& name = request->pod_name();
  if (std::none_of(held.begin(), held.end(),
                   [&](const auto& entry) { return entry.ns == ns && entry.pod == name; })) {
    return says(fmt::format("pod {} in namespace {} not found", name, ns));
  }
  add_pod(ns, name, *response->mutable_pod_resources());
  return grpc::Status::OK;
}

// ---- the kubelet ----

FakeKubelet::FakeKubelet(const std::string& folder, FakeKubeletOptions options)
    : state_(std::make_unique<State>(folder, options)) {
  quiet_grpc();
  start();
}

FakeKubelet::~FakeKubelet() { stop(); }

const std::string& FakeKubelet::socket() const { return state_->socket; }
const std::string& FakeKubelet::pod_resources_socket() const { return state_->pod_socket; }

void FakeKubelet::start() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(state_->folder, ignored)) {
    if (entry.is_socket(ignored)) std::filesystem::remove(entry.path(), ignored);
  }
  {
    MutexLock lock(state_->mutex);
    state_->running = true;
    for (auto& [name, resource] : state_->resources) resource = {.listed = true};
  }
  const auto serve = [](const std::string& path, grpc::Service* service) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(unix_target(path), grpc::InsecureServerCredentials());
    builder.RegisterService(service);
    return builder.BuildAndStart();
  };
  state_->pod_server =
      serve(state_->pod_socket, static_cast<v1::PodResourcesLister::Service*>(state_.get()));
  state_->server = serve(state_->socket, static_cast<device::Registration::Service*>(state_.get()));
}

void FakeKubelet::stop() {
  std::vector<std::unique_ptr<FakeEndpoint>> endpoints;
  {
    MutexLock lock(state_->mutex);
    state_->running = false;
    state_->changed.notify_all();
  }
  const auto now = std::chrono::system_clock::now();
  if (state_->server) state_->server->Shutdown(now);
  if (state_->pod_server) state_->pod_server->Shutdown(now);
  state_->server.reset();
  state_->pod_server.reset();
  {
    MutexLock lock(state_->mutex);
    endpoints.swap(state_->endpoints);
  }
  for (const auto& endpoint : endpoints) {
    endpoint->watch.TryCancel();
    endpoint->reader.join();
  }
  MutexLock lock(state_->mutex);
  for (auto& [name, resource] : state_->resources) {
    resource.endpoints.clear();
    resource.primary = nullptr;
  }
  state_->changed.notify_all();
}

std::vector<FakeKubelet::Registration> FakeKubelet::registrations() const {
  MutexLock lock(state_->mutex);
  return state_->registrations;
}

std::vector<FakeKubelet::List> FakeKubelet::lists() const {
  MutexLock lock(state_->mutex);
  return state_->lists;
}

FakeKubelet::LastList FakeKubelet::last_list() const {
  MutexLock lock(state_->mutex);
  return {state_->lists.size(), state_->lists.empty() ? 0 : state_->lists.back().at_ns};
}

FakeKubelet::Counts FakeKubelet::counts(const std::string& resource) const {
  MutexLock lock(state_->mutex);
  const auto found = state_->resources.find(resource);
  if (found == state_->resources.end() || !found->second.listed) return {};
  const FakeResource& known = found->second;
  if (known.stopped_at && state_->time() - *known.stopped_at >= state_->options.grace_ns) return {};
  const auto healthy = std::count_if(known.devices.begin(), known.devices.end(),
                                     [](const auto& entry) { return entry.second.healthy; });
  return {static_cast<int>(known.devices.size()), static_cast<int>(healthy)};
}

int FakeKubelet::endpoints(const std::string& resource) const {
  MutexLock lock(state_->mutex);
  const auto found = state_->resources.find(resource);
  return found == state_->resources.end() ? 0 : static_cast<int>(found->second.endpoints.size());
}

bool FakeKubelet::wait_until(const std::function<bool()>& holds) const {
  const std::int64_t end =
      now_ns() + std::chrono::duration_cast<std::chrono::nanoseconds>(kPatience).count();
  while (!holds()) {
    if (now_ns() > end) return false;
    MutexLock lock(state_->mutex);
    state_->changed.wait_for(state_->mutex, 5'000'000);
  }
  return true;
}

// ---- what it asks ----

std::shared_ptr<device::DevicePlugin::Stub> FakeKubelet::State::plugin(
    const std::string& resource) {
  MutexLock lock(mutex);
  const auto found = resources.find(resource);
  if (found == resources.end() || found->second.primary == nullptr) return nullptr;
  return found->second.primary->stub;
}

Result<std::vector<std::string>> FakeKubelet::prefer(const std::string& resource,
                                                     const std::vector<std::string>& available,
                                                     const std::vector<std::string>& must_include,
                                                     int size) {
  const auto plugin = state_->plugin(resource);
  if (plugin == nullptr) return invalid("cannot allocate unregistered device " + resource);
  device::PreferredAllocationRequest request;
  auto& ask = *request.add_container_requests();
  for (const std::string& id : available) ask.add_available_deviceids(id);
  for (const std::string& id : must_include) ask.add_must_include_deviceids(id);
  ask.set_allocation_size(size);
  grpc::ClientContext context;
  device::PreferredAllocationResponse response;
  const grpc::Status status = plugin->GetPreferredAllocation(&context, request, &response);
  if (!status.ok()) return answered(status);
  if (response.container_responses_size() == 0) return std::vector<std::string>{};
  const auto& ids = response.container_responses(0).deviceids();
  return std::vector<std::string>(ids.begin(), ids.end());
}

Result<std::vector<model::ContainerGrant>> FakeKubelet::allocate(
    const std::string& resource, const std::vector<std::vector<std::string>>& containers) {
  const auto plugin = state_->plugin(resource);
  if (plugin == nullptr) return invalid("cannot allocate unregistered device " + resource);
  device::AllocateRequest request;
  for (const auto& ids : containers) {
    auto& ask = *request.add_container_requests();
    for (const std::string& id : ids) ask.add_devices_ids(id);
  }
  grpc::ClientContext context;
  device::AllocateResponse response;
  const grpc::Status status = plugin->Allocate(&context, request, &response);
  if (!status.ok()) return answered(status);
  std::vector<model::ContainerGrant> grants;
  for (const auto& answer : response.container_responses()) grants.push_back(grant_of(answer));
  return grants;
}

Status FakeKubelet::pre_start(const std::string& resource, const std::vector<std::string>& ids) {
  const auto plugin = state_->plugin(resource);
  if (plugin == nullptr) return invalid("cannot allocate unregistered device " + resource);
  device::PreStartContainerRequest request;
  for (const std::string& id : ids) request.add_devices_ids(id);
  grpc::ClientContext context;
  device::PreStartContainerResponse response;
  const grpc::Status status = plugin->PreStartContainer(&context, request, &response);
  if (!status.ok()) return answered(status);
  return {};
}

Result<model::ContainerGrant> FakeKubelet::admit(const std::string& ns, const std::string& pod,
                                                 const std::string& container,
                                                 const std::string& resource, int count) {
  std::vector<std::string> available;
  {
    MutexLock lock(state_->mutex);
    std::set<std::string> used;
    for (const auto& entry : state_->held) {
      if (entry.resource == resource) used.insert(entry.ids.begin(), entry.ids.end());
    }
    for (const auto& [id, told] : state_->resources[resource].devices) {
      if (told.healthy && !used.contains(id)) available.push_back(id);
    }
  }
  const auto wanted = static_cast<std::size_t>(std::max(count, 0));
  if (available.size() < wanted) {
    return invalid(
        fmt::format("requested number of devices unavailable for {}. Requested: {}, Available: {}",
                    resource, wanted, available.size()));
  }
  std::vector<std::string> chosen = available;
  if (wanted < available.size()) {
    BERTH_TRY(const auto preferred, prefer(resource, available, {}, count));
    chosen.clear();
    for (const std::vector<std::string>* source : {&preferred, &std::as_const(available)}) {
      for (const std::string& id : *source) {
        const bool offered = std::binary_search(available.begin(), available.end(), id);
        const bool taken = std::find(chosen.begin(), chosen.end(), id) != chosen.end();
        if (chosen.size() < wanted && offered && !taken) chosen.push_back(id);
      }
    }
  }
  BERTH_TRY(auto grants, allocate(resource, {chosen}));
  if (grants.size() != 1) return invalid("no containers in allocate response");
  hold({ns, pod, container, resource, chosen});
  return std::move(grants.front());
}

void FakeKubelet::hold(model::HeldDevices held) {
  MutexLock lock(state_->mutex);
  state_->held.push_back(std::move(held));
}

void FakeKubelet::release(const std::string& ns, const std::string& pod) {
  MutexLock lock(state_->mutex);
  std::erase_if(state_->held,
                [&](const auto& entry) { return entry.ns == ns && entry.pod == pod; });
}

// ---- faults ----

void FakeKubelet::refuse_registrations(const std::string& error) {
  MutexLock lock(state_->mutex);
  state_->refusal = error;
}

void FakeKubelet::hang_registrations(bool hang) {
  MutexLock lock(state_->mutex);
  state_->hang = hang;
  state_->changed.notify_all();
}

void FakeKubelet::refuse_calls(int count) {
  MutexLock lock(state_->mutex);
  state_->refuse_next = count;
}

void FakeKubelet::pause_reading(bool pause) {
  MutexLock lock(state_->mutex);
  state_->paused = pause;
  state_->changed.notify_all();
}

void FakeKubelet::close_streams() {
  MutexLock lock(state_->mutex);
  for (const auto& endpoint : state_->endpoints) endpoint->watch.TryCancel();
}

void FakeKubelet::pass(std::int64_t ns) {
  MutexLock lock(state_->mutex);
  state_->passed += ns;
}

}  // namespace berth::kubelet
