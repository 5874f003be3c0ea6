// Fixes of a namespace that a ClusterQueue does not select.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "people/why/fixes.h"
#include "people/why/pod_template.h"
#include "text/path.h"

namespace berth::people {

namespace {

using text::Value;

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";

// Labels that a namespace gets, or loses where the value is absent.
using LabelEdits = std::map<std::string, std::optional<std::string>>;

struct NamespaceRule {
  std::string key, op;
  std::vector<std::string> values;
};

std::vector<NamespaceRule> rules_of(const Value* selector) {
  std::vector<NamespaceRule> out;
  const Value* labels = find(selector, "matchLabels");
  for (const text::Member& member :
       labels == nullptr ? std::span<const text::Member>() : labels->members()) {
    out.push_back({std::string(member.key), "In", {std::string(member.value.string())}});
  }
  for (const Value& each : at(selector, "matchExpressions").items()) {
    NamespaceRule rule{
        std::string(text_at(each, "key")), std::string(text_at(each, "operator")), {}};
    for (const Value& value : at(each, "values").items()) {
      rule.values.emplace_back(value.string());
    }
    out.push_back(std::move(rule));
  }
  return out;
}

// What the namespace needs for the rules; nullopt: no label would do.
std::optional<LabelEdits> edits_for(const std::vector<NamespaceRule>& rules, const Value* labels) {
  LabelEdits out;
  for (const NamespaceRule& rule : rules) {
    const Value* now = labels == nullptr ? nullptr : labels->find(rule.key);
    const bool listed = now != nullptr && std::find(rule.values.begin(), rule.values.end(),
                                                    now->string()) != rule.values.end();
    const bool meets = rule.op == "In"       ? listed
                       : rule.op == "NotIn"  ? !listed
                       : rule.op == "Exists" ? now != nullptr
                                             : now == nullptr;
    if (meets) continue;
    if (rule.key == kNameLabel) return std::nullopt;  // the API server sets it
    if (rule.op == "NotIn" || rule.op == "DoesNotExist") {
      out[rule.key] = std::nullopt;
    } else if (rule.op == "Exists") {
      out[rule.key] = "true";
    } else if (!rule.values.empty()) {
      out[rule.key] = rule.values.front();
    }
  }
  return out;
}

std::string title_of(const std::string& ns, const LabelEdits& edits) {
  std::string set, gone;
  for (const auto& [key, value] : edits) {
    std::string& list = value ? set : gone;
    list += (list.empty() ? "" : ", ") + key + (value ? '=' + *value : "");
  }
  std::string out = set.empty() ? "" : fmt::format("label the namespace {} with {}", ns, set);
  if (gone.empty()) return out;
  out += (out.empty() ? "" : ", and ") + fmt::format("take the label {} off ", gone);
  return out + (set.empty() ? "the namespace " + ns : "it");
}

void label_it(const Situation& s, const LabelEdits& edits, Proposals& out) {
  out.push_back({.title = title_of(s.unit.ns, edits),
                 .kind = "label-namespace",
                 .disturbance = 3,
                 .objects_only = true,
                 .apply = [&s, edits](Draft& draft) {
                   Tree* object = draft.edit(s.objects(), "Namespace", "", s.unit.ns);
                   if (object == nullptr) return false;
                   for (const auto& [key, value] : edits) {
                     Tree& labels = (*object)["metadata"]["labels"];
                     if (value) {
                       labels[key] = Tree::of_text(*value);
                     } else {
                       labels.erase(key);
                     }
                   }
                   return true;
                 }});
}

// A queue that lists namespaces by name lists this one too.
void list_it(const Situation& s, const std::string& queue, Proposals& out) {
  out.push_back({.title = fmt::format("let {} take the namespace {} too", queue, s.unit.ns),
                 .kind = "open-queue",
                 .disturbance = 3,
                 .objects_only = true,
                 .apply = [&s, queue](Draft& draft) {
                   Tree* object = draft.edit(s.objects(), "ClusterQueue", "", queue);
                   Tree* selector = below(object, {"spec", "namespaceSelector"});
                   if (selector == nullptr) return false;
                   Tree* rules = selector->find("matchExpressions");
                   for (std::size_t i = 0; rules != nullptr && i < rules->items().size(); ++i) {
                     Tree& rule = rules->items()[i];
                     const Tree *key = rule.find("key"), *op = rule.find("operator");
                     const bool lists = key != nullptr && key->string() == kNameLabel &&
                                        op != nullptr && op->string() == "In";
                     if (!lists) continue;
                     rule["values"].items().push_back(Tree::of_text(s.unit.ns));
                     return true;
                   }
                   return false;
                 }});
}

}  // namespace

void namespace_labels(const Situation& s, const model::QueueSpec& queue, Proposals& out) {
  if (s.reason != model::Reason::kMisconfigured || s.objects() == nullptr) return;
  const auto raw = s.objects()->find("ClusterQueue", "", queue.name);
  const auto ns = s.objects()->find("Namespace", "", s.unit.ns);
  if (!raw) return;
  const std::vector<NamespaceRule> rules = rules_of(find(raw->value, "spec.namespaceSelector"));
  if (rules.empty() || rules.size() > 8) return;
  list_it(s, queue.name, out);
  if (!ns) return;
  const auto edits = edits_for(rules, find(ns->value, "metadata.labels"));
  if (edits && !edits->empty()) label_it(s, *edits, out);
}

}  // namespace berth::people
