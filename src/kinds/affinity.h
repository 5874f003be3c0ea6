// Selectors, node and pod affinity, topology spread, tolerations: the parts of a pod that say
// where.
//
// Namespaces of pod affinity terms: the term's list; none: the pod's own. An empty
// namespaceSelector means all namespaces. One on the label kubernetes.io/metadata.name alone
// (operator In) names namespaces and is read as such. Any other would need Namespace objects, which
// are not looked at here: a required anti-affinity term is then held against all namespaces and
// every other term against its own list only, so that the answer errs to the strict side; a warning
// says so.
#pragma once

#include <string>
#include <vector>

#include "kinds/readers.h"
#include "model/spec.h"

namespace berth::kinds {

// A labelSelector: null is told apart from an empty one.
struct LabelSelector {
  bool present = false;
  text::Selector requirements;
};
void decode(const text::Value& v, LabelSelector& out, text::Decoder& d);

void read_node_term(const text::Value& v, model::NodeSelectorTerm& out, text::Decoder& d);
// {nodeSelectorTerms: [...]}, at least one.
void read_node_selector(const text::Value& v, std::vector<model::NodeSelectorTerm>& out,
                        text::Decoder& d);

// What the reading of a pod's affinity depends on besides the text.
struct AffinityContext {
  std::string ns;
  model::Labels labels;
};

// Fields of model::PodSpec from spec.affinity and spec.topologySpreadConstraints.
void read_affinity(const text::Value& v, const AffinityContext& context, model::PodSpec& out,
                   text::Decoder& d);
void read_spread(const text::Value& v, const AffinityContext& context, model::PodSpec& out,
                 text::Decoder& d);

void read_tolerations(const text::Value& v, std::vector<model::Toleration>& out, text::Decoder& d);
void read_taint(const text::Value& v, model::Taint& out, text::Decoder& d);

}  // namespace berth::kinds
