#include "kinds/affinity.h"

#include <algorithm>
#include <functional>

namespace berth::kinds {

namespace {

using model::NodeSelectorTerm;
using model::PodAffinityTerm;
using model::PreferredNodeTerm;
using text::Decoder;
using text::Operator;
using text::Value;

constexpr std::string_view kNamespaceNameLabel = "kubernetes.io/metadata.name";

// ---- node affinity ----
constexpr text::Field<PreferredNodeTerm> kPreferredNodeFields[] = {
    text::required(text::field<&PreferredNodeTerm::weight, text::int_between<1, 100>>("weight")),
    text::required(text::field<&PreferredNodeTerm::term, read_node_term>("preference")),
};
constexpr auto read_preferred_node = object_of<kPreferredNodeFields>;

struct NodeAffinity {
  std::vector<NodeSelectorTerm> required;
  std::vector<PreferredNodeTerm> preferred;
};
constexpr text::Field<NodeAffinity> kNodeAffinityFields[] = {
    text::field<&NodeAffinity::required, read_node_selector>(
        "requiredDuringSchedulingIgnoredDuringExecution"),
    text::field<&NodeAffinity::preferred, list_of<read_preferred_node>>(
        "preferredDuringSchedulingIgnoredDuringExecution"),
};

// ---- pod affinity ----
struct RawTerm {
  LabelSelector selector, namespace_selector;
  std::vector<std::string> namespaces, match_keys, mismatch_keys;
  std::string topology_key;
};
void read_topology_key(const Value& v, std::string& out, Decoder& d) {
  decode(v, out, d);
  if (v.is_string() && v.string().empty()) d.mismatch(v, "a node label key");
}
constexpr text::Field<RawTerm> kRawTermFields[] = {
    text::field<&RawTerm::selector>("labelSelector"),
    text::field<&RawTerm::namespaces>("namespaces"),
    text::required(text::field<&RawTerm::topology_key, read_topology_key>("topologyKey")),
    text::field<&RawTerm::namespace_selector>("namespaceSelector"),
    text::field<&RawTerm::match_keys>("matchLabelKeys"),
    text::field<&RawTerm::mismatch_keys>("mismatchLabelKeys"),
};
constexpr auto read_raw_term = object_of<kRawTermFields>;

struct WeightedTerm {
  int weight = 0;
  RawTerm term;
};
constexpr text::Field<WeightedTerm> kWeightedFields[] = {
    text::required(text::field<&WeightedTerm::weight, text::int_between<1, 100>>("weight")),
    text::required(text::field<&WeightedTerm::term, read_raw_term>("podAffinityTerm")),
};
constexpr auto read_weighted = object_of<kWeightedFields>;

struct PodTerms {
  std::vector<RawTerm> required;
  std::vector<WeightedTerm> preferred;
};
constexpr text::Field<PodTerms> kPodTermsFields[] = {
    text::field<&PodTerms::required, list_of<read_raw_term>>(
        "requiredDuringSchedulingIgnoredDuringExecution"),
    text::field<&PodTerms::preferred, list_of<read_weighted>>(
        "preferredDuringSchedulingIgnoredDuringExecution"),
};

struct Affinity {
  NodeAffinity node;
  PodTerms pod, anti;
};
constexpr text::Field<Affinity> kAffinityFields[] = {
    text::field<&Affinity::node, object_of<kNodeAffinityFields>>("nodeAffinity"),
    text::field<&Affinity::pod, object_of<kPodTermsFields>>("podAffinity"),
    text::field<&Affinity::anti, object_of<kPodTermsFields>>("podAntiAffinity"),
};

// The pod's own value of each key narrows the selector; a key that the pod lacks does nothing.
void merge_keys(const std::vector<std::string>& keys, Operator op, const model::Labels& labels,
                text::Selector& selector) {
  for (const std::string& key : keys) {
    const auto it = labels.find(key);
    if (it == labels.end()) continue;
    text::Requirement r{key, op, {it->second}};
    if (std::find(selector.begin(), selector.end(), r) == selector.end()) {
      selector.push_back(std::move(r));
    }
  }
}

void resolve_namespaces(const Value& at, const RawTerm& raw, const std::string& own, bool strict,
                        model::PodSet& out, Decoder& d) {
  out.namespaces = raw.namespaces;
  if (raw.namespace_selector.present) {
    const text::Selector& wanted = raw.namespace_selector.requirements;
    if (wanted.empty()) {
      out.all_namespaces = true;
    } else if (wanted.size() == 1 && wanted[0].key == kNamespaceNameLabel &&
               wanted[0].op == Operator::kIn) {
      out.namespaces.insert(out.namespaces.end(), wanted[0].values.begin(), wanted[0].values.end());
    } else {
      out.all_namespaces = strict;
      if (out.namespaces.empty()) out.namespaces.push_back(own);
      Decoder::Step step(d, "namespaceSelector");
      d.warning(at,
                strict ? "a selector of namespaces; it is held against all namespaces"
                       : "a selector of namespaces; the listed or own namespace is used",
                "namespaces, {} or the label kubernetes.io/metadata.name");
    }
  } else if (out.namespaces.empty()) {
    out.namespaces.push_back(own);
  }
  if (out.all_namespaces) out.namespaces.clear();
  std::sort(out.namespaces.begin(), out.namespaces.end());
  out.namespaces.erase(std::unique(out.namespaces.begin(), out.namespaces.end()),
                       out.namespaces.end());
}

PodAffinityTerm resolve_term(const Value& at, RawTerm&& raw, const AffinityContext& context,
                             bool strict, int weight, Decoder& d) {
  PodAffinityTerm out;
  out.weight = weight;
  out.topology_key = std::move(raw.topology_key);
  out.pods.match_nothing = !raw.selector.present;
  out.pods.selector = std::move(raw.selector.requirements);
  merge_keys(raw.match_keys, Operator::kIn, context.labels, out.pods.selector);
  merge_keys(raw.mismatch_keys, Operator::kNotIn, context.labels, out.pods.selector);
  resolve_namespaces(at, raw, context.ns, strict, out.pods, d);
  return out;
}

void resolve_terms(const Value& at, PodTerms&& raw, const AffinityContext& context, bool anti,
                   std::vector<PodAffinityTerm>& required, std::vector<PodAffinityTerm>& preferred,
                   Decoder& d) {
  {
    Decoder::Step step(d, "requiredDuringSchedulingIgnoredDuringExecution");
    for (std::size_t i = 0; i < raw.required.size(); ++i) {
      Decoder::Step item(d, i);
      required.push_back(resolve_term(at, std::move(raw.required[i]), context, anti, 0, d));
    }
  }
  Decoder::Step step(d, "preferredDuringSchedulingIgnoredDuringExecution");
  for (std::size_t i = 0; i < raw.preferred.size(); ++i) {
    Decoder::Step item(d, i);
    Decoder::Step term(d, "podAffinityTerm");
    preferred.push_back(resolve_term(at, std::move(raw.preferred[i].term), context, false,
                                     raw.preferred[i].weight, d));
  }
}

// ---- topology spread ----
struct RawSpread {
  model::SpreadConstraint out;
  LabelSelector selector;
  std::vector<std::string> match_keys;
  bool has_min_domains = false;
};
constexpr std::pair<std::string_view, bool> kUnsatisfiable[] = {{"DoNotSchedule", true},
                                                                {"ScheduleAnyway", false}};
constexpr std::pair<std::string_view, bool> kHonor[] = {{"Honor", true}, {"Ignore", false}};

template <auto Member, auto Reader = text::internal::DefaultReader{}>
void read_spread_member(const Value& v, RawSpread& out, Decoder& d) {
  Reader(v, out.out.*Member, d);
}
using model::SpreadConstraint;
constexpr text::Field<RawSpread> kSpreadFields[] = {
    text::required(text::custom<RawSpread>(
        "maxSkew",
        read_spread_member<&SpreadConstraint::max_skew, text::int_between<1, 1'000'000>>)),
    text::required(text::custom<RawSpread>("topologyKey",
                                           read_spread_member<&SpreadConstraint::topology_key>)),
    text::required(text::custom<RawSpread>(
        "whenUnsatisfiable",
        read_spread_member<&SpreadConstraint::hard, text::one_of<kUnsatisfiable>>)),
    text::field<&RawSpread::selector>("labelSelector"),
    text::custom<RawSpread>("minDomains",
                            [](const Value& v, RawSpread& out, Decoder& d) {
                              out.has_min_domains = true;
                              text::int_between<1, 1'000'000>(v, out.out.min_domains, d);
                            }),
    text::custom<RawSpread>(
        "nodeAffinityPolicy",
        read_spread_member<&SpreadConstraint::honor_affinity, text::one_of<kHonor>>),
    text::custom<RawSpread>(
        "nodeTaintsPolicy",
        read_spread_member<&SpreadConstraint::honor_taints, text::one_of<kHonor>>),
    text::field<&RawSpread::match_keys>("matchLabelKeys"),
};

void read_one_spread(const Value& v, RawSpread& raw, Decoder& d) {
  decode_object(v, kSpreadFields, raw, d);
  if (raw.has_min_domains && !raw.out.hard) {
    Decoder::Step step(d, "minDomains");
    d.error(v, "minDomains with ScheduleAnyway", "minDomains only with DoNotSchedule");
  }
}

}  // namespace

void read_affinity(const Value& v, const AffinityContext& context, model::PodSpec& out,
                   Decoder& d) {
  Affinity raw;
  decode_object(v, kAffinityFields, raw, d);
  out.required_nodes = std::move(raw.node.required);
  out.preferred_nodes = std::move(raw.node.preferred);
  {
    Decoder::Step step(d, "podAffinity");
    resolve_terms(v, std::move(raw.pod), context, false, out.affinity, out.preferred_affinity, d);
  }
  Decoder::Step step(d, "podAntiAffinity");
  resolve_terms(v, std::move(raw.anti), context, true, out.anti_affinity,
                out.preferred_anti_affinity, d);
}

void read_spread(const Value& v, const AffinityContext& context, model::PodSpec& out, Decoder& d) {
  std::vector<RawSpread> raws;
  list_of<read_one_spread>(v, raws, d);
  for (RawSpread& raw : raws) {
    raw.out.pods.namespaces = {context.ns};
    raw.out.pods.match_nothing = !raw.selector.present;
    raw.out.pods.selector = std::move(raw.selector.requirements);
    merge_keys(raw.match_keys, Operator::kIn, context.labels, raw.out.pods.selector);
    out.spread.push_back(std::move(raw.out));
  }
}

}  // namespace berth::kinds
