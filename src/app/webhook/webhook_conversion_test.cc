// Replicas that have Kueue's kinds converted, on an embedded API server in virtual time.
#include "app/webhook/webhook_conversion.h"

#include <gtest/gtest.h>

#include <array>

#include "app/webhook/own_webhook.h"
#include "app/webhook/webhook_certificate.h"
#include "embedded/workloads/cluster_for_test.h"
#include "text/base64.h"

namespace berth::app {
namespace {

constexpr std::int64_t kConversionSecond = 1'000'000'000,
                       kConversionDay = 86'400 * kConversionSecond;
constexpr const char* kConversionCrds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr const char* kConversionHooks =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
constexpr std::array<const char*, 4> kConversionPlurals = {"clusterqueues", "localqueues",
                                                           "workloads", "multikueueclusters"};

class NoLines final : public LogSink {
 public:
  void write(LogLevel level, std::string_view line) override {
    if (level >= LogLevel::kError) errors.emplace_back(line);
  }
  std::vector<std::string> errors;
};

class Conversion : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster.create("/api/v1/namespaces", "metadata: {name: berth-system}");
    hook();
    for (const std::string plural : kConversionPlurals) {
      cluster.create(kConversionCrds, R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: )" + plural + R"(.kueue.x-k8s.io, labels: {berth.dev/conversion: webhook}}
spec:
  group: kueue.x-k8s.io
  scope: Cluster
  names: {kind: )" + plural +
                                          ", plural: " + plural + R"(}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
)");
    }
  }

  void hook() {
    cluster.create(kConversionHooks, webhook_configuration({.url = "https://127.0.0.1:9443/mutate",
                                                            .ca_bundle_base64 = "",
                                                            .manage_all = false}));
  }

  static ConversionPlace place() {
    return {.url = "", .service = "berth-webhook", .service_namespace = "berth-system"};
  }
  std::unique_ptr<WebhookCertificate> replica(std::int64_t life_ns,
                                              std::vector<std::string>& served) {
    WebhookCertificateOptions options;
    options.host = "berth-webhook.berth-system.svc";
    options.rotation = serve::rotation_of(life_ns);
    options.conversion = place();
    auto made = std::make_unique<WebhookCertificate>(*cluster.client, options, log,
                                                     [&served](const serve::TlsFiles& files) {
                                                       served.push_back(files.certificate_pem);
                                                       return Status();
                                                     });
    made->start();
    return made;
  }

  std::string crd(const std::string& plural, std::string_view what) {
    return cluster.field(std::string(kConversionCrds) + "/" + plural + ".kueue.x-k8s.io", what);
  }
  std::string strategies() {
    std::string out;
    for (const char* plural : kConversionPlurals)
      out += crd(plural, "spec.conversion.strategy") + " ";
    return out;
  }
  bool trusted(const std::string& certificate, const std::string& plural) {
    const auto bundle =
        text::base64_decode(crd(plural, "spec.conversion.webhook.clientConfig.caBundle"));
    return bundle.ok() && serve::issued_by(certificate, *bundle);
  }
  void change(const std::string& plural, std::string_view yaml) {
    cluster.merge(std::string(kConversionCrds) + "/" + plural + ".kueue.x-k8s.io", yaml);
  }

  sim::Cluster cluster;
  NoLines sink;
  Logger log{sink, cluster.clock};
};

TEST_F(Conversion, BeginsWhenItHasBeenServedForAWhile) {
  std::vector<std::string> served;
  const auto one = replica(365 * kConversionDay, served);
  cluster.run(5);
  EXPECT_EQ(served.size(), 1u);
  EXPECT_EQ(strategies(), "None None None None ");
  cluster.run(11);
  EXPECT_EQ(strategies(), "Webhook Webhook Webhook Webhook ");
  EXPECT_EQ(crd("workloads", "spec.conversion.webhook.clientConfig.service.path"), "/convert");
  EXPECT_TRUE(trusted(served[0], "workloads"));
  const int writes = cluster.writes["PATCH customresourcedefinitions"];
  cluster.run(600);
  EXPECT_EQ(cluster.writes["PATCH customresourcedefinitions"], writes);
  EXPECT_TRUE(sink.errors.empty());
}

TEST_F(Conversion, EveryKindTrustsWhatIsServed) {
  std::vector<std::string> served, others;
  const std::int64_t life = 3'600 * kConversionSecond;
  const auto one = replica(life, served);
  const auto two = replica(life, others);
  cluster.run(40);
  ASSERT_EQ(strategies(), "Webhook Webhook Webhook Webhook ");
  int call = 0;
  cluster.hook = [&call](const text::HttpRequest& request) {
    sim::ApiFault fault;
    if (request.method == "GET" || ++call % 3 != 0) return fault;
    fault.kind = call % 2 == 0 ? sim::ApiFault::Kind::kRefuse : sim::ApiFault::Kind::kDropAfter;
    fault.status = 500;
    return fault;
  };
  for (int i = 0; i < 3 * 3'600 / 30; ++i) {
    cluster.run(30);
    for (const char* plural : kConversionPlurals) {
      ASSERT_TRUE(trusted(served.back(), plural)) << i << plural;
      ASSERT_TRUE(trusted(others.back(), plural)) << i << plural;
    }
  }
  EXPECT_GE(served.size(), 8u);
}

TEST_F(Conversion, KindsOfOthersAreNeverWritten) {
  change("localqueues", "metadata: {labels: {berth.dev/conversion: null}}");
  change("workloads", "metadata: {annotations: {controller-gen.kubebuilder.io/version: v0.18.0}}");
  change("multikueueclusters", R"(
spec: {conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {
  service: {namespace: kueue-system, name: kueue-webhook-service, path: /convert}}}}})");
  std::vector<std::string> served;
  const auto one = replica(365 * kConversionDay, served);
  cluster.run(200);
  EXPECT_EQ(strategies(), "Webhook None None Webhook ");
  EXPECT_EQ(cluster.writes["PATCH customresourcedefinitions"], 1);
  EXPECT_EQ(crd("multikueueclusters", "spec.conversion.webhook.clientConfig.service.name"),
            "kueue-webhook-service");
}

TEST_F(Conversion, EndsWithTheLabelAndWithTheConfiguration) {
  std::vector<std::string> served;
  const auto one = replica(365 * kConversionDay, served);
  cluster.run(20);
  change("localqueues", "metadata: {labels: {berth.dev/conversion: null}}");
  cluster.run(61);
  EXPECT_EQ(strategies(), "Webhook None Webhook Webhook ");
  cluster.remove(std::string(kConversionHooks) + "/berth");
  cluster.run(61);
  EXPECT_EQ(strategies(), "None None None None ");
  hook();
  cluster.run(122);
  EXPECT_EQ(strategies(), "Webhook None Webhook Webhook ");
}

TEST_F(Conversion, EndedBeforeAnUninstallItStaysEnded) {
  std::vector<std::string> served;
  const auto one = replica(365 * kConversionDay, served);
  cluster.run(20);
  WebhookConversion leaving(*cluster.client, place(), log);
  Status ended = Error(Code::kInternal, "not told");
  leaving.end([&ended](const Status& status) { ended = status; });
  cluster.run(1);
  EXPECT_TRUE(ended.ok());
  EXPECT_EQ(strategies(), "None None None None ");
  cluster.run(300);
  EXPECT_EQ(strategies(), "None None None None ");
  EXPECT_EQ(crd("workloads", "metadata.labels"), "");
}

TEST_F(Conversion, WhatFailsIsSaidOnceAndStopsNoCertificate) {
  cluster.hook = [](const text::HttpRequest& request) {
    sim::ApiFault fault;
    if (request.target.find("customresourcedefinitions/") == std::string::npos) return fault;
    fault.kind = sim::ApiFault::Kind::kRefuse;
    fault.status = 403;
    return fault;
  };
  std::vector<std::string> served;
  const auto one = replica(365 * kConversionDay, served);
  cluster.run(600);
  EXPECT_EQ(served.size(), 1u);
  EXPECT_EQ(sink.errors.size(), 1u);
}

}  // namespace
}  // namespace berth::app
