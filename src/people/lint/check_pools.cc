#include "people/lint/checks.h"

namespace berth::lint {

namespace {

using text::YamlChange;

// The node class that a pool most likely means: AWS by the names in its requirements.
std::optional<std::pair<std::string, std::string>> likely_class(const Place& template_spec) {
  bool aws = false, azure = false;
  for (const Place& requirement : template_spec["requirements"].items()) {
    const std::string_view key = requirement["key"].text();
    aws = aws || key.starts_with("karpenter.k8s.aws/");
    azure = azure || key.starts_with("karpenter.azure.com/");
    for (const Place& value : requirement["values"].items()) {
      const std::string_view word = value.text();
      if (key == "node.kubernetes.io/instance-type") {
        azure = azure || word.starts_with("Standard_");
        aws = aws || (word.find('.') != std::string_view::npos && !word.starts_with("Standard_"));
      }
    }
  }
  if (azure) return std::pair<std::string, std::string>{"karpenter.azure.com", "AKSNodeClass"};
  if (aws) return std::pair<std::string, std::string>{"karpenter.k8s.aws", "EC2NodeClass"};
  return std::nullopt;
}

void check_class(const Object& object, const Place& spec, Reporter& out) {
  const Place ref = spec["nodeClassRef"];
  const auto likely = likely_class(spec);
  const auto quoted = [](const std::string& text) { return json_text(text); };
  if (!ref) {
    std::optional<Fix> edit;
    if (likely) {
      edit = one_change(put_value(spec, {"nodeClassRef"},
                                  "{\"group\":" + quoted(likely->first) + ",\"kind\":" +
                                      quoted(likely->second) + ",\"name\":\"default\"}"));
      edit->assumes = "the nodes are made by " + likely->second + " default";
    }
    out.add("karpenter-node-class", ref,
            "nodeClassRef is missing: a pool must say what makes nodes",
            "add nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}",
            std::move(edit));
    return;
  }
  if (object.version != "v1" && object.version != "v1beta1") return;
  Fix fix;
  std::string missing;
  for (const char* field : {"kind", "group"}) {
    if (ref.has(field)) continue;
    missing = missing.empty() ? field : std::string(field) + " and " + missing;
    if (!likely) continue;
    const std::string value = std::string(field) == "group" ? likely->first : likely->second;
    YamlChange put = put_value(ref, {field}, quoted(value));
    put.before = std::string(field) == "group" && ref.has("kind") ? "kind" : "name";
    fix.changes.insert(fix.changes.begin(), put);
  }
  if (missing.empty()) {
    if (ref.has("apiVersion") && object.version == "v1") {
      out.add("karpenter-node-class", ref["apiVersion"],
              "found apiVersion in nodeClassRef, want group", "write group: karpenter.k8s.aws");
    }
    return;
  }
  if (likely) fix.assumes = "the node class is an " + likely->second;
  std::optional<Fix> edit;
  if (likely && !ref.has("apiVersion")) edit = std::move(fix);
  out.add("karpenter-node-class", ref, "nodeClassRef has no " + missing + ", which v1 wants",
          "write nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: ...}",
          std::move(edit));
  out.claim(ref["group"].path());
  out.claim(ref["kind"].path());
}

void check_disruption(const Place& spec, Reporter& out) {
  const Place disruption = spec["disruption"];
  const Place policy = disruption["consolidationPolicy"];
  if (policy.is("WhenUnderutilized")) {
    out.add("karpenter-consolidation", policy,
            "found consolidationPolicy WhenUnderutilized, want WhenEmptyOrUnderutilized",
            "write WhenEmptyOrUnderutilized",
            one_change(set_text(policy.path(), "WhenEmptyOrUnderutilized")));
  } else if (policy && !policy.is("WhenEmpty") && !policy.is("WhenEmptyOrUnderutilized") &&
             !policy.is("Balanced")) {
    out.add("karpenter-consolidation", policy,
            "found consolidationPolicy " + policy.word() +
                ", want WhenEmpty, WhenEmptyOrUnderutilized or Balanced",
            "write one of these");
  }
  if (policy && !disruption.has("consolidateAfter")) {
    out.add("karpenter-consolidate-after", disruption["consolidateAfter"],
            "consolidateAfter is missing: v1 wants it beside consolidationPolicy",
            "add consolidateAfter: 0s",
            one_change(put_value(disruption, {"consolidateAfter"}, "\"0s\"")));
  }
  const Place expire = disruption["expireAfter"];
  if (!expire) return;
  std::optional<Fix> edit;
  if (spec["template"]["spec"].value().is_object() &&
      !spec["template"]["spec"].has("expireAfter")) {
    YamlChange move{.kind = YamlChange::Kind::kMove, .at = expire.path()};
    move.to = spec["template"]["spec"].path();
    edit = one_change(move);
  }
  out.add("karpenter-expire-after", expire,
          "found disruption.expireAfter, want template.spec.expireAfter",
          "move expireAfter to spec.template.spec", std::move(edit));
}

}  // namespace

void check_pools(const Object& object, Reporter& out) {
  if (!object.is("karpenter.sh", "NodePool")) return;
  const Place spec = object.root()["spec"];
  const Place template_spec = spec["template"]["spec"];
  if (template_spec) check_class(object, template_spec, out);
  check_disruption(spec, out);
  for (const Place& requirement : template_spec["requirements"].items()) {
    if (requirement["key"].is("karpenter.sh/capacity-type")) {
      for (const Place& value : requirement["values"].items()) {
        if (value.is("spot") || value.is("on-demand") || value.is("reserved")) continue;
        out.add("karpenter-capacity-type", value,
                "found capacity type " + value.word() + ", want spot, on-demand or reserved",
                "write one of these");
      }
    }
  }
  const Place weight = spec["weight"];
  const auto number = weight.value().as_int64();
  if (weight && (!number || *number < 1 || *number > 100)) {
    out.add("karpenter-weight", weight, "found weight " + weight.word() + ", want 1 to 100",
            "write a weight from 1 to 100; the pool with the highest is tried first");
  }
}

}  // namespace berth::lint
