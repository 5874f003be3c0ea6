#include "edge/kube/curl_transport.h"

#include <cstdio>
#include <fstream>

#include "base/run_loop.h"
#include "base/system_clock.h"
#include "edge/kube/tiny_server_for_test.h"
#include "edge/kube/transport_suite_for_test.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kCurlSecond = 1'000'000'000;
constexpr std::int64_t kPatience = 120 * kCurlSecond;  // only a broken program takes so long

bool stream_notes(TinyServer& server, TinyServer::Connection& to) {
  to.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::size_t seen = 0;
  std::string text;
  while (server.next_note(seen, text)) {
    if (!to.write(TinyServer::chunk(text))) return false;
  }
  to.write("0\r\n\r\n");
  return false;
}

// A real loop, a real transport, and a server that the test scripts.
class CurlWorld : public TransportWorld {
 public:
  using Reply = std::function<bool(const std::string& head, const std::string& body,
                                   TinyServer::Connection& to)>;
  explicit CurlWorld(Reply reply = {}, Config config = {}, CurlOptions options = {})
      : server_([this, reply](const std::string& head, const std::string& body,
                              TinyServer::Connection& to) {
          if (reply) return reply(head, body, to);
          if (head.starts_with("GET /good ")) return to.write(TinyServer::reply(200, "{}"));
          if (head.starts_with("GET /stream ")) return stream_notes(server_, to);
          return to.write(TinyServer::reply(404, "not here"));
        }) {
    config.server = server_.url();
    transport_ = std::make_unique<CurlTransport>(loop_, std::move(config), Environment{},
                                                 std::move(options), &metrics);
  }
  ~CurlWorld() override {
    server_.stop_streams();
    transport_.reset();
  }

  Transport& transport() override { return *transport_; }
  void end_transport() override { transport_.reset(); }
  bool run_until(const std::function<bool()>& done) override {
    const std::int64_t end = monotonic_.ticks_ns() + kPatience;
    std::function<void()> look = [&] {
      if (done() || monotonic_.ticks_ns() > end) return loop_.stop();
      loop_.after(1'000'000, look);
    };
    loop_.post(look);
    loop_.run();
    return done();
  }
  text::HttpRequest good_request() override { return {"GET", "/good", {}, {}}; }
  text::HttpRequest missing_request() override { return {"GET", "/missing", {}, {}}; }
  text::HttpRequest stream_request() override { return {"GET", "/stream", {}, {}}; }
  void note(const std::string& text) override { server_.note(text); }
  void end_streams() override { server_.stop_streams(); }
  TinyServer& server() { return server_; }

  // Sends and waits.
  struct Outcome {
    text::HttpResponse response;
    std::optional<TransportError> error;
  };
  Outcome ask(text::HttpRequest request, std::int64_t timeout_ns = kPatience) {
    Outcome outcome;
    bool done = false;
    transport_->send(std::move(request), {.timeout_ns = timeout_ns},
                     [&](text::HttpResponse response, const TransportError* error) {
                       outcome.response = std::move(response);
                       if (error) outcome.error = *error;
                       done = true;
                     });
    EXPECT_TRUE(run_until([&] { return done; }));
    return outcome;
  }

  MetricsRegistry metrics;

 private:
  SystemMonotonicClock monotonic_;
  SystemWallClock wall_;
  RunLoop loop_{monotonic_, wall_};
  TinyServer server_;
  std::unique_ptr<CurlTransport> transport_;
};

INSTANTIATE_TEST_SUITE_P(Curl, TransportSuite, ::testing::Values(+[]() {
                           return std::unique_ptr<TransportWorld>(new CurlWorld);
                         }));

// --request-timeout of kubectl: whoever sends the request thinks of a longer time.
TEST(CurlTransport, the_configuration_bounds_every_request) {
  Config config;
  config.request_timeout_ns = 50'000'000;
  CurlWorld w([](const std::string&, const std::string&, TinyServer::Connection&) { return true; },
              std::move(config));
  const CurlWorld::Outcome outcome = w.ask({"GET", "/stuck", {}, {}});
  ASSERT_TRUE(outcome.error);
  EXPECT_NE(outcome.error->message.find("time"), std::string::npos) << outcome.error->message;
}

// What the server saw last, for tests that ask one thing at a time.
class Seen {
 public:
  void take(const std::string& head, const std::string& body) {
    MutexLock lock(mutex_);
    head_ = head;
    body_ = body;
    ++requests_;
  }
  bool has(const std::string& line) {
    MutexLock lock(mutex_);
    return (head_ + "\r\n").find("\r\n" + line + "\r\n") != std::string::npos;
  }
  std::string head() {
    MutexLock lock(mutex_);
    return head_;
  }
  std::string body() {
    MutexLock lock(mutex_);
    return body_;
  }
  int requests() {
    MutexLock lock(mutex_);
    return requests_;
  }

 private:
  Mutex mutex_;
  std::string head_ BERTH_GUARDED_BY(mutex_), body_ BERTH_GUARDED_BY(mutex_);
  int requests_ BERTH_GUARDED_BY(mutex_) = 0;
};

TEST(CurlTransport, sends_requests_as_they_are_and_keeps_the_connection) {
  Seen seen;
  Config config;
  config.token = "secret";
  config.impersonate_user = "someone";
  CurlWorld w(
      [&](const std::string& head, const std::string& body, TinyServer::Connection& to) {
        seen.take(head, body);
        return to.write(TinyServer::reply(201, "{\"a\":1}", "X-Thing: yes\r\n"));
      },
      config);
  auto outcome = w.ask({"POST", "/api/v1/a%2Fb?x=%20y", {{"Content-Type", "t/t"}}, "body bytes"});
  ASSERT_FALSE(outcome.error);
  EXPECT_EQ(outcome.response.status, 201);
  EXPECT_EQ(outcome.response.body, "{\"a\":1}");
  EXPECT_EQ(text::find_header(outcome.response.headers, "x-thing"), "yes");
  EXPECT_TRUE(seen.head().starts_with("POST /api/v1/a%2Fb?x=%20y HTTP/1.1\r\n")) << seen.head();
  EXPECT_EQ(seen.body(), "body bytes");
  EXPECT_TRUE(seen.has("Authorization: Bearer secret")) << seen.head();
  EXPECT_TRUE(seen.has("Impersonate-User: someone"));
  EXPECT_TRUE(seen.has("Content-Type: t/t"));
  EXPECT_TRUE(seen.has("Content-Length: 10"));
  EXPECT_FALSE(seen.has("Expect: 100-continue"));
  for (const char* method : {"DELETE", "PATCH", "PUT", "GET", "POST"}) {
    EXPECT_EQ(w.ask({method, "/x", {}, {}}).response.status, 201) << method;
    EXPECT_TRUE(seen.head().starts_with(std::string(method) + " /x ")) << seen.head();
  }
  EXPECT_EQ(w.ask({"DELETE", "/x", {}, "{}"}).response.status, 201);
  EXPECT_EQ(seen.body(), "{}");
  EXPECT_EQ(w.server().connections(), 1);
  EXPECT_EQ(seen.requests(), 7);
}

TEST(CurlTransport, unpacks_gzip) {
  const unsigned char packed[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
                                  0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x86,
                                  0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00};
  Seen seen;
  CurlWorld w([&](const std::string& head, const std::string& body, TinyServer::Connection& to) {
    seen.take(head, body);
    return to.write(
        TinyServer::reply(200, std::string(reinterpret_cast<const char*>(packed), sizeof packed),
                          "Content-Encoding: gzip\r\n"));
  });
  EXPECT_EQ(w.ask({"GET", "/", {}, {}}).response.body, "hello");
  EXPECT_TRUE(seen.has("Accept-Encoding: gzip"));
}

TEST(CurlTransport, says_what_may_have_been_carried_out) {
  {  // Nobody listens: the port is taken, but not open.
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    CurlWorld w;
    Config config;
    config.server = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    SystemMonotonicClock monotonic;
    SystemWallClock wall;
    RunLoop loop(monotonic, wall);
    CurlTransport transport(loop, config);
    std::optional<TransportError> got;
    transport.send({"POST", "/", {}, "{}"}, {},
                   [&](text::HttpResponse, const TransportError* error) {
                     if (error) got = *error;
                     loop.stop();
                   });
    loop.run();
    ASSERT_TRUE(got);
    EXPECT_TRUE(got->refused) << got->message;
    EXPECT_FALSE(got->maybe_carried_out);
    ::close(fd);
  }
  Seen seen;
  CurlWorld w([&](const std::string& head, const std::string& body, TinyServer::Connection& to) {
    seen.take(head, body);
    if (head.find("/first") != std::string::npos) return to.write(TinyServer::reply(200, "ok"));
    if (head.find("/half") != std::string::npos) {
      to.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    }
    return false;  // closes without an answer
  });
  auto died = w.ask({"POST", "/die", {}, "{}"});
  ASSERT_TRUE(died.error);
  EXPECT_TRUE(died.error->maybe_carried_out) << died.error->message;
  EXPECT_FALSE(died.error->refused);
  auto half = w.ask({"POST", "/half", {}, "{}"});
  ASSERT_TRUE(half.error);
  EXPECT_TRUE(half.error->maybe_carried_out);
  // A kept connection that dies under a write: curl would send it again on a new one.
  EXPECT_EQ(w.ask({"POST", "/first", {}, "{}"}).response.status, 200);
  const int before = seen.requests();
  auto again = w.ask({"POST", "/die", {}, "{}"});
  ASSERT_TRUE(again.error);
  EXPECT_TRUE(again.error->maybe_carried_out);
  EXPECT_EQ(seen.requests(), before + 1) << "a write is sent once";
}

TEST(CurlTransport, a_call_ends_at_its_deadline_and_a_silent_stream_too) {
  CurlWorld w([&](const std::string&, const std::string&, TinyServer::Connection& to) {
    char byte = 0;  // says nothing until the other side goes away
    return ::recv(to.fd, &byte, 1, 0) > 0;
  });
  EXPECT_TRUE(w.ask({"GET", "/", {}, {}}, 50'000'000).error);
  bool ended = false;
  w.transport().stream({"GET", "/", {}, {}}, {.idle_ns = 50'000'000},
                       {[](const text::HttpResponse&) {}, [](std::string_view) { return true; },
                        [&](const TransportError* error) { ended = error != nullptr; }});
  EXPECT_TRUE(w.run_until([&] { return ended; }));
}

TEST(CurlTransport, many_calls_take_turns_and_all_are_answered) {
  CurlWorld w({}, {}, {.max_at_once = 3});
  int answered = 0;
  std::vector<Call> cancelled;
  for (int i = 0; i < 300; ++i) {
    Call call = w.transport().send({"GET", "/good", {}, {}}, {.timeout_ns = kPatience},
                                   [&](text::HttpResponse response, const TransportError* error) {
                                     EXPECT_EQ(error, nullptr);
                                     EXPECT_EQ(response.status, 200);
                                     ++answered;
                                   });
    if (i % 10 == 9) cancelled.push_back(call);
  }
  for (Call call : cancelled) w.transport().cancel(call);
  ASSERT_TRUE(w.run_until([&] { return answered == 270; }));
  EXPECT_EQ(w.ask({"GET", "/good", {}, {}}).response.status, 200);
  EXPECT_EQ(answered, 270);
}

TEST(CurlTransport, what_waits_in_line_has_its_deadline_and_urgent_calls_pass) {
  CurlWorld w(
      [&](const std::string& head, const std::string&, TinyServer::Connection& to) {
        if (head.starts_with("GET /good")) return to.write(TinyServer::reply(200, "{}"));
        char byte = 0;  // silence
        return ::recv(to.fd, &byte, 1, 0) > 0;
      },
      {}, {.max_at_once = 1});
  Call stuck = w.transport().send({"GET", "/stuck", {}, {}}, {.timeout_ns = kPatience},
                                  [](text::HttpResponse, const TransportError*) {});
  bool urgent = false;
  w.transport().send(
      {"GET", "/good", {}, {}}, {.timeout_ns = kPatience, .urgent = true},
      [&](text::HttpResponse response, const TransportError*) { urgent = response.status == 200; });
  ASSERT_TRUE(w.run_until([&] { return urgent; }));
  auto waited = w.ask({"POST", "/good", {}, "{}"}, 1'000'000);
  ASSERT_TRUE(waited.error);
  EXPECT_FALSE(waited.error->maybe_carried_out);
  w.transport().cancel(stuck);
  EXPECT_EQ(w.ask({"GET", "/good", {}, {}}).response.status, 200);
}

TEST(CurlTransport, an_answer_that_is_too_long_is_refused) {
  CurlWorld w(
      [&](const std::string&, const std::string&, TinyServer::Connection& to) {
        return to.write(TinyServer::reply(200, std::string(5'000, 'x')));
      },
      {}, {.max_answer_bytes = 1'000});
  auto outcome = w.ask({"GET", "/", {}, {}});
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->message, "the answer is longer than this client takes");
}

TEST(CurlTransport, a_reader_that_stops_stops_the_server_and_loses_nothing) {
  std::string sent;
  for (int i = 0; sent.size() < 4'000'000; ++i) sent += std::to_string(i) + "\n";
  CurlWorld w(
      [&](const std::string& head, const std::string&, TinyServer::Connection& to) {
        if (head.starts_with("GET /good")) return to.write(TinyServer::reply(200, "{}"));
        to.write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(sent.size()) + "\r\n\r\n");
        to.write(sent);
        return false;
      },
      {}, {.stream_window = 64 * 1024});
  std::string got;
  bool ended = false, failed = false;
  int holds = 0;
  Call call = 0;
  StreamHandler handler;
  handler.on_head = [](const text::HttpResponse&) {};
  handler.on_data = [&](std::string_view bytes) {
    got += bytes;
    if (holds >= 20) return true;
    ++holds;
    return false;
  };
  handler.on_end = [&](const TransportError* error) {
    ended = true;
    failed = error != nullptr;
  };
  call = w.transport().stream({"GET", "/long", {}, {}}, {}, handler);
  for (int round = 1; round <= 20; ++round) {
    ASSERT_TRUE(w.run_until([&] { return holds == round; }));
    const std::size_t so_far = got.size();
    w.ask({"GET", "/good", {}, {}});  // time passes; nothing may come
    EXPECT_EQ(got.size(), so_far);
    w.transport().resume(call);
  }
  ASSERT_TRUE(w.run_until([&] { return ended; }));
  EXPECT_FALSE(failed);
  EXPECT_TRUE(got == sent);
}

std::string test_file(const std::string& name, const std::string& content) {
  std::string path = ::testing::TempDir() + "/berth_" + std::to_string(::getpid()) + "_" + name;
  std::ofstream(path) << content;
  return path;
}

TEST(CurlTransport, a_401_leads_to_the_token_file_once_more) {
  const std::string path = test_file("token", "old\n");
  Seen seen;
  Config config;
  config.token_file = path;
  CurlWorld w(
      [&](const std::string& head, const std::string& body, TinyServer::Connection& to) {
        seen.take(head, body);
        const bool good = seen.has("Authorization: Bearer new");
        return to.write(good ? TinyServer::reply(200, body) : TinyServer::reply(401, "who?"));
      },
      config);
  EXPECT_EQ(w.ask({"POST", "/", {}, "b1"}).response.status, 401);
  EXPECT_EQ(seen.requests(), 2) << "tried again once";
  std::ofstream(path) << "new\n";
  auto outcome = w.ask({"POST", "/", {}, "b2"});
  EXPECT_EQ(outcome.response.status, 200);
  EXPECT_EQ(outcome.response.body, "b2");
  int heads = 0, status = 0, ends = 0;
  std::ofstream(path) << "worse\n";
  w.transport().stream(
      {"GET", "/", {}, {}}, {},
      {[&](const text::HttpResponse& head) {
         ++heads;
         status = head.status;
       },
       [](std::string_view) { return true; }, [&](const TransportError*) { ++ends; }});
  ASSERT_TRUE(w.run_until([&] { return ends > 0; }));
  EXPECT_EQ(heads, 1);
  EXPECT_EQ(status, 200) << "the good token is kept for a minute";
  std::remove(path.c_str());
}

TEST(CurlTransport, credentials_from_a_plugin_without_a_shell_in_between) {
  const std::string count = test_file("count", "");
  Config config;
  config.exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                           .command = "/bin/sh",
                           .args = {"-c",
                                    "echo run >> \"$COUNT\"; test -n \"$KUBERNETES_EXEC_INFO\" || "
                                    "exit 3; echo '{\"apiVersion\":\"client.authentication.k8s.io/"
                                    "v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t-'"
                                    "$(wc -l < \"$COUNT\")'\"}}'"},
                           .env = {{"COUNT", count}},
                           .interactive_mode = "Never"};
  Seen seen;
  CurlWorld w(
      [&](const std::string& head, const std::string& body, TinyServer::Connection& to) {
        seen.take(head, body);
        const bool good = seen.has("Authorization: Bearer t-2");
        return to.write(TinyServer::reply(good ? 200 : 401, "x"));
      },
      config);
  EXPECT_EQ(w.ask({"GET", "/", {}, {}}).response.status, 200) << "t-1 is refused, t-2 is not";
  EXPECT_EQ(w.ask({"GET", "/", {}, {}}).response.status, 200);
  EXPECT_EQ(seen.requests(), 3);
  EXPECT_NE(w.metrics.render(MetricFormat::kPrometheusText).find("berth_kube_plugin_runs_total 2"),
            std::string::npos);
  std::remove(count.c_str());

  for (const auto& [script, want] : std::vector<std::pair<std::string, std::string>>{
           {"echo oh no >&2; exit 7", "failed with 7: oh no"},
           {"echo '{}'", "want ExecCredential"},
           {"exec 1>&-; kill -9 $$", "failed with 137"}}) {
    Config bad = config;
    bad.exec->args = {"-c", script};
    CurlWorld other({}, bad);
    auto outcome = other.ask({"GET", "/good", {}, {}});
    ASSERT_TRUE(outcome.error);
    EXPECT_NE(outcome.error->message.find(want), std::string::npos) << outcome.error->message;
    EXPECT_FALSE(outcome.error->maybe_carried_out);
  }
  CurlWorld strict({}, config, {.plugins_allowed = {"/usr/bin/other"}});
  EXPECT_NE(strict.ask({"GET", "/good", {}, {}}).error->message.find("not among those allowed"),
            std::string::npos);
}

}  // namespace
}  // namespace berth::kube
