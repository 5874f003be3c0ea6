#include "kinds/pod.h"

#include <algorithm>

#include "kinds/affinity.h"
#include "kinds/gpu_demand.h"
#include "kinds/pod_spec.h"
#include "kinds/queue_marks.h"

namespace berth::kinds {

namespace {

using text::Decoder;
using text::Value;

struct PodTop {
  RawPodSpec spec;
  std::string phase;
  std::int64_t started_ns = 0;
};

constexpr text::Field<PodTop> kPodStatusFields[] = {
    text::field<&PodTop::phase>("phase"),
    text::field<&PodTop::started_ns, text::read_time_ns>("startTime"),
};
constexpr text::Field<PodTop> kPodFields[] = {
    text::skip<PodTop>("apiVersion"),
    text::skip<PodTop>("kind"),
    text::skip<PodTop>("metadata"),
    text::required(text::field<&PodTop::spec>("spec")),
    text::custom<PodTop>("status", [](const Value& v, PodTop& out,
                                      Decoder& d) { decode_lenient(v, kPodStatusFields, out, d); }),
};
constexpr text::Field<PodTop> kTemplateFields[] = {
    text::skip<PodTop>("apiVersion"),  // of a pod that stands in another object
    text::skip<PodTop>("kind"),
    text::skip<PodTop>("metadata"),
    text::required(text::field<&PodTop::spec>("spec")),
};

bool service_owner(const Owner& owner) {
  return owner.is("apps", "ReplicaSet") || owner.is("apps", "StatefulSet") ||
         owner.is("apps", "Deployment") || owner.is("", "ReplicationController");
}

void take_ports(const Value& v, const RawPodSpec& raw, const Container& c, model::PodSpec& out,
                Decoder& d) {
  for (const ContainerPort& port : c.ports) {
    int number = port.host_port;
    if (raw.host_network) {
      if (number != 0 && number != port.container_port) {
        d.error(v, "hostPort " + std::to_string(number) + " of container " + quoted(c.name),
                "the containerPort " + std::to_string(port.container_port) + " with hostNetwork");
      }
      number = port.container_port;
    }
    if (number == 0) continue;
    out.host_ports.push_back(
        {port.protocol, port.host_ip.empty() ? "0.0.0.0" : port.host_ip, number});
  }
}

void read_host_ports(const Value& v, const RawPodSpec& raw, model::PodSpec& out, Decoder& d) {
  for (const Container& c : raw.containers.init) {
    if (c.restarts_always) take_ports(v, raw, c, out, d);
  }
  for (const Container& c : raw.containers.app) take_ports(v, raw, c, out, d);
  std::sort(out.host_ports.begin(), out.host_ports.end());
  out.host_ports.erase(std::unique(out.host_ports.begin(), out.host_ports.end()),
                       out.host_ports.end());
}

// The parts of spec that need the namespace and the labels of the pod.
void read_where(const RawPodSpec& raw, const Meta& meta, model::PodSpec& out, Decoder& d) {
  const AffinityContext context{meta.ns, meta.labels};
  const std::size_t before = d.errors();
  if (raw.affinity != nullptr) {
    Decoder::Step step(d, "affinity");
    read_affinity(*raw.affinity, context, out, d);
  }
  if (raw.spread != nullptr) {
    Decoder::Step step(d, "topologySpreadConstraints");
    read_spread(*raw.spread, context, out, d);
  }
  if (d.errors() == before) return;
  out.required_nodes.clear();  // half a rule is none
  out.preferred_nodes.clear();
  out.affinity.clear();
  out.anti_affinity.clear();
  out.preferred_affinity.clear();
  out.preferred_anti_affinity.clear();
  out.spread.clear();
}

void fill(const Value& v, PodTop&& top, PodObject& out, Decoder& d) {
  RawPodSpec& raw = top.spec;
  model::PodSpec& spec = out.spec;
  spec.ns = out.meta.ns;
  spec.name = out.meta.name;
  spec.uid = out.meta.uid;
  spec.labels = out.meta.labels;
  spec.created_ns = out.meta.created_ns;
  spec.started_ns = top.started_ns;
  spec.terminating = out.meta.deleted;
  if (const Owner* owner = out.meta.controller()) {
    spec.owner = owner->text();
    spec.service = service_owner(*owner);
  }
  spec.node_name = std::move(raw.node_name);
  if (const std::string* by = out.meta.annotation(kChargedAnnotation);
      by != nullptr && !spec.node_name.empty()) {
    read_charge(*by, spec);
  }
  spec.node_selector = std::move(raw.node_selector);
  spec.tolerations = std::move(raw.tolerations);
  spec.priority_class = std::move(raw.priority_class);
  spec.gated = raw.gated;
  out.other_gates = raw.other_gates;
  out.phase = std::move(top.phase);
  out.restart_policy = std::move(raw.restart_policy);
  out.priority = raw.priority;
  out.preempts = raw.preempts;
  out.claims = std::move(raw.claims);
  out.spec.unread_claims = raw.unread_claims;
  {
    const Value* at = v.find("spec");
    Decoder::Step step(d, "spec");
    read_where(raw, out.meta, spec, d);
    read_host_ports(at == nullptr ? v : *at, raw, spec, d);
    const Value* status = v.find("status");
    if (status != nullptr && !spec.node_name.empty()) {
      count_resize(*status, raw.containers, raw.pod_level);
    }
    const Resources* pod_level = raw.pod_level ? &*raw.pod_level : nullptr;
    if (!effective_requests(raw.containers, pod_level, raw.overhead, spec.requests)) {
      d.error(at == nullptr ? v : *at, "requests that add up to more than 8Pi", "a smaller sum");
      for (auto& [name, amount] : spec.requests) amount = std::min(amount, kMaxAmount);
    }
  }
  read_membership(v, out.meta, raw.scheduling_group, out.member, d);
  spec.queue = out.member.queue;
  out.gpus_read = read_gpu_demand(v, out.meta, raw.containers, spec, d);
  std::erase_if(spec.requests, [](const auto& entry) { return entry.second == 0; });
}

}  // namespace

void decode(const Value& v, PodObject& out, Decoder& d) {
  read_meta(v, Scope::kNamespaced, out.meta, d);
  warn_unknown_annotations(v, out.meta, d);
  PodTop top;
  decode_object(v, kPodFields, top, d);
  fill(v, std::move(top), out, d);
}

void decode_template(const Value& v, const std::string& ns, PodObject& out, Decoder& d) {
  if (const Value* meta = v.find("metadata"); meta != nullptr && !meta->is_null()) {
    Decoder::Step step(d, "metadata");
    decode(*meta, out.meta, d);
  }
  out.meta.ns = ns;
  PodTop top;
  decode_object(v, kTemplateFields, top, d);
  fill(v, std::move(top), out, d);
}

}  // namespace berth::kinds
