// Two replicas on an embedded API server in virtual time.
#include "app/webhook/webhook_certificate.h"

#include <gtest/gtest.h>

#include <vector>

#include "app/webhook/own_webhook.h"
#include "embedded/workloads/cluster_for_test.h"
#include "text/base64.h"

namespace berth::app {
namespace {

constexpr std::int64_t kKeeperSecond = 1'000'000'000, kKeeperDay = 86'400 * kKeeperSecond;
constexpr const char* kKeeperSecret = "/api/v1/namespaces/berth-system/secrets/berth-webhook";
constexpr const char* kKeeperHooks =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
constexpr const char* kKeeperHook =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/berth";

class Lines final : public LogSink {
 public:
  void write(LogLevel, std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

struct Replica {
  Replica(sim::Cluster& cluster, const Logger& log, std::int64_t life_ns)
      : keeper(*cluster.client, options(life_ns), log, [this](const serve::TlsFiles& files) {
          served.push_back(files.certificate_pem);
          return Status();
        }) {
    keeper.start();
  }

  static WebhookCertificateOptions options(std::int64_t life_ns) {
    WebhookCertificateOptions out;
    out.host = "berth-webhook.berth-system.svc";
    out.rotation = serve::rotation_of(life_ns);
    return out;
  }

  std::vector<std::string> served;
  WebhookCertificate keeper;
};

class Keeper : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster.create("/api/v1/namespaces", "metadata: {name: berth-system}");
    cluster.create(kKeeperHooks, webhook_configuration({.url = "https://127.0.0.1:9443/mutate",
                                                        .ca_bundle_base64 = "",
                                                        .manage_all = false}));
  }

  std::string bundle() {
    const auto text =
        text::base64_decode(cluster.field(kKeeperHook, "webhooks.0.clientConfig.caBundle"));
    return text.ok() ? *text : std::string();
  }
  bool trusted(const std::string& certificate) { return serve::issued_by(certificate, bundle()); }

  sim::Cluster cluster;
  Lines sink;
  Logger log{sink, cluster.clock};
};

TEST_F(Keeper, TwoReplicasMakeOneAuthority) {
  Replica one(cluster, log, 365 * kKeeperDay), two(cluster, log, 365 * kKeeperDay);
  cluster.run(5);
  ASSERT_EQ(one.served.size(), 1u);
  ASSERT_EQ(two.served.size(), 1u);
  EXPECT_EQ(cluster.writes["POST secrets"], 2);  // of which one was refused
  EXPECT_EQ(cluster.writes["PATCH secrets"], 0);
  EXPECT_TRUE(trusted(one.served[0]) && trusted(two.served[0]));
  EXPECT_NE(one.served[0], two.served[0]);
}

TEST_F(Keeper, NobodyIsEverServedWhatIsNotTrusted) {
  const std::int64_t life = 3'600 * kKeeperSecond;
  Replica one(cluster, log, life), two(cluster, log, life);
  cluster.run(5);
  // Of three writes one is refused, or carried out without an answer.
  int call = 0;
  cluster.hook = [&call](const text::HttpRequest& request) {
    sim::ApiFault fault;
    if (request.method == "GET" || ++call % 3 != 0) return fault;
    fault.kind = call % 2 == 0 ? sim::ApiFault::Kind::kRefuse : sim::ApiFault::Kind::kDropAfter;
    fault.status = 500;
    return fault;
  };
  for (int i = 0; i < 3 * 3'600 / 20; ++i) {
    cluster.run(20);
    ASSERT_TRUE(trusted(one.served.back())) << i;
    ASSERT_TRUE(trusted(two.served.back())) << i;
  }
  EXPECT_GE(one.served.size(), 8u);  // three hours of certificates that live 20 minutes
  EXPECT_GE(cluster.writes["PATCH secrets"], 4);
}

TEST_F(Keeper, LossesAreMendedAtTheNextLook) {
  Replica one(cluster, log, 365 * kKeeperDay);
  cluster.run(5);
  cluster.remove(kKeeperSecret);
  cluster.run(61);
  EXPECT_EQ(one.served.size(), 2u);
  EXPECT_TRUE(trusted(one.served.back()));
  cluster.merge(kKeeperSecret, "data: {ca.crt: AAAA, ca.key: null}");
  cluster.run(61);
  EXPECT_EQ(one.served.size(), 3u);
  EXPECT_TRUE(trusted(one.served.back()));
  cluster.merge(kKeeperHook, R"(
webhooks:
- {name: pods.berth.dev, admissionReviewVersions: [v1], sideEffects: None,
   clientConfig: {service: {namespace: berth-system, name: berth-webhook}}}
)");
  EXPECT_FALSE(trusted(one.served.back()));
  cluster.run(61);
  EXPECT_EQ(one.served.size(), 3u);
  EXPECT_TRUE(trusted(one.served.back()));
}

TEST_F(Keeper, AConfigurationThatIsAwayIsNotMade) {
  cluster.remove(kKeeperHook);
  Replica one(cluster, log, 365 * kKeeperDay);
  cluster.run(125);
  EXPECT_EQ(one.served.size(), 1u);
  EXPECT_FALSE(cluster.exists(kKeeperHook));
}

TEST_F(Keeper, WhatStaysWrongIsLoggedOnce) {
  cluster.hook = [](const text::HttpRequest& request) {
    sim::ApiFault fault;
    if (request.target.find("/secrets/") == std::string::npos) return fault;
    fault.kind = sim::ApiFault::Kind::kRefuse;
    fault.status = 403;
    return fault;
  };
  Replica one(cluster, log, 365 * kKeeperDay);
  cluster.run(600);
  EXPECT_TRUE(one.served.empty());
  EXPECT_EQ(sink.lines.size(), 1u);
  cluster.hook = nullptr;
  cluster.run(61);
  EXPECT_EQ(one.served.size(), 1u);
}

}  // namespace
}  // namespace berth::app
