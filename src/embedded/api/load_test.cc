// What large and many requests cost: work in pieces, memory of slow readers, a disk without room.
// Counted in commits, bytes and ratios, not in time.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/growth_for_test.h"
#include "embedded/api/world_for_test.h"

namespace berth::sim {
namespace {

constexpr const char* kLoadMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kLoadTable = "application/json;as=Table;v=v1;g=meta.k8s.io";

std::string load_map(const std::string& name, const std::string& data = "",
                     const std::string& meta = "") {
  return R"({"metadata":{"name":")" + name + "\"" + meta + R"(},"data":{)" + data + "}}";
}
std::string numbered(int i) {
  std::string digits = std::to_string(i);
  return "m" + std::string(6 - digits.size(), '0') + digits;
}
std::string bytes_of(std::size_t count) { return R"("k":")" + std::string(count, 'x') + "\""; }

// Counts what is written by one piece of work.
class CountingStore final : public store::Store {
 public:
  explicit CountingStore(Loop& loop) : inner_(loop) {}
  Result<std::uint64_t> load(const Visit& visit) override { return inner_.load(visit); }
  void commit(std::vector<store::Write> writes, std::uint64_t version,
              std::function<void(Status)> done) override {
    ++commits;
    inner_.commit(std::move(writes), version, std::move(done));
  }
  void resume() override { inner_.resume(); }
  int commits = 0;

 private:
  store::MemoryStore inner_;
};

struct CountedWorld {
  FakeClock clock{1'800'000'000'000'000'000};
  SteppedLoop loop{clock};
  CountingStore store{loop};
  ApiServer server{loop, store, Random(7)};
  LocalTransport transport{loop, server};

  CountedWorld() {
    EXPECT_TRUE(server.start().ok());
    loop.run_ready();
  }
  int call(const std::string& method, const std::string& target, const std::string& body = {}) {
    int status = 0;
    transport.send({method, target, {{"Content-Type", "application/json"}}, body}, {},
                   [&](const text::HttpResponse& answer, const kube::TransportError*) {
                     status = answer.status;
                     last = answer.body;
                   });
    most = 0;
    int before = store.commits;
    loop.run_until(
        [&] {
          most = std::max(most, store.commits - before);
          before = store.commits;
          return false;
        },
        1'000'000'000);
    return status;
  }
  int most = 0;  // commits of one piece of work
  std::string last;
};

TEST(Load, WhatFollowsFromOneRequestIsCutIntoPieces) {
  struct Case {
    const char* name;
    std::string target;
    bool owned;
  };
  const std::string owner = std::string(kLoadMaps) + "/owner";
  const Case cases[] = {
      {"collection", kLoadMaps, false},
      {"background", owner, true},
      {"foreground", owner + "?propagationPolicy=Foreground", true},
      {"orphan", owner + "?propagationPolicy=Orphan", true},
      {"namespace", "/api/v1/namespaces/big", false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    CountedWorld world;
    const bool own_namespace = std::string_view(c.name) == "namespace";
    std::string at = kLoadMaps, meta;
    if (own_namespace) {
      ASSERT_EQ(world.call("POST", "/api/v1/namespaces", R"({"metadata":{"name":"big"}})"), 201);
      at = "/api/v1/namespaces/big/configmaps";
    }
    if (c.owned) {
      ASSERT_EQ(world.call("POST", at, load_map("owner")), 201);
      const std::string uid = world.last.substr(world.last.find("\"uid\":\"") + 7, 36);
      meta = R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":")" +
             uid + R"(","blockOwnerDeletion":true}])";
    }
    for (int i = 0; i < 450; ++i) {
      ASSERT_EQ(world.call("POST", at, load_map(numbered(i), "", meta)), 201);
    }
    const std::size_t before = world.server.objects();
    ASSERT_LT(world.call("DELETE", c.target), 300);
    EXPECT_LE(world.most, 101);
    EXPECT_GT(world.most, 50) << "nothing of it was done together";
    const bool kept = std::string_view(c.name) == "orphan";
    EXPECT_EQ(before - world.server.objects(),
              kept ? 1u : 450u + c.owned + (own_namespace ? 3u : 0u));
  }
}

TEST(Load, LargeListsComeInPieces) {
  TestWorld world;
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(world.post(kLoadMaps, load_map(numbered(i), bytes_of(50'000))).status, 201);
  }
  for (const char* accept : {"application/json", kLoadTable, "application/yaml"}) {
    const TestAnswer whole = world.call("GET", kLoadMaps, "", "application/json", accept);
    ASSERT_EQ(whole.status, 200) << accept;
    std::size_t longest = 0, pieces = 0;
    std::string all;
    text::HttpRequest request{"GET", kLoadMaps, {{"Accept", accept}}, {}};
    world.transport->stream(std::move(request), {},
                            {.on_head = [](const text::HttpResponse&) {},
                             .on_data =
                                 [&](std::string_view bytes) {
                                   longest = std::max(longest, bytes.size());
                                   ++pieces;
                                   all += bytes;
                                   return true;
                                 },
                             .on_end = [](const kube::TransportError*) {}});
    world.loop.run_ready();
    EXPECT_EQ(all, whole.body) << accept;
    EXPECT_LT(longest, 400'000u) << accept;
    EXPECT_GT(pieces, 3u) << accept;
    if (accept == kLoadTable) {
      EXPECT_EQ(whole.at("rows[30].cells[0]"), numbered(29));
    } else if (std::string_view(accept) == "application/json") {
      EXPECT_EQ(whole.at("items[30].metadata.name"), numbered(29));
    } else {
      EXPECT_NE(whole.body.find("- data:\n    k: \"xxx"), std::string::npos);
      EXPECT_EQ(whole.body.find("kind: ConfigMapList"), whole.body.rfind("kind: "));
    }
  }
}

// Pages cost what they hold, and say how much is left as one list would.
TEST(Load, PagesDoNotCostThePagesAfterThem) {
  TestWorld world;
  for (int i = 0; i < 25; ++i) {
    ASSERT_EQ(world.post(kLoadMaps, load_map(numbered(i))).status, 201);
  }
  std::vector<std::string> left;
  std::string next;
  int seen = 0;
  do {
    const TestAnswer page = world.get(std::string(kLoadMaps) + "?limit=10&continue=" + next);
    ASSERT_EQ(page.status, 200);
    left.push_back(page.at("metadata.remainingItemCount"));
    next = page.at("metadata.continue");
    seen += static_cast<int>(find_path(page.root(), "items")->size());
    // Neither what comes nor what goes meanwhile is in it.
    ASSERT_EQ(world.post(kLoadMaps, load_map("z" + std::to_string(seen))).status, 201);
  } while (!next.empty());
  EXPECT_EQ(left, (std::vector<std::string>{"16", "6", ""}));
  EXPECT_EQ(seen, 26);  // and kube-root-ca.crt

  const double growth = growth_of(400, [](int n) {
    auto large = std::make_shared<TestWorld>();
    for (int i = 0; i < n; ++i) large->post(kLoadMaps, load_map(numbered(i)));
    return [large] {
      std::string token;
      do {
        const TestAnswer page = large->get(std::string(kLoadMaps) + "?limit=10&continue=" + token);
        token = page.at("metadata.continue");
      } while (!token.empty());
    };
  });
  EXPECT_LT(growth, kNotQuadratic);
}

// The state that a watch's events add up to.
std::map<std::string, std::string> folded(const std::string& bytes, std::vector<int>* versions) {
  std::map<std::string, std::string> state;
  std::size_t from = 0;
  for (std::size_t end; (end = bytes.find('\n', from)) != std::string::npos; from = end + 1) {
    const auto line = text::parse_json(std::string_view(bytes).substr(from, end - from));
    if (!line.ok()) continue;
    const auto at = [&](const char* path) {
      const text::Value* value = find_path(line->root(), path);
      return value == nullptr ? std::string() : std::string(value->string());
    };
    const std::string name = at("object.metadata.name"), type = at("type");
    if (type == "DELETED") {
      EXPECT_EQ(state.erase(name), 1u) << "deleted what was not there: " << name;
    } else if (!name.empty()) {
      EXPECT_EQ(state.contains(name), type == "MODIFIED") << type << " " << name;
      state[name] = at("object.metadata.resourceVersion");
    }
    if (versions != nullptr)
      versions->push_back(std::atoi(at("object.metadata.resourceVersion").c_str()));
  }
  return state;
}

TEST(Load, AWatchThatBeginsWithManyObjectsMissesNothingThatChangesMeanwhile) {
  TestWorld world;
  for (int i = 0; i < 5'000; ++i) {
    ASSERT_EQ(world.post(kLoadMaps, load_map(numbered(i))).status, 201);
  }
  auto watch = std::make_shared<TestWatch>();
  std::size_t pieces = 0;
  text::HttpRequest request{"GET",
                            std::string(kLoadMaps) +
                                "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&"
                                "resourceVersionMatch=NotOlderThan",
                            {},
                            {}};
  const auto send = [&](const char* method, const std::string& target, const std::string& body) {
    world.transport->send(
        {method, target, {{"Content-Type", "application/merge-patch+json"}}, body}, {},
        [](const text::HttpResponse&, const kube::TransportError*) {});
  };
  world.transport->stream(
      std::move(request), {},
      {.on_head = [](const text::HttpResponse&) {},
       .on_data =
           [&](std::string_view bytes) {
             watch->bytes += bytes;
             const std::string low =
                 std::string(kLoadMaps) + "/" + numbered(static_cast<int>(pieces));
             const std::string high =
                 std::string(kLoadMaps) + "/" + numbered(4'999 - static_cast<int>(pieces));
             if (pieces % 3 == 0 && pieces < 600) send("DELETE", low, "");
             if (pieces % 3 == 1 && pieces < 600) send("DELETE", high, "");
             if (pieces % 3 == 2 && pieces < 600) {
               send("PATCH", high, R"({"data":{"new":"1"}})");
               send("PATCH", low, R"({"data":{"new":"1"}})");
             }
             ++pieces;
             return true;
           },
       .on_end = [](const kube::TransportError*) {}});
  world.loop.run_for(1'000'000'000);
  std::map<std::string, std::string> now;
  const TestAnswer list = world.get(kLoadMaps);
  for (const text::Value& item : find_path(list.root(), "items")->items()) {
    now[std::string(find_path(item, "metadata.name")->string())] =
        find_path(item, "metadata.resourceVersion")->string();
  }
  EXPECT_LT(now.size(), 5'000u);
  EXPECT_EQ(folded(watch->bytes, nullptr), now);
  EXPECT_NE(watch->bytes.find("k8s.io/initial-events-end"), std::string::npos);
}

TEST(Load, ASlowReaderHoldsLittleAndCatchesUp) {
  for (const bool too_slow : {false, true}) {
    SCOPED_TRACE(too_slow);
    TestWorld world;
    ASSERT_EQ(world.post(kLoadMaps, load_map("a", bytes_of(20'000))).status, 201);
    std::string bytes;
    bool reading = false, ended = false;
    text::HttpRequest request{"GET",
                              std::string(kLoadMaps) + "?watch=true&resourceVersion=" +
                                  std::to_string(world.server->version()),
                              {},
                              {}};
    const kube::Call call =
        world.transport->stream(std::move(request), {},
                                {.on_head = [](const text::HttpResponse&) {},
                                 .on_data =
                                     [&](std::string_view more) {
                                       bytes += more;
                                       return reading;
                                     },
                                 .on_end = [&](const kube::TransportError*) { ended = true; }});
    const int changes = too_slow ? 2'000 : 400;  // 40 MB is more than history; 8 MB is not
    for (int i = 0; i < changes; ++i) {
      world.merge(std::string(kLoadMaps) + "/a", R"({"data":{"n":")" + std::to_string(i) + "\"}}");
    }
    reading = true;
    world.transport->resume(call);
    // What waited for it, before it gets any more.
    const std::size_t at_once = [&] {
      world.loop.run_ready();
      return bytes.size();
    }();
    EXPECT_LT(at_once, 2'000'000u);
    world.loop.run_for(1'000'000'000);
    if (too_slow) {
      EXPECT_TRUE(ended);
      EXPECT_NE(bytes.find("\"code\":410"), std::string::npos);
      continue;
    }
    std::vector<int> versions;
    folded(R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}})"
           "\n" +
               bytes,
           &versions);
    ASSERT_EQ(versions.size(), 401u);
    EXPECT_TRUE(std::is_sorted(versions.begin(), versions.end()));
  }
}

TEST(Load, WatchersOfOneShapeShareWhatIsPrinted) {
  std::string keys;
  for (int i = 0; i < 3'000; ++i)
    keys += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":\"v\"";
  const double growth = growth_of(50, [&](int watchers) {
    auto world = std::make_shared<TestWorld>();
    world->post(kLoadMaps, load_map("a", keys));
    auto open = std::make_shared<std::vector<std::shared_ptr<TestWatch>>>();
    const std::string from = std::to_string(world->server->version());
    for (int i = 0; i < watchers; ++i) {
      open->push_back(
          world->watch(std::string(kLoadMaps) + "?watch=true&resourceVersion=" + from, kLoadTable));
    }
    return [world, open] {
      static int round = 0;
      world->merge(std::string(kLoadMaps) + "/a",
                   R"({"data":{"n":")" + std::to_string(++round) + "\"}}");
      EXPECT_NE(open->back()->bytes.find("\"kind\":\"Table\""), std::string::npos);
    };
  });
  EXPECT_LT(growth, 2.5) << "the object is printed for each of them";
}

TEST(Load, LimitsAreThoseOfKubeApiserver) {
  TestWorld world;
  ASSERT_EQ(world.post(kLoadMaps, load_map("a")).status, 201);
  const std::string at = std::string(kLoadMaps) + "/a";
  std::string patch = "[";
  for (int i = 0; i < 10'001; ++i) patch += R"({"op":"test","path":"/kind","value":"ConfigMap"},)";
  patch.back() = ']';
  const TestAnswer many = world.call("PATCH", at, patch, "application/json-patch+json");
  EXPECT_EQ(many.status, 413);
  EXPECT_EQ(many.at("reason"), "RequestEntityTooLarge");
  EXPECT_EQ(many.at("message"),
            "The allowed maximum operations in a JSON patch is 10000, got 10001");
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    const TestAnswer large =
        world.call(method, std::string_view(method) == "POST" ? std::string(kLoadMaps) : at,
                   std::string(3 * 1024 * 1024 + 1, ' '), "application/merge-patch+json");
    EXPECT_EQ(large.status, 413) << method;
    EXPECT_EQ(large.at("message"), "Request entity too large: limit is 3145728") << method;
  }
  const TestAnswer object =
      world.post("/api/v1/namespaces/default/pods",
                 world.pod("p", R"(,"schedulerName":")" + std::string(2'200'000, 's') + "\""));
  EXPECT_EQ(object.status, 500);
  EXPECT_EQ(object.at("message"), "etcdserver: request is too large");
  const TestAnswer bomb = world.call(
      "PATCH", at,
      [] {
        std::string copies = "[";
        for (int i = 0; i < 64; ++i) {
          copies += R"({"op":"copy","from":"","path":"/c)" + std::to_string(i) + "\"},";
        }
        copies.back() = ']';
        return copies;
      }(),
      "application/json-patch+json");
  EXPECT_EQ(bomb.status, 422);
  EXPECT_NE(bomb.body.find("copies of the patch"), std::string::npos) << bomb.body;
}

TEST(Load, AFullDiskRefusesWritesServesReadsAndRecovers) {
  TestWorld world;
  std::vector<std::string> told;
  world.server->on_full([&](const Error* error) { told.push_back(error ? "full" : "room"); });
  const auto owner = world.post(kLoadMaps, load_map("owner"));
  ASSERT_EQ(owner.status, 201);
  const std::string meta =
      R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":")" +
      owner.at("metadata.uid") + R"("}])";
  ASSERT_EQ(world.post(kLoadMaps, load_map("owned", "", meta)).status, 201);
  const auto watch = world.watch(std::string(kLoadMaps) + "?watch=true&resourceVersion=" +
                                 std::to_string(world.server->version()));
  const std::string before = world.get(std::string(kLoadMaps) + "/owner").body;

  world.store.set_full(true);
  const std::string at = std::string(kLoadMaps) + "/owner";
  for (int round = 0; round < 2; ++round) {
    const TestAnswer refused = world.post(kLoadMaps, load_map("new"));
    EXPECT_EQ(refused.status, 507);
    EXPECT_EQ(refused.at("reason"), "InsufficientStorage");
    for (const char* word : {"no space left", "nothing was written", "Make room"}) {
      EXPECT_NE(refused.at("message").find(word), std::string::npos) << refused.at("message");
    }
    EXPECT_EQ(world.merge(at, R"({"data":{"a":"1"}})").status, 507);
    EXPECT_EQ(world.call("DELETE", at).status, 507);
    EXPECT_EQ(world.get(at).body, before);
    EXPECT_EQ(find_path(world.get(kLoadMaps).root(), "items")->size(), 3u);
  }
  EXPECT_EQ(told, std::vector<std::string>{"full"});

  // Several under way at once, the later ones built on the first.
  std::vector<int> statuses;
  for (int i = 0; i < 5; ++i) {
    world.transport->send({"PATCH",
                           at,
                           {{"Content-Type", "application/merge-patch+json"}},
                           R"({"data":{"n)" + std::to_string(i) + R"(":"1"}})"},
                          {}, [&](const text::HttpResponse& answer, const kube::TransportError*) {
                            statuses.push_back(answer.status);
                          });
  }
  world.loop.run_ready();
  EXPECT_EQ(statuses, std::vector<int>(5, 507));
  EXPECT_EQ(world.get(at).body, before);
  EXPECT_EQ(watch->bytes, "") << "nobody is told of what was not written";

  // Room again: the next write is taken, and what is written is whole.
  world.store.set_full(false);
  EXPECT_EQ(world.merge(at, R"({"data":{"b":"1"}})").status, 200);
  EXPECT_EQ(world.get(at).at("data"), R"({"b":"1"})");
  EXPECT_EQ(told, (std::vector<std::string>{"full", "room"}));
  EXPECT_EQ(world.post(kLoadMaps, load_map("new")).status, 201);
  EXPECT_EQ(watch->events(), (std::vector<std::string>{"MODIFIED owner", "ADDED new"}));
  world.start();
  ASSERT_TRUE(world.started.ok());
  EXPECT_EQ(world.get(at).at("data"), R"({"b":"1"})");
}

// What the server would have written itself while there was no room is made up for.
TEST(Load, GarbageIsCollectedAfterTheDiskWasFull) {
  TestWorld world;
  const auto owner = world.post(kLoadMaps, load_map("owner"));
  ASSERT_EQ(
      world
          .post(kLoadMaps, load_map("owned", "",
                                    R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap",)"
                                    R"("name":"owner","uid":")" +
                                        owner.at("metadata.uid") + R"("}])"))
          .status,
      201);
  // The owner's deletion is in the store; there is no room for what follows from it.
  world.transport->send({"DELETE", std::string(kLoadMaps) + "/owner", {}, {}}, {},
                        [](const text::HttpResponse&, const kube::TransportError*) {});
  int pieces = 0;
  world.loop.run_until(
      [&] {
        if (++pieces == 2) world.store.set_full(true);  // asked before the first too
        return false;
      },
      1'000'000);
  ASSERT_EQ(world.get(std::string(kLoadMaps) + "/owner").status, 404);
  ASSERT_EQ(world.get(std::string(kLoadMaps) + "/owned").status, 200);
  world.store.set_full(false);
  ASSERT_EQ(world.post(kLoadMaps, load_map("new")).status, 201);
  world.loop.run_ready();
  EXPECT_EQ(world.get(std::string(kLoadMaps) + "/owned").status, 404);
}

}  // namespace
}  // namespace berth::sim
