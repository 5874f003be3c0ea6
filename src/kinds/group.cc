#include "kinds/group.h"

#include <algorithm>

namespace berth::kinds {

namespace {

using model::SubgroupSpec;
using text::Decoder;
using text::Value;

constexpr auto read_member_count = text::int_between<0, 1'000'000>;

// What the four kinds have in common.
struct GroupSpec {
  int min_member = 1;
  std::string queue, priority_class;
  std::optional<int> priority;
  std::vector<SubgroupSpec> subgroups;
  TopologyRequest topology;
  std::string workload, workload_template;
};

void read_task_minimums(const Value& v, std::vector<SubgroupSpec>& out, Decoder& d) {
  std::map<std::string, int> tasks;
  decode(v, tasks, d);
  for (const auto& [name, count] : tasks) {
    if (count < 0) {
      Decoder::Step step(d, name);
      d.error(v, std::to_string(count), "at least 0");
    }
    SubgroupSpec subgroup;
    subgroup.name = name;
    subgroup.min_member = count;
    out.push_back(std::move(subgroup));
  }
}

void warn_hypernodes(const Value& v, GroupSpec&, Decoder& d) {
  d.warning(v, "a network topology by HyperNodes; they are not read",
            "the annotation berth.dev/topology-required or berth.dev/topology-preferred");
}
void warn_subgroup_policy(const Value& v, GroupSpec&, Decoder& d) {
  if (v.size() > 0) d.warning(v, "subgroup policies; they are not read", "minTaskMember");
}

constexpr text::Field<GroupSpec> kVolcanoSpecFields[] = {
    text::field<&GroupSpec::min_member, read_member_count>("minMember"),
    text::skip<GroupSpec>("minResources"),
    text::field<&GroupSpec::subgroups, read_task_minimums>("minTaskMember"),
    text::custom<GroupSpec>("networkTopology", warn_hypernodes),
    text::field<&GroupSpec::priority_class>("priorityClassName"),
    text::field<&GroupSpec::queue>("queue"),
    text::custom<GroupSpec>("subGroupPolicy", warn_subgroup_policy),
};
constexpr text::Field<GroupSpec> kCoschedulingSpecFields[] = {
    text::field<&GroupSpec::min_member, read_member_count>("minMember"),
    text::skip<GroupSpec>("minResources"),
    text::skip<GroupSpec>("scheduleTimeoutSeconds"),
};

// ---- KAI ----
constexpr text::Field<TopologyRequest> kKaiTopologyFields[] = {
    text::field<&TopologyRequest::preferred>("preferredTopologyLevel"),
    text::field<&TopologyRequest::required>("requiredTopologyLevel"),
    text::skip<TopologyRequest>("topology"),
};
void read_kai_topology(const Value& v, TopologyRequest& out, Decoder& d) {
  decode_object(v, kKaiTopologyFields, out, d);
  for (const std::string* level : {&out.required, &out.preferred}) {
    if (!level->empty() && !is_topology_value(*level)) {
      d.error(v, quoted(*level), "a node label key");
    }
  }
}
struct KaiSubgroup {
  SubgroupSpec spec;
  TopologyRequest topology;
};
constexpr text::Field<KaiSubgroup> kKaiSubgroupFields[] = {
    text::required(text::custom<KaiSubgroup>(
        "name", [](const Value& v, KaiSubgroup& out, Decoder& d) { decode(v, out.spec.name, d); })),
    text::custom<KaiSubgroup>("minMember",
                              [](const Value& v, KaiSubgroup& out, Decoder& d) {
                                read_member_count(v, out.spec.min_member, d);
                              }),
    text::skip<KaiSubgroup>("minSubGroup"),
    text::custom<KaiSubgroup>("parent",
                              [](const Value& v, KaiSubgroup&, Decoder& d) {
                                d.warning(v, "a parent; nested subgroups are read as flat ones",
                                          "no parent");
                              }),
    text::field<&KaiSubgroup::topology, read_kai_topology>("topologyConstraint"),
};
constexpr auto read_kai_subgroup = object_of<kKaiSubgroupFields>;

void read_kai_subgroups(const Value& v, std::vector<SubgroupSpec>& out, Decoder& d) {
  std::vector<KaiSubgroup> raw;
  list_of<read_kai_subgroup>(v, raw, d);
  for (KaiSubgroup& s : raw) {
    s.spec.required_topology = std::move(s.topology.required);
    s.spec.preferred_topology = std::move(s.topology.preferred);
    out.push_back(std::move(s.spec));
  }
}
constexpr text::Field<GroupSpec> kKaiSpecFields[] = {
    text::skip<GroupSpec>("markUnschedulable"),
    text::field<&GroupSpec::min_member, read_member_count>("minMember"),
    text::skip<GroupSpec>("minSubGroup"),
    text::skip<GroupSpec>("preemptibility"),
    text::skip<GroupSpec>("preemptionDelay"),
    text::field<&GroupSpec::priority_class>("priorityClassName"),
    text::field<&GroupSpec::queue>("queue"),
    text::skip<GroupSpec>("schedulingBackoff"),
    text::skip<GroupSpec>("stalenessGracePeriod"),
    text::field<&GroupSpec::subgroups, read_kai_subgroups>("subGroups"),
    text::field<&GroupSpec::topology, read_kai_topology>("topologyConstraint"),
};

// ---- upstream ----
constexpr text::Field<GroupSpec> kGangPolicyFields[] = {
    text::required(text::field<&GroupSpec::min_member, read_member_count>("minCount")),
};
constexpr text::Field<GroupSpec> kSchedulingPolicyFields[] = {
    text::skip<GroupSpec>("basic"),
    text::inlined<kGangPolicyFields>("gang"),
};
struct TopologyLevel {
  std::string key;
};
constexpr text::Field<TopologyLevel> kTopologyLevelFields[] = {
    text::required(text::field<&TopologyLevel::key>("key")),
};
constexpr auto read_topology_level = object_of<kTopologyLevelFields>;
void read_constraint_topology(const Value& v, TopologyRequest& out, Decoder& d) {
  std::vector<TopologyLevel> levels;
  list_of<read_topology_level>(v, levels, d);
  if (!levels.empty()) out.required = levels.front().key;
}
constexpr text::Field<GroupSpec> kConstraintFields[] = {
    text::field<&GroupSpec::topology, read_constraint_topology>("topology"),
};
constexpr text::Field<GroupSpec> kWorkloadRefFields[] = {
    text::field<&GroupSpec::workload_template>("templateName"),
    text::required(text::field<&GroupSpec::workload>("workloadName")),
};
constexpr text::Field<GroupSpec> kUpstreamSpecFields[] = {
    text::skip<GroupSpec>("disruptionMode"),
    text::skip<GroupSpec>("parentCompositePodGroupName"),
    text::skip<GroupSpec>("podGroupTemplateRef"),
    text::skip<GroupSpec>("preemptionPolicy"),
    text::field<&GroupSpec::priority>("priority"),
    text::field<&GroupSpec::priority_class>("priorityClassName"),
    text::skip<GroupSpec>("resourceClaims"),
    text::inlined<kConstraintFields>("schedulingConstraints"),
    text::inlined<kSchedulingPolicyFields>("schedulingPolicy"),
    text::inlined<kWorkloadRefFields>("workloadRef"),
};

template <const auto& SpecFields>
inline constexpr text::Field<GroupSpec> kGroupFields[] = {
    text::skip<GroupSpec>("apiVersion"), text::skip<GroupSpec>("kind"),
    text::skip<GroupSpec>("metadata"),   text::inlined<SpecFields>("spec"),
    text::skip<GroupSpec>("status"),
};

void check_subgroups(const Value& v, std::vector<SubgroupSpec>& subgroups, Decoder& d) {
  std::sort(subgroups.begin(), subgroups.end(),
            [](const SubgroupSpec& a, const SubgroupSpec& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < subgroups.size(); ++i) {
    if (subgroups[i].name.empty()) d.error(v, "a subgroup without a name", "a name");
    if (i > 0 && subgroups[i].name == subgroups[i - 1].name) {
      d.error(v, "subgroup " + quoted(subgroups[i].name) + " twice", "each once");
    }
  }
}

template <const auto& SpecFields>
void decode_group(const Value& v, GroupObject& out, Decoder& d) {
  read_meta(v, Scope::kNamespaced, out.meta, d);
  GroupSpec spec;
  decode_object(v, kGroupFields<SpecFields>, spec, d);
  check_subgroups(v, spec.subgroups, d);
  TopologyRequest wanted;
  read_topology(v, out.meta, wanted, d);
  if (wanted.required.empty()) wanted.required = spec.topology.required;
  if (wanted.preferred.empty()) wanted.preferred = spec.topology.preferred;
  model::GangSpec& gang = out.gang;
  gang.ns = out.meta.ns;
  gang.name = out.meta.name;
  gang.min_member = std::max(1, spec.min_member);
  gang.subgroups = std::move(spec.subgroups);
  gang.required_topology = std::move(wanted.required);
  gang.preferred_topology = std::move(wanted.preferred);
  gang.priority = spec.priority;
  gang.queue = std::move(spec.queue);
  gang.created_ns = out.meta.created_ns;
  out.priority_class = std::move(spec.priority_class);
  out.workload = std::move(spec.workload);
  out.workload_template = std::move(spec.workload_template);
}

}  // namespace

void decode_volcano_group(const Value& v, GroupObject& out, Decoder& d) {
  decode_group<kVolcanoSpecFields>(v, out, d);
}
void decode_coscheduling_group(const Value& v, GroupObject& out, Decoder& d) {
  decode_group<kCoschedulingSpecFields>(v, out, d);
}
void decode_kai_group(const Value& v, GroupObject& out, Decoder& d) {
  out.kai = true;
  decode_group<kKaiSpecFields>(v, out, d);
}
void decode_upstream_group(const Value& v, GroupObject& out, Decoder& d) {
  decode_group<kUpstreamSpecFields>(v, out, d);
}

}  // namespace berth::kinds
