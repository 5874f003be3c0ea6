// What the server refuses or fills in by rules/: quotas, ranges, Pod Security, classes, accounts;
// and what every namespace has.
#include <gtest/gtest.h>

#include "embedded/api/world_for_test.h"

namespace berth::sim {
namespace {

constexpr const char* kPodsOf = "/api/v1/namespaces/default/pods";
constexpr const char* kQuotasOf = "/api/v1/namespaces/default/resourcequotas";
constexpr const char* kRangesOf = "/api/v1/namespaces/default/limitranges";

std::string pod_asking(std::string_view name, std::string_view resources,
                       std::string_view more = "") {
  return "{\"metadata\":{\"name\":\"" + std::string(name) +
         "\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":" +
         std::string(resources) + "}]" + std::string(more) + "}}";
}

std::string quota_of(std::string_view name, std::string_view hard, std::string_view more = "") {
  return "{\"metadata\":{\"name\":\"" + std::string(name) +
         "\"},\"spec\":{\"hard\":" + std::string(hard) + std::string(more) + "}}";
}

TEST(Enforcement, AQuotaIsKeptAndItsStatusToo) {
  TestWorld world;
  ASSERT_EQ(world.post(kPodsOf, pod_asking("before", "{}")).status, 201);
  ASSERT_EQ(world.post(kQuotasOf, quota_of("q", R"({"pods":"2","count/configmaps":"3"})")).status,
            201);
  world.loop.run_ready();
  const std::string at = std::string(kQuotasOf) + "/q";
  EXPECT_EQ(world.get(at).at("status"), R"({"hard":{"count/configmaps":"3","pods":"2"},)"
                                        R"("used":{"count/configmaps":"1","pods":"1"}})");
  ASSERT_EQ(world.post(kPodsOf, pod_asking("a", "{}")).status, 201);
  const TestAnswer refused = world.post(kPodsOf, pod_asking("b", "{}"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.at("message"),
            "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: "
            "pods=2");
  EXPECT_EQ(refused.at("reason"), "Forbidden");
  EXPECT_EQ(world.call("POST", std::string(kPodsOf) + "?dryRun=All", pod_asking("b", "{}")).status,
            403);
  // What ends gives back, and so does what goes.
  ASSERT_EQ(
      world.merge(std::string(kPodsOf) + "/a/status", R"({"status":{"phase":"Succeeded"}})").status,
      200);
  ASSERT_EQ(world.post(kPodsOf, pod_asking("b", "{}")).status, 201);
  ASSERT_EQ(world.call("DELETE", std::string(kPodsOf) + "/before").status, 200);
  world.loop.run_ready();
  EXPECT_EQ(world.get(at).at("status.used.pods"), "1");
  // Bounds may be raised, and a dry run takes nothing.
  ASSERT_EQ(world.call("POST", std::string(kPodsOf) + "?dryRun=All", pod_asking("c", "{}")).status,
            201);
  ASSERT_EQ(world.merge(at, R"({"spec":{"hard":{"pods":"7"}}})").status, 200);
  world.loop.run_ready();
  EXPECT_EQ(world.get(at).at("status.used.pods"), "1");
  EXPECT_EQ(world.get(at).at("status.hard.pods"), "7");
  // After a restart it is what it was.
  world.start();
  EXPECT_EQ(world.get(at).at("status.used.pods"), "1");
  ASSERT_EQ(world.merge(at, R"({"spec":{"hard":{"pods":"1"}}})").status, 200);
  EXPECT_EQ(world.post(kPodsOf, pod_asking("d", "{}")).status, 403);
  ASSERT_EQ(world.call("DELETE", at).status, 200);
  EXPECT_EQ(world.post(kPodsOf, pod_asking("d", "{}")).status, 201);
}

TEST(Enforcement, APodThatANodeDoesNotLetGoIsNotChargedForEver) {
  TestWorld world;
  ASSERT_EQ(world.post(kQuotasOf, quota_of("q", R"({"pods":"1"})")).status, 201);
  ASSERT_EQ(world.post(kPodsOf, pod_asking("a", "{}", R"(,"nodeName":"lost")")).status, 201);
  ASSERT_EQ(world.call("DELETE", std::string(kPodsOf) + "/a?gracePeriodSeconds=20").status, 200);
  world.loop.run_for(39'000'000'000);
  EXPECT_EQ(world.post(kPodsOf, pod_asking("b", "{}")).status, 403);
  world.loop.run_for(3'000'000'000);
  EXPECT_EQ(world.get(std::string(kQuotasOf) + "/q").at("status.used.pods"), "0");
  EXPECT_EQ(world.post(kPodsOf, pod_asking("b", "{}")).status, 201);
}

// Nor one that a quota met while it was leaving, or that was leaving when the server started.
TEST(Enforcement, WhatIsLeavingWhenAQuotaComesIsNotChargedForEver) {
  for (const bool restarts : {false, true}) {
    TestWorld world;
    if (restarts) {
      ASSERT_EQ(world.post(kQuotasOf, quota_of("q", R"({"pods":"1"})")).status, 201);
    }
    ASSERT_EQ(world.post(kPodsOf, pod_asking("a", "{}", R"(,"nodeName":"lost")")).status, 201);
    ASSERT_EQ(world.call("DELETE", std::string(kPodsOf) + "/a?gracePeriodSeconds=20").status, 200);
    if (restarts) {
      world.start();
    } else {
      ASSERT_EQ(world.post(kQuotasOf, quota_of("q", R"({"pods":"1"})")).status, 201);
    }
    world.loop.run_for(3'000'000'000);
    EXPECT_EQ(world.post(kPodsOf, pod_asking("b", "{}")).status, 403);
    world.loop.run_for(40'000'000'000);
    EXPECT_EQ(world.get(std::string(kQuotasOf) + "/q").at("status.used.pods"), "0");
    EXPECT_EQ(world.post(kPodsOf, pod_asking("b", "{}")).status, 201);
  }
}

// Each says what it has, however many there are, and quotas count quotas.
TEST(Enforcement, ManyQuotasOfOneNamespace) {
  TestWorld world;
  constexpr int kMany = 250;  // more than are written in one piece
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(world
                  .post(kQuotasOf, quota_of("q" + std::to_string(i),
                                            R"({"pods":"9","count/resourcequotas":"251"})"))
                  .status,
              201);
  }
  ASSERT_EQ(world.post(kPodsOf, pod_asking("a", "{}")).status, 201);
  world.loop.run_ready();
  for (const int i : {0, 120, kMany - 1}) {
    const auto quota = world.get(std::string(kQuotasOf) + "/q" + std::to_string(i));
    EXPECT_EQ(quota.at("status.used.pods"), "1") << i;
    EXPECT_EQ(quota.at("status.used['count/resourcequotas']"), "250") << i;
  }
}

TEST(Enforcement, AQuotaCountsManyObjectsInPieces) {
  TestWorld world;
  for (int i = 0; i < 350; ++i) {
    ASSERT_EQ(world.post(kPodsOf, pod_asking("p" + std::to_string(i), "{}")).status, 201);
  }
  ASSERT_EQ(world.post(kQuotasOf, quota_of("q", R"({"pods":"350"})")).status, 201);
  ASSERT_EQ(world.call("DELETE", std::string(kPodsOf) + "/p7").status, 200);
  world.loop.run_ready();
  EXPECT_EQ(world.get(std::string(kQuotasOf) + "/q").at("status.used.pods"), "349");
  EXPECT_EQ(world.post(kPodsOf, pod_asking("a", "{}")).status, 201);
  EXPECT_EQ(world.post(kPodsOf, pod_asking("b", "{}")).status, 403);
}

TEST(Enforcement, AQuotaOfWhatPodsAskFor) {
  TestWorld world;
  ASSERT_EQ(world
                .post(kQuotasOf, quota_of("q", R"({"cpu":"3","limits.memory":"4Gi",)"
                                               R"("requests.nvidia.com/gpu":"4"})"))
                .status,
            201);
  EXPECT_EQ(world.post(kPodsOf, pod_asking("a", "{}")).at("message"),
            "pods \"a\" is forbidden: failed quota: q: must specify cpu for: c; limits.memory for: "
            "c");
  const auto asking = [&](std::string_view name, std::string_view gpus) {
    return world.post(kPodsOf, pod_asking(name, R"({"limits":{"cpu":"1","memory":"1Gi",)"
                                                R"("nvidia.com/gpu":")" +
                                                    std::string(gpus) + "\"}}"));
  };
  ASSERT_EQ(asking("a", "3").status, 201);
  EXPECT_EQ(
      asking("b", "2").at("message"),
      "pods \"b\" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, used: "
      "requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4");
  ASSERT_EQ(asking("b", "1").status, 201);
  world.loop.run_ready();
  EXPECT_EQ(world.get(std::string(kQuotasOf) + "/q").at("status.used"),
            R"({"cpu":"2","limits.memory":"2Gi","requests.nvidia.com/gpu":"4"})");
  // A resize is charged with what it adds.
  const std::string resize = std::string(kPodsOf) + "/a/resize";
  const auto to = [](std::string_view cpu) {
    return R"({"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":")" +
           std::string(cpu) + R"("},"requests":{"cpu":")" + std::string(cpu) + "\"}}}]}}";
  };
  const auto patch = [&](std::string_view cpu) {
    return world.call("PATCH", resize, to(cpu), "application/strategic-merge-patch+json");
  };
  EXPECT_EQ(patch("3").at("message"),
            "pods \"a\" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=2, limited: "
            "cpu=3");
  EXPECT_EQ(patch("2").status, 200);
}

TEST(Enforcement, QuotasOfOneClassAndOfOtherObjects) {
  TestWorld world;
  ASSERT_EQ(world
                .post("/apis/scheduling.k8s.io/v1/priorityclasses",
                      R"({"metadata":{"name":"high"},"value":10})")
                .status,
            201);
  ASSERT_EQ(
      world
          .post(kQuotasOf, quota_of("of-high", R"({"pods":"0"})",
                                    R"(,"scopeSelector":{"matchExpressions":[{"scopeName":)"
                                    R"("PriorityClass","operator":"In","values":["high"]}]})"))
          .status,
      201);
  EXPECT_EQ(world.post(kPodsOf, pod_asking("a", "{}")).status, 201);
  EXPECT_EQ(world.post(kPodsOf, pod_asking("b", "{}", R"(,"priorityClassName":"high")")).status,
            403);
  ASSERT_EQ(world
                .post(kQuotasOf, quota_of("others", R"({"services.nodeports":"1","services":"5",)"
                                                    R"("count/jobs.batch":"0"})"))
                .status,
            201);
  const char* services = "/api/v1/namespaces/default/services";
  ASSERT_EQ(world
                .post(services, R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":1},)"
                                R"({"port":2,"name":"b"}]}})")
                .status,
            422);  // ports want names: nothing was taken
  ASSERT_EQ(world
                .post(services, R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":1,)"
                                R"("name":"a"},{"port":2,"name":"b"}]}})")
                .status,
            201);
  EXPECT_EQ(
      world.merge(std::string(services) + "/s", R"({"spec":{"type":"NodePort"}})").at("message"),
      "services \"s\" is forbidden: exceeded quota: others, requested: services.nodeports=2, "
      "used: services.nodeports=0, limited: services.nodeports=1");
  EXPECT_EQ(world
                .post("/apis/batch/v1/namespaces/default/jobs",
                      R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":)"
                      R"("Never","containers":[{"name":"c","image":"i"}]}}}})")
                .at("message"),
            "jobs.batch \"j\" is forbidden: exceeded quota: others, requested: count/jobs.batch=1, "
            "used: count/jobs.batch=0, limited: count/jobs.batch=0");
  world.loop.run_ready();
  EXPECT_EQ(world.get(std::string(kQuotasOf) + "/others").at("status.used"),
            R"({"count/jobs.batch":"0","services":"2","services.nodeports":"0"})");
}

TEST(Enforcement, ARangeFillsInAndRefuses) {
  TestWorld world;
  ASSERT_EQ(
      world
          .post(kRangesOf, R"({"metadata":{"name":"r"},"spec":{"limits":[{"type":"Container",)"
                           R"("max":{"cpu":"2"},"default":{"memory":"1Gi"},)"
                           R"("defaultRequest":{"cpu":"500m"}},)"
                           R"({"type":"PersistentVolumeClaim","max":{"storage":"1Gi"}}]}})")
          .status,
      201);
  const TestAnswer made = world.post(kPodsOf, pod_asking("a", "{}"));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("spec.containers[0].resources"),
            R"({"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"500m","memory":"1Gi"}})");
  EXPECT_EQ(made.root()
                .find("metadata")
                ->find("annotations")
                ->find("kubernetes.io/limit-ranger")
                ->string(),
            "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for "
            "container c");
  EXPECT_EQ(made.at("status.qosClass"), "Burstable");
  EXPECT_EQ(world.post(kPodsOf, pod_asking("b", R"({"limits":{"cpu":"3"}})")).at("message"),
            "pods \"b\" is forbidden: maximum cpu usage per Container is 2, but limit is 3");
  EXPECT_EQ(world
                .post("/api/v1/namespaces/default/persistentvolumeclaims",
                      R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],)"
                      R"("resources":{"requests":{"storage":"2Gi"}}}})")
                .at("message"),
            "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per "
            "PersistentVolumeClaim is 1Gi, but request is 2Gi");
}

std::string warnings_of(const TestAnswer& answer) {
  std::string out;
  for (const text::HttpHeader& header : answer.headers) {
    if (header.name == "Warning") out += header.value + "\n";
  }
  return out;
}

TEST(Enforcement, PodSecurityOfANamespace) {
  TestWorld world;
  const char* spaces = "/api/v1/namespaces";
  ASSERT_EQ(world
                .post(spaces, R"({"metadata":{"name":"x","labels":)"
                              R"({"pod-security.kubernetes.io/enforce":"strict"}}})")
                .at("message"),
            "Namespace \"x\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: "
            "Invalid value: \"strict\": must be one of privileged, baseline, restricted");
  ASSERT_EQ(world
                .post(spaces, R"({"metadata":{"name":"x","labels":)"
                              R"({"pod-security.kubernetes.io/enforce":"baseline"}}})")
                .status,
            201);
  const char* pods = "/api/v1/namespaces/x/pods";
  EXPECT_EQ(world.post(pods, pod_asking("a", "{}", R"(,"hostPID":true)")).at("message"),
            "pods \"a\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces "
            "(hostPID=true)");
  ASSERT_EQ(world.post(pods, pod_asking("a", "{}")).status, 201);
  // Those that make pods are taken, with a warning; a stricter standard tells of what is there.
  const TestAnswer job =
      world.post("/apis/batch/v1/namespaces/x/jobs",
                 R"({"metadata":{"name":"j"},"spec":{"template":{"spec":{"hostPID":true,)"
                 R"("restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})");
  EXPECT_EQ(job.status, 201);
  EXPECT_NE(warnings_of(job).find("would violate PodSecurity \\\"baseline:latest\\\": host"),
            std::string::npos)
      << warnings_of(job);
  const TestAnswer stricter =
      world.merge(std::string(spaces) + "/x",
                  R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}})");
  EXPECT_EQ(stricter.status, 200);
  EXPECT_NE(warnings_of(stricter).find("a: allowPrivilegeEscalation != false, unrestricted"),
            std::string::npos)
      << warnings_of(stricter);
  // A pod that is there may be changed as long as it runs the same.
  EXPECT_EQ(world.merge(std::string(pods) + "/a", R"({"metadata":{"labels":{"b":"c"}}})").status,
            200);
  EXPECT_EQ(world
                .call("PATCH", std::string(pods) + "/a",
                      R"({"spec":{"containers":[{"name":"c","image":"j"}]}})",
                      "application/strategic-merge-patch+json")
                .status,
            403);
}

TEST(Enforcement, WhatAPodNamesIsThere) {
  TestWorld world;
  const TestAnswer plain = world.post(kPodsOf, pod_asking("a", "{}"));
  EXPECT_EQ(plain.at("spec.serviceAccountName"), "default");
  EXPECT_EQ(plain.at("spec.serviceAccount"), "default");
  EXPECT_EQ(
      world.post(kPodsOf, pod_asking("b", "{}", R"(,"serviceAccountName":"x")")).at("message"),
      "pods \"b\" is forbidden: error looking up service account default/x: serviceaccount \"x\" "
      "not found");
  EXPECT_EQ(world.post(kPodsOf, pod_asking("b", "{}", R"(,"runtimeClassName":"x")")).at("message"),
            "pods \"b\" is forbidden: pod rejected: RuntimeClass \"x\" not found");
  EXPECT_EQ(world.post(kPodsOf, pod_asking("b", "{}", R"(,"priorityClassName":"x")")).at("message"),
            "pods \"b\" is forbidden: no PriorityClass with name x was found");
  // What is generated is told by what it is generated from.
  EXPECT_EQ(world
                .post(kPodsOf, R"({"metadata":{"generateName":"job-"},"spec":{"priorityClassName":)"
                               R"("x","containers":[{"name":"c","image":"i"}]}})")
                .at("message"),
            "pods \"job-\" is forbidden: no PriorityClass with name x was found");
  ASSERT_EQ(world
                .post("/apis/node.k8s.io/v1/runtimeclasses",
                      R"({"metadata":{"name":"vm"},"handler":"vm","overhead":{"podFixed":)"
                      R"({"cpu":"250m"}},"scheduling":{"nodeSelector":{"vm":"yes"},)"
                      R"("tolerations":[{"key":"vm","operator":"Exists"}]}})")
                .status,
            201);
  const TestAnswer made =
      world.post(kPodsOf, pod_asking("vm", "{}", R"(,"runtimeClassName":"vm")"));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("spec.overhead.cpu"), "250m");
  EXPECT_EQ(made.at("spec.nodeSelector"), R"({"vm":"yes"})");
  EXPECT_EQ(made.at("spec.tolerations[2].key"), "vm");
  EXPECT_EQ(world
                .post(kPodsOf, pod_asking("c", "{}",
                                          R"(,"runtimeClassName":"vm","nodeSelector":{"vm":"no"})"))
                .at("message"),
            "pods \"c\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; "
            "pod.spec.nodeSelector[vm] = no");
}

TEST(Enforcement, EveryNamespaceIsFurnished) {
  ApiServerOptions options;
  options.root_ca_pem = "the authority";
  TestWorld world(options);
  ASSERT_EQ(world.post("/api/v1/namespaces", R"({"metadata":{"name":"x"}})").status, 201);
  const std::string account = "/api/v1/namespaces/x/serviceaccounts/default";
  const std::string map = "/api/v1/namespaces/x/configmaps/kube-root-ca.crt";
  const auto certificate = [&] {
    const TestAnswer answer = world.get(map);
    const text::Value* data = answer.root().find("data");
    return data == nullptr ? "" : std::string((*data)["ca.crt"].string());
  };
  EXPECT_EQ(world.get(account).status, 200);
  EXPECT_EQ(certificate(), "the authority");
  EXPECT_EQ(world.get("/api/v1/namespaces/kube-system/serviceaccounts/default").status, 200);
  const std::string uid = world.get(account).at("metadata.uid");
  ASSERT_EQ(world.call("DELETE", account).status, 200);
  ASSERT_EQ(world.call("DELETE", map).status, 200);
  world.loop.run_ready();
  EXPECT_NE(world.get(account).at("metadata.uid"), uid);
  EXPECT_EQ(certificate(), "the authority");
  ASSERT_EQ(world.merge(map, R"({"data":{"ca.crt":"another","b":"c"}})").status, 200);
  world.loop.run_ready();
  EXPECT_EQ(certificate(), "the authority");
  // A namespace that goes takes them along.
  ASSERT_EQ(world.call("DELETE", "/api/v1/namespaces/x").status, 200);
  world.loop.run_ready();
  EXPECT_EQ(world.get("/api/v1/namespaces/x").status, 404);
  EXPECT_EQ(world.get(account).status, 404);
  // One whose authority is another now is given that one.
  world.options.root_ca_pem = "another authority";
  world.start();
  world.loop.run_ready();
  const TestAnswer kept = world.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt");
  EXPECT_EQ((*kept.root().find("data"))["ca.crt"].string(), "another authority");
}

TEST(Enforcement, AClaimWaitsForItsClass) {
  TestWorld world;
  const std::string claims = "/api/v1/namespaces/default/persistentvolumeclaims";
  ASSERT_EQ(world
                .post(claims, R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],)"
                              R"("storageClassName":"gold","resources":{"requests":)"
                              R"({"storage":"1Gi"}}}})")
                .status,
            201);
  world.loop.run_ready();
  EXPECT_EQ(world.get(claims + "/c").at("status.phase"), "Pending");
  EXPECT_EQ(world.get("/api/v1/namespaces/default/events").at("items[0].message"),
            "storageclass.storage.k8s.io \"gold\" not found");
  ASSERT_EQ(world
                .post("/apis/storage.k8s.io/v1/storageclasses",
                      R"({"metadata":{"name":"gold"},"provisioner":"x"})")
                .status,
            201);
  world.loop.run_ready();
  EXPECT_EQ(world.get(claims + "/c").at("status.phase"), "Bound");
}

TEST(Surface, MetricsOfRequestsAndObjects) {
  TestWorld world;
  ASSERT_EQ(world.post(kPodsOf, pod_asking("a", "{}")).status, 201);
  world.get("/api/v1/namespaces/default/pods/b");
  const auto watch = world.watch("/api/v1/namespaces/default/pods?watch=true");
  const TestAnswer metrics = world.get("/metrics");
  EXPECT_EQ(metrics.status, 200);
  for (const char* line :
       {R"(apiserver_request_total{code="201",component="apiserver",dry_run="",group="",)"
        R"(resource="pods",scope="namespace",subresource="",verb="POST",version="v1"} 1)",
        R"(apiserver_request_total{code="404",component="apiserver",dry_run="",group="",)"
        R"(resource="pods",scope="resource",subresource="",verb="GET",version="v1"} 1)",
        R"(apiserver_storage_objects{resource="pods"} 1)",
        R"(apiserver_longrunning_requests{component="apiserver",verb="WATCH"} 1)"}) {
    EXPECT_NE(metrics.body.find(line), std::string::npos) << line << "\n" << metrics.body;
  }
}

TEST(Surface, WhatOnlyReadsProtobufIsToldOfNoDefinitions) {
  TestWorld world;
  const TestAnswer answer =
      world.call("GET", "/openapi/v2", "", "application/json",
                 "application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body.substr(0, 5), std::string("\x0a\x03") + "2.0");
}

TEST(Surface, ApiServicesAreAKind) {
  TestWorld world;
  EXPECT_EQ(world.get("/apis/apiregistration.k8s.io/v1").at("resources[0].name"), "apiservices");
  EXPECT_EQ(world.get("/apis/apiregistration.k8s.io/v1/apiservices").at("kind"), "APIServiceList");
}

}  // namespace
}  // namespace berth::sim
