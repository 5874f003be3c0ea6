// What follows from a write: dependents, namespaces, definitions, budgets, claims, webhooks,
// faults.
#include <gtest/gtest.h>

#include <deque>

#include "embedded/api/api_server.h"
#include "embedded/api/world_for_test.h"
#include "text/base64.h"

namespace berth::sim {
namespace {

constexpr const char* kThings = "/api/v1/namespaces/default/configmaps";

std::string thing(const std::string& name, const std::string& more = {}) {
  return "{\"metadata\":{\"name\":\"" + name + "\"" + more + "}}";
}

std::string owned_by(const TestAnswer& owner, bool blocks = false) {
  return std::string(",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"") +
         ",\"name\":\"" + owner.at("metadata.name") + "\",\"uid\":\"" + owner.at("metadata.uid") +
         "\",\"blockOwnerDeletion\":" + (blocks ? "true" : "false") + "}]";
}

std::string at_thing(const std::string& name) { return std::string(kThings) + "/" + name; }

TEST(ApiLife, OwnersTakeTheirDependentsAlong) {
  TestWorld world;
  TestAnswer owner = world.post(kThings, thing("owner"));
  ASSERT_EQ(world.post(kThings, thing("child", owned_by(owner))).status, 201);
  TestAnswer child = world.get(at_thing("child"));
  ASSERT_EQ(world.post(kThings, thing("grandchild", owned_by(child))).status, 201);
  ASSERT_EQ(world.call("DELETE", at_thing("owner")).status, 200);
  world.loop.run_ready();
  EXPECT_EQ(world.get(at_thing("child")).status, 404);
  EXPECT_EQ(world.get(at_thing("grandchild")).status, 404);
  // Orphans stay and forget their owner.
  owner = world.post(kThings, thing("owner"));
  ASSERT_EQ(world.post(kThings, thing("child", owned_by(owner))).status, 201);
  world.call("DELETE", at_thing("owner") + "?propagationPolicy=Orphan");
  world.loop.run_ready();
  EXPECT_EQ(world.get(at_thing("owner")).status, 404);
  EXPECT_EQ(world.get(at_thing("child")).at("metadata.ownerReferences"), "");
  // In the foreground the owner waits for a dependent that is held.
  owner = world.post(kThings, thing("owner"));
  ASSERT_EQ(
      world.post(kThings, thing("held", owned_by(owner, true) + ",\"finalizers\":[\"x.io/a\"]"))
          .status,
      201);
  world.call("DELETE", at_thing("owner") + "?propagationPolicy=Foreground");
  world.loop.run_ready();
  EXPECT_EQ(world.get(at_thing("owner")).at("metadata.finalizers"), "[\"foregroundDeletion\"]");
  EXPECT_NE(world.get(at_thing("held")).at("metadata.deletionTimestamp"), "");
  ASSERT_EQ(world.merge(at_thing("held"), "{\"metadata\":{\"finalizers\":null}}").status, 200);
  world.loop.run_ready();
  EXPECT_EQ(world.get(at_thing("held")).status, 404);
  EXPECT_EQ(world.get(at_thing("owner")).status, 404);
  // One whose owner never was goes as well.
  ASSERT_EQ(world.post(kThings, thing("lost", owned_by(owner))).status, 201);
  world.loop.run_ready();
  EXPECT_EQ(world.get(at_thing("lost")).status, 404);
}

// Whoever writes in one namespace cannot hold up, or hang himself onto, what is in another.
TEST(ApiLife, OwnersOfOtherNamespacesAreNone) {
  TestWorld world;
  world.post("/api/v1/namespaces", thing("mallory"));
  const TestAnswer owner = world.post(kThings, thing("owner"));
  const std::string theirs = "/api/v1/namespaces/mallory/configmaps";
  world.post(theirs,
             thing("leech", ",\"finalizers\":[\"x.example/keep\"]" + owned_by(owner, true)));
  world.call("DELETE", at_thing("owner"), R"({"propagationPolicy":"Foreground"})");
  world.loop.run_ready();
  EXPECT_EQ(world.get(at_thing("owner")).status, 404) << "it is not held back";
  EXPECT_NE(world.get(theirs + "/leech").at("metadata.deletionTimestamp"), "")
      << "without an owner it is garbage";
}

TEST(ApiLife, NamespacesGoWithWhatIsInThem) {
  TestWorld world;
  ASSERT_EQ(world.post("/api/v1/namespaces", thing("team")).status, 201);
  const std::string things = "/api/v1/namespaces/team/configmaps";
  ASSERT_EQ(world.post(things, thing("a")).status, 201);
  ASSERT_EQ(world.post(things, thing("held", ",\"finalizers\":[\"x.io/a\"]")).status, 201);
  EXPECT_EQ(world.call("DELETE", "/api/v1/namespaces/team").at("status.phase"), "Terminating");
  world.loop.run_ready();
  EXPECT_EQ(world.get(things + "/a").status, 404);
  const TestAnswer late = world.post(things, thing("late"));
  EXPECT_EQ(late.status, 403);
  EXPECT_EQ(late.at("details.causes[0].reason"), "NamespaceTerminating");
  EXPECT_EQ(world.get("/api/v1/namespaces/team").status, 200);
  world.start();  // what is half done is found again
  world.loop.run_ready();
  ASSERT_EQ(world.merge(things + "/held", "{\"metadata\":{\"finalizers\":null}}").status, 200);
  world.loop.run_ready();
  EXPECT_EQ(world.get("/api/v1/namespaces/team").status, 404);
  EXPECT_EQ(world.call("DELETE", "/api/v1/namespaces/default").status, 403);
}

const char* const kLampCrd = R"({"metadata":{"name":"lamps.example.com"},"spec":{
  "group":"example.com","scope":"Namespaced","names":{"plural":"lamps","singular":"lamp",
  "kind":"Lamp","listKind":"LampList"},"versions":[{"name":"v1","served":true,"storage":true,
  "subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{
  "type":"object","properties":{"watts":{"type":"integer","default":60}}},"status":{"type":"object",
  "properties":{"lit":{"type":"boolean"}}}}}}},{"name":"v1beta1","served":true,"storage":false,
  "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})";

TEST(ApiLife, DefinitionsAreServedAndLeaveWithTheirObjects) {
  TestWorld world;
  const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const std::string lamps = "/apis/example.com/v1/namespaces/default/lamps";
  const std::string lamp =
      R"({"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"l"},"spec":{"x":1}})";
  EXPECT_EQ(world.post(lamps, lamp).status, 404);
  const TestAnswer crd = world.post(crds, kLampCrd);
  ASSERT_EQ(crd.status, 201) << crd.body;
  world.loop.run_ready();
  EXPECT_NE(world.get(crds + "/lamps.example.com").body.find("\"Established\""), std::string::npos);
  const TestAnswer made = world.post(lamps, lamp);
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("spec"), "{\"watts\":60}") << "pruned and defaulted";
  EXPECT_EQ(made.at("metadata.generation"), "1");
  EXPECT_EQ(world.merge(lamps + "/l", "{\"spec\":{\"watts\":5}}").at("metadata.generation"), "2");
  EXPECT_EQ(world.merge(lamps + "/l/status", "{\"status\":{\"lit\":true}}").at("status.lit"),
            "true");
  EXPECT_EQ(world.merge(lamps + "/l", "{\"spec\":{\"watts\":\"x\"}}").status, 422);
  EXPECT_EQ(world.get("/apis/example.com/v1beta1/namespaces/default/lamps/l").at("apiVersion"),
            "example.com/v1beta1");
  EXPECT_NE(world.get("/apis/example.com/v1").body.find("\"lamps/status\""), std::string::npos);
  world.start();
  EXPECT_EQ(world.get(lamps + "/l").at("spec.watts"), "5");
  world.call("DELETE", crds + "/lamps.example.com");
  world.loop.run_ready();
  EXPECT_EQ(world.get(crds + "/lamps.example.com").status, 404);
  EXPECT_EQ(world.get(lamps).status, 404);
}

TEST(ApiLife, EvictionAsksTheBudget) {
  TestWorld world;
  const std::string pods = "/api/v1/namespaces/default/pods";
  const std::string budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  std::string pod = world.pod("p", ",\"nodeName\":\"n\"");
  pod.insert(pod.find("\"name\":\"p\""), "\"labels\":{\"a\":\"b\"},");
  ASSERT_EQ(world.post(pods, pod).status, 201);
  ASSERT_EQ(world.merge(pods + "/p/status", "{\"status\":{\"phase\":\"Running\"}}").status, 200);
  ASSERT_EQ(world
                .post(budgets,
                      "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"minAvailable\":1,"
                      "\"selector\":{\"matchLabels\":{\"a\":\"b\"}}}}")
                .status,
            201);
  const std::string eviction = "{\"metadata\":{\"name\":\"p\"}}";
  EXPECT_EQ(world.post(pods + "/p/eviction", eviction).status, 429);
  const auto budget = [&](int allowed) {
    return world.merge(budgets + "/b/status",
                       "{\"status\":{\"observedGeneration\":1,\"desiredHealthy\":1,"
                       "\"currentHealthy\":1,\"expectedPods\":1,\"disruptionsAllowed\":" +
                           std::to_string(allowed) + "}}");
  };
  ASSERT_EQ(budget(0).status, 200);
  const TestAnswer refused = world.post(pods + "/p/eviction", eviction);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.at("message"),
            "Cannot evict pod as it would violate the pod's disruption budget.");
  EXPECT_EQ(refused.at("details.causes[0].message"),
            "The disruption budget b needs 1 healthy pods and has 1 currently");
  ASSERT_EQ(budget(1).status, 200);
  EXPECT_EQ(world.post(pods + "/p/eviction", eviction).status, 201);
  EXPECT_EQ(world.get(budgets + "/b").at("status.disruptionsAllowed"), "0");
  EXPECT_NE(world.get(pods + "/p").at("metadata.deletionTimestamp"), "");
}

TEST(ApiLife, ClaimsAreBoundAtOnceAndHeldByPods) {
  TestWorld world;
  const std::string claims = "/api/v1/namespaces/default/persistentvolumeclaims";
  ASSERT_EQ(world
                .post(claims,
                      "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"accessModes\":["
                      "\"ReadWriteOnce\"],\"resources\":{\"requests\":{\"storage\":"
                      "\"1Gi\"}}}}")
                .status,
            201);
  world.loop.run_ready();
  const TestAnswer claim = world.get(claims + "/c");
  EXPECT_EQ(claim.at("status.phase"), "Bound");
  const std::string volume = "/api/v1/persistentvolumes/" + claim.at("spec.volumeName");
  EXPECT_EQ(world.get(volume).at("status.phase"), "Bound");
  ASSERT_EQ(world
                .post("/api/v1/namespaces/default/pods",
                      world.pod("p",
                                ",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{"
                                "\"claimName\":\"c\"}}]"))
                .status,
            201);
  world.call("DELETE", claims + "/c");
  world.loop.run_ready();
  EXPECT_NE(world.get(claims + "/c").at("metadata.deletionTimestamp"), "");
  world.call("DELETE", "/api/v1/namespaces/default/pods/p");
  world.loop.run_ready();
  EXPECT_EQ(world.get(claims + "/c").status, 404);
  EXPECT_EQ(world.get(volume).status, 404);
}

TEST(ApiLife, PrioritiesComeFromTheirClass) {
  TestWorld world;
  const std::string pods = "/api/v1/namespaces/default/pods";
  const std::string classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
  ASSERT_EQ(world
                .post(classes, R"({"metadata":{"name":"high"},"value":1000,)"
                               R"("preemptionPolicy":"Never"})")
                .status,
            201);
  const TestAnswer high = world.post(pods, world.pod("a", ",\"priorityClassName\":\"high\""));
  EXPECT_EQ(high.at("spec.priority"), "1000");
  EXPECT_EQ(high.at("spec.preemptionPolicy"), "Never");
  const TestAnswer none = world.post(pods, world.pod("b", ",\"priorityClassName\":\"nope\""));
  EXPECT_EQ(none.status, 403);
  EXPECT_EQ(none.at("message"),
            "pods \"b\" is forbidden: no PriorityClass with name nope was found");
  EXPECT_EQ(world.post(pods, world.pod("c", ",\"priority\":7")).status, 403);
}

TEST(ApiLife, EventsHaveTwoFormsAndExpire) {
  ApiServerOptions options;
  options.event_ttl_ns = 600'000'000'000;
  TestWorld world(options);
  const std::string core = "/api/v1/namespaces/default/events";
  const std::string modern = "/apis/events.k8s.io/v1/namespaces/default/events";
  const TestAnswer made =
      world.post(modern, R"({"metadata":{"name":"e"},"eventTime":"2027-01-15T08:00:00.000000Z",)"
                         R"("reportingController":"berth","reportingInstance":"i","action":"Bind",)"
                         R"("reason":"R","type":"Normal","note":"hello","regarding":{"kind":"Pod",)"
                         R"("namespace":"default","name":"p"}})");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("note"), "hello");
  EXPECT_EQ(world.get(core + "/e").at("message"), "hello");
  EXPECT_EQ(world.get(core + "/e").at("involvedObject.name"), "p");
  EXPECT_EQ(world.get(modern + "?fieldSelector=regarding.name%3Dp").at("items[0].note"), "hello");
  world.loop.run_for(300'000'000'000);
  EXPECT_EQ(world.get(core + "/e").status, 200);
  world.loop.run_for(500'000'000'000);
  EXPECT_EQ(world.get(core + "/e").status, 404);
}

// Answers webhooks by a script, and keeps what they were asked.
class ScriptedHooks final : public kube::Transport {
 public:
  explicit ScriptedHooks(Loop& loop) : loop_(loop) {}
  std::deque<std::string> answers;  // what stands inside "response", without the uid; "": refused
  std::vector<std::string> asked;

  kube::Call send(text::HttpRequest request, const kube::SendOptions&, Answered answered) override {
    asked.push_back(request.target);
    const auto review = text::parse_json(request.body);
    const text::Value* uid =
        review.ok() ? find_path(review.value().root(), "request.uid") : nullptr;
    std::string script = answers.empty() ? "" : answers.front();
    if (!answers.empty()) answers.pop_front();
    loop_.post([script, uid = std::string(uid ? uid->string() : ""), answered] {
      if (script.empty()) {
        const kube::TransportError error{"connection refused", true, false};
        return answered({}, &error);
      }
      answered({200, {}, "{\"response\":{\"uid\":\"" + uid + "\"," + script + "}}"}, nullptr);
    });
    return asked.size();
  }
  kube::Call stream(text::HttpRequest, const kube::StreamOptions&, kube::StreamHandler) override {
    return 0;
  }
  void resume(kube::Call) override {}
  void cancel(kube::Call) override {}

 private:
  Loop& loop_;
};

std::string hook_configuration(const std::string& policy) {
  return R"({"metadata":{"name":"w"},"webhooks":[{"name":"w.example.com","sideEffects":"None",)"
         R"("admissionReviewVersions":["v1"],"failurePolicy":")" +
         policy +
         R"(","clientConfig":{"url":"https://hook.example.com/m"},"rules":[{"apiGroups":[""],)"
         R"("apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]}]})";
}

TEST(ApiLife, WebhooksAreAskedAndObeyed) {
  TestWorld world;
  ScriptedHooks hooks(world.loop);
  world.options.webhooks = &hooks;
  world.start();
  const std::string mutating =
      "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
  ASSERT_EQ(world.post(mutating, hook_configuration("Fail")).status, 201);
  hooks.answers = {
      "\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":\"" +
          text::base64_encode(R"([{"op":"add","path":"/metadata/labels","value":{"a":"b"}}])") +
          "\",\"warnings\":[\"careful\"]",
      "\"allowed\":false,\"status\":{\"message\":\"no\",\"code\":418}", ""};
  const TestAnswer made = world.post(kThings, thing("a"));
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("metadata.labels.a"), "b");
  EXPECT_EQ(text::find_header(made.headers, "Warning").value_or(""), "299 - \"careful\"");
  EXPECT_EQ(hooks.asked, std::vector<std::string>{"https://hook.example.com/m"});
  const TestAnswer denied = world.post(kThings, thing("b"));
  EXPECT_EQ(denied.status, 418);
  EXPECT_EQ(denied.at("message"), "admission webhook \"w.example.com\" denied the request: no");
  const TestAnswer unreachable = world.post(kThings, thing("c"));
  EXPECT_EQ(unreachable.status, 500);
  EXPECT_NE(unreachable.at("message").find("connection refused"), std::string::npos);
  ASSERT_EQ(world.call("DELETE", mutating + "/w").status, 200);
  ASSERT_EQ(world.post(mutating, hook_configuration("Ignore")).status, 201);
  EXPECT_EQ(world.post(kThings, thing("d")).status, 201);
  world.transport.reset();
  world.server.reset();
}

TEST(ApiLife, FaultsHappenAsAsked) {
  TestWorld world;
  using Kind = ApiFault::Kind;
  ApiFault next;
  world.server->set_fault_hook([&](const text::HttpRequest&) { return std::exchange(next, {}); });
  const auto with = [&](Kind kind, int status = 0, std::int64_t delay_ns = 0) {
    next = ApiFault{kind, status, delay_ns};
  };
  with(Kind::kRefuse, 429);
  EXPECT_EQ(world.post(kThings, thing("a")).status, 429);
  EXPECT_EQ(world.get(at_thing("a")).status, 404);
  with(Kind::kDropBefore);
  EXPECT_EQ(world.post(kThings, thing("a")).status, 0) << "no answer";
  EXPECT_EQ(world.get(at_thing("a")).status, 404);
  with(Kind::kDropAfter);
  EXPECT_EQ(world.post(kThings, thing("a")).status, 0);
  EXPECT_EQ(world.get(at_thing("a")).status, 200);
  with(Kind::kDuplicate);
  EXPECT_EQ(world.post(kThings, thing("b")).status, 409) << "the second answer";
  EXPECT_EQ(world.get(at_thing("b")).status, 200);
  with(Kind::kTruncate);
  EXPECT_EQ(world.get(at_thing("b")).status, 0);
  const std::int64_t before = world.clock.ticks_ns();
  with(Kind::kDelay, 0, 5'000'000'000);
  EXPECT_EQ(world.get(at_thing("b")).status, 200);
  EXPECT_EQ(world.clock.ticks_ns() - before, 5'000'000'000);
  for (int i = 0; i < 30; ++i) {
    world.merge(at_thing("b"), "{\"data\":{\"k\":\"" + std::to_string(i) + "\"}}");
  }
  with(Kind::kStale);
  EXPECT_EQ(world.get(at_thing("b")).at("data.k"), "9");
  EXPECT_EQ(world.get(at_thing("b")).at("data.k"), "29");
}

TEST(ApiLife, ScaleAndDryRun) {
  TestWorld world;
  const std::string deployments = "/apis/apps/v1/namespaces/default/deployments";
  ASSERT_EQ(world
                .post(deployments,
                      R"({"metadata":{"name":"d"},"spec":{"replicas":2,"selector":{"matchLabels":)"
                      R"({"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":)"
                      R"({"containers":[{"name":"c","image":"i"}]}}}})")
                .status,
            201);
  const TestAnswer scale = world.get(deployments + "/d/scale");
  EXPECT_EQ(scale.at("spec.replicas"), "2");
  EXPECT_EQ(scale.at("status.selector"), "a=b");
  EXPECT_EQ(
      world.merge(deployments + "/d/scale", "{\"spec\":{\"replicas\":5}}").at("spec.replicas"),
      "5");
  EXPECT_EQ(world.get(deployments + "/d").at("spec.replicas"), "5");
  EXPECT_EQ(
      world.merge(deployments + "/d?dryRun=All", "{\"spec\":{\"replicas\":7}}").at("spec.replicas"),
      "7");
  EXPECT_EQ(world.get(deployments + "/d").at("spec.replicas"), "5");
  const TestAnswer warned = world.merge(deployments + "/d", "{\"spec\":{\"replcas\":1}}");
  EXPECT_EQ(text::find_header(warned.headers, "Warning").value_or(""),
            "299 - \"unknown field \\\"spec.replcas\\\"\"");
}

}  // namespace
}  // namespace berth::sim
