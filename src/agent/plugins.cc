#include "agent/plugins.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "edge/host/host.h"

namespace berth::agent {

namespace {

constexpr std::int64_t kEmptyListLingers = 2'000'000'000;
constexpr const char* kKubeletSocket = "kubelet.sock";

using FileId = std::pair<std::uint64_t, std::uint64_t>;  // device and inode; 0, 0: not there

FileId file_id(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return {0, 0};
  return {found.st_dev, found.st_ino};
}

// "nvidia.com/mig-1g.10gb" -> "nvidia.com-mig-1g.10gb", short enough for a socket's name.
std::string socket_part(const std::string& resource) {
  std::string out;
  for (const char c : resource) {
    const auto letter = static_cast<unsigned char>(c);
    out += std::isalnum(letter) != 0 || c == '.' ? c : '-';
  }
  return out.substr(0, 32);
}

bool answers(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const int failed = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::close(fd);
  return failed == 0;
}

// Names that NVIDIA's plugin ("nvidia-gpu.sock") and Google's ("nvidiaGPU-1700000000.sock") give to
// their sockets. Whose devices another one serves cannot be asked: a second stream would take
// health events away from the kubelet's.
bool is_rival(std::string_view name) {
  return name.ends_with(".sock") && (name.starts_with("nvidia-") || name.starts_with("nvidiaGPU-"));
}

// The socket of another vendor's plugin that serves in the folder; empty: none.
std::string rival_in(const std::string& folder) {
  DIR* open = ::opendir(folder.c_str());
  if (open == nullptr) return {};
  std::vector<std::string> names;
  // The stream is ours alone.
  while (const dirent* entry = ::readdir(open)) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name = entry->d_name;
    if (is_rival(name)) names.emplace_back(name);
  }
  ::closedir(open);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (answers(folder + '/' + name)) return name;
  }
  return {};
}

}  // namespace

struct Plugins::State : std::enable_shared_from_this<State> {
  State(Loop& loop_in, PluginOptions options_in, PluginCalls calls_in, const Logger& log_in,
        MetricsRegistry& metrics)
      : loop(loop_in),
        options(std::move(options_in)),
        calls(std::move(calls_in)),
        log(log_in),
        registrations(metrics.counter({.name = "berth_agent_registrations_total",
                                       .help = "Registrations with the kubelet, by outcome.",
                                       .labels = {"resource", "outcome"}})) {}

  struct Plugin {
    std::string resource;
    std::vector<kubelet::PluginDevice> devices;
    std::unique_ptr<kubelet::DevicePlugin> server;
    std::uint64_t serial = 0;  // of the server: what concerns an older one is dropped
    bool registered = false;
    int streams = 0, failures = 0;
    Loop::Timer retry = 0;
    std::string problem;
  };

  Loop& loop;
  const PluginOptions options;
  const PluginCalls calls;
  const Logger& log;
  CounterFamily& registrations;
  std::map<std::string, std::unique_ptr<Plugin>> plugins;
  std::unique_ptr<host::FolderWatch> watch;
  FileId kubelet{0, 0};
  std::uint64_t serials = 0;
  Loop::Timer check_timer = 0;

  std::string kubelet_path() const { return options.folder + '/' + kKubeletSocket; }
  void open();
  void close();
  void check();
  void serve(Plugin& plugin);
  void ask(Plugin& plugin, const std::string& endpoint);
  void asked(const std::string& resource, std::uint64_t serial, const Status& status);
  void streams_changed(const std::string& resource, std::uint64_t serial, int open_now);
  void fail(Plugin& plugin, std::string problem);
  void retry_later(Plugin& plugin);
  Plugin* find(const std::string& resource, std::uint64_t serial);
  kubelet::PluginHandler handler_of(const std::string& resource, std::uint64_t serial);
  void tell() const {
    if (calls.changed) calls.changed();
  }
};

void Plugins::State::open() {
  kubelet = file_id(kubelet_path());
  watch =
      host::FolderWatch::start(loop, options.folder, [weak = weak_from_this()](const std::string&) {
        if (const auto self = weak.lock()) self->check();
      });
  check();
}

void Plugins::State::close() {
  loop.cancel(check_timer);
  watch.reset();
  for (auto& [name, plugin] : plugins) loop.cancel(plugin->retry);
  plugins.clear();
}

// Whether the kubelet is the one that knows us, and our sockets are there.
void Plugins::State::check() {
  loop.cancel(check_timer);
  check_timer = loop.after(options.check_ns, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->check();
  });
  const FileId now = file_id(kubelet_path());
  const bool another = now != kubelet;
  kubelet = now;
  const bool doubled = !options.take_over && !rival_in(options.folder).empty();
  for (auto& [name, plugin] : plugins) {
    const bool torn = plugin->server != nullptr && !plugin->server->socket_is_ours();
    const bool gives_way = doubled && plugin->server != nullptr;  // serve() says to whom
    if (!another && !torn && !gives_way) continue;
    if (!gives_way) {
      log.info(another ? "the kubelet's socket is another one" : "a plugin's socket is gone",
               {{"resource", name}});
    }
    plugin->failures = 0;
    plugin->registered = false;
    serve(*plugin);
  }
  if (another) tell();
}

kubelet::PluginHandler Plugins::State::handler_of(const std::string& resource,
                                                  std::uint64_t serial) {
  kubelet::PluginHandler out;
  const auto weak = weak_from_this();
  out.prefer = [weak, resource](const std::vector<std::string>& available,
                                const std::vector<std::string>& must_include, int size,
                                std::function<void(Result<std::vector<std::string>>)> done) {
    const auto self = weak.lock();
    if (self == nullptr) return done(Error(Code::kUnavailable, "the agent is stopping"));
    done(self->calls.prefer(resource, available, must_include, size));
  };
  out.allocate = [weak, resource](const std::vector<std::string>& ids,
                                  std::function<void(Result<model::ContainerGrant>)> done) {
    const auto self = weak.lock();
    if (self == nullptr) return done(Error(Code::kUnavailable, "the agent is stopping"));
    done(self->calls.allocate(resource, ids));
  };
  out.streams = [weak, resource, serial](int open_now) {
    if (const auto self = weak.lock()) self->streams_changed(resource, serial, open_now);
  };
  return out;
}

// Serves on a new socket and asks the kubelet to register it.
void Plugins::State::serve(Plugin& plugin) {
  loop.cancel(std::exchange(plugin.retry, 0));
  plugin.server.reset();
  plugin.registered = false;
  plugin.streams = 0;
  plugin.serial = ++serials;
  if (kubelet == FileId{0, 0}) {
    plugin.problem = "the kubelet's socket " + kubelet_path() + " is not there";
    return tell();  // check() sees it come
  }
  if (!options.take_over) {
    if (const std::string rival = rival_in(options.folder); !rival.empty()) {
      return fail(plugin, "another device plugin serves at " + rival +
                              "; remove it, or start the agent with --take-over");
    }
  }
  const std::string endpoint = "berth-" + socket_part(plugin.resource) + '-' + options.instance +
                               '-' + std::to_string(plugin.serial) + ".sock";
  Result<std::unique_ptr<kubelet::DevicePlugin>> started =
      kubelet::DevicePlugin::start(loop, options.folder + '/' + endpoint, plugin.devices,
                                   handler_of(plugin.resource, plugin.serial));
  if (!started.ok()) return fail(plugin, started.error().to_string());
  plugin.server = std::move(*started);
  ask(plugin, endpoint);
}

void Plugins::State::ask(Plugin& plugin, const std::string& endpoint) {
  kubelet::register_plugin(loop, kubelet_path(), endpoint, plugin.resource, false,
                           options.register_deadline_ns,
                           [weak = weak_from_this(), resource = plugin.resource,
                            serial = plugin.serial](const Status& status) {
                             if (const auto self = weak.lock())
                               self->asked(resource, serial, status);
                           });
}

Plugins::State::Plugin* Plugins::State::find(const std::string& resource, std::uint64_t serial) {
  const auto found = plugins.find(resource);
  if (found == plugins.end() || found->second->serial != serial) return nullptr;
  return found->second.get();
}

void Plugins::State::asked(const std::string& resource, std::uint64_t serial,
                           const Status& status) {
  Plugin* plugin = find(resource, serial);
  if (plugin == nullptr) return;
  registrations.with({resource, status.ok() ? "ok" : "failed"}).add();
  if (!status.ok()) return fail(*plugin, status.error().to_string());
  plugin->registered = true;
  plugin->problem.clear();
  log.info("registered with the kubelet",
           {{"resource", resource}, {"socket", plugin->server->socket_path()}});
  // The kubelet opens the stream by itself. One that never comes is asked for again.
  plugin->retry =
      loop.after(options.register_deadline_ns, [weak = weak_from_this(), resource, serial] {
        const auto self = weak.lock();
        Plugin* late = self == nullptr ? nullptr : self->find(resource, serial);
        if (late == nullptr || late->streams > 0) return;
        self->fail(*late, "the kubelet registered it and did not ask for its devices");
      });
  tell();
}

void Plugins::State::streams_changed(const std::string& resource, std::uint64_t serial,
                                     int open_now) {
  Plugin* plugin = find(resource, serial);
  if (plugin == nullptr) return;
  const bool lost = open_now == 0 && plugin->streams > 0;
  plugin->streams = open_now;
  if (open_now > 0) plugin->failures = 0;
  // While Register is under way its answer decides.
  if (lost && plugin->registered) return fail(*plugin, "the kubelet ended the stream of devices");
  tell();
}

void Plugins::State::fail(Plugin& plugin, std::string problem) {
  plugin.registered = false;
  plugin.problem = std::move(problem);
  log.warn("not registered with the kubelet",
           {{"resource", plugin.resource}, {"why", plugin.problem}});
  retry_later(plugin);
  tell();
}

void Plugins::State::retry_later(Plugin& plugin) {
  loop.cancel(plugin.retry);
  const int doubled = std::min(plugin.failures++, 10);
  const std::int64_t delay = std::min(options.first_retry_ns << doubled, options.last_retry_ns);
  plugin.retry = loop.after(
      delay, [weak = weak_from_this(), resource = plugin.resource, serial = plugin.serial] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        if (Plugin* again = self->find(resource, serial)) self->serve(*again);
      });
}

Plugins::Plugins(Loop& loop, PluginOptions options, PluginCalls calls, const Logger& log,
                 MetricsRegistry& metrics)
    : state_(std::make_shared<State>(loop, std::move(options), std::move(calls), log, metrics)) {
  state_->open();
}

Plugins::~Plugins() { state_->close(); }

void Plugins::set(const std::vector<Wanted>& wanted) {
  State& state = *state_;
  std::map<std::string, std::unique_ptr<State::Plugin>> old = std::move(state.plugins);
  state.plugins.clear();
  std::vector<State::Plugin*> fresh;
  for (const Wanted& one : wanted) {
    auto& place = state.plugins[one.resource];
    if (const auto known = old.find(one.resource); known != old.end()) {
      place = std::move(known->second);
      old.erase(known);
      if (place->devices != one.devices) {
        place->devices = one.devices;
        if (place->server != nullptr) place->server->update(one.devices);
      }
      continue;
    }
    place = std::make_unique<State::Plugin>();
    place->resource = one.resource;
    place->devices = one.devices;
    fresh.push_back(place.get());
  }
  // The kubelet drops a resource only minutes after its stream ended; an empty list counts at once.
  for (auto& [name, plugin] : old) {
    state.loop.cancel(plugin->retry);
    if (plugin->server == nullptr) continue;
    plugin->server->update({});
    std::shared_ptr<State::Plugin> leaving = std::move(plugin);
    state.loop.after(kEmptyListLingers, [leaving] { leaving->server.reset(); });
  }
  for (State::Plugin* plugin : fresh) state.serve(*plugin);
}

std::vector<PluginState> Plugins::states() const {
  std::vector<PluginState> out;
  for (const auto& [name, plugin] : state_->plugins) {
    PluginState one;
    one.resource = name;
    one.devices = static_cast<int>(plugin->devices.size());
    one.healthy = static_cast<int>(
        std::count_if(plugin->devices.begin(), plugin->devices.end(),
                      [](const kubelet::PluginDevice& device) { return device.healthy; }));
    one.registered = plugin->registered && plugin->streams > 0;
    one.problem = plugin->problem;
    out.push_back(std::move(one));
  }
  return out;
}

bool Plugins::kubelet_there() const { return state_->kubelet != FileId{0, 0}; }

}  // namespace berth::agent
