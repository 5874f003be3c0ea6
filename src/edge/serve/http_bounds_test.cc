// What strangers may cost a server, and who gives way: memory, connections, descriptors, time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "edge/serve/byte_budget.h"
#include "edge/serve/peer_for_test.h"
#include "edge/serve/server_kinds.h"

namespace berth::serve {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::size_t kMib = 1024 * 1024;

bool soon(const std::function<bool()>& holds) {
  auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    poll(nullptr, 0, 1);
  }
  return true;
}

class HttpBoundsTest : public testing::Test {
 protected:
  using Peers = std::vector<std::unique_ptr<TestPeer>>;

  // Echoes bodies; "/large" is a long answer, "/wait" none until release().
  void start(HttpServerOptions options) {
    auto started = HttpServer::start(
        std::move(options),
        [this](text::HttpRequest request, std::shared_ptr<Exchange> to) {
          if (request.target == "/wait") return waiting_.push_back(std::move(to));
          if (request.target == "/large") return to->respond({200, {}, std::string(8 * kMib, 'x')});
          to->respond({200, {}, std::move(request.body)});
        },
        &metrics_);
    ASSERT_TRUE(started.ok()) << started.error().to_string();
    server_ = std::move(*started);
  }
  TestPeer& connect(Peers& peers, const std::string& from = {}) {
    peers.push_back(std::make_unique<TestPeer>(server_->port(), "", "localhost", from));
    return *peers.back();
  }
  int status_of(const std::string& target, const std::string& from = {}) {
    TestPeer peer(server_->port(), "", "localhost", from);
    peer.get(target);
    return peer.response().status;
  }
  double metric(const std::string& series) const {
    const std::string page = metrics_.render(MetricFormat::kPrometheusText);
    const std::size_t at = page.find("\n" + series + " ");
    return at == std::string::npos ? -1
                                   : std::strtod(page.c_str() + at + series.size() + 2, nullptr);
  }
  double cut(const std::string& why) const {
    return metric("berth_http_connections_cut_total{server=\"http\",why=\"" + why + "\"}");
  }
  static std::string half(std::size_t announced, std::size_t sent) {
    return "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(announced) +
           "\r\n\r\n" + std::string(sent, 'a');
  }

  MetricsRegistry metrics_;
  std::vector<std::shared_ptr<Exchange>> waiting_;  // the server's thread alone, until it stops
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpBoundsTest, UnfinishedRequestsInSumAndTheLargestGiveWay) {
  start({.max_body_bytes = 4 * kMib, .max_request_bytes = 8 * kMib});
  Peers peers;
  for (int i = 0; i < 30; ++i) {
    TestPeer& peer = connect(peers, "127.0.0.2");
    peer.send(half(4 * kMib, kMib));
  }
  EXPECT_TRUE(soon([&] { return cut("memory") >= 20; }));
  EXPECT_LE(cut("memory"), 28);  // and those that fit are left alone
  EXPECT_TRUE(soon([&] { return metric("berth_http_request_bytes{server=\"http\"}") > 0; }));
  EXPECT_LE(metric("berth_http_request_bytes{server=\"http\"}"), 8.0 * kMib);
  int told = 0;
  for (auto& peer : peers) {
    peer->close_writing();
    text::HttpResponse answer = peer->response();
    if (answer.status != 503) continue;
    EXPECT_TRUE(text::find_header(answer.headers, "retry-after").has_value());
    ++told;
  }
  EXPECT_GE(told, 20);
  // While the budget is full of another address a request of ours is answered.
  for (int i = 0; i < 16; ++i) connect(peers, "127.0.0.3").send(half(4 * kMib, kMib));
  TestPeer small(server_->port());
  small.send(half(100'000, 100'000));
  EXPECT_EQ(small.response().body.size(), 100'000u);
}

TEST_F(HttpBoundsTest, WhatIsAnnouncedTakesNothing) {
  start({.max_body_bytes = 100 * kMib, .max_request_bytes = kMib});
  Peers peers;
  for (int i = 0; i < 50; ++i) connect(peers).send(half(100 * kMib, 10));
  EXPECT_TRUE(soon([&] { return metric("berth_http_request_bytes{server=\"http\"}") > 0; }));
  EXPECT_EQ(cut("memory"), 0);
  EXPECT_LT(metric("berth_http_request_bytes{server=\"http\"}"), 50 * 1'024);
}

TEST_F(HttpBoundsTest, RequestsInWorkCountUntilTheirHandlerLetsThemGo) {
  start({.max_body_bytes = 4 * kMib, .max_request_bytes = 5 * kMib});
  Peers peers;
  std::string wait = half(4 * kMib, 4 * kMib);
  wait.replace(0, 7, "POST /wait ");
  connect(peers).send(wait);
  EXPECT_TRUE(
      soon([&] { return metric("berth_http_request_bytes{server=\"http\"}") >= 4.0 * kMib; }));
  TestPeer second(server_->port());
  second.send(half(2 * kMib, 2 * kMib));
  EXPECT_EQ(second.response().status, 503);
  EXPECT_EQ(status_of("/"), 200);
  server_.reset();
  waiting_.clear();
}

TEST_F(HttpBoundsTest, EndlessHeadsAreRefusedInWhateverPartsTheyCome) {
  start({.max_head_bytes = 16'384});
  TestPeer peer(server_->port());
  peer.send("GET / HTTP/1.1\r\nHost: h\r\n");
  // Each part ends with a field: a parser that takes fields one by one never sees a long rest.
  for (int i = 0; i < 400; ++i)
    peer.send("X-" + std::to_string(i) + ": " + std::string(90, 'a') + "\r\n");
  EXPECT_EQ(peer.response().status, 431);
  TestPeer fields(server_->port());
  std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 600; ++i) many += "a:\r\n";
  fields.send(many + "\r\n");
  EXPECT_EQ(fields.response().status, 431);
}

TEST_F(HttpBoundsTest, BodiesByTheEndpoint) {
  start({.max_body_bytes = 100'000, .max_body_of = [](const text::HttpRequest& head) {
           return head.target == "/" ? std::size_t{1'000} : std::size_t{0};
         }});
  auto ask = [&](const std::string& bytes) {
    TestPeer peer(server_->port());
    peer.send(bytes);
    return peer.response().status;
  };
  EXPECT_EQ(ask(half(1'000, 1'000)), 200);
  EXPECT_EQ(ask(half(1'001, 0)), 413);
  const std::string chunks = "\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(ask("POST / HTTP/1.1\r\nHost: h" + chunks + "3e8\r\n" + std::string(1'000, 'a') +
                "\r\n0\r\n\r\n"),
            200);
  EXPECT_EQ(ask("POST / HTTP/1.1\r\nHost: h" + chunks + "3e9\r\n" + std::string(1'001, 'a')), 413);
  EXPECT_EQ(ask("POST /x HTTP/1.1\r\nHost: h" + chunks), 413);
  EXPECT_EQ(ask("GET /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"), 200);
}

TEST_F(HttpBoundsTest, SlowSendersAndTheSilentAreCut) {
  start({.head_timeout_ns = 30 * kMs,
         .request_timeout_ns = 60'000 * kMs,
         .min_bytes_per_second = 1'000'000,
         .idle_timeout_ns = 60'000 * kMs});
  TestPeer silent(server_->port()), blank(server_->port()), head(server_->port()),
      body(server_->port());
  blank.send("\r\n");
  head.send("GET / HTTP/1.1\r\nHo");
  body.send(half(10'000'000, 10));
  EXPECT_TRUE(silent.closed());
  EXPECT_TRUE(blank.closed());
  EXPECT_EQ(head.response().status, 408);
  EXPECT_EQ(body.response().status, 408);
  EXPECT_EQ(cut("silent"), 2);
  EXPECT_EQ(cut("slow request"), 2);
}

TEST_F(HttpBoundsTest, TheOldestIdleOneGivesWayAndThoseAtWorkStay) {
  start({.max_connections = 6, .max_connections_per_peer = 4});
  Peers at_work, idle, others;
  connect(at_work).get("/wait");
  EXPECT_TRUE(soon([&] { return metric("berth_http_connections{server=\"http\"}") == 1; }));
  for (int i = 0; i < 20; ++i) connect(idle);
  EXPECT_EQ(status_of("/"), 200);  // the same address: one of the twenty is gone for it
  EXPECT_TRUE(idle[0]->closed());
  EXPECT_GE(cut("crowded"), 17);
  for (int i = 0; i < 20; ++i) connect(others, "127.0.0." + std::to_string(10 + i));
  EXPECT_EQ(status_of("/", "127.0.0.9"), 200);
  EXPECT_LE(metric("berth_http_connections{server=\"http\"}"), 6);
  server_.reset();
  ASSERT_EQ(waiting_.size(), 1u);
  waiting_.clear();
}

TEST_F(HttpBoundsTest, AnAddressWithAllItsConnectionsAtWorkIsTurnedAway) {
  start({.max_connections_per_peer = 2});
  Peers peers;
  for (int i = 0; i < 2; ++i) connect(peers).get("/wait");
  EXPECT_TRUE(soon([&] { return metric("berth_http_connections{server=\"http\"}") == 2; }));
  poll(nullptr, 0, 20);  // both are handed out
  EXPECT_EQ(status_of("/"), 0);
  EXPECT_EQ(status_of("/", "127.0.0.9"), 200);
  EXPECT_EQ(metric("berth_http_connections_refused_total{server=\"http\"}"), 1);
  server_.reset();
  waiting_.clear();
}

TEST_F(HttpBoundsTest, AnswersThatNobodyReadsInSum) {
  start({.max_answer_bytes = 24 * kMib, .max_in_work = 1, .max_unsent_bytes = 1'024});
  Peers peers;
  for (int i = 0; i < 20; ++i) {
    TestPeer& peer = connect(peers, "127.0.0.2");
    for (int n = 0; n < 5; ++n) peer.get("/large");
  }
  EXPECT_TRUE(soon([&] { return cut("memory") >= 10; }));
  TestPeer reader(server_->port());
  reader.get("/large");
  EXPECT_EQ(reader.response().body.size(), 8 * kMib);
  for (int n = 0; n < 5; ++n) reader.get("/");  // at once, and one after the other
  for (int n = 0; n < 5; ++n) EXPECT_EQ(reader.response().status, 200);
}

// Descriptors of the whole process run out, by somebody else's doing.
TEST_F(HttpBoundsTest, WithoutDescriptorsTheSpareOnesServe) {
  HttpServerOptions options = health_server();
  options.name = "http";
  start(options);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 128;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  std::vector<int> taken;
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY)) {
    taken.push_back(fd);
  }
  int answered = 0;
  for (int i = 0; i < 20; ++i) {
    close(taken.back());  // for our own end
    taken.pop_back();
    TestPeer peer(server_->port());
    peer.get("/");
    answered += peer.response().status == 200 ? 1 : 0;
    peer.close();
    const int again = open("/dev/null", O_RDONLY);
    if (again >= 0) taken.push_back(again);
    if (taken.empty()) break;
  }
  for (int fd : taken) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(answered, 20);
  EXPECT_EQ(status_of("/"), 200);
}

TEST_F(HttpBoundsTest, AServerTakesItsShareOfTheDescriptors) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  start({.descriptor_percent = 6});
  setrlimit(RLIMIT_NOFILE, &before);
  Peers peers;
  for (int i = 0; i < 40; ++i) connect(peers);
  EXPECT_EQ(status_of("/"), 200);
  EXPECT_LE(metric("berth_http_connections{server=\"http\"}"), 16);
}

TEST(ByteBudget, SharesComeBackWithTheirOwner) {
  auto budget = std::make_shared<ByteBudget>(10);
  {
    HeldBytes a(budget), b(budget);
    EXPECT_FALSE(a.set(10));
    EXPECT_TRUE(b.set(1));
    EXPECT_FALSE(a.set(9));
    EXPECT_FALSE(a.set(8)) << "who shrinks is not asked for more";
    HeldBytes moved(std::move(b));
    EXPECT_EQ(budget->held(), 9u);
  }
  EXPECT_EQ(budget->held(), 0u);
}

}  // namespace
}  // namespace berth::serve
