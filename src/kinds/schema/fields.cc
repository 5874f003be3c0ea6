#include "kinds/schema/fields.h"

#include <algorithm>
#include <map>

#include "text/json.h"
#include "text/members.h"

namespace berth::sim {
namespace {

bool step_less(const FieldSet::Child& child, std::string_view step) { return child.step < step; }

// Both lists in step, either side missing where the other has a step of its own.
template <class Visit>
void in_step(const FieldSet& a, const FieldSet& b, const Visit& visit) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.children.size() || j < b.children.size()) {
    const bool left = j == b.children.size() ||
                      (i < a.children.size() && a.children[i].step < b.children[j].step);
    const bool right = i == a.children.size() ||
                       (j < b.children.size() && b.children[j].step < a.children[i].step);
    if (left) {
      visit(a.children[i].step, &a.children[i].set, nullptr);
      ++i;
    } else if (right) {
      visit(b.children[j].step, nullptr, &b.children[j].set);
      ++j;
    } else {
      visit(a.children[i].step, &a.children[i].set, &b.children[j].set);
      ++i;
      ++j;
    }
  }
}

// Visits the steps of a with what b has of them. A small set against a large one looks them up, so
// that many small ones do not each cost the large one.
template <class Visit>
void each_of(const FieldSet& a, const FieldSet& b, const Visit& visit) {
  if (a.children.size() * 8 < b.children.size()) {
    for (const FieldSet::Child& child : a.children) {
      visit(child.step, &child.set, b.find(child.step));
    }
    return;
  }
  in_step(a, b, [&](std::string_view step, const FieldSet* x, const FieldSet* y) {
    if (x != nullptr) visit(step, x, y);
  });
}

// Children that were appended in any order; of those with the same step the last counts, or all of
// them together.
void sort_children(FieldSet& set, bool together) {
  const auto by_step = [](const FieldSet::Child& a, const FieldSet::Child& b) {
    return a.step < b.step;
  };
  if (!std::is_sorted(set.children.begin(), set.children.end(), by_step)) {
    std::stable_sort(set.children.begin(), set.children.end(), by_step);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < set.children.size(); ++i) {
    if (kept > 0 && set.children[kept - 1].step == set.children[i].step) {
      FieldSet& first = set.children[kept - 1].set;
      first = together ? set_union(first, set.children[i].set) : std::move(set.children[i].set);
    } else if (kept++ != i) {
      set.children[kept - 1] = std::move(set.children[i]);
    }
  }
  set.children.resize(kept);
}

void keep_child(FieldSet& out, std::string_view step, FieldSet set) {
  if (set.owned || !set.children.empty()) out.children.push_back({step, std::move(set)});
}

}  // namespace

const FieldSet* FieldSet::find(std::string_view step) const {
  const auto found = std::lower_bound(children.begin(), children.end(), step, step_less);
  return found != children.end() && found->step == step ? &found->set : nullptr;
}

FieldSet& FieldSet::at(std::string_view step) {
  auto found = std::lower_bound(children.begin(), children.end(), step, step_less);
  if (found == children.end() || found->step != step) {
    found = children.insert(found, Child{step, {}});
  }
  return found->set;
}

bool FieldSet::empty() const {
  return !owned && std::all_of(children.begin(), children.end(),
                               [](const Child& child) { return child.set.empty(); });
}

FieldSet set_union(const FieldSet& a, const FieldSet& b) {
  FieldSet out;
  out.owned = a.owned || b.owned;
  in_step(a, b, [&](std::string_view step, const FieldSet* x, const FieldSet* y) {
    keep_child(out, step, x == nullptr ? *y : y == nullptr ? *x : set_union(*x, *y));
  });
  return out;
}

// In pairs: each set is copied as often as the number of sets has digits.
FieldSet set_union(std::vector<FieldSet> sets) {
  for (std::size_t width = sets.size(); width > 1; width = (width + 1) / 2) {
    for (std::size_t i = 0; i < width / 2; ++i) sets[i] = set_union(sets[i], sets[width - 1 - i]);
  }
  return sets.empty() ? FieldSet() : std::move(sets.front());
}

FieldSet set_intersection(const FieldSet& a, const FieldSet& b) {
  FieldSet out;
  out.owned = a.owned && b.owned;
  each_of(a, b, [&](std::string_view step, const FieldSet* x, const FieldSet* y) {
    if (y != nullptr) keep_child(out, step, set_intersection(*x, *y));
  });
  return out;
}

FieldSet set_difference(const FieldSet& a, const FieldSet& b) {
  FieldSet out;
  out.owned = a.owned && !b.owned;
  each_of(a, b, [&](std::string_view step, const FieldSet* x, const FieldSet* y) {
    keep_child(out, step, y == nullptr ? *x : set_difference(*x, *y));
  });
  return out;
}

void take_away(FieldSet& set, const FieldSet& gone) {
  if (gone.owned) set.owned = false;
  if (set.children.empty() || gone.children.empty()) return;
  bool emptied = false;
  const auto meet = [&](FieldSet::Child& child, const FieldSet& other) {
    take_away(child.set, other);
    emptied = emptied || (!child.set.owned && child.set.children.empty());
  };
  if (gone.children.size() * 8 < set.children.size()) {
    for (const FieldSet::Child& other : gone.children) {
      const auto found =
          std::lower_bound(set.children.begin(), set.children.end(), other.step, step_less);
      if (found != set.children.end() && found->step == other.step) meet(*found, other.set);
    }
  } else {
    for (FieldSet::Child& child : set.children) {
      if (const FieldSet* other = gone.find(child.step)) meet(child, *other);
    }
  }
  if (!emptied) return;
  std::erase_if(set.children, [](const FieldSet::Child& child) {
    return !child.set.owned && child.set.children.empty();
  });
}

bool set_equal(const FieldSet& a, const FieldSet& b) {
  return set_difference(a, b).empty() && set_difference(b, a).empty();
}

std::string_view FieldPool::field(std::string_view name) {
  char* to = arena_.allocate<char>(name.size() + 2);
  to[0] = 'f';
  to[1] = ':';
  std::copy(name.begin(), name.end(), to + 2);
  return {to, name.size() + 2};
}

Grain grain_of(const Schema* schema, const Value& value) {
  if (value.is_object()) {
    if (schema == nullptr || schema->type == Schema::Type::kAny) return Grain::kObject;
    if (schema->type != Schema::Type::kObject || schema->atomic_map) return Grain::kLeaf;
    return Grain::kObject;
  }
  if (value.is_array()) {
    if (schema == nullptr || schema->type != Schema::Type::kArray) return Grain::kLeaf;
    return schema->list == Schema::List::kAtomic ? Grain::kLeaf : Grain::kList;
  }
  return Grain::kLeaf;
}

bool is_named_field(const Schema* schema, std::string_view key) {
  return schema != nullptr && schema->find(key) != nullptr;
}

const Schema* member_schema(const Schema* schema, std::string_view key) {
  if (schema == nullptr) return nullptr;
  const Schema::Property* property = schema->find(key);
  if (property != nullptr) return property->schema;
  return schema->additional;
}

std::string_view item_step(const Schema& list, const Value& item, FieldPool& pool,
                           std::string_view* missing) {
  if (list.list == Schema::List::kSet) return pool.keep("v:" + text::to_json(item));
  std::vector<std::string_view> sorted;
  if (list.map_keys.size() > 1) {
    sorted = list.map_keys;
    std::sort(sorted.begin(), sorted.end());
  }
  const std::vector<std::string_view>& keys = sorted.empty() ? list.map_keys : sorted;
  std::string out = "k:{";
  for (const std::string_view key : keys) {
    const Value* value = item.find(key);
    if (value == nullptr || value->is_null()) {
      static const Value kEmptyText = Value::make_string("", 0);
      static const Value kZero = Value::make_number("0", 0);
      const Schema::Property* property = list.items == nullptr ? nullptr : list.items->find(key);
      value = property == nullptr ? nullptr : property->fallback;
      if (value == nullptr && property != nullptr && property->always) {  // as Go would write it
        value = property->schema->type == Schema::Type::kInteger ? &kZero : &kEmptyText;
      }
    }
    if (value == nullptr) {
      if (missing != nullptr) *missing = key;
      return {};
    }
    if (out.size() > 3) out += ',';
    text::append_json_string(out, key);
    out += ':';
    if (value->is_string()) {
      text::append_json_string(out, value->string());
    } else {
      out += text::to_json(*value);
    }
  }
  out += '}';
  return pool.keep(out);
}

const Schema* step_schema(const Schema* schema, std::string_view step) {
  if (schema == nullptr) return nullptr;
  if (step.starts_with("f:")) return member_schema(schema, step.substr(2));
  return schema->items;
}

namespace {

void collect_fields(const Schema* schema, const Value& value, FieldSet& out, FieldPool& pool) {
  switch (grain_of(schema, value)) {
    case Grain::kLeaf:
      out.owned = true;
      return;
    case Grain::kObject:
      for (const Member& member : value.members()) {
        FieldSet& child =
            out.children.emplace_back(FieldSet::Child{pool.field(member.key), {}}).set;
        const Value& inner = member.value;
        if (!inner.is_null()) collect_fields(member_schema(schema, member.key), inner, child, pool);
        const bool empty = inner.is_null() || (inner.is_object() && inner.size() == 0);
        if (empty || !is_named_field(schema, member.key)) child.owned = true;
      }
      sort_children(out, true);
      return;
    case Grain::kList:
      for (const Value& item : value.items()) {
        const std::string_view step = item_step(*schema, item, pool);
        if (step.empty()) continue;
        FieldSet& child = out.children.emplace_back(FieldSet::Child{step, {}}).set;
        collect_fields(schema->items, item, child, pool);
        child.owned = true;
      }
      sort_children(out, true);
      return;
  }
}

class FieldCompare {
 public:
  explicit FieldCompare(FieldPool& pool) : pool_(pool) {}

  FieldChanges run(const Schema* schema, const Value* from, const Value* to) {
    FieldChanges out;
    const Value& either = to != nullptr ? *to : *from;
    Grain grain = grain_of(schema, either);
    const bool both_empty =
        (from == nullptr || from->size() == 0) && (to == nullptr || to->size() == 0);
    const bool same_shape = from == nullptr || to == nullptr || from->is_null() ||
                            from->kind() == to->kind();  // a null is an empty list or object
    if (grain == Grain::kLeaf || both_empty || !same_shape) {
      out.modified.owned = from != nullptr && to != nullptr && !text::equal(*from, *to);
    } else if (grain == Grain::kObject) {
      objects(schema, from, to, out);
    } else {
      lists(*schema, from, to, out);
    }
    if (from == nullptr) out.added.owned = true;
    if (to == nullptr) out.removed.owned = true;
    for (FieldSet* set : {&out.removed, &out.modified, &out.added}) sort_children(*set, true);
    return out;
  }

 private:
  void child(const Schema* schema, std::string_view step, const Value* from, const Value* to,
             FieldChanges& out) {
    FieldChanges inner = run(schema, from, to);
    keep_child(out.removed, step, std::move(inner.removed));
    keep_child(out.modified, step, std::move(inner.modified));
    keep_child(out.added, step, std::move(inner.added));
  }

  void objects(const Schema* schema, const Value* from, const Value* to, FieldChanges& out) {
    text::MemberIndex old(from == nullptr ? Value() : *from);
    text::MemberIndex now(to == nullptr ? Value() : *to);
    if (from != nullptr) {
      for (const Member& member : from->members()) {
        const Value* other = now.find(member.key);
        if (other != nullptr && same_leaf(member.value, *other)) continue;
        child(member_schema(schema, member.key), pool_.field(member.key), &member.value, other,
              out);
      }
    }
    if (to == nullptr) return;
    for (const Member& member : to->members()) {
      if (old.find(member.key) != nullptr) continue;
      child(member_schema(schema, member.key), pool_.field(member.key), nullptr, &member.value,
            out);
    }
  }

  static bool same_leaf(const Value& a, const Value& b) {
    return a.kind() == b.kind() && !a.is_object() && !a.is_array() && text::equal(a, b);
  }

  // In an order of their own; of those with one step the first.
  using Steps = std::vector<std::pair<std::string_view, const Value*>>;
  Steps by_step(const Schema& schema, const Value* list) {
    Steps out;
    if (list == nullptr) return out;
    out.reserve(list->size());
    for (const Value& item : list->items()) {
      const std::string_view step = item_step(schema, item, pool_);
      if (!step.empty()) out.emplace_back(step, &item);
    }
    const auto before = [](const auto& a, const auto& b) {
      return text::shorter_first(a.first, b.first);
    };
    if (!std::is_sorted(out.begin(), out.end(), before)) {
      std::stable_sort(out.begin(), out.end(), before);
    }
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    out.erase(std::unique(out.begin(), out.end(), same), out.end());
    return out;
  }

  void lists(const Schema& schema, const Value* from, const Value* to, FieldChanges& out) {
    const Steps old = by_step(schema, from), now = by_step(schema, to);
    for (auto o = old.begin(), n = now.begin(); o != old.end() || n != now.end();) {
      if (n == now.end() || (o != old.end() && text::shorter_first(o->first, n->first))) {
        child(schema.items, o->first, o->second, nullptr, out);
        ++o;
      } else if (o == old.end() || o->first != n->first) {
        child(schema.items, n->first, nullptr, n->second, out);
        ++n;
      } else {
        child(schema.items, o->first, o->second, n->second, out);
        ++o;
        ++n;
      }
    }
  }

  FieldPool& pool_;
};

}  // namespace

FieldSet fields_of(const Schema* schema, const Value& value, FieldPool& pool) {
  FieldSet out;
  collect_fields(schema, value, out, pool);
  return out;
}

FieldChanges compare_fields(const Schema* schema, const Value& from, const Value& to,
                            FieldPool& pool) {
  return FieldCompare(pool).run(schema, &from, &to);
}

Value zero_object(const Schema& schema, text::Editor& edit, int depth) {
  std::vector<Member> out;
  for (const Schema::Property& property : schema.properties) {
    if (!property.always || depth > 10) continue;
    const Schema& inner = *property.schema;
    switch (inner.type) {
      case Schema::Type::kObject:
        out.push_back(
            {property.name, inner.is_map() ? Value() : zero_object(inner, edit, depth + 1)});
        break;
      case Schema::Type::kArray:
        out.push_back({property.name, Value()});
        break;
      case Schema::Type::kString:
        if (inner.format == Schema::Format::kNone) out.push_back({property.name, edit.string("")});
        break;
      case Schema::Type::kInteger:
        out.push_back({property.name, edit.number(0)});
        break;
      case Schema::Type::kBoolean:
        out.push_back({property.name, text::Editor::boolean(false)});
        break;
      default:
        break;
    }
  }
  return edit.object(out);
}

FieldSet with_named_parents(const FieldSet& set, const Schema* schema) {
  FieldSet out;
  out.owned = set.owned;
  for (const FieldSet::Child& child : set.children) {
    FieldSet inner = with_named_parents(child.set, step_schema(schema, child.step));
    const bool named = child.step.starts_with("f:") && is_named_field(schema, child.step.substr(2));
    if (named && !child.set.children.empty()) inner.owned = true;
    out.children.push_back({child.step, std::move(inner)});
  }
  return out;
}

Value remove_fields(const Schema* schema, const Value& value, const FieldSet& set,
                    text::Editor& edit, FieldPool& pool) {
  const Grain grain = grain_of(schema, value);
  if (grain == Grain::kLeaf || set.children.empty()) return value;
  if (grain == Grain::kObject) {
    std::vector<Member> kept;
    for (const Member& member : value.members()) {
      const FieldSet* child = set.find(pool.field(member.key));
      if (child == nullptr) {
        kept.push_back(member);
      } else if (!child->owned) {
        const Value inner =
            remove_fields(member_schema(schema, member.key), member.value, *child, edit, pool);
        kept.push_back({member.key, inner});
      }
    }
    return edit.object(kept);
  }
  std::vector<Value> kept;
  for (const Value& item : value.items()) {
    const FieldSet* child = set.find(item_step(*schema, item, pool));
    if (child == nullptr) {
      kept.push_back(item);
    } else if (!child->owned) {
      kept.push_back(remove_fields(schema->items, item, *child, edit, pool));
    }
  }
  return edit.array(kept);
}

namespace {

Value merge_lists(const Schema& schema, const Value& live, const Value& config, text::Editor& edit,
                  FieldPool& pool) {
  const auto steps_of = [&](const Value& list) {
    std::vector<std::string_view> out;
    for (const Value& item : list.items()) out.push_back(item_step(schema, item, pool));
    return out;
  };
  const auto live_steps = steps_of(live);
  const auto config_steps = steps_of(config);
  std::map<std::string_view, std::size_t> in_live;
  std::map<std::string_view, std::size_t> in_config;
  for (std::size_t i = 0; i < live_steps.size(); ++i) in_live.emplace(live_steps[i], i);
  for (std::size_t i = 0; i < config_steps.size(); ++i) in_config.emplace(config_steps[i], i);
  std::vector<Value> out;
  std::size_t l = 0;
  // Shared items stand in the config's order; what only live has keeps its place before them.
  const auto live_only_until_shared = [&] {
    while (l < live_steps.size()) {
      if (!in_config.contains(live_steps[l])) out.push_back(live.items()[l]);
      if (in_config.contains(live_steps[l++])) return;
    }
  };
  for (std::size_t r = 0; r < config_steps.size(); ++r) {
    const auto known = in_live.find(config_steps[r]);
    const Value& item = config.items()[r];
    if (known == in_live.end()) {
      out.push_back(item);
      continue;
    }
    live_only_until_shared();
    out.push_back(merge_applied(schema.items, live.items()[known->second], item, edit, pool));
  }
  for (; l < live_steps.size(); ++l) {
    if (!in_config.contains(live_steps[l])) out.push_back(live.items()[l]);
  }
  return edit.array(out);
}

}  // namespace

Value merge_applied(const Schema* schema, const Value& live, const Value& config,
                    text::Editor& edit, FieldPool& pool) {
  const Grain grain = grain_of(schema, config);
  if (grain == Grain::kLeaf || live.kind() != config.kind()) return config;
  if (grain == Grain::kList) return merge_lists(*schema, live, config, edit, pool);
  text::MemberTable<Value> merged;
  for (const Member& member : live.members()) merged.put(member.key, member.value);
  for (const Member& member : config.members()) {
    const Value* known = merged.find(member.key);
    merged.put(member.key, known == nullptr ? member.value
                                            : merge_applied(member_schema(schema, member.key),
                                                            *known, member.value, edit, pool));
  }
  std::vector<Member> out;
  for (const auto& slot : merged.slots()) out.push_back({slot.key, slot.value});
  return edit.object(out);
}

namespace {

// Keys as this server prints them: no blanks, no escapes. Tens of thousands of them are read with
// each write of a long list.
bool printed_plainly(std::string_view step) {
  if (step.starts_with("k:") && (!step.starts_with("k:{\"") || !step.ends_with('}'))) return false;
  return std::all_of(step.begin(), step.end(),
                     [](char c) { return c > ' ' && c < 0x7f && c != '\\'; });
}

}  // namespace

FieldSet read_fields(const Value& fields, FieldPool& pool, int depth) {
  FieldSet out;
  if (depth > 100) return out;
  for (const Member& member : fields.members()) {
    if (member.key == ".") {
      out.owned = true;
      continue;
    }
    if (member.key.size() < 2 || member.key[1] != ':') continue;
    FieldSet inner = read_fields(member.value, pool, depth + 1);
    if (inner.children.empty() && !inner.owned) inner.owned = true;
    // Keys are compared as text, so they are brought to one form.
    std::string_view step = pool.keep(member.key);
    const bool item = member.key.starts_with("k:") || member.key.starts_with("v:");
    if (item && !printed_plainly(member.key)) {
      const auto parsed = text::parse_json(member.key.substr(2));
      if (!parsed.ok()) continue;
      step = pool.keep(std::string(member.key.substr(0, 2)) + text::to_json(parsed->root()));
    }
    out.children.push_back({step, std::move(inner)});
  }
  sort_children(out, false);
  return out;
}

Value write_fields(const FieldSet& set, text::Editor& edit) {
  std::vector<Member> out;
  if (set.owned && !set.children.empty()) out.push_back({".", edit.object({})});
  for (const FieldSet::Child& child : set.children) {
    if (child.set.empty()) continue;
    out.push_back({child.step, write_fields(child.set, edit)});
  }
  return edit.object(out);
}

namespace {

std::string step_text(std::string_view step) {
  if (step.starts_with("f:")) return "." + std::string(step.substr(2));
  if (step.starts_with("v:")) return "[=" + std::string(step.substr(2)) + "]";
  const auto parsed = text::parse_json(step.substr(2));
  std::string out = "[";
  if (parsed.ok()) {
    for (const Member& member : parsed->root().members()) {
      if (out.size() > 1) out += ',';
      out += std::string(member.key) + "=" + text::to_json(member.value);
    }
  }
  return out + "]";
}

void paths_below(const FieldSet& set, const std::string& at, std::vector<std::string>& out) {
  if (set.owned && !at.empty()) out.push_back(at);
  for (const FieldSet::Child& child : set.children) {
    paths_below(child.set, at + step_text(child.step), out);
  }
}

}  // namespace

void list_paths(const FieldSet& set, std::vector<std::string>& out) { paths_below(set, "", out); }

}  // namespace berth::sim
