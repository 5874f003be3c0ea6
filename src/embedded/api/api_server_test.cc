#include "embedded/api/api_server.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "embedded/api/world_for_test.h"

namespace berth::sim {
namespace {

constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";

std::string map_named(std::string_view name, std::string_view more = {}) {
  return "{\"metadata\":{\"name\":\"" + std::string(name) + "\"" + std::string(more) +
         "},\"data\":{\"a\":\"1\"}}";
}

TEST(ApiServer, StartsWithWhatEveryClusterHas) {
  TestWorld world;
  ASSERT_TRUE(world.started.ok());
  const TestAnswer namespaces = world.get("/api/v1/namespaces");
  EXPECT_EQ(namespaces.status, 200);
  EXPECT_EQ(namespaces.at("kind"), "NamespaceList");
  EXPECT_EQ(namespaces.root().find("items")->size(), 4u);
  EXPECT_EQ(world.get("/api/v1/namespaces/default").at("status.phase"), "Active");
  EXPECT_EQ(
      world.get("/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical").at("value"),
      "2000001000");
  EXPECT_EQ(world.get("/api/v1/namespaces/default/services/kubernetes").at("spec.clusterIP"),
            "10.96.0.1");
  EXPECT_EQ(world.get("/version").at("gitVersion"), "v1.37.1");
  EXPECT_EQ(world.get("/readyz").body, "ok");
}

TEST(ApiServer, CreatesReadsUpdatesAndDeletes) {
  TestWorld world;
  const TestAnswer made = world.post(kMaps, map_named("m"));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("kind"), "ConfigMap");
  EXPECT_EQ(made.at("metadata.namespace"), "default");
  EXPECT_EQ(made.at("metadata.uid").size(), 36u);
  EXPECT_EQ(made.at("metadata.creationTimestamp"), "2027-01-15T08:00:00Z");
  EXPECT_EQ(world.post(kMaps, map_named("m")).at("message"), "configmaps \"m\" already exists");
  const std::string at = std::string(kMaps) + "/m";
  EXPECT_EQ(world.get(at).at("data.a"), "1");
  // A stale version is a conflict, the right one is taken, none at all is taken as well.
  const std::string version = made.at("metadata.resourceVersion");
  const std::string body = map_named("m", ",\"resourceVersion\":\"1\"");
  const TestAnswer stale = world.call("PUT", at, body);
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(stale.at("message"),
            "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; "
            "please apply your changes to the latest version and try again");
  const TestAnswer same =
      world.call("PUT", at, map_named("m", ",\"resourceVersion\":\"" + version + "\""));
  EXPECT_EQ(same.status, 200);
  EXPECT_EQ(same.at("metadata.resourceVersion"), version) << "nothing changed, nothing is written";
  const TestAnswer patched = world.merge(at, "{\"data\":{\"b\":\"2\"}}");
  EXPECT_EQ(patched.at("data"), "{\"a\":\"1\",\"b\":\"2\"}");
  EXPECT_EQ(world
                .call("PATCH", at, "[{\"op\":\"remove\",\"path\":\"/data/a\"}]",
                      "application/json-patch+json")
                .at("data"),
            "{\"b\":\"2\"}");
  const TestAnswer gone = world.call("DELETE", at);
  EXPECT_EQ(gone.status, 200);
  EXPECT_EQ(gone.at("status"), "Success");
  EXPECT_EQ(gone.at("details.kind"), "configmaps");
  const TestAnswer missing = world.get(at);
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.at("message"), "configmaps \"m\" not found");
  EXPECT_EQ(missing.at("reason"), "NotFound");
  EXPECT_EQ(missing.at("details.name"), "m");
}

struct Refusal {
  const char* method;
  const char* target;
  const char* body;
  int status;
  const char* message;  // a part of it
};

TEST(ApiServer, RefusesInTheWordsOfKubernetes) {
  TestWorld world;
  ASSERT_EQ(world.post(kMaps, map_named("m")).status, 201);
  const Refusal refusals[] = {
      {"POST", kMaps, "{", 400, "couldn't get version/kind; json parse error"},
      {"POST", kMaps, "[]", 400, "cannot unmarshal"},
      {"POST", kMaps, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", 400,
       "cannot be handled as a ConfigMap"},
      {"POST", kMaps, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v2\"}", 400,
       "does not match the expected API version (v1)"},
      {"POST", kMaps, "{\"metadata\":{\"name\":\"x\",\"namespace\":\"other\"}}", 400,
       "the namespace of the provided object does not match the namespace sent on the request"},
      {"POST", "/api/v1/namespaces/none/configmaps", "{\"metadata\":{\"name\":\"x\"}}", 404,
       "namespaces \"none\" not found"},
      {"POST", "/api/v1/namespaces/default/configmaps?fieldValidation=Strict",
       "{\"metadata\":{\"name\":\"x\"},\"dta\":{}}", 400,
       "strict decoding error: unknown field \"dta\""},
      {"PUT", "/api/v1/namespaces/default/configmaps/m", "{\"metadata\":{\"name\":\"n\"}}", 400,
       "the name of the object (n) does not match the name on the URL (m)"},
      {"PATCH", "/api/v1/namespaces/default/configmaps/m", "{}", 415, "Unsupported Media Type"},
      {"GET", "/api/v1/nothing", "", 404, ""},
      {"GET", "/apis/no.group/v1/things", "", 404, ""},
      {"POST", "/api/v1/pods", "{}", 405, "does not allow this method"},
      {"GET", "/api/v1/pods?labelSelector=%3D%3D", "", 400, "parse"},
      {"GET", "/api/v1/pods?fieldSelector=spec.foo%3Da", "", 400, "field label not supported"},
      {"GET", "/api/v1/pods?resourceVersion=999999", "", 504, "Too large resource version"},
      {"GET", "/api/v1/pods?continue=xyz", "", 400, "continue key is not valid"},
      {"GET", "/api/v1/pods?resourceVersionMatch=Exact", "", 422, "resourceVersionMatch"},
      {"GET", "/api/v1/namespaces/default/pods/p/log", "", 404, "pods \"p\" not found"},
      {"DELETE", "/api/v1/namespaces/default/configmaps/m?propagationPolicy=Never", "", 422,
       "propagationPolicy"},
  };
  for (const Refusal& refusal : refusals) {
    const TestAnswer answer = world.call(refusal.method, refusal.target, refusal.body);
    EXPECT_EQ(answer.status, refusal.status) << refusal.target << " " << answer.body;
    EXPECT_NE(answer.body.empty() ? std::string::npos
                                  : (answer.at("message") + answer.body).find(refusal.message),
              std::string::npos)
        << refusal.target << " " << answer.body;
  }
}

TEST(ApiServer, ListsSelectsAndContinues) {
  TestWorld world;
  for (int i = 0; i < 7; ++i) {
    const std::string label = ",\"labels\":{\"odd\":\"" + std::to_string(i % 2) + "\"}";
    ASSERT_EQ(world.post(kMaps, map_named("m" + std::to_string(i), label)).status, 201);
  }
  EXPECT_EQ(world.get(std::string(kMaps) + "?labelSelector=odd%3D1").root().find("items")->size(),
            3u);
  EXPECT_EQ(world.get(std::string(kMaps) + "?fieldSelector=metadata.name%3Dm3")
                .root()
                .find("items")
                ->size(),
            1u);
  const TestAnswer first = world.get(std::string(kMaps) + "?limit=3");
  EXPECT_EQ(first.root().find("items")->size(), 3u);
  EXPECT_EQ(first.at("items[0].metadata.name"), "kube-root-ca.crt");  // every namespace has it
  EXPECT_EQ(first.at("metadata.remainingItemCount"), "5");
  const std::string next = first.at("metadata.continue");
  ASSERT_FALSE(next.empty());
  // What happens between the pages does not show on them.
  ASSERT_EQ(world.call("DELETE", std::string(kMaps) + "/m4").status, 200);
  ASSERT_EQ(world.post(kMaps, map_named("m45")).status, 201);
  ASSERT_EQ(world.merge(std::string(kMaps) + "/m5", "{\"data\":{\"a\":\"2\"}}").status, 200);
  const TestAnswer second = world.get(std::string(kMaps) + "?limit=30&continue=" + next);
  ASSERT_EQ(second.status, 200) << second.body;
  EXPECT_EQ(second.at("metadata.resourceVersion"), first.at("metadata.resourceVersion"));
  EXPECT_EQ(second.root().find("items")->size(), 5u);
  EXPECT_EQ(second.at("items[2].metadata.name"), "m4");
  EXPECT_EQ(second.at("items[3].data.a"), "1");
  // Forgotten history ends it, with a token that goes on inconsistently.
  world.server->set_fault_hook(
      [](const text::HttpRequest&) { return ApiFault{ApiFault::Kind::kCompact, 0, 0}; });
  const TestAnswer expired = world.get(std::string(kMaps) + "?limit=3&continue=" + next);
  EXPECT_EQ(expired.status, 410);
  EXPECT_EQ(expired.at("reason"), "Expired");
  const TestAnswer rest =
      world.get(std::string(kMaps) + "?continue=" + expired.at("metadata.continue"));
  EXPECT_EQ(rest.at("items[2].metadata.name"), "m45");
}

TEST(ApiServer, WatchesTellWhatChangesInView) {
  TestWorld world;
  ASSERT_EQ(world.post(kMaps, map_named("old")).status, 201);
  const std::string version = world.get(kMaps).at("metadata.resourceVersion");
  const auto all = world.watch(std::string(kMaps) + "?watch=true");
  const auto later = world.watch(std::string(kMaps) + "?watch=true&resourceVersion=" + version);
  const auto red = world.watch(std::string(kMaps) + "?watch=true&labelSelector=c%3Dred");
  const auto one = world.watch(std::string(kMaps) + "?watch=true&fieldSelector=metadata.name%3Da");
  const auto listed =
      world.watch(std::string(kMaps) +
                  "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                  "&allowWatchBookmarks=true");
  ASSERT_EQ(world.post(kMaps, map_named("a", ",\"labels\":{\"c\":\"red\"}")).status, 201);
  ASSERT_EQ(world.merge(std::string(kMaps) + "/a", "{\"data\":{\"x\":\"y\"}}").status, 200);
  ASSERT_EQ(
      world.merge(std::string(kMaps) + "/a", "{\"metadata\":{\"labels\":{\"c\":\"blue\"}}}").status,
      200);
  ASSERT_EQ(world.call("DELETE", std::string(kMaps) + "/a").status, 200);
  ASSERT_EQ(world.post("/api/v1/namespaces/kube-system/configmaps", map_named("z")).status, 201);
  world.loop.run_ready();
  using Events = std::vector<std::string>;
  EXPECT_EQ(all->events(), (Events{"ADDED kube-root-ca.crt", "ADDED old", "ADDED a", "MODIFIED a",
                                   "MODIFIED a", "DELETED a"}));
  EXPECT_EQ(later->events(), (Events{"ADDED a", "MODIFIED a", "MODIFIED a", "DELETED a"}));
  EXPECT_EQ(red->events(), (Events{"ADDED a", "MODIFIED a", "DELETED a"}));
  EXPECT_EQ(one->events(), (Events{"ADDED a", "MODIFIED a", "MODIFIED a", "DELETED a"}));
  EXPECT_EQ(listed->events(), (Events{"ADDED kube-root-ca.crt", "ADDED old", "BOOKMARK", "ADDED a",
                                      "MODIFIED a", "MODIFIED a", "DELETED a"}));
  EXPECT_NE(listed->bytes.find("k8s.io/initial-events-end"), std::string::npos);
  // From history, for one who comes late; then bookmarks with time.
  const auto late = world.watch(std::string(kMaps) +
                                "?watch=true&allowWatchBookmarks=true"
                                "&timeoutSeconds=100&resourceVersion=" +
                                version);
  EXPECT_EQ(late->events(), later->events());
  world.loop.run_for(61'000'000'000);
  EXPECT_EQ(late->events().back(), "BOOKMARK");
  EXPECT_FALSE(late->ended);
  world.loop.run_for(60'000'000'000);
  EXPECT_TRUE(late->ended);
  EXPECT_FALSE(late->failed);
  EXPECT_EQ(world.server->streams(), 5u);
  world.transport->cancel(all->call);
  world.loop.run_ready();
  EXPECT_EQ(world.server->streams(), 4u);
}

TEST(ApiServer, HistoryIsBoundedAndSaysSo) {
  ApiServerOptions options;
  options.history = 10;
  TestWorld world(options);
  for (int i = 0; i < 15; ++i) {
    ASSERT_EQ(world.post(kMaps, map_named("m" + std::to_string(i))).status, 201);
  }
  const auto old = world.watch(std::string(kMaps) + "?watch=true&resourceVersion=1");
  EXPECT_TRUE(old->ended);
  EXPECT_NE(old->bytes.find("\"code\":410"), std::string::npos) << old->bytes;
  EXPECT_NE(old->bytes.find("too old resource version"), std::string::npos);
  const TestAnswer exact =
      world.get(std::string(kMaps) + "?resourceVersion=1&resourceVersionMatch=Exact");
  EXPECT_EQ(exact.status, 410);
}

TEST(ApiServer, PodsAreDefaultedBoundAndLeaveWithGrace) {
  TestWorld world;
  const TestAnswer made = world.post(kPods, world.pod("p"));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("spec.restartPolicy"), "Always");
  EXPECT_EQ(made.at("spec.priority"), "0");
  EXPECT_EQ(made.at("spec.preemptionPolicy"), "PreemptLowerPriority");
  EXPECT_EQ(made.at("spec.tolerations[0].tolerationSeconds"), "300");
  EXPECT_EQ(made.at("status.phase"), "Pending");
  EXPECT_EQ(made.at("status.qosClass"), "BestEffort");
  const std::string at = std::string(kPods) + "/p";
  const auto node = world.watch("/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn1");
  const std::string binding =
      "{\"metadata\":{\"name\":\"p\",\"annotations\":{\"berth.dev/gpus\":\"0\"}},"
      "\"target\":{\"kind\":\"Node\",\"name\":\"n1\"}}";
  EXPECT_EQ(world.post(at + "/binding", binding).status, 201);
  const TestAnswer bound = world.get(at);
  EXPECT_EQ(bound.at("spec.nodeName"), "n1");
  EXPECT_EQ(bound.at("metadata.annotations['berth.dev/gpus']"), "0");
  EXPECT_EQ(bound.at("status.conditions[0].type"), "PodScheduled");
  EXPECT_EQ(node->events(), std::vector<std::string>{"ADDED p"});
  const TestAnswer twice = world.post(at + "/binding", binding);
  EXPECT_EQ(twice.status, 409);
  EXPECT_NE(twice.at("message").find("is already assigned to node \"n1\""), std::string::npos);
  // Status through its subresource; the spec stays.
  const TestAnswer running = world.merge(at + "/status", "{\"status\":{\"phase\":\"Running\"}}");
  EXPECT_EQ(running.at("status.phase"), "Running") << running.body;
  // A bound pod waits for its kubelet; the kubelet's own delete ends it.
  const TestAnswer marked = world.call("DELETE", at);
  EXPECT_EQ(marked.at("metadata.deletionGracePeriodSeconds"), "30");
  EXPECT_EQ(marked.at("metadata.deletionTimestamp"), "2027-01-15T08:00:30Z");
  EXPECT_EQ(world.get(at).status, 200);
  EXPECT_EQ(world.call("DELETE", at, "{\"gracePeriodSeconds\":0}").status, 200);
  EXPECT_EQ(world.get(at).status, 404);
  // One that was never bound goes at once; a gated one is not bound.
  ASSERT_EQ(world.post(kPods, world.pod("q", ",\"schedulingGates\":[{\"name\":\"g\"}]")).status,
            201);
  const TestAnswer gated = world.post(std::string(kPods) + "/q/binding",
                                      "{\"target\":{\"kind\":\"Node\",\"name\":\"n1\"}}");
  EXPECT_EQ(gated.status, 409);
  EXPECT_NE(gated.at("message").find("schedulingGates"), std::string::npos);
  EXPECT_EQ(world.call("DELETE", std::string(kPods) + "/q").status, 200);
  EXPECT_EQ(world.get(std::string(kPods) + "/q").status, 404);
}

TEST(ApiServer, StateOutlivesTheServer) {
  TestWorld world;
  ASSERT_EQ(world.post(kMaps, map_named("m")).status, 201);
  const TestAnswer before = world.get(std::string(kMaps) + "/m");
  const std::uint64_t version = world.server->version();
  world.start();
  ASSERT_TRUE(world.started.ok());
  EXPECT_EQ(world.get(std::string(kMaps) + "/m").body, before.body);
  EXPECT_EQ(world.server->version(), version) << "nothing was missing, nothing is written";
  const TestAnswer made = world.post(kMaps, map_named("n"));
  EXPECT_EQ(made.at("metadata.resourceVersion"), std::to_string(version + 1));
  EXPECT_NE(made.at("metadata.uid"), before.at("metadata.uid"));
  // A store that fails is the end of writing, and is told.
  std::string told;
  world.server->on_broken([&](const Error& error) { told = error.to_string(); });
  world.store.fail_after(0);
  EXPECT_EQ(world.post(kMaps, map_named("o")).status, 500);
  EXPECT_FALSE(told.empty());
  EXPECT_EQ(world.get(kMaps).status, 500);
}

TEST(ApiServer, AsksForItsToken) {
  ApiServerOptions options;
  options.admin_token = "secret";
  TestWorld world(options);
  EXPECT_EQ(world.get(kMaps).status, 200);
  LocalTransport stranger(world.loop, *world.server, "secres");
  int status = 0;
  std::string body;
  text::HttpRequest request{"GET", kMaps, {}, {}};
  stranger.send(request, {}, [&](const text::HttpResponse& answer, const kube::TransportError*) {
    status = answer.status;
    body = answer.body;
  });
  world.loop.run_ready();
  EXPECT_EQ(status, 401);
  EXPECT_NE(body.find("\"reason\":\"Unauthorized\""), std::string::npos);
}

TEST(ApiServer, TablesAndMetadataAlone) {
  TestWorld world;
  ASSERT_EQ(world.post(kPods, world.pod("p")).status, 201);
  const TestAnswer table = world.call(
      "GET", kPods, "", "", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  EXPECT_EQ(table.at("kind"), "Table");
  EXPECT_EQ(table.at("columnDefinitions[0].name"), "Name");
  EXPECT_EQ(table.at("rows[0].cells[0]"), "p");
  EXPECT_EQ(table.at("rows[0].object.kind"), "PartialObjectMetadata");
  const TestAnswer partial =
      world.call("GET", std::string(kPods) + "/p", "", "",
                 "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
  EXPECT_EQ(partial.at("kind"), "PartialObjectMetadata");
  EXPECT_EQ(partial.at("spec"), "");
  EXPECT_EQ(world.call("GET", kPods, "", "", "text/html").status, 406);
  const auto rows = world.watch(std::string(kPods) + "?watch=true",
                                "application/json;as=Table;v=v1;g=meta.k8s.io");
  EXPECT_NE(rows->bytes.find("\"kind\":\"Table\""), std::string::npos);
}

}  // namespace
}  // namespace berth::sim
