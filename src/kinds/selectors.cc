// Label selectors and node selector terms.
#include "kinds/affinity.h"

namespace berth::kinds {

namespace {

using model::NodeSelectorTerm;
using text::Decoder;
using text::Value;

void read_node_labels(const Value& v, text::Selector& out, Decoder& d) {
  decode_requirements(v, text::SelectorKind::kNode, out, d);
}

// Only the node's name, and only one of it, as the API server has it.
void read_node_fields(const Value& v, text::Selector& out, Decoder& d) {
  const std::size_t before = d.errors();
  decode_requirements(v, text::SelectorKind::kField, out, d);
  if (d.errors() != before) return;
  for (std::size_t i = 0; i < out.size(); ++i) {
    Decoder::Step step(d, i);
    if (out[i].key != "metadata.name") {
      d.error(v, "key " + quoted(out[i].key), "metadata.name, the only field that can be matched");
    } else if ((out[i].op != text::Operator::kIn && out[i].op != text::Operator::kNotIn) ||
               out[i].values.size() != 1) {
      d.error(v, "this operator and values", "In or NotIn with exactly one value");
    }
  }
}

constexpr text::Field<NodeSelectorTerm> kNodeTermFields[] = {
    text::field<&NodeSelectorTerm::labels, read_node_labels>("matchExpressions"),
    text::field<&NodeSelectorTerm::fields, read_node_fields>("matchFields"),
};

struct RawNodeSelector {
  std::vector<NodeSelectorTerm> terms;
};
constexpr text::Field<RawNodeSelector> kNodeSelectorFields[] = {
    text::required(
        text::field<&RawNodeSelector::terms, list_of<read_node_term>>("nodeSelectorTerms")),
};

}  // namespace

void decode(const Value& v, LabelSelector& out, Decoder& d) {
  out.present = true;
  decode_label_selector(v, out.requirements, d);
}

void read_node_term(const Value& v, NodeSelectorTerm& out, Decoder& d) {
  decode_object(v, kNodeTermFields, out, d);
}

void read_node_selector(const Value& v, std::vector<NodeSelectorTerm>& out, Decoder& d) {
  const std::size_t before = d.errors();
  RawNodeSelector raw;
  decode_object(v, kNodeSelectorFields, raw, d);
  if (d.errors() == before && raw.terms.empty()) {
    Decoder::Step step(d, "nodeSelectorTerms");
    d.error(v, "an empty array", "at least one term");
  }
  out = std::move(raw.terms);
}

}  // namespace berth::kinds
