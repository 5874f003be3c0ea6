#include "edge/serve/http_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <thread>

#include "base/mutex.h"
#include "base/random.h"
#include "edge/serve/certificate.h"
#include "edge/serve/peer_for_test.h"

namespace berth::serve {
namespace {

constexpr std::int64_t kMinute = 60'000'000'000;

// True as soon as it holds; false after a minute.
bool eventually(const std::function<bool()>& holds) {
  auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

struct Asked {
  text::HttpRequest request;
  std::shared_ptr<Exchange> exchange;
};

// Answers "/echo" at once; everything else waits for the test.
class Desk {
 public:
  Handler handler() {
    return [this](text::HttpRequest request, std::shared_ptr<Exchange> exchange) {
      if (request.target.starts_with("/echo")) {
        return exchange->respond({200, {{"X-Target", request.target}}, std::move(request.body)});
      }
      MutexLock lock(mutex_);
      asked_.push_back({std::move(request), std::move(exchange)});
    };
  }
  Asked next() {
    Asked found;
    eventually([&] {
      MutexLock lock(mutex_);
      if (asked_.empty()) return false;
      found = std::move(asked_.front());
      asked_.pop_front();
      return true;
    });
    return found;
  }
  std::size_t waiting() {
    MutexLock lock(mutex_);
    return asked_.size();
  }

 private:
  Mutex mutex_;
  std::deque<Asked> asked_ BERTH_GUARDED_BY(mutex_);
};

class HttpServerTest : public testing::Test {
 protected:
  void start(HttpServerOptions options = {}) {
    auto started = HttpServer::start(std::move(options), desk_.handler(), &metrics_);
    ASSERT_TRUE(started.ok()) << started.error().to_string();
    server_ = std::move(*started);
  }
  bool healthy(const std::string& authority = {}) {
    TestPeer peer(server_->port(), authority);
    peer.get("/echo");
    return peer.response().status == 200;
  }
  static std::shared_ptr<const std::string> text(std::string bytes) {
    return std::make_shared<const std::string>(std::move(bytes));
  }

  MetricsRegistry metrics_;
  Desk desk_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, KeepsTheConnectionBetweenRequests) {
  start();
  TestPeer peer(server_->port());
  for (int i = 0; i < 3; ++i) {
    peer.send("POST /echo/" + std::to_string(i) +
              " HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    text::HttpResponse answer = peer.response();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "hi");
    EXPECT_EQ(text::find_header(answer.headers, "x-target"), "/echo/" + std::to_string(i));
    EXPECT_TRUE(text::find_header(answer.headers, "date").has_value());
  }
  std::string large(3'000'000, 'x');
  peer.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n" + large);
  EXPECT_EQ(peer.response().body, large);
  peer.send("HEAD /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_EQ(text::find_header(peer.response(true).headers, "content-length"), "2");
  peer.send("GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(text::find_header(peer.response().headers, "connection"), "close");
  EXPECT_TRUE(peer.closed());
  EXPECT_NE(metrics_.render(MetricFormat::kPrometheusText)
                .find("berth_http_requests_total{server=\"http\",code=\"200\"} 6"),
            std::string::npos);
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInTheirOrder) {
  start();
  TestPeer peer(server_->port());
  constexpr int kCount = 150;
  std::string all;
  for (int i = 0; i < kCount; ++i) {
    all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n";
  }
  peer.send(all);
  // 64 are in work at once; the last asked is answered first.
  for (int from = 0; from < kCount; from += 64) {
    std::vector<Asked> asked;
    for (int i = from; i < std::min(from + 64, kCount); ++i) asked.push_back(desk_.next());
    EXPECT_EQ(desk_.waiting(), 0u);
    for (std::size_t i = asked.size(); i-- > 0;) {
      ASSERT_NE(asked[i].exchange, nullptr);
      asked[i].exchange->respond({200, {}, asked[i].request.target});
    }
  }
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(peer.response().body, "/" + std::to_string(i));
}

TEST_F(HttpServerTest, StreamsInChunksThatManyShare) {
  start();
  std::vector<std::unique_ptr<TestPeer>> peers;
  std::vector<std::shared_ptr<Exchange>> streams;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(std::make_unique<TestPeer>(server_->port()));
    peers.back()->get("/watch");
    streams.push_back(desk_.next().exchange);
    ASSERT_NE(streams.back(), nullptr);
    streams.back()->begin({200, {{"Content-Type", "application/json"}}, "first"});
  }
  auto small = text("small"), large = text(std::string(100'000, 'y'));
  for (const auto& bytes : {small, large, text(""), small}) {
    for (auto& stream : streams) stream->write(bytes);
  }
  for (auto& peer : peers) {
    EXPECT_EQ(peer->head().status, 200);
    for (const std::string& expected : {std::string("first"), *small, *large, *small}) {
      EXPECT_EQ(peer->chunk(), expected);
    }
  }
  for (auto& stream : streams) EXPECT_TRUE(eventually([&] { return stream->backlog() == 0; }));
  streams[0]->end();
  streams[1].reset();  // dropped: it ends too
  for (int i = 0; i < 2; ++i) EXPECT_EQ(peers[static_cast<std::size_t>(i)]->chunk(), "");
  peers[0]->get("/echo");  // and the connection goes on
  EXPECT_EQ(peers[0]->response().status, 200);
  // Streams for HTTP/1.0 have no chunks and end with the connection.
  TestPeer old(server_->port());
  old.send("GET /watch HTTP/1.0\r\n\r\n");
  Asked asked = desk_.next();
  asked.exchange->begin({200, {}, "a"});
  asked.exchange->write(text("b"));
  asked.exchange->end();
  EXPECT_EQ(old.head().status, 200);
  EXPECT_EQ(old.bytes(10), "ab");
}

TEST_F(HttpServerTest, ASlowReaderIsCutOff) {
  start({.max_backlog_bytes = 1'000'000});
  TestPeer peer(server_->port());
  peer.get("/watch");
  Asked asked = desk_.next();
  std::atomic<int> told{0};
  asked.exchange->on_gone([&] { ++told; });
  asked.exchange->begin({200, {}, ""});
  auto bytes = text(std::string(65'536, 'z'));
  for (int i = 0; i < 10'000 && !asked.exchange->gone(); ++i) {
    asked.exchange->write(bytes);
    EXPECT_LE(asked.exchange->backlog(), 1'100'000u);
  }
  EXPECT_TRUE(asked.exchange->gone());
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  asked.exchange->write(bytes);  // nothing happens
  EXPECT_TRUE(healthy());
  EXPECT_NE(metrics_.render(MetricFormat::kPrometheusText)
                .find("berth_http_connections_cut_total{server=\"http\",why=\"slow reader\"} 1"),
            std::string::npos);
}

TEST_F(HttpServerTest, TellsWhenThePeerWent) {
  start();
  std::atomic<int> told{0}, told_late{0};
  TestPeer peer(server_->port());
  peer.get("/slow");
  Asked asked = desk_.next();
  asked.exchange->on_gone([&] { ++told; });
  EXPECT_FALSE(asked.exchange->gone());
  peer.close();
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  EXPECT_TRUE(asked.exchange->gone());
  asked.exchange->on_gone([&] { ++told_late; });
  EXPECT_TRUE(eventually([&] { return told_late == 1; }));
  asked.exchange->respond({200, {}, "for nobody"});
  EXPECT_TRUE(healthy());
  EXPECT_EQ(told, 1);
}

TEST_F(HttpServerTest, WhatIsDroppedAnswers500) {
  start();
  TestPeer peer(server_->port());
  peer.get("/never");
  desk_.next().exchange.reset();
  EXPECT_EQ(peer.response().status, 500);
  peer.get("/echo");
  EXPECT_EQ(peer.response().status, 200);
}

struct BoundCase {
  std::string bytes;
  int status;
};

TEST_F(HttpServerTest, BoundsOfHeadBodyAndTime) {
  auto try_all = [&](const std::vector<BoundCase>& cases) {
    for (const BoundCase& c : cases) {
      TestPeer peer(server_->port());
      peer.send(c.bytes);
      EXPECT_EQ(peer.response().status, c.status) << c.bytes.substr(0, 40);
      EXPECT_TRUE(peer.closed());
    }
  };
  start({.max_head_bytes = 4'096, .max_body_bytes = 100'000});
  try_all({
      {"GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(10'000, 'a') + "\r\n\r\n", 431},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" + std::string(200'000, 'a'),
       413},
      {"nonsense\r\n\r\n", 400},
  });
  TestPeer peer(server_->port());  // a refusal, too, keeps its place
  peer.get("/slow");
  Asked slow = desk_.next();
  peer.send("nonsense\r\n\r\n");
  slow.exchange->respond({202, {}, ""});
  EXPECT_EQ(peer.response().status, 202);
  EXPECT_EQ(peer.response().status, 400);
  EXPECT_TRUE(peer.closed());

  server_.reset();
  start({.request_timeout_ns = 20'000'000});
  try_all({
      {"GET / HTTP/1.1\r\nHost: h\r\nX: ", 408},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf", 408},
  });
}

TEST_F(HttpServerTest, WithoutAnAddressItListensOnAllOfBothFamilies) {
  start({.address = ""});
  EXPECT_TRUE(healthy());
  sockaddr_in6 local{};
  local.sin6_family = AF_INET6;
  local.sin6_addr = in6addr_loopback;
  auto* address = reinterpret_cast<sockaddr*>(&local);
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(fd, address, sizeof local) == 0) {  // else the machine has no such address
    local.sin6_port = htons(server_->port());
    EXPECT_EQ(connect(fd, address, sizeof local), 0);
  }
  ::close(fd);
  const auto second = HttpServer::start({.address = "", .port = server_->port()}, desk_.handler());
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message().find("in use"), std::string::npos);
}

TEST_F(HttpServerTest, BoundOfConnections) {
  start({.max_connections = 3});
  std::vector<std::unique_ptr<TestPeer>> peers;
  std::vector<Asked> at_work;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(std::make_unique<TestPeer>(server_->port()));
    peers.back()->get("/slow");
    at_work.push_back(desk_.next());
  }
  TestPeer beyond(server_->port());
  beyond.get("/echo");
  EXPECT_EQ(beyond.response().status, 0);
  at_work.clear();
  peers.clear();
  EXPECT_TRUE(eventually([&] { return healthy(); }));
}

TEST_F(HttpServerTest, ContinuesWhoAsksAndClosesTheIdle) {
  start({.idle_timeout_ns = 20'000'000});
  TestPeer peer(server_->port());
  EXPECT_TRUE(peer.closed());
  server_.reset();
  start();
  TestPeer careful(server_->port());
  careful.send(
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(careful.head().status, 100);
  careful.send("hi");
  EXPECT_EQ(careful.response().body, "hi");
}

TEST_F(HttpServerTest, DrainEndsStreamsAndWaitsForAnswers) {
  start();
  TestPeer idle(server_->port()), stream(server_->port()), slow(server_->port());
  idle.get("/echo");
  EXPECT_EQ(idle.response().status, 200);
  stream.get("/watch");
  Asked streaming = desk_.next();
  std::atomic<int> told{0};
  streaming.exchange->on_gone([&] { ++told; });
  streaming.exchange->begin({200, {}, "a"});
  slow.get("/slow");
  Asked answering = desk_.next();
  std::atomic<bool> drained{false};
  std::thread drainer([&] {
    server_->drain(10 * kMinute);
    drained = true;
  });
  EXPECT_TRUE(idle.closed());
  EXPECT_EQ(stream.response().body, "a");  // up to a proper end
  EXPECT_TRUE(stream.closed());
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  EXPECT_FALSE(drained);
  EXPECT_FALSE(TestPeer(server_->port()).connected());
  answering.exchange->respond({200, {}, "late"});
  text::HttpResponse last = slow.response();
  EXPECT_EQ(last.body, "late");
  EXPECT_EQ(text::find_header(last.headers, "connection"), "close");
  drainer.join();
  server_->drain(0);  // again: nothing to do
}

TEST_F(HttpServerTest, StopsWithAnswersUnderWay) {
  start();
  TestPeer peer(server_->port());
  peer.get("/slow");
  Asked asked = desk_.next();
  std::atomic<int> told{0};
  asked.exchange->on_gone([&] { ++told; });
  server_->drain(0);  // does not wait for it
  server_.reset();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(asked.exchange->gone());
  asked.exchange->respond({200, {}, ""});  // outlives the server
  EXPECT_TRUE(peer.closed());
}

TEST_F(HttpServerTest, AnAddressInUseIsAnError) {
  start();
  auto second = HttpServer::start({.port = server_->port()}, desk_.handler());
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().to_string().find("in use"), std::string::npos);
  EXPECT_NE(second.error().to_string().find(std::to_string(server_->port())), std::string::npos);
  EXPECT_FALSE(HttpServer::start({.address = "no such address"}, desk_.handler()).ok());
}

struct Pair {
  std::string authority;
  TlsFiles files;
};
Pair make_pair_for(const std::string& name) {
  std::int64_t day = 86'400'000'000'000;
  auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                 std::chrono::system_clock::now().time_since_epoch())
                 .count();
  auto authority = make_authority({name, {}, now - day, 10 * day});
  auto made = make_certificate({"server", {"localhost"}, now - day, 10 * day}, *authority);
  return {authority->certificate_pem, {made->certificate_pem, made->key_pem}};
}

TEST_F(HttpServerTest, TlsWithCertificatesThatChange) {
  Pair before = make_pair_for("before"), after = make_pair_for("after");
  start({.tls = before.files});
  TestPeer peer(server_->port(), before.authority);
  ASSERT_TRUE(peer.connected());
  EXPECT_FALSE(TestPeer(server_->port(), after.authority).connected());
  EXPECT_FALSE(TestPeer(server_->port(), before.authority, "elsewhere").connected());
  EXPECT_FALSE(server_->set_tls({before.files.certificate_pem, after.files.key_pem}).ok());
  EXPECT_FALSE(server_->set_tls({"x", "y"}).ok());
  EXPECT_TRUE(healthy(before.authority));
  ASSERT_TRUE(server_->set_tls(after.files).ok());
  EXPECT_TRUE(healthy(after.authority));
  EXPECT_FALSE(TestPeer(server_->port(), before.authority).connected());
  // Connections from before go on: large answers, pipelines and streams as without TLS.
  std::string large(2'000'000, 'x');
  peer.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n" + large);
  EXPECT_EQ(peer.response().body, large);
  peer.send(
      "GET /echo/1 HTTP/1.1\r\nHost: h\r\n\r\nGET /watch HTTP/1.1\r\nHost: h\r\n\r\nGET /echo/2 "
      "HTTP/1.1\r\nHost: h\r\n\r\n");
  Asked asked = desk_.next();
  asked.exchange->begin({200, {}, ""});
  for (int i = 0; i < 100; ++i) asked.exchange->write(text(std::string(3'000, 'a')));
  asked.exchange->end();
  EXPECT_EQ(peer.response().status, 200);
  EXPECT_EQ(peer.response().body, std::string(300'000, 'a'));
  EXPECT_EQ(text::find_header(peer.response().headers, "x-target"), "/echo/2");
  // Speaking HTTP to it, or nothing at all.
  TestPeer plain(server_->port());
  plain.get("/echo");
  plain.close_writing();
  while (!plain.closed()) plain.bytes(1);
  EXPECT_TRUE(healthy(after.authority));
}

TEST_F(HttpServerTest, GarbageHarmsNobody) {
  Pair pair = make_pair_for("authority");
  for (bool tls : {false, true}) {
    server_.reset();
    HttpServerOptions options;
    if (tls) options.tls = pair.files;
    start(options);
    Random random(3);
    for (int i = 0; i < 60; ++i) {
      TestPeer peer(server_->port());
      std::string bytes = random.chance(1, 3) ? "GET / HTTP/1.1\r\nHost: h\r\n"
                          : tls               ? "\x16\x03\x01"
                                              : "";
      for (std::uint64_t n = random.below(500); n > 0; --n) {
        bytes += static_cast<char>(random.below(256));
      }
      peer.send(bytes + "\r\n\r\n");
      peer.close_writing();
      while (!peer.closed()) peer.bytes(1);
    }
    EXPECT_TRUE(healthy(tls ? pair.authority : ""));
  }
}

}  // namespace
}  // namespace berth::serve
