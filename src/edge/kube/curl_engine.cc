#include "edge/kube/curl_engine.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "edge/kube/child_process.h"
#include "text/escape.h"

namespace berth::kube {

// "https://h:6443/x" in parts; port is never empty.
struct ServerUrl {
  bool tls = false;
  std::string host, port, path;
};

namespace {

constexpr long kKeepIdleSeconds = 30;
constexpr long kKeepIntervalSeconds = 15;
constexpr int kUserTimeoutMs = 45'000;
constexpr std::size_t kMaxHeaderBytes = 256 * 1024;
constexpr std::size_t kSpareHandles = 64;
constexpr int kPollMs = 1'000;
constexpr int kPluginPollMs = 50;

void curl_ready_once() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_ALL);  // thread-safe by the language
  (void)done;
}

ServerUrl split_url(const std::string& server) {
  ServerUrl url;
  url.tls = server.starts_with("https://");
  std::string rest = server.substr(server.find("://") + 3);
  std::size_t slash = std::min(rest.find('/'), rest.size());
  url.path = rest.substr(slash);
  rest.resize(slash);
  std::size_t bracket = rest.rfind(']');
  std::size_t colon = rest.rfind(':');
  if (colon == std::string::npos || (bracket != std::string::npos && colon < bracket)) {
    url.host = rest;
    url.port = url.tls ? "443" : "80";
  } else {
    url.host = rest.substr(0, colon);
    url.port = rest.substr(colon + 1);
  }
  return url;
}

int tune_socket(void*, curl_socket_t fd, curlsocktype) {
  const int ms = kUserTimeoutMs;
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
  return CURL_SOCKOPT_OK;
}

int refuse_rewind(void*, curl_off_t, int) { return CURL_SEEKFUNC_FAIL; }

}  // namespace

struct CurlEngine::Impl {
  struct Transfer {
    TransferOrder order;
    Impl* engine = nullptr;
    CURL* easy = nullptr;
    curl_slist* lines = nullptr;   // headers
    curl_slist* routes = nullptr;  // where the verified name is not the host
    std::int64_t ordered = 0;      // ticks
    std::int64_t launched = 0;     // ticks
    std::size_t body_sent = 0;
    std::size_t header_bytes = 0;
    text::HttpResponse response;  // of a stream the head alone, but for a 401
    bool head_done = false;       // of the final answer
    bool head_told = false;       // streams
    bool renewed = false;         // credentials, after a 401
    bool too_large = false;
    char problem[CURL_ERROR_SIZE] = {};

    bool is_stream() const { return order.flow != nullptr; }
    bool takes_turn() const { return !is_stream() && !order.urgent; }
  };
  struct Command {
    enum Kind : std::uint8_t { kStart, kResume, kCancel } kind;
    Call id = 0;
    TransferOrder order = {};
  };

  Impl(const MonotonicClock& monotonic_in, const WallClock& wall_in, Config config,
       Environment environment_in, CurlOptions options_in, EngineReports reports_in)
      : monotonic(monotonic_in),
        wall(wall_in),
        options(std::move(options_in)),
        environment(environment_in),
        reports(std::move(reports_in)),
        url(split_url(config.server)),
        credentials(std::move(config), std::move(environment_in)) {}

  // ---- any thread ----
  void push(Command command) BERTH_EXCLUDES(mutex);

  // ---- the engine's thread ----
  void run();
  void take_commands(std::vector<Command> taken);
  void launch(std::unique_ptr<Transfer> transfer);
  void next_in_line();
  void drop_overdue();
  bool overdue(const Transfer& t) const {
    return t.takes_turn() && monotonic.ticks_ns() - t.ordered >= t.order.timeout_ns;
  }
  void set_up(Transfer& t, const Identity& identity);
  void set_version_and_time(Transfer& t);
  void set_method(Transfer& t);
  void set_tls(CURL* easy, const Identity& identity);
  void set_proxy(CURL* easy);
  void set_headers(Transfer& t, const Identity& identity);
  void finish_ended();
  void finished(std::unique_ptr<Transfer> transfer, CURLcode code);
  TransportError failure_of(const Transfer& t, CURLcode code);
  void tell_head(Transfer& t);
  std::unique_ptr<Transfer> detach(Call id);
  void release(Transfer& t);
  void start_plugin();
  void step_plugin();
  void plugin_over(const Status& done);
  void fail(Transfer& t, TransportError error) { reports.failed(t.order.id, std::move(error)); }
  Credentials::Now now() const { return {monotonic.ticks_ns(), wall.now_ns()}; }

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* to);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* to);
  static std::size_t on_upload(char* data, std::size_t size, std::size_t count, void* to);

  const MonotonicClock& monotonic;
  const WallClock& wall;
  const CurlOptions options;
  const Environment environment;
  const EngineReports reports;
  const ServerUrl url;
  Credentials credentials;
  std::optional<Counter> connections, plugin_runs;

  CURLM* multi = nullptr;
  std::map<Call, std::unique_ptr<Transfer>> running;
  std::vector<CURL*> spare;
  std::deque<std::unique_ptr<Transfer>> waiting;  // for the plugin
  std::deque<std::unique_ptr<Transfer>> in_line;  // for their turn
  std::size_t at_once = 0;                        // those that took a turn
  std::int64_t line_looked_at = 0;
  std::optional<ChildProcess> plugin;
  std::int64_t plugin_started = 0;

  Mutex mutex;
  std::vector<Command> commands BERTH_GUARDED_BY(mutex);
  bool stopping BERTH_GUARDED_BY(mutex) = false;
  std::thread thread;
};

// ---- curl's callbacks ----------------------------------------------------------------------

std::size_t CurlEngine::Impl::on_header(char* data, std::size_t size, std::size_t count, void* to) {
  Transfer& t = *static_cast<Transfer*>(to);
  std::string_view line(data, size * count);
  t.header_bytes += line.size();
  if (t.header_bytes > kMaxHeaderBytes) return 0;
  if (t.head_done) return line.size();  // trailers
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {
    t.response.headers.clear();
  } else if (!line.empty()) {
    std::size_t colon = std::min(line.find(':'), line.size());
    std::string_view value = line.substr(std::min(colon + 1, line.size()));
    while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
    t.response.headers.push_back({std::string(line.substr(0, colon)), std::string(value)});
  } else {
    long status = 0;
    curl_easy_getinfo(t.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200) {
      t.response.status = static_cast<int>(status);
      t.head_done = true;
      // A 401 is not told yet: it may go away with newer credentials.
      if (t.is_stream() && (status != 401 || t.renewed)) t.engine->tell_head(t);
    }
  }
  return size * count;
}

std::size_t CurlEngine::Impl::on_body(char* data, std::size_t size, std::size_t count, void* to) {
  Transfer& t = *static_cast<Transfer*>(to);
  const std::size_t bytes = size * count;
  if (!t.is_stream() || !t.head_told) {
    if (t.response.body.size() + bytes > t.engine->options.max_answer_bytes) {
      t.too_large = true;
      return 0;
    }
    t.response.body.append(data, bytes);
    return bytes;
  }
  StreamFlow& flow = *t.order.flow;
  if (flow.waiting.load() > t.engine->options.stream_window) {
    flow.paused.store(true);
    // The reader may have caught up just now and not seen the mark.
    const bool caught_up = flow.waiting.load() <= t.engine->options.stream_window / 2;
    if (!caught_up || !flow.paused.exchange(false)) return CURL_WRITEFUNC_PAUSE;
  }
  flow.waiting.fetch_add(bytes);
  t.engine->reports.data(t.order.id, std::string(data, bytes));
  return bytes;
}

std::size_t CurlEngine::Impl::on_upload(char* data, std::size_t size, std::size_t count, void* to) {
  Transfer& t = *static_cast<Transfer*>(to);
  const std::string& body = t.order.request.body;
  const std::size_t bytes = std::min(size * count, body.size() - t.body_sent);
  std::memcpy(data, body.data() + t.body_sent, bytes);
  t.body_sent += bytes;
  return bytes;
}

void CurlEngine::Impl::tell_head(Transfer& t) {
  t.head_told = true;
  reports.head(t.order.id, {t.response.status, t.response.headers, {}});
}

// ---- setting a transfer up -----------------------------------------------------------------

void CurlEngine::Impl::set_method(Transfer& t) {
  const text::HttpRequest& request = t.order.request;
  CURL* easy = t.easy;
  if (!request.body.empty()) {
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, &on_upload);
    curl_easy_setopt(easy, CURLOPT_READDATA, &t);
    // curl would send a write again by itself when a kept connection is found dead.
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &refuse_rewind);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  } else if (request.method == "POST" || request.method == "PUT" || request.method == "PATCH") {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 0L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "");
  } else if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  }
  if (request.method != "GET" && request.method != "HEAD") {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

void CurlEngine::Impl::set_tls(CURL* easy, const Identity& identity) {
  const Config& config = credentials.config();
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, config.insecure ? 0L : 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, config.insecure ? 0L : 2L);
  // Contents, not paths: a connection is used again only when they are the same.
  auto blob = [&](CURLoption option, const std::string& pem) {
    if (pem.empty()) return;
    curl_blob data{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_COPY};
    curl_easy_setopt(easy, option, &data);
  };
  blob(CURLOPT_CAINFO_BLOB, identity.ca_pem);
  blob(CURLOPT_SSLCERT_BLOB, identity.cert_pem);
  blob(CURLOPT_SSLKEY_BLOB, identity.key_pem);
  curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
  curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
}

void CurlEngine::Impl::set_proxy(CURL* easy) {
  auto get = [&](const char* upper, const char* lower) -> std::string {
    for (const char* name : {upper, lower}) {
      auto found = environment.find(name);
      if (found != environment.end() && !found->second.empty()) return found->second;
    }
    return {};
  };
  std::string proxy = credentials.config().proxy_url;
  std::string except;
  if (proxy.empty()) {
    proxy = url.tls ? get("HTTPS_PROXY", "https_proxy") : get("HTTP_PROXY", "http_proxy");
    except = get("NO_PROXY", "no_proxy");
  }
  curl_easy_setopt(easy, CURLOPT_PROXY, proxy.c_str());  // "": none, whatever the process inherits
  curl_easy_setopt(easy, CURLOPT_NOPROXY, except.c_str());
}

void CurlEngine::Impl::set_headers(Transfer& t, const Identity& identity) {
  auto add = [&](const std::string& entry) { t.lines = curl_slist_append(t.lines, entry.c_str()); };
  for (const text::HttpHeader& header : t.order.request.headers) {
    add(header.name + ": " + header.value);
  }
  if (!identity.authorization.empty()) add("Authorization: " + identity.authorization);
  for (const std::string& entry : identity.extra_headers) add(entry);
  add("Expect:");
  if (!credentials.config().tls_server_name.empty()) add("Host: " + url.host + ":" + url.port);
  curl_easy_setopt(t.easy, CURLOPT_HTTPHEADER, t.lines);
}

void CurlEngine::Impl::set_up(Transfer& t, const Identity& identity) {
  const Config& config = credentials.config();
  CURL* easy = t.easy;
  const std::string& host =
      config.tls_server_name.empty() || !url.tls ? url.host : config.tls_server_name;
  std::string whole = std::string(url.tls ? "https://" : "http://") + host + ":" + url.port +
                      url.path + t.order.request.target;
  curl_easy_setopt(easy, CURLOPT_URL, whole.c_str());
  if (host != url.host) {
    const std::string route = host + ":" + url.port + ":" + url.host + ":" + url.port;
    t.routes = curl_slist_append(nullptr, route.c_str());
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, t.routes);
  }
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &t);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t.problem);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &t);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &t);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &tune_socket);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, kKeepIdleSeconds);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, kKeepIntervalSeconds);
  curl_easy_setopt(
      easy, CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::max<std::int64_t>(options.connect_timeout_ns / 1'000'000, 1)));
  set_version_and_time(t);
  set_method(t);
  set_tls(easy, identity);
  set_proxy(easy);
  set_headers(t, identity);
}

void CurlEngine::Impl::set_version_and_time(Transfer& t) {
  CURL* easy = t.easy;
  if (t.is_stream()) {
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  } else {
    const bool h2 = options.http2 && url.tls;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     static_cast<long>(h2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    if (h2) curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    if (!credentials.config().disable_compression)
      curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
    const std::int64_t left = t.order.timeout_ns - (t.launched - t.ordered);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(std::max<std::int64_t>(left / 1'000'000, 1)));
  }
}

void CurlEngine::Impl::launch(std::unique_ptr<Transfer> transfer) {
  if (credentials.needs_plugin(now())) {
    waiting.push_back(std::move(transfer));
    if (!plugin) start_plugin();
    return;
  }
  if (transfer->takes_turn() && at_once >= options.max_at_once) {
    in_line.push_back(std::move(transfer));
    return;
  }
  auto identity = credentials.identity(now());
  if (!identity.ok()) {
    fail(*transfer, {identity.error().to_string(), false, false});
    return;
  }
  Transfer& t = *transfer;
  t.launched = monotonic.ticks_ns();
  t.body_sent = t.header_bytes = 0;
  t.response = {};
  t.head_done = t.head_told = false;
  if (spare.empty()) {
    t.easy = curl_easy_init();
  } else {
    t.easy = spare.back();
    spare.pop_back();
  }
  if (!t.easy) {
    fail(t, {"out of memory for a connection", false, false});
    return;
  }
  set_up(t, *identity);
  curl_multi_add_handle(multi, t.easy);
  if (t.takes_turn()) ++at_once;
  running[t.order.id] = std::move(transfer);
}

void CurlEngine::Impl::next_in_line() {
  while (!in_line.empty() && at_once < options.max_at_once) {
    auto transfer = std::move(in_line.front());
    in_line.pop_front();
    if (overdue(*transfer)) {
      fail(*transfer, {"timed out before it was sent", false, false});
    } else {
      launch(std::move(transfer));
    }
  }
}

// Once a second: what waits in line has deadlines too.
void CurlEngine::Impl::drop_overdue() {
  const std::int64_t at = monotonic.ticks_ns();
  if (in_line.empty() || at - line_looked_at < 1'000'000'000) return;
  line_looked_at = at;
  for (auto& transfer : in_line) {
    if (!overdue(*transfer)) continue;
    fail(*transfer, {"timed out before it was sent", false, false});
    transfer.reset();
  }
  std::erase(in_line, nullptr);
}

// ---- ends ----------------------------------------------------------------------------------

void CurlEngine::Impl::release(Transfer& t) {
  if (t.easy) {
    curl_multi_remove_handle(multi, t.easy);
    curl_easy_reset(t.easy);
    if (spare.size() < kSpareHandles) {
      spare.push_back(t.easy);
    } else {
      curl_easy_cleanup(t.easy);
    }
    t.easy = nullptr;
  }
  curl_slist_free_all(std::exchange(t.lines, nullptr));
  curl_slist_free_all(std::exchange(t.routes, nullptr));
}

std::unique_ptr<CurlEngine::Impl::Transfer> CurlEngine::Impl::detach(Call id) {
  auto found = running.find(id);
  if (found == running.end()) return nullptr;
  auto transfer = std::move(found->second);
  running.erase(found);
  if (transfer->takes_turn()) --at_once;
  return transfer;
}

TransportError CurlEngine::Impl::failure_of(const Transfer& t, CURLcode code) {
  long sent = 0, os_error = 0;
  curl_easy_getinfo(t.easy, CURLINFO_REQUEST_SIZE, &sent);
  curl_easy_getinfo(t.easy, CURLINFO_OS_ERRNO, &os_error);
  TransportError error;
  const char* said = t.problem[0] ? t.problem : curl_easy_strerror(code);
  error.message = text::terminal_safe(said);
  if (t.too_large) error.message = "the answer is longer than this client takes";
  error.refused = code == CURLE_COULDNT_CONNECT && os_error == ECONNREFUSED;
  error.maybe_carried_out = sent > 0 && code != CURLE_COULDNT_CONNECT;
  return error;
}

void CurlEngine::Impl::finished(std::unique_ptr<Transfer> transfer, CURLcode code) {
  Transfer& t = *transfer;
  if (connections) {
    long made = 0;
    curl_easy_getinfo(t.easy, CURLINFO_NUM_CONNECTS, &made);
    connections->add(static_cast<std::uint64_t>(std::max(made, 0L)));
  }
  TransportError error;
  if (code != CURLE_OK) error = failure_of(t, code);
  release(t);
  if (code == CURLE_OK && t.response.status == 401 && !t.renewed) {
    t.renewed = true;
    if (credentials.refused(t.launched)) {
      launch(std::move(transfer));
      return;
    }
  }
  if (t.is_stream() && code == CURLE_OK) {
    if (!t.head_told) {
      tell_head(t);
      t.order.flow->waiting.fetch_add(t.response.body.size());
      if (!t.response.body.empty()) reports.data(t.order.id, std::move(t.response.body));
    }
    reports.ended(t.order.id);
  } else if (code == CURLE_OK) {
    reports.answered(t.order.id, std::move(t.response));
  } else {
    fail(t, std::move(error));
  }
}

void CurlEngine::Impl::finish_ended() {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    char* of = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &of);
    auto transfer = detach(reinterpret_cast<Transfer*>(of)->order.id);
    if (transfer) finished(std::move(transfer), code);
  }
}

// ---- the credential plugin -----------------------------------------------------------------

void CurlEngine::Impl::start_plugin() {
  auto call = credentials.plugin_call(options.plugins_allowed);
  if (!call.ok()) return plugin_over(std::move(call).error());
  if (plugin_runs) plugin_runs->add();
  auto child = ChildProcess::start(call->program, call->argv, call->envp);
  if (!child.ok()) return plugin_over(std::move(child).error());
  plugin.emplace(std::move(*child));
  plugin_started = monotonic.ticks_ns();
}

void CurlEngine::Impl::step_plugin() {
  if (!plugin) return;
  if (auto code = plugin->step()) {
    std::string out = plugin->out(), err = plugin->err();
    plugin.reset();
    plugin_over(credentials.plugin_done(now(), *code, out, err));
    return;
  }
  if (monotonic.ticks_ns() - plugin_started > options.plugin_timeout_ns) {
    plugin.reset();
    plugin_over(Error(Code::kUnavailable, "the credential plugin did not end in time"));
  }
}

void CurlEngine::Impl::plugin_over(const Status& done) {
  auto ready = std::exchange(waiting, {});
  std::string problem = done.ok() ? "" : done.error().to_string();
  if (done.ok() && credentials.needs_plugin(now())) {
    problem = "the credential plugin gave credentials that have expired";
  }
  for (auto& transfer : ready) {
    if (problem.empty()) {
      launch(std::move(transfer));
    } else {
      fail(*transfer, {problem, false, false});
    }
  }
}

// ---- the thread ----------------------------------------------------------------------------

void CurlEngine::Impl::push(Command command) {
  {
    MutexLock lock(mutex);
    commands.push_back(std::move(command));
  }
  curl_multi_wakeup(multi);
}

void CurlEngine::Impl::take_commands(std::vector<Command> taken) {
  for (Command& command : taken) {
    if (command.kind == Command::kStart) {
      auto transfer = std::make_unique<Transfer>();
      transfer->engine = this;
      transfer->ordered = monotonic.ticks_ns();
      transfer->order = std::move(command.order);
      launch(std::move(transfer));
    } else if (command.kind == Command::kCancel) {
      if (auto transfer = detach(command.id)) release(*transfer);
      auto is_it = [&](const auto& t) { return t->order.id == command.id; };
      std::erase_if(waiting, is_it);
      std::erase_if(in_line, is_it);
    } else if (auto found = running.find(command.id); found != running.end()) {
      curl_easy_pause(found->second->easy, CURLPAUSE_CONT);
    }
  }
}

void CurlEngine::Impl::run() {
  for (;;) {
    std::vector<Command> taken;
    {
      MutexLock lock(mutex);
      if (stopping) break;
      taken.swap(commands);
    }
    take_commands(std::move(taken));
    int still = 0;
    curl_multi_perform(multi, &still);
    finish_ended();
    step_plugin();
    drop_overdue();
    const std::size_t before = at_once;
    next_in_line();
    if (at_once > before) curl_multi_perform(multi, &still);  // they are not to wait for a poll
    curl_waitfd extra[2] = {};
    unsigned count = 0;
    if (plugin) {
      for (int fd : {plugin->out_fd(), plugin->err_fd()}) {
        if (fd >= 0) extra[count++] = {fd, CURL_WAIT_POLLIN, 0};
      }
    }
    curl_multi_poll(multi, extra, count, plugin ? kPluginPollMs : kPollMs, nullptr);
  }
  for (auto& [id, transfer] : running) release(*transfer);
  running.clear();
  for (CURL* easy : spare) curl_easy_cleanup(easy);
}

CurlEngine::CurlEngine(const MonotonicClock& monotonic, const WallClock& wall, Config config,
                       Environment environment, CurlOptions options, MetricsRegistry* metrics,
                       EngineReports reports) {
  curl_ready_once();
  impl_ = std::make_unique<Impl>(monotonic, wall, std::move(config), std::move(environment),
                                 std::move(options), std::move(reports));
  if (metrics) {
    impl_->connections = metrics
                             ->counter({.name = "berth_kube_connections_total",
                                        .help = "Connections made to the API server."})
                             .get();
    impl_->plugin_runs = metrics
                             ->counter({.name = "berth_kube_plugin_runs_total",
                                        .help = "Times the credential plugin was run."})
                             .get();
  }
  impl_->multi = curl_multi_init();
  curl_multi_setopt(impl_->multi, CURLMOPT_MAXCONNECTS, 256L);
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

CurlEngine::~CurlEngine() {
  {
    MutexLock lock(impl_->mutex);
    impl_->stopping = true;
  }
  curl_multi_wakeup(impl_->multi);
  impl_->thread.join();
  curl_multi_cleanup(impl_->multi);
}

void CurlEngine::start(TransferOrder order) {
  impl_->push({Impl::Command::kStart, order.id, std::move(order)});
}
void CurlEngine::resume(Call id) { impl_->push({Impl::Command::kResume, id}); }
void CurlEngine::cancel(Call id) { impl_->push({Impl::Command::kCancel, id}); }

}  // namespace berth::kube
