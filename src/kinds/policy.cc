#include "kinds/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kinds/affinity.h"
#include "text/json.h"
#include "text/path.h"
#include "text/rfc3339.h"
#include "text/selector.h"

namespace berth::kinds {

namespace {

using model::PlacementPolicy;
using model::QueuePolicy;
using text::Decoder;
using text::JsonWriter;
using text::Value;
using PolicyClass = PlacementPolicy::Class;
using NearLabel = PlacementPolicy::Locality;

constexpr int kPolicyMostWeight = 1'000'000;

constexpr std::pair<std::string_view, PlacementPolicy::Packing> kPolicyPackings[] = {
    {"Fragmentation", PlacementPolicy::Packing::kFragmentation},
    {"MostAllocated", PlacementPolicy::Packing::kMostAllocated},
    {"LeastAllocated", PlacementPolicy::Packing::kLeastAllocated},
};
constexpr std::pair<std::string_view, bool> kPolicyStrategies[] = {{"Pack", false},
                                                                   {"Spread", true}};
constexpr std::pair<std::string_view, QueuePolicy::Victims> kPolicyVictims[] = {
    {"LowestPriority", QueuePolicy::Victims::kLowestPriority},
    {"FewestJobs", QueuePolicy::Victims::kFewestJobs},
    {"LeastLostWork", QueuePolicy::Victims::kLeastLostWork},
};

void read_names(const Value& v, std::vector<std::string>& out, Decoder& d) {
  decode(v, out, d);
  if (out.size() > kMostPolicyNames) {
    d.error(v, fmt::format("{} names", out.size()), fmt::format("at most {}", kMostPolicyNames));
  }
  for (std::size_t i = 0; i < out.size() && i < v.size(); ++i) {
    Decoder::Step step(d, i);
    if (out[i].empty()) d.mismatch(v.items()[i], "a name");
  }
}

void read_label_key(const Value& v, std::string& out, Decoder& d) {
  std::string key;
  decode(v, key, d);
  if (v.is_string() && !text::validate_label_key(key).ok()) return d.mismatch(v, "a label key");
  out = std::move(key);
}

void read_label_value(const Value& v, std::string& out, Decoder& d) {
  std::string value;
  decode(v, value, d);
  if (v.is_string() && !text::validate_label_value(value).ok()) {
    return d.mismatch(v, "the value of a label");
  }
  out = std::move(value);
}

void read_min_runtime(const Value& v, std::int64_t& out, Decoder& d) {
  std::int64_t ns = 0;
  text::read_duration_ns(v, ns, d);
  if (ns < 0) return d.mismatch(v, "a duration that is not negative, such as 10m");
  out = ns;
}

constexpr text::Field<PolicyClass> kPolicyMatchFields[] = {
    text::field<&PolicyClass::namespaces, read_names>("namespaces"),
    text::field<&PolicyClass::queues, read_names>("queues"),
    text::field<&PolicyClass::priority_classes, read_names>("priorityClasses"),
    text::field<&PolicyClass::selector, text::decode_label_selector>("selector"),
};
constexpr text::Field<PolicyClass> kPolicyClassFields[] = {
    text::required(text::field<&PolicyClass::name>("name")),
    text::required(text::inlined<kPolicyMatchFields>("match")),
    text::required(text::field<&PolicyClass::spread, text::one_of<kPolicyStrategies>>("strategy")),
    text::field<&PolicyClass::over, read_label_key>("spreadOver"),
};
void read_class(const Value& v, PolicyClass& out, Decoder& d) {
  decode_object(v, kPolicyClassFields, out, d);
  if (!out.spread && !out.over.empty()) {
    Decoder::Step step(d, "spreadOver");
    const Value* over = v.find("spreadOver");
    d.error(over == nullptr ? v : *over, "spreadOver with strategy Pack",
            "strategy Spread, or no spreadOver");
  }
}
void read_classes(const Value& v, std::vector<PolicyClass>& out, Decoder& d) {
  list_of<read_class>(v, out, d);
  if (out.size() > kMostPolicyClasses) {
    d.error(v, fmt::format("{} classes", out.size()),
            fmt::format("at most {}", kMostPolicyClasses));
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < out.size() && i < v.size(); ++i) {
    Decoder::Step step(d, i);
    if (!names.insert(out[i].name).second) {
      d.error(v.items()[i], "a second class " + quoted(out[i].name), "a name of its own");
    }
  }
}

constexpr text::Field<NearLabel> kPolicyLocalityFields[] = {
    text::required(text::field<&NearLabel::key, read_label_key>("key")),
    text::required(text::field<&NearLabel::value, read_label_value>("value")),
    text::field<&NearLabel::weight, text::int_between<1, kPolicyMostWeight>>("weight"),
};
void read_localities(const Value& v, std::vector<NearLabel>& out, Decoder& d) {
  list_of<object_of<kPolicyLocalityFields>>(v, out, d);
  if (out.size() > kMostPolicyLocalities) {
    d.error(v, fmt::format("{} labels", out.size()),
            fmt::format("at most {}", kMostPolicyLocalities));
  }
}

constexpr text::Field<PlacementPolicy> kPolicyPlacementFields[] = {
    text::field<&PlacementPolicy::packing, text::one_of<kPolicyPackings>>("packing"),
    text::field<&PlacementPolicy::classes, read_classes>("classes"),
    text::field<&PlacementPolicy::locality, read_localities>("near"),
};
constexpr text::Field<QueuePolicy> kPolicyQueueFields[] = {
    text::field<&QueuePolicy::min_runtime_ns, read_min_runtime>("minRuntime"),
    text::field<&QueuePolicy::budgets>("budgets"),
    text::field<&QueuePolicy::owners_first>("ownersFirst"),
    text::field<&QueuePolicy::no_ping_pong>("noPingPong"),
    text::field<&QueuePolicy::max_evictions_per_hour,
                text::int_between<0, model::kMostEvictionsPerHour>>("maxEvictionsPerHour"),
    text::field<&QueuePolicy::victims, text::one_of<kPolicyVictims>>("victims"),
};

struct PreemptionPart {
  bool enabled = true;
};
constexpr text::Field<PreemptionPart> kPolicyPreemptionFields[] = {
    text::field<&PreemptionPart::enabled>("enabled"),
};
struct PolicyParts {
  PlacementPolicy placement;
  QueuePolicy queues;
  PreemptionPart preemption;
};
constexpr text::Field<PolicyParts> kPolicySpecFields[] = {
    text::field<&PolicyParts::placement, read_placement>("placement"),
    text::field<&PolicyParts::queues, read_queue_policy>("queues"),
    text::field<&PolicyParts::preemption, object_of<kPolicyPreemptionFields>>("preemption"),
};
struct PolicyBody {
  PolicyParts spec;
};
constexpr text::Field<PolicyBody> kPolicyObjectFields[] = {
    text::skip<PolicyBody>("apiVersion"),
    text::skip<PolicyBody>("kind"),
    text::skip<PolicyBody>("metadata"),
    text::field<&PolicyBody::spec, object_of<kPolicySpecFields>>("spec"),
    text::skip<PolicyBody>("status"),
};

void encode_selector(const text::Selector& selector, JsonWriter& out) {
  out.object("selector", [&] {
    out.array("matchExpressions", [&] {
      for (const text::Requirement& each : selector) {
        out.object([&] {
          out.field("key", each.key);
          out.field("operator", text::name(each.op));
          if (!each.values.empty()) out.list("values", each.values);
        });
      }
    });
  });
}

void encode_class(const PolicyClass& one, JsonWriter& out) {
  out.object([&] {
    out.field("name", one.name);
    out.object("match", [&] {
      if (!one.namespaces.empty()) out.list("namespaces", one.namespaces);
      if (!one.queues.empty()) out.list("queues", one.queues);
      if (!one.priority_classes.empty()) out.list("priorityClasses", one.priority_classes);
      if (!one.selector.empty()) encode_selector(one.selector, out);
    });
    out.field("strategy", word_of(kPolicyStrategies, one.spread));
    if (!one.over.empty()) out.field("spreadOver", one.over);
  });
}

struct PolicyCondition {
  std::string_view type;
  bool is = false;
  std::string reason, message;
};

bool says(const Value* conditions, const PolicyCondition& wanted) {
  const Value* old = conditions == nullptr ? nullptr : find_type(*conditions, wanted.type);
  return old != nullptr && text_at(*old, "status") == (wanted.is ? "True" : "False") &&
         text_at(*old, "reason") == wanted.reason && text_at(*old, "message") == wanted.message;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

PolicyCondition valid_condition(const std::string& errors) {
  if (errors.empty()) return {"Valid", true, "Read", "every field of it is read"};
  return {"Valid", false, "Invalid", errors};
}

PolicyCondition in_force_condition(std::string_view name, bool valid,
                                   const std::vector<std::string>& flags) {
  if (name != kPolicyInForce) {
    return {"InForce", false, "NotNamedDefault", "only the BerthPolicy named default is in force"};
  }
  if (!valid) {
    return {"InForce", false, "Invalid",
            "nothing of it is in force until it is valid: defaults and flags are"};
  }
  if (flags.empty()) return {"InForce", true, "Read", "decisions are made by it"};
  return {
      "InForce", true, "FlagsGoBefore",
      "decisions are made by it, apart from what flags of the controller say: " + joined(flags)};
}

}  // namespace

void read_placement(const Value& v, PlacementPolicy& out, Decoder& d) {
  decode_object(v, kPolicyPlacementFields, out, d);
}
void read_queue_policy(const Value& v, QueuePolicy& out, Decoder& d) {
  decode_object(v, kPolicyQueueFields, out, d);
}

void decode(const Value& v, PolicyObject& out, Decoder& d) {
  const Decoder::Strict strict(d);
  read_meta(v, Scope::kCluster, out.meta, d);
  PolicyBody object;
  decode_object(v, kPolicyObjectFields, object, d);
  out.policy.placement = std::move(object.spec.placement);
  out.policy.queues = object.spec.queues;
  out.policy.set_preemption(object.spec.preemption.enabled);
}

void encode_placement(const PlacementPolicy& placement, JsonWriter& out) {
  out.object([&] {
    out.field("packing", word_of(kPolicyPackings, placement.packing));
    out.array("classes", [&] {
      for (const PolicyClass& one : placement.classes) encode_class(one, out);
    });
    out.array("near", [&] {
      for (const NearLabel& one : placement.locality) {
        out.object([&] {
          out.field("key", one.key);
          out.field("value", one.value);
          out.field("weight", one.weight);
        });
      }
    });
  });
}

void encode_queue_policy(const QueuePolicy& queues, JsonWriter& out) {
  out.object([&] {
    out.field("minRuntime", text::format_go_duration(queues.min_runtime_ns));
    out.field("budgets", queues.budgets);
    out.field("ownersFirst", queues.owners_first);
    out.field("noPingPong", queues.no_ping_pong);
    out.field("maxEvictionsPerHour", queues.max_evictions_per_hour);
    out.field("victims", word_of(kPolicyVictims, queues.victims));
  });
}

void encode_policy(const model::Policy& policy, JsonWriter& out) {
  out.object([&] {
    out.key("placement");
    encode_placement(policy.placement, out);
    out.key("queues");
    encode_queue_policy(policy.queues, out);
    out.object("preemption", [&] { out.field("enabled", policy.placement.preemption); });
  });
}

std::string policy_errors(const Value& object) {
  constexpr std::size_t kMostBytes = 900;
  Decoder d;
  PolicyObject read;
  decode(object, read, d);
  std::string out;
  for (const text::Issue& issue : d.issues()) {
    if (issue.severity != text::Issue::kError) continue;
    if (out.size() > kMostBytes) return out + "; and more";
    if (!out.empty()) out += "; ";
    out += issue.path + ": found " + issue.found;
    if (!issue.allowed.empty()) out += ", want " + issue.allowed;
  }
  return out;
}

std::string policy_status_patch(const Value& object, const std::vector<std::string>& flags,
                                std::int64_t now_ns) {
  const std::string errors = policy_errors(object);
  const std::string_view name = text_at(object, "metadata.name");
  const std::vector<std::string> shown =
      name == kPolicyInForce ? flags : std::vector<std::string>();
  const PolicyCondition wanted[] = {valid_condition(errors),
                                    in_force_condition(name, errors.empty(), flags)};
  const Value* generation = find(object, "metadata.generation");
  const std::int64_t seen = generation == nullptr ? 0 : generation->as_int64().value_or(0);
  const Value* old = find(object, "status.conditions");
  const Value* old_seen = find(object, "status.observedGeneration");
  const Value* old_flags = find(object, "status.flags");
  const auto same_flag = [](const Value& was, const std::string& is) { return was.string() == is; };
  const bool flags_same = old_flags == nullptr
                              ? shown.empty()
                              : std::equal(old_flags->items().begin(), old_flags->items().end(),
                                           shown.begin(), shown.end(), same_flag);
  const bool said = std::all_of(std::begin(wanted), std::end(wanted),
                                [old](const PolicyCondition& each) { return says(old, each); });
  if (said && flags_same && old_seen != nullptr && old_seen->as_int64() == seen) return {};
  JsonWriter out;
  out.object([&] {
    out.object("status", [&] {
      out.field("observedGeneration", seen);
      out.array("conditions", [&] {
        for (const PolicyCondition& each : wanted) {
          const Value* was = old == nullptr ? nullptr : find_type(*old, each.type);
          const std::string_view status = each.is ? "True" : "False";
          const bool stays = was != nullptr && text_at(*was, "status") == status;
          out.object([&] {
            out.field("type", each.type);
            out.field("status", status);
            out.field("reason", each.reason);
            out.field("message", each.message);
            out.field("observedGeneration", seen);
            out.field("lastTransitionTime", stays ? std::string(text_at(*was, "lastTransitionTime"))
                                                  : text::format_whole_second(now_ns));
          });
        }
      });
      out.list("flags", shown);
    });
  });
  return std::move(out).take();
}

}  // namespace berth::kinds
