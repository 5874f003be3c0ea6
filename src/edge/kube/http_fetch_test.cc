#include "edge/kube/http_fetch.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/run_loop.h"
#include "base/system_clock.h"
#include "edge/kube/tiny_server_for_test.h"

namespace berth::kube {
namespace {

std::string page_with(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class HttpFetchTest : public testing::Test {
 protected:
  Result<std::string> get(HttpFetch& fetch, const std::string& url) {
    Result<std::string> out = std::string();
    fetch.get(url, [&](Result<std::string> page) {
      out = std::move(page);
      loop_.stop();
    });
    loop_.run();
    return out;
  }

  SystemMonotonicClock monotonic_;
  SystemWallClock wall_;
  RunLoop loop_{monotonic_, wall_};
};

TEST_F(HttpFetchTest, AnswersWithThePageOrWithWhatWasWrong) {
  TinyServer server([](const std::string& head, const std::string&, TinyServer::Connection& to) {
    if (head.find("GET /good ") != std::string::npos) to.write(page_with(200, "metrics"));
    if (head.find("GET /none ") != std::string::npos) to.write(page_with(404, "no"));
    if (head.find("GET /moved ") != std::string::npos) {
      to.write("HTTP/1.1 302 X\r\nLocation: /good\r\nContent-Length: 0\r\n\r\n");
    }
    if (head.find("GET /long ") != std::string::npos) {
      to.write(page_with(200, std::string(5000, 'x')));
    }
    return head.find("GET /hangs ") != std::string::npos;  // says nothing
  });
  HttpFetch fetch(loop_, {.max_bytes = 4096, .timeout_ns = 300'000'000});
  const Result<std::string> good = get(fetch, server.url() + "/good");
  ASSERT_TRUE(good.ok()) << good.error().to_string();
  EXPECT_EQ(*good, "metrics");
  for (const char* path : {"/none", "/moved", "/long", "/hangs"}) {
    EXPECT_FALSE(get(fetch, server.url() + path).ok()) << path;
  }
  EXPECT_FALSE(get(fetch, "http://127.0.0.1:1/").ok());
  EXPECT_FALSE(get(fetch, "file:///etc/passwd").ok());
  EXPECT_FALSE(get(fetch, "").ok());
}

TEST_F(HttpFetchTest, AsksNoMoreThanSoManyAtOnce) {
  std::atomic<int> now{0}, most{0};
  TinyServer server([&](const std::string&, const std::string&, TinyServer::Connection& to) {
    const int here = ++now;
    for (int seen = most; here > seen && !most.compare_exchange_weak(seen, here);) {
    }
    --now;
    to.write(page_with(200, "x"));
    return false;
  });
  HttpFetch fetch(loop_, {.max_at_once = 2});
  int answered = 0;
  for (int i = 0; i < 40; ++i) {
    fetch.get(server.url() + "/", [&](const Result<std::string>& page) {
      EXPECT_TRUE(page.ok());
      if (++answered == 40) loop_.stop();
    });
  }
  loop_.run();
  EXPECT_EQ(answered, 40);
  EXPECT_LE(most, 2);
}

// Nothing is heard after the fetcher is gone, and it does not wait for a server that hangs.
TEST_F(HttpFetchTest, EndsWithTransfersUnderWay) {
  TinyServer server(
      [](const std::string&, const std::string&, TinyServer::Connection&) { return true; });
  bool heard = false;
  {
    HttpFetch fetch(loop_, {.timeout_ns = 60'000'000'000});
    for (int i = 0; i < 100; ++i) {
      fetch.get(server.url() + "/", [&](const Result<std::string>&) { heard = true; });
    }
  }
  loop_.run_ready();
  EXPECT_FALSE(heard);
}

}  // namespace
}  // namespace berth::kube
