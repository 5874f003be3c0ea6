// A server in virtual time, and a client of it that waits for its answers. For tests of this
// folder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "base/random.h"
#include "edge/store/memory_store.h"
#include "embedded/api/api_server.h"
#include "embedded/api/local_transport.h"
#include "kinds/schema/schema.h"
#include "text/json.h"

namespace berth::sim {

struct TestAnswer {
  int status = 0;
  text::HttpHeaders headers;
  std::string body;
  text::Document json;

  const text::Value& root() const { return json.root(); }
  // "metadata.name"; "" when it is not there; other values as JSON.
  std::string at(std::string_view path) const {
    const text::Value* value = find_path(json.root(), path);
    if (value == nullptr) return {};
    return value->is_string() ? std::string(value->string()) : text::to_json(*value);
  }
};

struct TestWatch {
  kube::Call call = 0;
  std::string bytes;
  bool ended = false;
  bool failed = false;
  int status = 0;
  // "ADDED a", "MODIFIED a": the type and the name, or the resourceVersion of a bookmark.
  std::vector<std::string> events() const {
    std::vector<std::string> out;
    std::size_t from = 0;
    for (std::size_t end; (end = bytes.find('\n', from)) != std::string::npos; from = end + 1) {
      const auto line = text::parse_json(std::string_view(bytes).substr(from, end - from));
      if (!line.ok()) {
        out.push_back("?");
        continue;
      }
      const text::Value* type = find_path(line.value().root(), "type");
      const text::Value* name = find_path(line.value().root(), "object.metadata.name");
      std::string text(type ? type->string() : "?");
      if (name) text += " " + std::string(name->string());
      out.push_back(std::move(text));
    }
    return out;
  }
};

struct TestWorld {
  FakeClock clock{1'800'000'000'000'000'000};
  SteppedLoop loop{clock};
  store::MemoryStore store{loop};
  ApiServerOptions options;
  std::unique_ptr<ApiServer> server;
  std::unique_ptr<LocalTransport> transport;

  explicit TestWorld(ApiServerOptions wanted = {}) : options(std::move(wanted)) { start(); }
  ~TestWorld() {
    transport.reset();
    server.reset();
  }

  void start(std::uint64_t seed = 7) {
    transport.reset();
    server = std::make_unique<ApiServer>(loop, store, Random(seed), options);
    started = server->start();
    transport = std::make_unique<LocalTransport>(loop, *server, options.admin_token);
    loop.run_ready();
  }
  Status started;

  TestAnswer call(std::string method, std::string target, std::string body = {},
                  std::string content_type = "application/json", std::string accept = {}) {
    text::HttpRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.body = std::move(body);
    request.headers.push_back({"Content-Type", std::move(content_type)});
    request.headers.push_back({"User-Agent", "tester/1.0"});
    if (!accept.empty()) request.headers.push_back({"Accept", std::move(accept)});
    return send(std::move(request));
  }
  TestAnswer send(text::HttpRequest request) {
    TestAnswer answer;
    bool done = false;
    transport->send(std::move(request), {},
                    [&](text::HttpResponse response, const kube::TransportError* error) {
                      done = true;
                      if (error != nullptr) return;
                      answer.status = response.status;
                      answer.headers = std::move(response.headers);
                      answer.body = std::move(response.body);
                    });
    loop.run_until([&] { return done; }, 60'000'000'000);
    auto parsed = text::parse_json(answer.body);
    if (parsed.ok()) answer.json = std::move(parsed).value();
    return answer;
  }
  TestAnswer get(std::string target) { return call("GET", std::move(target)); }
  TestAnswer post(std::string target, std::string body) {
    return call("POST", std::move(target), std::move(body));
  }
  TestAnswer merge(std::string target, std::string body) {
    return call("PATCH", std::move(target), std::move(body), "application/merge-patch+json");
  }

  std::shared_ptr<TestWatch> watch(std::string target, std::string accept = {}) {
    auto watch = std::make_shared<TestWatch>();
    text::HttpRequest request;
    request.method = "GET";
    request.target = std::move(target);
    if (!accept.empty()) request.headers.push_back({"Accept", std::move(accept)});
    kube::StreamHandler handler;
    handler.on_head = [watch](const text::HttpResponse& head) { watch->status = head.status; };
    handler.on_data = [watch](std::string_view bytes) {
      watch->bytes += bytes;
      return true;
    };
    handler.on_end = [watch](const kube::TransportError* error) {
      watch->ended = true;
      watch->failed = error != nullptr;
    };
    watch->call = transport->stream(std::move(request), {}, std::move(handler));
    loop.run_ready();
    return watch;
  }

  std::string pod(std::string_view name, std::string_view more = {}) {
    return "{\"metadata\":{\"name\":\"" + std::string(name) +
           "\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]" + std::string(more) +
           "}}";
  }
};

}  // namespace berth::sim
