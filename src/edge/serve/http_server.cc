#include "edge/serve/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "edge/serve/http_connection.h"

namespace berth::serve {
namespace {

constexpr std::uint64_t kListener = 0, kWake = 1, kFirstConnection = 2;
constexpr int kAcceptsPerTurn = 64;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::size_t kMuchHeld = 16 * 1024 * 1024;
constexpr std::size_t kFewestConnections = 4;  // however few descriptors there are

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~FileDescriptor() { reset(-1); }
  int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

Error system_error(std::string what) {
  return {Code::kUnavailable, std::move(what) + ": " + std::generic_category().message(errno)};
}

Result<FileDescriptor> listen_at(const sockaddr* at, socklen_t size, const std::string& where) {
  FileDescriptor fd(socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return system_error("cannot listen on " + where);
  const int on = 1, off = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // "::" is IPv4 as well, whatever the machine's own setting is.
  if (at->sa_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (bind(fd.get(), at, size) != 0 || listen(fd.get(), 1'024) != 0) {
    return system_error("cannot listen on " + where);
  }
  return fd;
}

// Every address of the machine: both families, or IPv4 where there is no other.
Result<FileDescriptor> listen_everywhere(std::uint16_t port) {
  const std::string where = "port " + std::to_string(port);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  const FileDescriptor probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (probe.get() >= 0 && bind(probe.get(), reinterpret_cast<sockaddr*>(&six), sizeof six) == 0) {
    six.sin6_port = htons(port);
    return listen_at(reinterpret_cast<sockaddr*>(&six), sizeof six, where);
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  return listen_at(reinterpret_cast<sockaddr*>(&four), sizeof four, where);
}

Result<FileDescriptor> listen_on(const std::string& address, std::uint16_t port) {
  if (address.empty()) return listen_everywhere(port);
  std::string where = address + ":" + std::to_string(port);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int failed = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) return invalid("cannot listen on " + where + ": " + gai_strerror(failed));
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  return listen_at(found->ai_addr, found->ai_addrlen, where);
}

std::uint16_t port_of(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  return bound.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

// "10.0.0.7", also where it came to a socket of both families; what has no address is one peer.
std::string peer_of(const sockaddr_storage& from) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address = nullptr;
  if (from.ss_family == AF_INET) {
    address = &reinterpret_cast<const sockaddr_in*>(&from)->sin_addr;
  } else if (from.ss_family == AF_INET6) {
    address = &reinterpret_cast<const sockaddr_in6*>(&from)->sin6_addr;
  }
  if (address == nullptr) return {};
  if (inet_ntop(from.ss_family, address, text.data(), text.size()) == nullptr) return {};
  const std::string_view said = text.data();
  constexpr std::string_view kMapped = "::ffff:";
  const bool four = said.starts_with(kMapped) && said.find('.') != std::string_view::npos;
  return std::string(four ? said.substr(kMapped.size()) : said);
}

// The process may have so many; a server takes its share of them and no more.
std::size_t most_connections(const HttpServerOptions& options) {
  rlimit limit{};
  std::size_t most = options.max_connections;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    most = std::min<std::size_t>(
        most, std::min<rlim_t>(limit.rlim_cur, 1 << 20) * options.descriptor_percent / 100);
  }
  return std::max(most, std::min(options.max_connections, kFewestConnections));
}

struct ServerMetrics {
  std::string server;
  CounterFamily* requests;
  std::map<int, Counter> by_status;
  std::vector<Counter> cuts;  // by Cut
  Counter turned_away;
  Gauge connections, request_bytes, answer_bytes;

  ServerMetrics(MetricsRegistry& registry, const std::string& name)
      : server(name),
        requests(&registry.counter({.name = "berth_http_requests_total",
                                    .help = "Requests answered, by server and status.",
                                    .labels = {"server", "code"}})),
        turned_away(registry
                        .counter({.name = "berth_http_connections_refused_total",
                                  .help = "Connections beyond a bound, closed at once.",
                                  .labels = {"server"}})
                        .with({name})),
        connections(registry
                        .gauge({.name = "berth_http_connections",
                                .help = "Open connections.",
                                .labels = {"server"}})
                        .with({name})),
        request_bytes(registry
                          .gauge({.name = "berth_http_request_bytes",
                                  .help = "Bytes held of requests that are not answered yet.",
                                  .labels = {"server"}})
                          .with({name})),
        answer_bytes(registry
                         .gauge({.name = "berth_http_answer_bytes",
                                 .help = "Bytes held of answers that their readers did not take.",
                                 .labels = {"server"}})
                         .with({name})) {
    CounterFamily& cut =
        registry.counter({.name = "berth_http_connections_cut_total",
                          .help = "Connections ended because they were in the way, by why.",
                          .labels = {"server", "why"}});
    for (const char* why : {"silent", "slow request", "slow reader", "crowded", "memory"}) {
      cuts.push_back(cut.with({name, why}));
    }
  }
  void count(int status) {
    auto [at, added] = by_status.try_emplace(status, Counter(nullptr));
    if (added) at->second = requests->with({server, std::to_string(status)});
    at->second.add();
  }
};

class EpollServer final : public HttpServer {
 public:
  EpollServer(HttpServerOptions options, Handler handler, MetricsRegistry* metrics)
      : max_connections_(most_connections(options)) {
    if (metrics != nullptr) metrics_.emplace(*metrics, options.name);
    host_.requests = std::make_shared<ByteBudget>(options.max_request_bytes);
    host_.answers = std::make_shared<ByteBudget>(options.max_answer_bytes);
    host_.options = std::move(options);
    host_.handler = std::move(handler);
    host_.answered = [this](int status) {
      if (metrics_) metrics_->count(status);
    };
    host_.cut = [this](Cut why) {
      if (metrics_) metrics_->cuts[static_cast<std::size_t>(why)].add();
    };
    host_.make_request_room = [this] { make_request_room(); };
    host_.make_answer_room = [this] { make_answer_room(); };
  }
  ~EpollServer() override;

  Status open();  // everything but the thread
  void go() {
    thread_ = std::thread([this] { run(); });
  }

  std::uint16_t port() const override { return port_; }
  Status set_tls(const TlsFiles& files) override BERTH_EXCLUDES(mutex_);
  void drain(std::int64_t at_most_ns) override BERTH_EXCLUDES(mutex_);

 private:
  using Connections = std::unordered_map<std::uint64_t, std::unique_ptr<HttpConnection>>;

  void run();
  int wait_ms() const;
  void turn(const epoll_event* events, int count);
  void accept_some();
  bool without_descriptors();
  void fill_spare();
  void listen_again();
  void add_connection(int fd, std::string peer);
  bool give_way(const std::string* peer);
  void make_request_room();
  void make_answer_room();
  void give_back_memory();
  HttpConnection* most_held(std::size_t (HttpConnection::*bytes)() const);
  void drop_shed();
  void drop(Connections::iterator at);
  void take_events();
  void special(ServerEvent& event);
  void after_call(std::uint64_t id, HttpConnection& connection);
  void sweep();
  void check_drained();
  void tell_drained() BERTH_EXCLUDES(mutex_);

  const std::size_t max_connections_;
  ConnectionHost host_;
  std::optional<ServerMetrics> metrics_;
  FileDescriptor listener_, epoll_, wake_;
  std::uint16_t port_ = 0;
  std::thread thread_;

  // The server's thread alone.
  Connections connections_;
  std::unordered_map<std::string, std::size_t> peers_;  // connections by remote address
  std::vector<FileDescriptor> spare_;                   // for when the process has no other left
  bool deaf_ = false;                                   // the listener waits for the next sweep
  std::size_t most_held_ = 0;                           // since memory was given back
  std::vector<std::uint64_t> shed_;                     // gave way to others, maybe closed
  std::uint64_t next_id_ = kFirstConnection;
  std::vector<std::uint64_t> touched_, again_;
  std::vector<ServerEvent> events_;
  bool stopping_ = false;
  std::int64_t next_sweep_ns_ = 0, sweep_ns_ = 0, drain_until_ns_ = 0;
  std::int64_t date_second_ = -1;

  Mutex mutex_;
  CondVar drained_;
  bool is_drained_ BERTH_GUARDED_BY(mutex_) = false;
  TlsContext tls_ BERTH_GUARDED_BY(mutex_);
};

Status EpollServer::open() {
  if (host_.options.tls) {
    Status set = set_tls(*host_.options.tls);
    if (!set.ok()) return set;
  }
  BERTH_TRY(listener_, listen_on(host_.options.address, host_.options.port));
  port_ = port_of(listener_.get());
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  fill_spare();
  if (epoll_.get() < 0 || wake_.get() < 0) return system_error("HTTP server");
  for (auto [fd, id] : {std::pair(listener_.get(), kListener), std::pair(wake_.get(), kWake)}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return system_error("HTTP server");
  }
  // An eventfd of its own for the queue: exchanges may outlive the server and its wake_.
  int fd = dup(wake_.get());
  if (fd < 0) return system_error("HTTP server");
  auto shared = std::make_shared<FileDescriptor>(fd);
  host_.queue = std::make_shared<EventQueue>(host_.options.max_backlog_bytes, [shared] {
    std::uint64_t one = 1;
    [[maybe_unused]] ssize_t done = ::write(shared->get(), &one, sizeof one);
  });
  const HttpServerOptions& most = host_.options;
  sweep_ns_ = std::min({1'000 * kMillisecond, most.head_timeout_ns / 2, most.request_timeout_ns / 2,
                        most.idle_timeout_ns / 2, most.reader_timeout_ns / 2});
  sweep_ns_ = std::max(sweep_ns_, 10 * kMillisecond);
  return {};
}

EpollServer::~EpollServer() {
  if (!thread_.joinable()) return;
  host_.queue->push({});  // kStop
  thread_.join();
}

Status EpollServer::set_tls(const TlsFiles& files) {
  Result<TlsContext> context = make_tls_context(files);
  if (!context.ok()) return std::move(context).error();
  MutexLock lock(mutex_);
  tls_ = std::move(*context);
  return {};
}

void EpollServer::drain(std::int64_t at_most_ns) {
  if (host_.queue->on_owner()) {
    BERTH_BUG("the server's own thread cannot wait for itself");
    return;
  }
  ServerEvent event;
  event.kind = ServerEvent::Kind::kDrain;
  event.at_most_ns = at_most_ns;
  host_.queue->push(std::move(event));
  MutexLock lock(mutex_);
  while (!is_drained_) drained_.wait(mutex_);
}

int EpollServer::wait_ms() const {
  if (!again_.empty()) return 0;
  if (connections_.empty() && drain_until_ns_ == 0 && !deaf_) return -1;
  std::int64_t until = next_sweep_ns_;
  if (drain_until_ns_ != 0) until = std::min(until, drain_until_ns_);
  std::int64_t left = (until - steady_ns() + kMillisecond - 1) / kMillisecond;
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

void EpollServer::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // they are for main; and SIGPIPE is for nobody
  pthread_setname_np(pthread_self(), "berth-http");
  host_.queue->set_owner();
  std::array<epoll_event, 256> events;
  while (!stopping_) {
    int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms());
    host_.now_ns = steady_ns();
    auto wall = std::chrono::system_clock::now().time_since_epoch();
    std::int64_t second = std::chrono::duration_cast<std::chrono::seconds>(wall).count();
    if (second != std::exchange(date_second_, second)) host_.date = http_date(second);
    turn(events.data(), count);
  }
  connections_.clear();  // tells exchanges that they are alone
  host_.queue->close();
  tell_drained();
}

void EpollServer::turn(const epoll_event* events, int count) {
  std::vector<std::uint64_t> again = std::exchange(again_, {});
  for (int i = 0; i < count; ++i) {
    std::uint64_t id = events[i].data.u64;
    std::uint32_t ready = events[i].events;
    if (id == kListener) {
      accept_some();
    } else if (id == kWake) {
      std::uint64_t value = 0;
      [[maybe_unused]] ssize_t done = ::read(wake_.get(), &value, sizeof value);
    } else if (auto at = connections_.find(id); at != connections_.end()) {
      at->second->on_ready((ready & (EPOLLIN | EPOLLRDHUP)) != 0, (ready & EPOLLOUT) != 0,
                           (ready & (EPOLLERR | EPOLLHUP)) != 0);
      after_call(id, *at->second);
    }
  }
  for (std::uint64_t id : again) {
    auto at = connections_.find(id);
    if (at == connections_.end()) continue;
    if (at->second->wants_turn()) at->second->on_ready(true, false, false);
    after_call(id, *at->second);
  }
  take_events();
  if (host_.now_ns >= next_sweep_ns_) sweep();
  drop_shed();
  if (host_.draining) check_drained();
  give_back_memory();
  if (!metrics_) return;
  metrics_->request_bytes.set(static_cast<double>(host_.requests->held()));
  metrics_->answer_bytes.set(static_cast<double>(host_.answers->held()));
}

// malloc keeps what a flood took. Milliseconds, so only after much of it, and when it is over.
void EpollServer::give_back_memory() {
  const std::size_t held = host_.requests->held() + host_.answers->held();
  most_held_ = std::max(most_held_, held);
  if (most_held_ < kMuchHeld || held > most_held_ / 4) return;
  most_held_ = held;
  malloc_trim(0);
}

void EpollServer::after_call(std::uint64_t id, HttpConnection& connection) {
  if (connection.closed()) {
    drop(connections_.find(id));
  } else if (connection.wants_turn()) {
    again_.push_back(id);
  }
}

// What handlers said; each connection is written to once for all of it. Flushing may make room for
// requests that wait, whose handlers say more at once: until nobody does.
void EpollServer::take_events() {
  while (host_.queue->take(events_)) {
    std::uint64_t last = kListener;
    for (ServerEvent& event : events_) {
      if (event.connection < kFirstConnection) {
        special(event);
        continue;
      }
      auto at = connections_.find(event.connection);
      if (at == connections_.end()) continue;
      at->second->apply(event);
      if (event.connection != std::exchange(last, event.connection)) touched_.push_back(last);
    }
    events_.clear();
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (std::uint64_t id : touched_) {
      auto at = connections_.find(id);
      if (at == connections_.end()) continue;
      at->second->flush();
      after_call(id, *at->second);
    }
    touched_.clear();
  }
}

void EpollServer::special(ServerEvent& event) {
  switch (event.kind) {
    case ServerEvent::Kind::kStop:
      stopping_ = true;
      return;
    case ServerEvent::Kind::kTellGone:
      return event.gone();
    case ServerEvent::Kind::kDrain:
      break;
    default:
      return;
  }
  drain_until_ns_ = host_.now_ns + std::max<std::int64_t>(event.at_most_ns, 0);
  if (host_.draining) return;
  host_.draining = true;
  listener_.reset();  // epoll forgets it
  for (auto& [id, connection] : connections_) {
    connection->drain();
    touched_.push_back(id);
  }
}

void EpollServer::check_drained() {
  bool busy = false;
  for (const auto& [id, connection] : connections_) busy = busy || connection->in_work();
  if (!busy || host_.now_ns >= drain_until_ns_) tell_drained();
}

void EpollServer::tell_drained() {
  MutexLock lock(mutex_);
  is_drained_ = true;
  drained_.notify_all();
}

void EpollServer::sweep() {
  next_sweep_ns_ = host_.now_ns + sweep_ns_;
  std::vector<std::uint64_t> over;
  for (auto& [id, connection] : connections_) {
    connection->tick();
    if (connection->closed()) over.push_back(id);
  }
  for (std::uint64_t id : over) after_call(id, *connections_.at(id));
  take_events();
  fill_spare();
  if (deaf_) listen_again();
}

void EpollServer::drop(Connections::iterator at) {
  if (at == connections_.end()) return;
  auto peer = peers_.find(at->second->peer());
  if (peer != peers_.end() && --peer->second == 0) peers_.erase(peer);
  connections_.erase(at);
  fill_spare();
  if (metrics_) metrics_->connections.set(static_cast<double>(connections_.size()));
}

// Who gave way for memory may be in use further up the stack: dropped at the end of the turn.
void EpollServer::drop_shed() {
  for (std::uint64_t id : std::exchange(shed_, {})) {
    auto at = connections_.find(id);
    if (at != connections_.end()) after_call(id, *at->second);
  }
}

// One that does nothing goes, the longest first: of this peer, or of all.
bool EpollServer::give_way(const std::string* peer) {
  using Rank = std::pair<HttpConnection::Standing, std::int64_t>;
  auto found = connections_.end();
  Rank best(HttpConnection::Standing::kAtWork, 0);
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    const HttpConnection& connection = *at->second;
    if (peer != nullptr && connection.peer() != *peer) continue;
    const Rank rank(connection.standing(), connection.since_ns());
    if (rank.first == HttpConnection::Standing::kAtWork ||
        (found != connections_.end() && rank >= best))
      continue;
    found = at;
    best = rank;
  }
  if (found == connections_.end()) return false;
  found->second->cut(Cut::kCrowded);
  drop(found);
  return true;
}

// The largest of the peer that holds the most: who asks for little is answered while others fill
// us.
HttpConnection* EpollServer::most_held(std::size_t (HttpConnection::*bytes)() const) {
  std::unordered_map<std::string_view, std::size_t> by_peer;
  for (const auto& [id, connection] : connections_) {
    by_peer[connection->peer()] += (*connection.*bytes)();
  }
  HttpConnection* found = nullptr;
  std::pair<std::size_t, std::size_t> best;
  for (const auto& [id, connection] : connections_) {
    const std::size_t own = (*connection.*bytes)();
    const std::pair rank(by_peer[connection->peer()], own);
    if (own == 0 || (found != nullptr && rank <= best)) continue;
    found = connection.get();
    best = rank;
  }
  return found;
}

void EpollServer::make_request_room() {
  while (host_.requests->over()) {
    HttpConnection* who = most_held(&HttpConnection::request_bytes);
    if (who == nullptr) return;  // requests in work alone
    who->give_up_request();
    shed_.push_back(who->id());
  }
}

void EpollServer::make_answer_room() {
  while (host_.answers->over()) {
    HttpConnection* who = most_held(&HttpConnection::answer_bytes);
    if (who == nullptr) return;
    who->cut(Cut::kMemory);
    shed_.push_back(who->id());
  }
}

// One is for turning connections away, the others for serving them.
void EpollServer::fill_spare() {
  while (spare_.size() < 1 + host_.options.spare_descriptors) {
    FileDescriptor fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return;
    spare_.push_back(std::move(fd));
  }
}

void EpollServer::listen_again() {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kListener;
  deaf_ = false;
  if (listener_.get() >= 0) epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
}

// The process has no descriptor left for one who comes: a spare one serves him, or that of another
// who idles; with the last spare he is turned away. False: nobody is there; or there is not even
// that, and the listener is not looked at before the next sweep, or we would be woken for ever.
bool EpollServer::without_descriptors() {
  pollfd listener{.fd = listener_.get(), .events = POLLIN, .revents = 0};
  if (poll(&listener, 1, 0) != 1) return false;  // accept says so before it looks
  if (spare_.size() > 1) {
    spare_.pop_back();
    return true;
  }
  if (give_way(nullptr)) return true;
  if (metrics_) metrics_->turned_away.add();
  if (!spare_.empty()) {
    spare_.pop_back();
    FileDescriptor refused(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const bool somebody = refused.get() >= 0;
    refused.reset();
    fill_spare();
    if (somebody) return true;
  }
  epoll_event event{};
  event.data.u64 = kListener;
  deaf_ = epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event) == 0;
  return false;
}

void EpollServer::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn && listener_.get() >= 0; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    int fd = accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &size,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      add_connection(fd, peer_of(from));
    } else if ((errno != EMFILE && errno != ENFILE) || !without_descriptors()) {
      return;
    }
  }
}

void EpollServer::add_connection(int fd, std::string peer) {
  auto at = peers_.find(peer);
  bool room =
      at == peers_.end() || at->second < host_.options.max_connections_per_peer || give_way(&peer);
  room = room && (connections_.size() < max_connections_ || give_way(nullptr));
  if (!room) {
    ::close(fd);
    if (metrics_) metrics_->turned_away.add();
    return;
  }
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  int idle_s = 60;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  TlsContext context;
  {
    MutexLock lock(mutex_);
    context = tls_;
  }
  std::uint64_t id = next_id_++;
  auto connection =
      std::make_unique<HttpConnection>(host_, id, fd, std::move(context), std::move(peer));
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return;
  ++peers_[connection->peer()];
  connections_.emplace(id, std::move(connection));
  if (metrics_) metrics_->connections.set(static_cast<double>(connections_.size()));
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options, Handler handler,
                                                      MetricsRegistry* metrics) {
  auto server = std::make_unique<EpollServer>(std::move(options), std::move(handler), metrics);
  Status opened = server->open();
  if (!opened.ok()) return std::move(opened).error();
  server->go();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace berth::serve
