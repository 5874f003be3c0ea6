// The small kinds beside the queues.
#include <algorithm>

#include "kinds/kueue.h"
#include "kinds/names.h"

namespace berth::kinds {

namespace {

using model::CheckSpec;
using model::TopologySpec;
using text::Decoder;
using text::Field;
using text::Value;

constexpr std::size_t kMostLevels = 16;

constexpr Field<WorkloadClassObject> kWorkloadClassFields[] = {
    text::skip<WorkloadClassObject>("apiVersion"),
    text::skip<WorkloadClassObject>("kind"),
    text::skip<WorkloadClassObject>("metadata"),
    text::skip<WorkloadClassObject>("description"),
    text::required(text::field<&WorkloadClassObject::value>("value")),
};

constexpr Field<NamespaceObject> kNamespaceFields[] = {
    text::skip<NamespaceObject>("apiVersion"), text::skip<NamespaceObject>("kind"),
    text::skip<NamespaceObject>("metadata"),   text::skip<NamespaceObject>("spec"),
    text::skip<NamespaceObject>("status"),
};

// ---- Topology ----

struct NodeLevel {
  std::string label;
};
constexpr Field<NodeLevel> kNodeLevelFields[] = {
    text::required(text::field<&NodeLevel::label>("nodeLabel")),
};
constexpr auto read_node_level = object_of<kNodeLevelFields>;

void read_levels(const Value& v, TopologySpec& out, Decoder& d) {
  std::vector<NodeLevel> levels;
  const std::size_t before = d.errors();
  list_of<read_node_level>(v, levels, d);
  if (d.errors() != before) return;
  if (levels.empty() || levels.size() > kMostLevels) {
    d.error(v, std::to_string(levels.size()) + " levels", "1 to 16");
  }
  for (std::size_t i = 0; i < levels.size(); ++i) {
    Decoder::Step step(d, i);
    const Value& at = v.items()[i];
    const std::string& label = levels[i].label;
    if (!is_qualified_name(label)) {
      d.error(at, "nodeLabel " + quoted(label), "a node label key");
    } else if (std::find(out.levels.begin(), out.levels.end(), label) != out.levels.end()) {
      d.error(at, "nodeLabel " + quoted(label) + " twice", "each label once");
    } else if (label == model::kHostnameLabel && i + 1 < levels.size()) {
      d.error(at, "nodeLabel " + quoted(label) + " above another", "it as the last level only");
    }
    out.levels.push_back(label);
  }
}

constexpr Field<TopologySpec> kTopologySpecFields[] = {
    text::required(text::custom<TopologySpec>("levels", read_levels)),
};
constexpr Field<TopologySpec> kTopologyFields[] = {
    text::skip<TopologySpec>("apiVersion"),
    text::skip<TopologySpec>("kind"),
    text::skip<TopologySpec>("metadata"),
    text::required(text::inlined<kTopologySpecFields>("spec")),
    text::skip<TopologySpec>("status"),
};

// ---- AdmissionCheck ----

constexpr Field<CheckSpec> kCheckSpecFields[] = {
    text::required(text::field<&CheckSpec::controller>("controllerName")),
    text::skip<CheckSpec>("parameters"),
    text::skip<CheckSpec>("retryDelayMinutes"),
};
void read_active(const Value& v, CheckSpec& out, Decoder& d) {
  std::vector<StatusCondition> conditions;
  read_status_conditions(v, conditions, d);
  for (const StatusCondition& condition : conditions) {
    if (condition.type == "Active") out.active = condition.is_true();
  }
}
constexpr Field<CheckSpec> kCheckStatusFields[] = {
    text::custom<CheckSpec>("conditions", read_active),
};
constexpr Field<CheckSpec> kAdmissionCheckFields[] = {
    text::skip<CheckSpec>("apiVersion"),
    text::skip<CheckSpec>("kind"),
    text::skip<CheckSpec>("metadata"),
    text::required(text::inlined<kCheckSpecFields>("spec")),
    text::custom<CheckSpec>("status",
                            [](const Value& v, CheckSpec& out, Decoder& d) {
                              decode_lenient(v, kCheckStatusFields, out, d);
                            }),
};

// ---- conditions ----

constexpr Field<StatusCondition> kStatusConditionFields[] = {
    text::field<&StatusCondition::type>("type"),
    text::field<&StatusCondition::status>("status"),
    text::field<&StatusCondition::reason>("reason"),
    text::field<&StatusCondition::message>("message"),
    text::field<&StatusCondition::since_ns, text::read_time_ns>("lastTransitionTime"),
};
void read_status_condition(const Value& v, StatusCondition& out, Decoder& d) {
  decode_lenient(v, kStatusConditionFields, out, d);
}

}  // namespace

void read_status_conditions(const Value& v, std::vector<StatusCondition>& out, Decoder& d) {
  list_of<read_status_condition>(v, out, d);
}

void decode(const Value& v, WorkloadClassObject& out, Decoder& d) {
  read_meta(v, Scope::kCluster, out.meta, d);
  decode_object(v, kWorkloadClassFields, out, d);
}

void decode(const Value& v, NamespaceObject& out, Decoder& d) {
  read_meta(v, Scope::kCluster, out.meta, d);
  decode_object(v, kNamespaceFields, out, d);
}

void decode_topology(const Value& v, TopologySpec& out, Decoder& d) {
  Meta meta;
  read_meta(v, Scope::kCluster, meta, d);
  decode_object(v, kTopologyFields, out, d);
  out.name = meta.name;
}

void decode_check(const Value& v, CheckSpec& out, Decoder& d) {
  Meta meta;
  read_meta(v, Scope::kCluster, meta, d);
  decode_object(v, kAdmissionCheckFields, out, d);
  out.name = meta.name;
}

}  // namespace berth::kinds
