// Who leads, what is installed, and what stands in the way of every write.
#include <algorithm>

#include "app/views/doctor.h"
#include "app/views/sheet.h"
#include "control/kueue_lease.h"
#include "edge/serve/certificate.h"
#include "kinds/policy.h"
#include "kinds/readers.h"
#include "text/base64.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

constexpr const char* kOwnLease = "berth-controller";
constexpr std::int64_t kSecond_ns = 1'000'000'000;
constexpr std::int64_t kSoon_ns = 14 * 86'400 * kSecond_ns;

struct LeaseState {
  bool held = false, live = false;
  std::string holder;
  std::int64_t age_ns = 0;
};

LeaseState lease_state(const ObjectFacts& lease, std::int64_t now_ns) {
  LeaseState out;
  out.holder = text_at(*lease.value, "spec.holderIdentity");
  out.held = !out.holder.empty();
  const text::Value* seconds = find(*lease.value, "spec.leaseDurationSeconds");
  const std::int64_t duration = seconds == nullptr ? 15 : seconds->as_int64().value_or(15);
  const Result<std::int64_t> renewed = text::parse_rfc3339(text_at(*lease.value, "spec.renewTime"));
  if (!renewed.ok()) return out;
  out.age_ns = now_ns - *renewed;
  out.live = out.held && out.age_ns <= 2 * std::clamp<std::int64_t>(duration, 1, 3600) * kSecond_ns;
  return out;
}

void check_leases(const DoctorInput& input, Findings& out) {
  if (!input.view.live) return;  // manifests that people wrote hold no leases
  const ObjectFacts* own = nullptr;
  for (const ObjectFacts& lease : input.view.of_kind("Lease")) {
    if (lease.name == kOwnLease) own = &lease;
  }
  const std::int64_t now = input.view.now_ns;
  if (own == nullptr && !input.view.hides("leases.coordination.k8s.io")) {
    out.add("controller-lease-missing", Severity::kInfo, "Lease berth-system/berth-controller",
            "there is none: no controller runs with election here (that of berth up has none)",
            "install berth's controller, when this is not a cluster of berth up");
  }
  const LeaseState ours = own == nullptr ? LeaseState{} : lease_state(*own, now);
  if (own != nullptr && !ours.live) {
    out.add("controller-lease-stale", Severity::kError, "Lease " + own->ns + '/' + own->name,
            ours.held ? "its holder " + ours.holder + " has not renewed it for " +
                            show_age(ours.age_ns) + ": nothing is decided"
                      : "nobody holds it: nothing is decided",
            "kubectl -n berth-system get pods; logs of the controller");
  }
  const ObjectFacts* kueue =
      input.view.find("Lease", control::kKueueNamespace, control::kKueueLease);
  if (kueue == nullptr) return;
  const LeaseState theirs = lease_state(*kueue, now);
  if (!theirs.live) return;
  out.add(
      "kueue-also-leads", ours.live ? Severity::kWarning : Severity::kInfo,
      "Lease kueue-system/" + std::string(control::kKueueLease),
      "Kueue's manager " + theirs.holder + " is at work: berth leaves its queues alone while it is",
      "scale kueue-controller-manager to 0 to let berth admit, or keep it and its rules");
}

void check_kinds(const DoctorInput& input, Findings& out) {
  if (!input.view.live) return;
  for (const std::string& absent : input.view.absent) {
    if (absent == "gpunodes.berth.dev") {
      out.add("crd-missing", Severity::kError, "CustomResourceDefinition " + absent,
              "it is not installed: agents cannot tell of GPUs",
              "kubectl apply -f deploy/crds/gpunodes.yaml");
    } else if (absent == "berthpolicies.berth.dev") {
      out.add("crd-missing", Severity::kWarning, "CustomResourceDefinition " + absent,
              "it is not installed: policies are defaults and flags of the controller",
              "kubectl apply -f deploy/crds/berthpolicies.yaml");
    }
  }
  bool some = false, all = true;
  std::string missing;
  for (const char* plural : {"resourceflavors", "clusterqueues", "localqueues", "workloads",
                             "cohorts", "topologies", "admissionchecks"}) {
    const std::string full = std::string(plural) + ".kueue.x-k8s.io";
    const auto& absent = input.view.absent;
    const bool gone = std::find(absent.begin(), absent.end(), full) != absent.end();
    some |= !gone;
    all &= !gone;
    if (gone) missing += (missing.empty() ? "" : ", ") + std::string(plural);
  }
  if (some && !all) {
    out.add("crd-missing", Severity::kWarning, "CustomResourceDefinition kueue.x-k8s.io",
            "some of Kueue's kinds are not installed in v1beta2: " + missing,
            "kubectl apply -f deploy/crds/kueue.yaml");
  }
  for (const ObjectFacts& crd : input.view.of_kind("CustomResourceDefinition")) {
    const std::string_view group = text_at(*crd.value, "spec.group");
    const bool ours = group == "berth.dev";
    if (!ours && group != "kueue.x-k8s.io") continue;
    const text::Value* versions = find(*crd.value, "spec.versions");
    bool known = false;
    std::string served;
    for (const text::Value& version :
         versions == nullptr ? std::span<const text::Value>() : versions->items()) {
      const std::string_view name = text_at(version, "name");
      const text::Value* on = version.find("served");
      if (on == nullptr || !on->as_bool()) continue;
      known |= ours ? name == "v1alpha1" : name == "v1beta2" || name == "v1beta1";
      known |= !ours && name == "v1alpha1";  // kinds that never left it
      served += (served.empty() ? "" : ", ") + std::string(name);
    }
    if (known) continue;
    out.add(
        "crd-version-unknown", Severity::kError, "CustomResourceDefinition " + crd.name,
        "it serves " + (served.empty() ? "nothing" : served) + ", which this berth does not read",
        "update berth, or serve a version that it reads (docs/queues.md)");
  }
}

void check_policies(const DoctorInput& input, Findings& out) {
  for (const ObjectFacts& policy : input.view.of_kind("BerthPolicy")) {
    const std::string object = "BerthPolicy " + policy.name;
    if (policy.name != kinds::kPolicyInForce) {
      out.add("policy-not-in-force", Severity::kWarning, object,
              "only the BerthPolicy named default is in force: nothing is decided by this one",
              "name it default, or kubectl delete berthpolicy " + policy.name);
      continue;
    }
    if (const std::string errors = kinds::policy_errors(*policy.value); !errors.empty()) {
      out.add("policy-not-in-force", Severity::kError, object,
              "nothing of it is in force, because part of it cannot be read: " + errors,
              "kubectl edit berthpolicy default");
    }
    const text::Value* flags = find(*policy.value, "status.flags");
    if (flags == nullptr || flags->size() == 0) continue;
    std::string words;
    for (const text::Value& flag : flags->items()) words.append(" ").append(flag.string());
    out.add("policy-flags", Severity::kInfo, object,
            "flags of the controller go before parts of it:" + words,
            "take the flags away to let the object say it (docs/policy.md)");
  }
}

// ---- webhooks ----

struct Hook {
  const ObjectFacts& config;
  const text::Value& webhook;
  std::string object;
  bool closed = true;  // failurePolicy: Fail
};

void check_ca(const Hook& hook, std::int64_t now_ns, Findings& out) {
  const std::string_view bundle = text_at(hook.webhook, "clientConfig.caBundle");
  const Severity severity = hook.closed ? Severity::kError : Severity::kWarning;
  const char* fix = "let its installer (cert-manager, the controller) write the CA bundle again";
  if (bundle.empty()) {
    out.add("webhook-ca-missing", Severity::kInfo, hook.object,
            "it has no CA bundle: the API server trusts its own authorities alone", fix);
    return;
  }
  const Result<std::string> pem = text::base64_decode(bundle);
  const Result<std::int64_t> ends =
      pem.ok() ? serve::expires_ns(*pem) : Result<std::int64_t>(pem.error());
  if (!ends.ok()) {
    out.add("webhook-ca-invalid", severity, hook.object,
            "its CA bundle is no PEM certificate: " + ends.error().to_string(), fix);
  } else if (*ends <= now_ns) {
    out.add("webhook-ca-expired", severity, hook.object,
            "its CA certificate ended " + text::format_rfc3339(*ends) + ": calls fail", fix);
  } else if (*ends - now_ns < kSoon_ns) {
    out.add("webhook-ca-expiring", Severity::kWarning, hook.object,
            "its CA certificate ends " + text::format_rfc3339(*ends), fix);
  }
}

void check_service(const DoctorInput& input, const Hook& hook, Findings& out) {
  const std::string ns(text_at(hook.webhook, "clientConfig.service.namespace"));
  const std::string name(text_at(hook.webhook, "clientConfig.service.name"));
  if (name.empty()) return;  // by URL: it cannot be asked from here
  for (const std::string& unseen : input.view.unseen) {
    if (unseen.starts_with("services") || unseen.starts_with("endpointslices")) return;
  }
  const Severity severity = hook.closed ? Severity::kError : Severity::kWarning;
  const char* fix = "start what stands behind the Service, or delete the webhook configuration";
  if (input.view.find("Service", ns, name) == nullptr) {
    out.add("webhook-no-endpoints", severity, hook.object,
            "its Service " + ns + '/' + name + " does not exist" +
                (hook.closed ? ": every object it is for is refused" : ""),
            fix);
    return;
  }
  bool ready = false;
  for (const ObjectFacts& slice : input.view.of_kind("EndpointSlice")) {
    if (slice.ns != ns ||
        text_at(*slice.value, "metadata.labels[kubernetes.io/service-name]") != name) {
      continue;
    }
    const text::Value* endpoints = slice.value->find("endpoints");
    if (endpoints == nullptr) continue;
    for (const text::Value& endpoint : endpoints->items()) {
      const text::Value* is = find(endpoint, "conditions.ready");
      ready |= is == nullptr || is->is_null() || is->as_bool();
    }
  }
  if (ready) return;
  out.add("webhook-no-endpoints", severity, hook.object,
          "its Service " + ns + '/' + name + " has no ready endpoint" +
              (hook.closed ? ": every object it is for is refused" : ""),
          fix);
}

bool for_pods(const text::Value& webhook) {
  const text::Value* rules = webhook.find("rules");
  if (rules == nullptr) return false;
  for (const text::Value& rule : rules->items()) {
    const text::Value* resources = rule.find("resources");
    if (resources == nullptr) continue;
    for (const text::Value& resource : resources->items()) {
      if (resource.string() == "pods" || resource.string() == "*" || resource.string() == "*/*") {
        return true;
      }
    }
  }
  return false;
}

void check_closed(const Hook& hook, Findings& out) {
  if (!hook.closed || !for_pods(hook.webhook)) return;
  for (const char* selector : {"namespaceSelector", "objectSelector"}) {
    const text::Value* found = hook.webhook.find(selector);
    if (found != nullptr && found->size() > 0) return;
  }
  out.add("webhook-fails-closed", Severity::kWarning, hook.object,
          "failurePolicy Fail for pods of all namespaces: when it is away no pod starts, also "
          "those that would bring it back",
          "leave kube-system and its own namespace out by namespaceSelector, or use Ignore");
}

}  // namespace

void check_control(const DoctorInput& input, Findings& out) {
  check_leases(input, out);
  check_kinds(input, out);
  check_policies(input, out);
}

void check_webhooks(const DoctorInput& input, Findings& out) {
  for (const char* kind : {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}) {
    for (const ObjectFacts& config : input.view.of_kind(kind)) {
      const text::Value* webhooks = config.value->find("webhooks");
      if (webhooks == nullptr) continue;
      for (const text::Value& webhook : webhooks->items()) {
        Hook hook{config, webhook,
                  "webhook " + config.name + '/' + std::string(text_at(webhook, "name"))};
        hook.closed = text_at(webhook, "failurePolicy") != "Ignore";
        check_ca(hook, input.view.now_ns, out);
        check_service(input, hook, out);
        check_closed(hook, out);
      }
    }
  }
}

}  // namespace berth::app
