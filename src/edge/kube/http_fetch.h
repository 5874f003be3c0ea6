// Plain GETs from many hosts: for pages of metrics, not for the API server.
//
// libcurl in one thread of its own, answers on the loop. HTTP alone: no TLS, no proxy, no
// redirects, no kept connections. At most max_at_once are under way, the others wait in order.
// get() and the destructor are for the loop's thread; after the destructor nothing is heard any
// more. A page longer than max_bytes or later than timeout_ns is an error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/result.h"

namespace berth::kube {

struct HttpFetchOptions {
  std::size_t max_at_once = 32;
  std::size_t max_bytes = 4 * 1024 * 1024;
  std::int64_t timeout_ns = 3'000'000'000;
};

class HttpFetch {
 public:
  using Done = std::function<void(Result<std::string>)>;

  HttpFetch(Loop& loop, HttpFetchOptions options = {});
  ~HttpFetch();
  HttpFetch(const HttpFetch&) = delete;
  HttpFetch& operator=(const HttpFetch&) = delete;

  // url: "http://10.0.0.7:9400/metrics".
  void get(std::string url, Done done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::kube
