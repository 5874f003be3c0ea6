#include "kinds/pod_spec.h"

#include "kinds/affinity.h"

namespace berth::kinds {

namespace {

using text::Decoder;
using text::Value;

constexpr std::pair<std::string_view, bool> kPreemption[] = {
    {"PreemptLowerPriority", true}, {"Never", false}, {"", true}};

void read_preempts(const Value& v, std::optional<bool>& out, Decoder& d) {
  bool preempts = true;
  const std::size_t before = d.errors();
  text::one_of<kPreemption>(v, preempts, d);
  if (d.errors() == before) out = preempts;
}

void read_restart_policy(const Value& v, std::string& out, Decoder& d) {
  const std::string_view text = v.string();
  if (text != "Always" && text != "OnFailure" && text != "Never") {
    return d.mismatch(v, "one of Always, OnFailure, Never");
  }
  out = text;
}

void read_pod_level(const Value& v, std::optional<Resources>& out, Decoder& d) {
  Resources resources;
  decode(v, resources, d);
  for (const std::string_view part : {"requests", "limits"}) {
    const Value* amounts = v.find(part);
    if (amounts == nullptr) continue;
    Decoder::Step step(d, part);
    for (const text::Member& member : amounts->members()) {
      Decoder::Step item(d, member.key);
      if (!is_pod_level_resource(member.key)) {
        d.error(member.value, "a resource that only containers can ask for",
                "cpu, memory or hugepages-*");
      }
    }
  }
  out = std::move(resources);
}

void read_gates(const Value& v, RawPodSpec& out, Decoder& d) {
  if (!v.is_array()) return d.mismatch(v, "an array");
  out.gated = v.size() > 0;
  for (const Value& gate : v.items()) {
    const Value* name = gate.find("name");
    const bool kueue = name != nullptr && (name->string() == "kueue.x-k8s.io/admission" ||
                                           name->string() == "kueue.x-k8s.io/topology" ||
                                           name->string() == "kueue.x-k8s.io/elastic-job");
    if (!kueue) out.other_gates = true;
  }
}

void read_claims(const Value& v, RawPodSpec& out, Decoder& d) {
  if (v.size() == 0) return;
  out.unread_claims = true;
  d.warning(v, "resource claims; they are not read", "device plugin resources");
}

struct GroupRef {
  std::string name;
};
constexpr text::Field<GroupRef> kGroupRefFields[] = {
    text::field<&GroupRef::name>("podGroupName"),
};
void read_scheduling_group(const Value& v, std::string& out, Decoder& d) {
  GroupRef ref;
  decode_object(v, kGroupRefFields, ref, d);
  out = std::move(ref.name);
}

void check_containers(const Value& v, const RawPodSpec& out, Decoder& d) {
  if (!out.containers.app.empty()) return;
  Decoder::Step step(d, "containers");
  d.error(v, "no containers", "at least one");
}

using S = RawPodSpec;
constexpr text::Field<S> kPodSpecFields[] = {
    text::skip<S>("activeDeadlineSeconds"),
    text::custom<S>("affinity", [](const Value& v, S& out, Decoder&) { out.affinity = &v; }),
    text::skip<S>("automountServiceAccountToken"),
    text::custom<S>("containers",
                    [](const Value& v, S& out, Decoder& d) { decode(v, out.containers.app, d); }),
    text::skip<S>("dnsConfig"),
    text::skip<S>("dnsPolicy"),
    text::skip<S>("enableServiceLinks"),
    text::skip<S>("ephemeralContainers"),
    text::skip<S>("evictionInterceptors"),
    text::skip<S>("hostAliases"),
    text::skip<S>("hostIPC"),
    text::field<&S::host_network>("hostNetwork"),
    text::skip<S>("hostPID"),
    text::skip<S>("hostUsers"),
    text::skip<S>("hostname"),
    text::skip<S>("hostnameOverride"),
    text::skip<S>("imagePullSecrets"),
    text::custom<S>("initContainers",
                    [](const Value& v, S& out, Decoder& d) { decode(v, out.containers.init, d); }),
    text::field<&S::node_name>("nodeName"),
    text::field<&S::node_selector>("nodeSelector"),
    text::skip<S>("os"),
    text::field<&S::overhead, read_amounts>("overhead"),
    text::field<&S::preempts, read_preempts>("preemptionPolicy"),
    text::field<&S::priority>("priority"),
    text::field<&S::priority_class>("priorityClassName"),
    text::skip<S>("readinessGates"),
    text::custom<S>("resourceClaims", read_claims),
    text::field<&S::pod_level, read_pod_level>("resources"),
    text::field<&S::restart_policy, read_restart_policy>("restartPolicy"),
    text::skip<S>("runtimeClassName"),
    text::skip<S>("schedulerName"),
    text::field<&S::scheduling_group, read_scheduling_group>("schedulingGroup"),
    text::custom<S>("schedulingGates", read_gates),
    text::skip<S>("securityContext"),
    text::skip<S>("serviceAccount"),
    text::skip<S>("serviceAccountName"),
    text::skip<S>("setHostnameAsFQDN"),
    text::skip<S>("shareProcessNamespace"),
    text::skip<S>("subdomain"),
    text::skip<S>("terminationGracePeriodSeconds"),
    text::field<&S::tolerations, read_tolerations>("tolerations"),
    text::custom<S>("topologySpreadConstraints",
                    [](const Value& v, S& out, Decoder&) { out.spread = &v; }),
    text::field<&S::claims, read_pod_volumes>("volumes"),
    text::skip<S>("workloadRef"),
};

}  // namespace

void decode(const Value& v, RawPodSpec& out, Decoder& d) {
  const std::size_t before = d.errors();
  decode_object(v, kPodSpecFields, out, d);
  if (d.errors() == before) check_containers(v, out, d);
}

}  // namespace berth::kinds
