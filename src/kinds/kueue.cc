#include "kinds/kueue.h"

#include <algorithm>
#include <set>

#include "kinds/affinity.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::kinds {
namespace {

using model::CohortSpec;
using model::FlavorQuota;
using model::FlavorSpec;
using model::LocalQueueSpec;
using model::QueueSpec;
using model::ResourceGroup;
using model::ResourceQuota;
using text::Decoder;
using text::Field;
using text::Value;

// ---- quotas ----

struct RawQuota {
  std::string resource;
  text::Quantity nominal;
  std::optional<text::Quantity> borrowing_limit, lending_limit;
};
constexpr Field<RawQuota> kQuotaFields[] = {
    text::required(text::field<&RawQuota::resource>("name")),
    text::required(text::field<&RawQuota::nominal>("nominalQuota")),
    text::field<&RawQuota::borrowing_limit>("borrowingLimit"),
    text::field<&RawQuota::lending_limit>("lendingLimit"),
};

// cpu in milli, others whole; what does not fit 64 bits is unlimited.
std::int64_t quota_amount(const std::string& resource, const text::Quantity& quantity) {
  return resource == "cpu" ? quantity.milli_value() : quantity.value();
}

// Who holds of a quota that cannot be read does not become a borrower by that, and nobody borrows
// of it.
ResourceQuota unknown_quota(std::string resource) {
  return {.resource = std::move(resource),
          .nominal = kMaxAmount,
          .borrowing_limit = std::nullopt,
          .lending_limit = 0};
}

void check_quota(const Value& v, const RawQuota& raw, Decoder& d) {
  const auto check = [&](const text::Quantity& quantity, std::string_view field) {
    if (!quantity.is_negative()) return;
    Decoder::Step step(d, field);
    d.mismatch(*v.find(field), "at least 0");
  };
  check(raw.nominal, "nominalQuota");
  if (raw.borrowing_limit) check(*raw.borrowing_limit, "borrowingLimit");
  if (raw.lending_limit) check(*raw.lending_limit, "lendingLimit");
  if (raw.lending_limit &&
      quota_amount(raw.resource, *raw.lending_limit) > quota_amount(raw.resource, raw.nominal)) {
    Decoder::Step step(d, "lendingLimit");
    d.mismatch(*v.find("lendingLimit"), "at most nominalQuota");
  }
}

void read_quota(const Value& v, ResourceQuota& out, Decoder& d) {
  RawQuota raw;
  const std::size_t before = d.errors();
  decode_object(v, kQuotaFields, raw, d);
  if (d.errors() == before) check_quota(v, raw, d);
  if (d.errors() != before) {
    out = unknown_quota(std::move(raw.resource));
    return;
  }
  out.resource = raw.resource;
  out.nominal = quota_amount(raw.resource, raw.nominal);
  if (raw.borrowing_limit) out.borrowing_limit = quota_amount(raw.resource, *raw.borrowing_limit);
  if (raw.lending_limit) out.lending_limit = quota_amount(raw.resource, *raw.lending_limit);
}

constexpr Field<FlavorQuota> kFlavorQuotaFields[] = {
    text::required(text::field<&FlavorQuota::flavor>("name")),
    text::required(text::field<&FlavorQuota::resources, list_of<read_quota>>("resources")),
};
constexpr auto read_flavor_quota = object_of<kFlavorQuotaFields>;

constexpr std::size_t kMostGroups = 16, kMostInGroup = 64;

void check_resource_group(const Value& v, const ResourceGroup& group, Decoder& d) {
  if (group.covered.empty()) d.error(v, "no coveredResources", "at least one");
  if (group.flavors.empty()) d.error(v, "no flavors", "at least one");
  if (group.covered.size() > kMostInGroup || group.flavors.size() > kMostInGroup) {
    d.error(v, "too many resources or flavors", "at most 64 of each");
  }
  for (const FlavorQuota& flavor : group.flavors) {
    const bool same =
        std::equal(flavor.resources.begin(), flavor.resources.end(), group.covered.begin(),
                   group.covered.end(),
                   [](const ResourceQuota& r, const auto& name) { return r.resource == name; });
    if (!same) {
      d.error(v, "flavor " + quoted(flavor.flavor) + " with other resources",
              "exactly the coveredResources, in their order");
    }
  }
}

constexpr Field<ResourceGroup> kResourceGroupFields[] = {
    text::required(text::field<&ResourceGroup::covered>("coveredResources")),
    text::required(text::field<&ResourceGroup::flavors, list_of<read_flavor_quota>>("flavors")),
};
void read_resource_group(const Value& v, ResourceGroup& out, Decoder& d) {
  const std::size_t before = d.errors();
  decode_object(v, kResourceGroupFields, out, d);
  if (d.errors() == before) check_resource_group(v, out, d);
}

void read_resource_groups(const Value& v, std::vector<ResourceGroup>& out, Decoder& d) {
  const std::size_t before = d.errors();
  list_of<read_resource_group>(v, out, d);
  if (d.errors() != before) return;
  if (out.size() > kMostGroups) d.error(v, std::to_string(out.size()) + " groups", "at most 16");
  std::set<std::string> resources, flavors;
  for (std::size_t i = 0; i < out.size(); ++i) {
    Decoder::Step step(d, i);
    for (const auto& name : out[i].covered) {
      if (!resources.insert(name).second) {
        d.error(v.items()[i], "resource " + quoted(name) + " twice", "each resource in one group");
      }
    }
    for (const auto& flavor : out[i].flavors) {
      if (!flavors.insert(flavor.flavor).second) {
        d.error(v.items()[i], "flavor " + quoted(flavor.flavor) + " twice",
                "each flavor in one group");
      }
    }
  }
}

// A limit is towards the parent: without one it means nothing, and API servers refuse it.
void check_limits(const Value& object, const std::vector<ResourceGroup>& groups, bool has_parent,
                  std::string_view parent_field, Decoder& d) {
  if (has_parent) return;
  for (const auto& group : groups) {
    for (const auto& flavor : group.flavors) {
      for (const auto& quota : flavor.resources) {
        if (!quota.borrowing_limit && !quota.lending_limit) continue;
        Decoder::Step step(d, "spec");
        return d.error(object,
                       "a borrowingLimit or lendingLimit of flavor " + quoted(flavor.flavor),
                       "none, or a " + std::string(parent_field));
      }
    }
  }
}

// After errors: each resource and flavor once, and a quota for each resource of a group.
void straighten_groups(std::vector<ResourceGroup>& groups) {
  std::set<std::string> resources, flavors;
  for (ResourceGroup& group : groups) {
    if (group.covered.empty()) {
      for (const FlavorQuota& flavor : group.flavors) {
        for (const ResourceQuota& quota : flavor.resources) group.covered.push_back(quota.resource);
      }
    }
    std::erase_if(group.covered, [&resources](const std::string& name) {
      return name.empty() || !resources.insert(name).second;
    });
    std::erase_if(group.flavors, [&flavors](const FlavorQuota& flavor) {
      return flavor.flavor.empty() || !flavors.insert(flavor.flavor).second;
    });
    for (FlavorQuota& flavor : group.flavors) {
      std::vector<ResourceQuota> quotas;
      for (const std::string& name : group.covered) {
        const auto known = std::find_if(flavor.resources.begin(), flavor.resources.end(),
                                        [&](const auto& quota) { return quota.resource == name; });
        quotas.push_back(known == flavor.resources.end() ? unknown_quota(name) : *known);
      }
      flavor.resources = std::move(quotas);
    }
  }
  std::erase_if(groups, [](const ResourceGroup& group) {
    return group.covered.empty() || group.flavors.empty();
  });
}

// After errors: the queue is there for who is in it, and lets nobody in.
void keep_closed(QueueSpec& queue) {
  if (queue.stop == model::StopPolicy::kNone) queue.stop = model::StopPolicy::kHold;
  queue.borrow_by_preemption = false;
  queue.concurrent = false;
  straighten_groups(queue.groups);
}

// ---- weights and words ----

struct FairSharing {
  std::optional<text::Quantity> weight;
};
constexpr Field<FairSharing> kFairSharingFields[] = {
    text::field<&FairSharing::weight>("weight"),
};
void read_weight(const Value& v, double& out, Decoder& d) {
  FairSharing raw;
  decode_object(v, kFairSharingFields, raw, d);
  if (!raw.weight) return;
  if (raw.weight->is_negative()) {
    Decoder::Step step(d, "weight");
    return d.mismatch(*v.find("weight"), "at least 0");
  }
  out = raw.weight->to_double();
}

constexpr std::pair<std::string_view, model::StopPolicy> kStopPolicies[] = {
    {"None", model::StopPolicy::kNone},
    {"Hold", model::StopPolicy::kHold},
    {"HoldAndDrain", model::StopPolicy::kHoldAndDrain}};
constexpr std::pair<std::string_view, bool> kStrategies[] = {{"BestEffortFIFO", false},
                                                             {"StrictFIFO", true}};
constexpr std::pair<std::string_view, bool> kBorrowSearch[] = {
    {"MayStopSearch", true}, {"Borrow", true}, {"TryNextFlavor", false}};
constexpr std::pair<std::string_view, bool> kPreemptSearch[] = {
    {"MayStopSearch", true}, {"Preempt", true}, {"TryNextFlavor", false}};
constexpr std::pair<std::string_view, bool> kPreferences[] = {{"BorrowingOverPreemption", false},
                                                              {"PreemptionOverBorrowing", true}};
constexpr std::pair<std::string_view, model::PreemptWithin> kWithin[] = {
    {"Never", model::PreemptWithin::kNever},
    {"LowerPriority", model::PreemptWithin::kLowerPriority},
    {"LowerOrNewerEqualPriority", model::PreemptWithin::kLowerOrNewerEqualPriority}};
constexpr std::pair<std::string_view, model::Reclaim> kReclaim[] = {
    {"Never", model::Reclaim::kNever},
    {"LowerPriority", model::Reclaim::kLowerPriority},
    {"Any", model::Reclaim::kAny}};
constexpr std::pair<std::string_view, bool> kBorrowWithin[] = {{"Never", false},
                                                               {"LowerPriority", true}};
constexpr std::pair<std::string_view, bool> kAdmissionModes[] = {
    {"NoAdmissionFairSharing", false}, {"UsageBasedAdmissionFairSharing", true}};

// ---- ClusterQueue ----

constexpr Field<QueueSpec> kFungibilityFields[] = {
    text::field<&QueueSpec::borrow_stops_search, text::one_of<kBorrowSearch>>("whenCanBorrow"),
    text::field<&QueueSpec::preempt_stops_search, text::one_of<kPreemptSearch>>("whenCanPreempt"),
    text::field<&QueueSpec::prefer_less_borrowing, text::one_of<kPreferences>>("preference"),
};
void read_fungibility(const Value& v, QueueSpec& out, Decoder& d) {
  decode_object(v, kFungibilityFields, out, d);
  const Value* preference = v.find("preference");
  if (preference == nullptr || (!out.borrow_stops_search && !out.preempt_stops_search)) return;
  Decoder::Step step(d, "preference");
  d.mismatch(*preference, "no preference, or TryNextFlavor in whenCanBorrow and whenCanPreempt");
}

constexpr Field<QueueSpec> kBorrowWithinFields[] = {
    text::field<&QueueSpec::borrow_by_preemption, text::one_of<kBorrowWithin>>("policy"),
    text::field<&QueueSpec::max_priority_threshold>("maxPriorityThreshold"),
};
constexpr Field<QueueSpec> kPreemptionFields[] = {
    text::inlined<kBorrowWithinFields>("borrowWithinCohort"),
    text::field<&QueueSpec::reclaim, text::one_of<kReclaim>>("reclaimWithinCohort"),
    text::field<&QueueSpec::within, text::one_of<kWithin>>("withinClusterQueue"),
};
void read_queue_preemption(const Value& v, QueueSpec& out, Decoder& d) {
  decode_object(v, kPreemptionFields, out, d);
  if (out.borrow_by_preemption && out.reclaim == model::Reclaim::kNever) {
    d.error(v, "borrowWithinCohort without reclaimWithinCohort",
            "reclaimWithinCohort LowerPriority or Any beside it");
  }
}

constexpr Field<QueueSpec::Check> kCheckFields[] = {
    text::required(text::field<&QueueSpec::Check::name>("name")),
    text::field<&QueueSpec::Check::flavors>("onFlavors"),
};
constexpr auto read_check = object_of<kCheckFields>;
constexpr Field<QueueSpec> kChecksStrategyFields[] = {
    text::field<&QueueSpec::checks, list_of<read_check>>("admissionChecks"),
};
void read_flat_checks(const Value& v, QueueSpec& out, Decoder& d) {
  std::vector<std::string> names;
  decode(v, names, d);
  if (!names.empty() && !out.checks.empty()) {
    return d.error(v, "admissionChecks and admissionChecksStrategy", "one of them");
  }
  for (auto& name : names) out.checks.push_back({.name = std::move(name), .flavors = {}});
}
void read_namespaces(const Value& v, QueueSpec& out, Decoder& d) {
  LabelSelector selector;
  decode(v, selector, d);
  if (selector.present) out.namespaces = std::move(selector.requirements);
}
constexpr Field<QueueSpec> kScopeFields[] = {
    text::field<&QueueSpec::admission_fair_sharing, text::one_of<kAdmissionModes>>("admissionMode"),
};
constexpr std::pair<std::string_view, bool> kMigrationModes[] = {{"TryPreferredFlavors", false},
                                                                 {"RetainFirstAdmission", true}};
constexpr Field<QueueSpec> kMigrationConstraintFields[] = {
    text::field<&QueueSpec::last_acceptable>("lastAcceptableFlavorName"),
};
constexpr Field<QueueSpec> kMigrationFields[] = {
    text::inlined<kMigrationConstraintFields>("constraints"),
    text::required(text::field<&QueueSpec::retain_first, text::one_of<kMigrationModes>>("mode")),
};
constexpr Field<QueueSpec> kConcurrentFields[] = {
    text::required(text::inlined<kMigrationFields>("migration")),
};
void read_concurrent(const Value& v, QueueSpec& out, Decoder& d) {
  decode_object(v, kConcurrentFields, out, d);
  out.concurrent = true;
}
// Of a queue with variants: one resource group, and a last flavor that is one of it.
void check_concurrent(const Value& v, const QueueSpec& queue, Decoder& d) {
  if (!queue.concurrent) return;
  Decoder::Step spec(d, "spec");
  Decoder::Step step(d, "concurrentAdmissionPolicy");
  if (queue.groups.size() != 1) {
    return d.error(v, std::to_string(queue.groups.size()) + " resource groups beside it", "one");
  }
  const auto& flavors = queue.groups.front().flavors;
  const bool known = std::any_of(flavors.begin(), flavors.end(), [&](const auto& flavor) {
    return flavor.flavor == queue.last_acceptable;
  });
  if (!queue.last_acceptable.empty() && !known) {
    d.error(v, "lastAcceptableFlavorName " + quoted(queue.last_acceptable),
            "a flavor of the queue");
  }
}

constexpr Field<QueueSpec> kQueue1SpecFields[] = {
    text::custom<QueueSpec>("admissionChecks", read_flat_checks),
    text::inlined<kChecksStrategyFields>("admissionChecksStrategy"),
    text::inlined<kScopeFields>("admissionScope"),
    text::field<&QueueSpec::cohort>("cohort"),
    text::field<&QueueSpec::weight, read_weight>("fairSharing"),
    text::custom<QueueSpec>("flavorFungibility", read_fungibility),
    text::custom<QueueSpec>("namespaceSelector", read_namespaces),
    text::custom<QueueSpec>("preemption", read_queue_preemption),
    text::field<&QueueSpec::strict_fifo, text::one_of<kStrategies>>("queueingStrategy"),
    text::field<&QueueSpec::groups, read_resource_groups>("resourceGroups"),
    text::field<&QueueSpec::stop, text::one_of<kStopPolicies>>("stopPolicy"),
};
constexpr Field<QueueSpec> kQueue2SpecFields[] = {
    text::inlined<kChecksStrategyFields>("admissionChecksStrategy"),
    text::inlined<kScopeFields>("admissionScope"),
    text::field<&QueueSpec::cohort>("cohortName"),
    text::custom<QueueSpec>("concurrentAdmissionPolicy", read_concurrent),
    text::field<&QueueSpec::weight, read_weight>("fairSharing"),
    text::custom<QueueSpec>("flavorFungibility", read_fungibility),
    text::custom<QueueSpec>("namespaceSelector", read_namespaces),
    text::custom<QueueSpec>("preemption", read_queue_preemption),
    text::field<&QueueSpec::strict_fifo, text::one_of<kStrategies>>("queueingStrategy"),
    text::field<&QueueSpec::groups, read_resource_groups>("resourceGroups"),
    text::field<&QueueSpec::stop, text::one_of<kStopPolicies>>("stopPolicy"),
};

// ---- the rest ----

constexpr Field<FlavorSpec> kFlavorSpecFields[] = {
    text::field<&FlavorSpec::node_labels>("nodeLabels"),
    text::field<&FlavorSpec::node_taints, list_of<read_taint>>("nodeTaints"),
    text::field<&FlavorSpec::tolerations, read_tolerations>("tolerations"),
    text::field<&FlavorSpec::topology>("topologyName"),
};
constexpr Field<LocalQueueSpec> kLocalQueueSpecFields[] = {
    text::required(text::field<&LocalQueueSpec::queue>("clusterQueue")),
    text::field<&LocalQueueSpec::weight, read_weight>("fairSharing"),
    text::field<&LocalQueueSpec::stop, text::one_of<kStopPolicies>>("stopPolicy"),
};
constexpr Field<CohortSpec> kCohort1SpecFields[] = {
    text::field<&CohortSpec::weight, read_weight>("fairSharing"),
    text::field<&CohortSpec::parent>("parent"),
    text::field<&CohortSpec::parent>("parentName"),
    text::field<&CohortSpec::groups, read_resource_groups>("resourceGroups"),
};
constexpr Field<CohortSpec> kCohort2SpecFields[] = {
    text::field<&CohortSpec::weight, read_weight>("fairSharing"),
    text::field<&CohortSpec::parent>("parentName"),
    text::field<&CohortSpec::groups, read_resource_groups>("resourceGroups"),
};

template <const auto& SpecFields, class T>
void decode_kind(const Value& v, Scope scope, Meta& meta, T& out, Decoder& d) {
  static constexpr Field<T> kFields[] = {
      text::skip<T>("apiVersion"),       text::skip<T>("kind"),   text::skip<T>("metadata"),
      text::inlined<SpecFields>("spec"), text::skip<T>("status"),
  };
  read_meta(v, scope, meta, d);
  decode_object(v, kFields, out, d);
  out.name = meta.name;
}

}  // namespace

void decode_flavor(const Value& v, FlavorSpec& out, Decoder& d) {
  Meta meta;
  decode_kind<kFlavorSpecFields>(v, Scope::kCluster, meta, out, d);
  if (out.node_labels.size() > 8 || out.node_taints.size() > 8 || out.tolerations.size() > 8) {
    Decoder::Step step(d, "spec");
    d.error(v, "too many nodeLabels, nodeTaints or tolerations", "at most 8 of each");
  }
}

void decode_cluster_queue(const Value& v, KueueVersion version, QueueSpec& out, Decoder& d) {
  Meta meta;
  const std::size_t before = d.errors();
  if (version == KueueVersion::kV1beta1) {
    decode_kind<kQueue1SpecFields>(v, Scope::kCluster, meta, out, d);
  } else {
    decode_kind<kQueue2SpecFields>(v, Scope::kCluster, meta, out, d);
  }
  check_concurrent(v, out, d);
  if (d.errors() == before) {
    check_limits(v, out.groups, !out.cohort.empty(),
                 version == KueueVersion::kV1beta1 ? "cohort" : "cohortName", d);
  }
  if (d.errors() != before) keep_closed(out);
}

void decode_local_queue(const Value& v, LocalQueueSpec& out, Decoder& d) {
  Meta meta;
  const std::size_t before = d.errors();
  decode_kind<kLocalQueueSpecFields>(v, Scope::kNamespaced, meta, out, d);
  out.ns = meta.ns;
  if (d.errors() != before && out.stop == model::StopPolicy::kNone) {
    out.stop = model::StopPolicy::kHold;
  }
  const Value* usage = find(v, "status.fairSharing.admissionFairSharingStatus");
  if (usage == nullptr) return;
  if (const Value* consumed = usage->find("consumedResources")) {
    Decoder::Step step(d, "status");
    read_amounts(*consumed, out.consumed, d);
  }
  if (const Value* at = usage->find("lastUpdate")) {
    const auto time = text::parse_rfc3339(at->string());
    if (time.ok()) out.consumed_at_ns = *time;
  }
}

void decode_cohort(const Value& v, KueueVersion version, CohortSpec& out, Decoder& d) {
  Meta meta;
  const std::size_t before = d.errors();
  if (version == KueueVersion::kV1beta1) {
    decode_kind<kCohort1SpecFields>(v, Scope::kCluster, meta, out, d);
  } else {
    decode_kind<kCohort2SpecFields>(v, Scope::kCluster, meta, out, d);
  }
  if (!out.name.empty() && out.parent == out.name) {
    Decoder::Step step(d, "spec");
    d.error(v, "the cohort as its own parent", "another cohort, or none");
    out.parent.clear();
  }
  if (d.errors() == before) check_limits(v, out.groups, !out.parent.empty(), "parentName", d);
  if (d.errors() == before) return;
  straighten_groups(out.groups);
  for (ResourceGroup& group : out.groups) {  // what it cannot say its queues do not get
    for (FlavorQuota& flavor : group.flavors) {
      for (ResourceQuota& quota : flavor.resources) {
        if (quota == unknown_quota(quota.resource)) quota.nominal = 0;
      }
    }
  }
}

}  // namespace berth::kinds
