#include "kinds/maker_patch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "text/json.h"
#include "text/tree.h"

namespace berth::kinds {

namespace {

using text::Tree;
using text::Value;

std::string_view effect_name(model::TaintEffect effect) {
  switch (effect) {
    case model::TaintEffect::kNoSchedule:
      return "NoSchedule";
    case model::TaintEffect::kPreferNoSchedule:
      return "PreferNoSchedule";
    case model::TaintEffect::kNoExecute:
      return "NoExecute";
  }
  return "";
}

Tree toleration_tree(const model::Toleration& t) {
  Tree out;
  if (!t.key.empty()) out["key"] = Tree::of_text(t.key);
  const bool exists = t.op == model::Toleration::Op::kExists;
  out["operator"] = Tree::of_text(exists ? "Exists" : "Equal");
  if (!t.value.empty()) out["value"] = Tree::of_text(t.value);
  if (t.effect) out["effect"] = Tree::of_text(effect_name(*t.effect));
  return out;
}

void set_at(Tree& root, const text::Path& path, Tree value) {
  Tree* now = &root;
  for (std::size_t i = 0; i < path.size(); ++i) now = &(*now)[path[i]];
  *now = std::move(value);
}

void write_all(const model::Labels& from, Tree& to) {
  for (const auto& [key, value] : from) to[key] = Tree::of_text(value);
}

Tree selector_of(const SetStart& set) {
  Tree out;
  if (set.original != nullptr) {
    for (const text::Member& m : at(*set.original, "spec.nodeSelector").members()) {
      out[m.key] = Tree::of_text(m.value.string());
    }
  }
  write_all(set.node_selector, out);
  return out;
}

Tree tolerations_of(const SetStart& set) {
  Tree out;
  const auto add = [&out](Tree one) {
    std::vector<Tree>& items = out.items();
    if (std::find(items.begin(), items.end(), one) == items.end()) items.push_back(std::move(one));
  };
  if (set.original != nullptr) {
    for (const Value& own : at(*set.original, "spec.tolerations").items()) add(Tree(own));
  }
  for (const model::Toleration& t : set.tolerations) add(toleration_tree(t));
  return out;
}

// Null is what is not there: a field that would be empty goes.
void put_or_drop(Tree& object, std::string_view key, Tree value) {
  if (value.is_null()) {
    object.erase(key);
  } else {
    object[key] = std::move(value);
  }
}

void write_into_template(const SetStart& set, Tree& made_of) {
  write_all(set.labels, made_of["metadata"]["labels"]);
  write_all(set.annotations, made_of["metadata"]["annotations"]);
  Tree& spec = made_of["spec"];
  put_or_drop(spec, "nodeSelector", selector_of(set));
  put_or_drop(spec, "tolerations", tolerations_of(set));
}

// Whoever makes the pods adds these to what it was given.
Tree told_apart(const SetStart& set) {
  Tree out;
  write_all(set.labels, out["labels"]);
  write_all(set.annotations, out["annotations"]);
  if (!set.node_selector.empty()) write_all(set.node_selector, out["nodeSelector"]);
  for (const model::Toleration& t : set.tolerations) {
    out["tolerations"].items().push_back(toleration_tree(t));
  }
  return out;
}

Tree empty_object() {
  Tree out;
  out["x"];
  out.erase("x");
  return out;
}

// A list on the way is made as long as it has to be.
Tree& make_way(Tree& root, const std::vector<std::string>& path) {
  Tree* now = &root;
  for (const std::string& step : path) {
    const bool place = step.find_first_not_of("0123456789") == std::string::npos;
    if (!place || now->is_object()) {
      now = &(*now)[step];
      continue;
    }
    const std::size_t index = std::stoul(step);
    std::vector<Tree>& items = now->items();
    if (items.size() <= index) items.resize(index + 1);
    now = &items[index];
  }
  return *now;
}

bool has_place(const std::vector<std::string>& path) {
  return std::any_of(path.begin(), path.end(), [](const std::string& step) {
    return step.find_first_not_of("0123456789") == std::string::npos;
  });
}

std::string patch_of(const Tree& before, const Tree& after) {
  text::JsonWriter out;
  write_patch(out, before, after);
  std::string patch = std::move(out).take();
  return patch == "[]" ? std::string() : patch;
}

// It holds for this version alone.
std::string pinned(std::string patch, const Value& object) {
  text::JsonWriter out;
  out.object([&] {
    out.field("op", "replace");
    out.field("path", "/metadata/resourceVersion");
    out.field("value", text_at(object, "metadata.resourceVersion"));
  });
  return "[" + std::move(out).take() + ',' + patch.substr(1);
}

}  // namespace

std::string start_patch(const PodMaker& maker, const Value& object,
                        std::span<const SetStart> sets) {
  const Tree before(object);
  Tree after = before;
  set_at(after, *maker.suspend, Tree::of_bool(false));
  bool by_place = false;
  for (const PodSetAt& at_set : pod_sets_of(maker, object)) {
    const auto set = std::find_if(sets.begin(), sets.end(),
                                  [&](const SetStart& each) { return each.name == at_set.name; });
    const bool apart = !at_set.told.empty();
    if (set == sets.end()) {  // it makes nothing now; what is told apart is told of each
      if (apart) make_way(after, at_set.told) = empty_object();
      continue;
    }
    by_place = by_place || has_place(apart ? at_set.told : at_set.path);
    if (apart) {
      make_way(after, at_set.told) = told_apart(*set);
    } else {
      write_into_template(*set, make_way(after, at_set.path));
    }
    if (set->count > 0 && maker.count) set_at(after, *maker.count, Tree::of_number(set->count));
  }
  std::string patch = patch_of(before, after);
  return patch.empty() || !by_place ? patch : pinned(std::move(patch), object);
}

std::string rest_patch(const PodMaker& maker, const Value& object) {
  const Tree before(object);
  Tree after = before;
  set_at(after, *maker.suspend, Tree::of_bool(true));
  return patch_of(before, after);
}

std::string never_started_patch(const PodMaker& maker, const Value& object) {
  if (!maker.started || find(object, *maker.started) == nullptr) return {};
  Tree out;
  set_at(out, *maker.started, Tree());
  text::JsonWriter json;
  out.write(json);
  return std::move(json).take();
}

}  // namespace berth::kinds
