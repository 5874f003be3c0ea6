#include "kinds/node.h"

#include <algorithm>

#include "kinds/affinity.h"

namespace berth::kinds {

namespace {

using text::Decoder;
using text::Value;

constexpr std::int64_t kDefaultPods = 110;  // the kubelet's own default

struct Condition {
  std::string type, status;
};
constexpr text::Field<Condition> kConditionFields[] = {
    text::field<&Condition::type>("type"),
    text::field<&Condition::status>("status"),
};
void read_condition(const Value& v, Condition& out, Decoder& d) {
  decode_lenient(v, kConditionFields, out, d);
}

struct NodeTop {
  std::vector<model::Taint> taints;
  bool unschedulable = false;
  bool has_allocatable = false;
  model::Amounts allocatable, capacity;
  std::vector<Condition> conditions;
};

// A node that does not say so readably gets nothing new.
void read_cordon(const Value& v, bool& out, Decoder& d) {
  const std::size_t before = d.errors();
  decode(v, out, d);
  if (d.errors() != before) out = true;
}
void read_node_conditions(const Value& v, std::vector<Condition>& out, Decoder& d) {
  const std::size_t before = d.errors();
  list_of<read_condition>(v, out, d);
  if (d.errors() != before) out.push_back({"Ready", "Unknown"});
}

constexpr text::Field<NodeTop> kNodeSpecFields[] = {
    text::skip<NodeTop>("configSource"),
    text::skip<NodeTop>("externalID"),
    text::skip<NodeTop>("podCIDR"),
    text::skip<NodeTop>("podCIDRs"),
    text::skip<NodeTop>("providerID"),
    text::field<&NodeTop::taints, list_of<read_taint>>("taints"),
    text::field<&NodeTop::unschedulable, read_cordon>("unschedulable"),
};
constexpr text::Field<NodeTop> kNodeStatusFields[] = {
    text::custom<NodeTop>("allocatable",
                          [](const Value& v, NodeTop& out, Decoder& d) {
                            out.has_allocatable = true;
                            read_amounts(v, out.allocatable, d);
                          }),
    text::field<&NodeTop::capacity, read_amounts>("capacity"),
    text::field<&NodeTop::conditions, read_node_conditions>("conditions"),
};
constexpr text::Field<NodeTop> kNodeFields[] = {
    text::skip<NodeTop>("apiVersion"),
    text::skip<NodeTop>("kind"),
    text::skip<NodeTop>("metadata"),
    text::inlined<kNodeSpecFields>("spec"),
    text::custom<NodeTop>("status",
                          [](const Value& v, NodeTop& out, Decoder& d) {
                            decode_lenient(v, kNodeStatusFields, out, d);
                          }),
};

// Whole numbers of extended resources are checked by the kubelet; here fractions round up.
void check_amounts(const Value& v, NodeTop& top, Decoder& d) {
  Decoder::Step status(d, "status");
  Decoder::Step step(d, "allocatable");
  if (!top.has_allocatable) {
    top.allocatable = top.capacity;  // as the API server fills it in
    if (top.allocatable.empty()) {
      return d.warning(v, "nothing", "what the node offers: no pod fits without it");
    }
  }
  if (!top.allocatable.contains("pods")) {
    top.allocatable.emplace("pods", kDefaultPods);
    Decoder::Step pods(d, "pods");
    d.warning(v, "nothing; 110 is assumed", "the number of pods that the node takes");
  }
}

}  // namespace

void decode(const Value& v, NodeObject& out, Decoder& d) {
  read_meta(v, Scope::kCluster, out.meta, d);
  NodeTop top;
  decode_object(v, kNodeFields, top, d);
  check_amounts(v, top, d);
  model::NodeSpec& spec = out.spec;
  spec.name = out.meta.name;
  spec.labels = out.meta.labels;
  spec.taints = std::move(top.taints);
  spec.unschedulable = top.unschedulable;
  spec.allocatable = std::move(top.allocatable);
  for (const Condition& c : top.conditions) {
    if (c.type == "Ready") spec.ready = c.status == "True";
  }
}

}  // namespace berth::kinds
