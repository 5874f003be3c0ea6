// An embedded API server in virtual time with a client, and short words for tests of the simulated
// nodes and controllers: everything by path, objects as YAML.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "base/random.h"
#include "edge/kube/client.h"
#include "edge/store/memory_store.h"
#include "embedded/api/api_server.h"
#include "embedded/api/local_transport.h"
#include "embedded/workloads/read.h"
#include "text/json.h"
#include "text/path.h"
#include "text/yaml.h"

namespace berth::sim {

inline constexpr std::int64_t kTestSecond = 1'000'000'000;

inline std::string yaml_to_json(std::string_view yaml) {
  const auto documents = text::parse_yaml(yaml);
  EXPECT_TRUE(documents.ok()) << (documents.ok() ? "" : documents.error().to_string());
  if (!documents.ok() || documents->empty()) return "{}";
  return text::to_json(documents->front().root());
}

// "status.conditions[Ready].status", "spec.containers.0.name": a list element by its place or by
// its type or name. "" when it is not there; what is no string as JSON.
inline std::string field_of(const text::Value& root, std::string_view path) {
  const text::Value* at = &root;
  while (!path.empty() && at != nullptr) {
    std::size_t end = path.find_first_of(".[");
    const bool bracket = path.front() == '[';
    if (bracket) end = path.find(']');
    const std::string_view word = bracket ? path.substr(1, end - 1) : path.substr(0, end);
    if (at->is_array()) {
      const text::Value* found = nullptr;
      std::int64_t place = -1;
      if (!kinds::parse_int(word, place)) place = -1;
      for (std::int64_t i = 0; const text::Value& item : at->items()) {
        if (i++ == place || text_at(item, "type") == word || text_at(item, "name") == word) {
          found = &item;
        }
      }
      at = found;
    } else {
      at = at->find(word);
    }
    if (end == std::string_view::npos) break;
    path.remove_prefix(bracket ? end + 1 : end);
    if (!path.empty() && path.front() == '.') path.remove_prefix(1);
  }
  if (at == nullptr || at->is_null()) return {};
  return at->is_string() ? std::string(at->string()) : text::to_json(*at);
}

class Cluster {
 public:
  Cluster() {
    server_ = std::make_unique<ApiServer>(loop, store_, Random(1), ApiServerOptions{});
    EXPECT_TRUE(server_->start().ok());
    transport_ = std::make_unique<LocalTransport>(loop, *server_);
    client = std::make_unique<kube::Client>(*transport_, loop, Random(2));
    server_->set_fault_hook([this](const text::HttpRequest& request) {
      count(request);
      return hook ? hook(request) : ApiFault{};
    });
    loop.run_ready();
  }

  // Answers with the status and the body.
  std::pair<int, text::Document> call(std::string method, std::string target, std::string body = {},
                                      std::string type = "application/json") {
    text::HttpRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.body = std::move(body);
    request.headers.push_back({"Content-Type", std::move(type)});
    request.headers.push_back({"User-Agent", "tester"});
    std::pair<int, text::Document> out;
    bool done = false;
    transport_->send(std::move(request), {},
                     [&](text::HttpResponse response, const kube::TransportError*) {
                       done = true;
                       out.first = response.status;
                       auto parsed = text::parse_json(response.body);
                       if (parsed.ok()) out.second = std::move(*parsed);
                     });
    loop.run_until([&done] { return done; }, 10 * kTestSecond);
    return out;
  }
  void create(const std::string& collection, std::string_view yaml) {
    const auto answer = call("POST", collection, yaml_to_json(yaml));
    EXPECT_EQ(answer.first, 201) << collection << ": " << text::to_json(answer.second.root());
  }
  void merge(const std::string& path, std::string_view yaml) {
    const auto answer = call("PATCH", path, yaml_to_json(yaml), "application/merge-patch+json");
    EXPECT_EQ(answer.first, 200) << path << ": " << text::to_json(answer.second.root());
  }
  void remove(const std::string& path) { call("DELETE", path); }
  std::string field(const std::string& path, std::string_view what) {
    return field_of(call("GET", path).second.root(), what);
  }
  bool exists(const std::string& path) { return call("GET", path).first == 200; }
  std::vector<std::string> names(const std::string& collection) {
    const auto answer = call("GET", collection);
    std::vector<std::string> out;
    for (const text::Value& item : at(answer.second.root(), "items").items()) {
      out.emplace_back(text_at(item, "metadata.name"));
    }
    return out;
  }
  void run(double seconds) {
    loop.run_for(static_cast<std::int64_t>(seconds * static_cast<double>(kTestSecond)));
  }

  // How often the components (not the tests) wrote: "PATCH pods/status", "POST pods".
  std::map<std::string, int> writes;

  FakeClock clock{1'800'000'000'000'000'000};
  SteppedLoop loop{clock};

 private:
  void count(const text::HttpRequest& request) {
    if (request.method == "GET") return;
    const auto agent = text::find_header(request.headers, "User-Agent");
    if (agent && *agent == "tester") return;
    const auto target = text::parse_http_target(request.target);
    if (!target.ok()) return;
    std::vector<std::string> path = target->path;
    if (path.size() > 2 && path[0] == "api") path.erase(path.begin(), path.begin() + 2);
    if (path.size() > 3 && path[0] == "apis") path.erase(path.begin(), path.begin() + 3);
    if (path.size() > 2 && path[0] == "namespaces") path.erase(path.begin(), path.begin() + 2);
    std::string what = request.method + ' ' + path[0];
    if (path.size() > 2) what += '/' + path[2];
    ++writes[what];
  }

  store::MemoryStore store_{loop};
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<LocalTransport> transport_;

 public:
  FaultHook hook;
  std::unique_ptr<kube::Client> client;
};

}  // namespace berth::sim
