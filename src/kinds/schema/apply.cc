// Server-side apply: who manages which field.
#include <algorithm>
#include <deque>
#include <map>

#include "kinds/schema/fields.h"
#include "text/members.h"

namespace berth::sim {
namespace {

constexpr std::size_t kMostUpdateManagers = 10;

struct Manager {
  std::string name;
  std::string api_version;
  std::string subresource;
  std::string time;
  bool applied = false;
  FieldSet fields;

  bool same_as(const Manager& other) const {
    return name == other.name && subresource == other.subresource && applied == other.applied &&
           (applied || api_version == other.api_version);
  }
};

using Managers = std::vector<Manager>;

Managers read_managers(const Value& object, FieldPool& pool) {
  Managers out;
  for (const Value& entry : at(object, "metadata.managedFields").items()) {
    Manager one;
    one.name = text_at(entry, "manager");
    one.api_version = text_at(entry, "apiVersion");
    one.subresource = text_at(entry, "subresource");
    one.time = text_at(entry, "time");
    one.applied = text_at(entry, "operation") == "Apply";
    one.fields = read_fields(at(entry, "fieldsV1"), pool);
    if (text_at(entry, "operation").empty()) continue;
    out.push_back(std::move(one));
  }
  return out;
}

// Apply before Update, then by time, name, version and subresource.
void sort_managers(Managers& managers) {
  std::stable_sort(managers.begin(), managers.end(), [](const Manager& a, const Manager& b) {
    if (a.applied != b.applied) return a.applied;
    if (a.time != b.time) return a.time < b.time;
    if (a.name != b.name) return a.name < b.name;
    if (a.api_version != b.api_version) return a.api_version < b.api_version;
    return a.subresource < b.subresource;
  });
}

void drop_empty(Managers& managers) {
  std::erase_if(managers, [](const Manager& one) { return one.fields.empty(); });
}

// Too many updaters: the oldest become one. What nobody holds any more goes.
void cap_managers(Managers& managers) {
  sort_managers(managers);
  std::vector<std::size_t> updaters;
  for (std::size_t i = 0; i < managers.size(); ++i) {
    if (!managers[i].applied) updaters.push_back(i);
  }
  if (updaters.size() <= kMostUpdateManagers) return;
  const std::size_t over = updaters.size() - kMostUpdateManagers + 1;
  Manager ancient;
  ancient.name = "ancient-changes";
  std::vector<FieldSet> fields;
  for (std::size_t k = 0; k < over; ++k) {
    Manager& old = managers[updaters[k]];
    fields.push_back(std::move(old.fields));
    ancient.api_version = old.api_version;
    ancient.time = old.time;
    old.fields = {};
  }
  ancient.fields = set_union(std::move(fields));
  drop_empty(managers);
  managers.push_back(std::move(ancient));
}

Value write_managers(Managers managers, text::Editor& edit) {
  cap_managers(managers);
  sort_managers(managers);
  std::vector<Value> out;
  for (const Manager& one : managers) {
    if (one.fields.empty()) continue;
    std::vector<Member> entry;
    entry.push_back({"apiVersion", edit.string(one.api_version)});
    entry.push_back({"fieldsType", edit.string("FieldsV1")});
    entry.push_back({"fieldsV1", write_fields(one.fields, edit)});
    entry.push_back({"manager", edit.string(one.name)});
    entry.push_back({"operation", edit.string(one.applied ? "Apply" : "Update")});
    if (!one.subresource.empty()) entry.push_back({"subresource", edit.string(one.subresource)});
    if (!one.time.empty()) entry.push_back({"time", edit.string(one.time)});
    out.push_back(edit.object(entry));
  }
  return edit.array(out);
}

Value with_managers(const Value& object, const Managers& managers, text::Editor& edit) {
  const Value written = write_managers(managers, edit);
  if (written.size() == 0) return edit.without_at(object, "metadata.managedFields");
  return edit.with_at(object, "metadata.managedFields", written);
}

Value without_managers(const Value& object, text::Editor& edit) {
  return edit.without_at(object, "metadata.managedFields");
}

// The server's own fields belong to nobody.
void strip_meta(FieldSet& set, const FieldPool&) {
  FieldSet strip;
  strip.at("f:apiVersion").owned = true;
  strip.at("f:kind").owned = true;
  FieldSet& meta = strip.at("f:metadata");
  meta.owned = true;
  for (const std::string_view step :
       {"f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid", "f:clusterName",
        "f:generation", "f:managedFields", "f:resourceVersion"}) {
    meta.at(step).owned = true;
  }
  take_away(set, strip);
}

void drop_step(FieldSet& set, std::string_view step) {
  std::erase_if(set.children, [&](const FieldSet::Child& child) { return child.step == step; });
}

// Fields that the endpoint resets are nobody's concern there.
void drop_reset_fields(const Kind& kind, std::string_view subresource, FieldSet& set) {
  if (subresource.empty() && kind.status) drop_step(set, "f:status");
  if (subresource == "status" || subresource == "approval") drop_step(set, "f:spec");
  if (subresource == "status" && kind.custom) drop_step(set, "f:metadata");
}

Manager* find_manager(Managers& managers, const Manager& wanted) {
  for (Manager& one : managers) {
    if (one.same_as(wanted)) return &one;
  }
  return nullptr;
}

std::string manager_words(const Manager& one) {
  std::string out = go_quote(one.name);
  if (!one.subresource.empty()) out += " with subresource " + go_quote(one.subresource);
  if (!one.applied) out += " using " + one.api_version;
  return out;
}

// metadata has a schema of its own; a custom kind's may leave it out.
struct RootSchema {
  explicit RootSchema(const Kind& kind) {
    root.type = Schema::Type::kObject;
    root.preserve_unknown = kind.schema->preserve_unknown;
    root.has_additional = kind.schema->has_additional;
    root.additional = kind.schema->additional;
    root.properties = kind.schema->properties;
    for (Schema::Property& property : root.properties) {
      if (property.name == "metadata") property.schema = &object_meta();
    }
  }
  Schema root;
};

// One write as the managers of each version see it.
class ChangesByVersion {
 public:
  // schema: of the kind. from and to: without managers; all of it outlives this.
  ChangesByVersion(const Kind& kind, const Schema* schema, const ManagerOptions& options,
                   const Value& from, const Value& to, FieldPool& pool)
      : options_(options), from_(from), to_(to), pool_(pool) {
    add(kind.api_version(), trimmed(kind, compare_fields(schema, from, to, pool)));
  }

  struct Known {
    std::string version;
    FieldSet written, removed;  // written: modified or added
  };

  const Known& own() const { return known_.front(); }
  // A version that is gone has the fields of the one that is written.
  const Known& in(const std::string& version) {
    for (const Known& one : known_) {
      if (one.version == version) return one;
    }
    if (!options_.other) return own();
    const auto from = options_.other(version, from_);
    const auto to = options_.other(version, to_);
    if (!from || !to) return own();
    const RootSchema holder(*to->kind);
    add(version, trimmed(*to->kind, compare_fields(&holder.root, from->object.root(),
                                                   to->object.root(), pool_)));
    return known_.back();
  }

 private:
  void add(const std::string& version, FieldChanges changes) {
    known_.push_back(
        {version, set_union(changes.modified, changes.added), std::move(changes.removed)});
  }

  FieldChanges trimmed(const Kind& kind, FieldChanges changes) const {
    for (FieldSet* set : {&changes.added, &changes.modified, &changes.removed}) {
      drop_reset_fields(kind, options_.subresource, *set);
    }
    return changes;
  }

  const ManagerOptions& options_;
  const Value& from_;
  const Value& to_;
  FieldPool& pool_;
  std::deque<Known> known_;
};

// Fields of an object that are named in another version, as they are named in this one: those of
// the object with nothing else in it.
FieldSet fields_in_version(const Kind& kind, const Manager& manager, const Value& object,
                           const ManagerOptions& options, text::Editor& edit, FieldPool& pool) {
  if (manager.api_version == kind.api_version() || !options.other) return manager.fields;
  const auto other = options.other(manager.api_version, object);
  if (!other) return manager.fields;
  const RootSchema there(*other->kind), here(kind);
  const FieldSet all =
      with_named_parents(fields_of(&there.root, other->object.root(), pool), &there.root);
  const FieldSet held = with_named_parents(manager.fields, &there.root);
  Value part =
      remove_fields(&there.root, other->object.root(), set_difference(all, held), edit, pool);
  part = edit.with(part, "kind", edit.string(kind.kind));
  const auto back = options.other(kind.api_version(), part);
  if (!back) return manager.fields;
  FieldSet out = fields_of(&here.root, back->object.root(), pool);
  strip_meta(out, pool);
  return out;
}

// What anybody holds. The managers of one version are brought into this one together: it costs the
// object, which a thousand managers must not make a thousand times.
FieldSet all_managed(const Kind& kind, const Managers& managers, const Value& object,
                     const ManagerOptions& options, text::Editor& edit, FieldPool& pool) {
  std::map<std::string, std::vector<FieldSet>> by_version;
  for (const Manager& one : managers) by_version[one.api_version].push_back(one.fields);
  std::vector<FieldSet> sets;
  for (auto& [version, fields] : by_version) {
    Manager together;
    together.api_version = version;
    together.fields = set_union(std::move(fields));
    sets.push_back(fields_in_version(kind, together, object, options, edit, pool));
  }
  return set_union(std::move(sets));
}

// What others hold of what changes; taken from them when taking.
struct Clash {
  const Manager* manager;
  std::vector<std::string> paths;
};

std::vector<Clash> clashes_with(const Managers& managers, const Manager& self,
                                ChangesByVersion& changes) {
  std::vector<Clash> out;
  for (const Manager& one : managers) {
    if (one.same_as(self)) continue;
    Clash clash{&one, {}};
    list_paths(set_intersection(one.fields, changes.in(one.api_version).written), clash.paths);
    if (!clash.paths.empty()) out.push_back(std::move(clash));
  }
  std::stable_sort(out.begin(), out.end(), [](const Clash& a, const Clash& b) {
    return manager_words(*a.manager) < manager_words(*b.manager);
  });
  return out;
}

void describe_clashes(const std::vector<Clash>& clashes, Applied& out) {
  for (const Clash& clash : clashes) {
    for (const std::string& path : clash.paths) {
      out.conflicts.push_back(
          {"FieldManagerConflict", path, "conflict with " + manager_words(*clash.manager)});
    }
  }
  if (out.conflicts.size() == 1) {
    out.conflict_message = "Apply failed with 1 conflict: " + out.conflicts.front().message + ": " +
                           out.conflicts.front().field;
    return;
  }
  out.conflict_message =
      "Apply failed with " + std::to_string(out.conflicts.size()) + " conflicts: ";
  for (bool first = true; const Clash& clash : clashes) {
    if (!first) out.conflict_message += "\n";
    first = false;
    out.conflict_message += "conflicts with " + manager_words(*clash.manager) + ":";
    for (const std::string& path : clash.paths) out.conflict_message += "\n- " + path;
  }
}

void take_from_others(Managers& managers, const Manager& self, ChangesByVersion& changes) {
  for (Manager& one : managers) {
    if (one.same_as(self)) continue;
    const auto& here = changes.in(one.api_version);
    take_away(one.fields, here.written);
    take_away(one.fields, here.removed);
  }
}

Status check_type(const Schema* schema, const Value& value, const Path& path) {
  using Type = Schema::Type;
  if (schema == nullptr || schema->format == Schema::Format::kQuantity) return {};
  const auto refuse = [&](std::string_view wanted) {
    return invalid("." + path.text() + ": expected " + std::string(wanted) + ", got " +
                   show_value(value));
  };
  switch (schema->type) {
    case Type::kObject:
      return value.is_object() ? Status() : refuse("map");
    case Type::kArray:
      return value.is_array() ? Status() : refuse("list");
    case Type::kInteger:
    case Type::kNumber:
      return value.is_number() ? Status() : refuse("numeric (int or float)");
    case Type::kBoolean:
      return value.is_bool() ? Status() : refuse("boolean");
    case Type::kString:
      return value.is_string() ? Status() : refuse("string");
    default:
      return {};
  }
}

// An embedded resource says what it is, whether its schema does or not.
bool is_type_field(const Schema* schema, std::string_view key) {
  return schema->embedded_resource && (key == "apiVersion" || key == "kind" || key == "metadata");
}

// Lists of the config must have their keys, and each only once.
Status check_config(const Schema* schema, const Value& value, Path& path, FieldPool& pool) {
  BERTH_CHECK(check_type(schema, value, path));
  if (value.is_object()) {
    for (const Member& member : value.members()) {
      const Path::Mark mark = path.mark();
      path.child(member.key);
      const bool known = schema == nullptr || schema->type == Schema::Type::kAny ||
                         schema->preserve_unknown || schema->has_additional ||
                         is_named_field(schema, member.key) || is_type_field(schema, member.key);
      if (!known) return invalid("." + path.text() + ": field not declared in schema");
      BERTH_CHECK(check_config(member_schema(schema, member.key), member.value, path, pool));
      path.back(mark);
    }
    return {};
  }
  if (grain_of(schema, value) != Grain::kList) return {};
  std::vector<std::string_view> seen;
  for (std::size_t i = 0; const Value& item : value.items()) {
    std::string_view missing;
    const std::string_view step = item_step(*schema, item, pool, &missing);
    if (step.empty()) {
      return invalid("." + path.text() + ": element " + std::to_string(i) +
                     ": associative list with keys has an element that omits key field " +
                     go_quote(missing) + " (and doesn't have default value)");
    }
    seen.push_back(step);
    const Path::Mark mark = path.mark();
    path.index(i++);
    BERTH_CHECK(check_config(schema->items, item, path, pool));
    path.back(mark);
  }
  if (!std::is_sorted(seen.begin(), seen.end(), text::shorter_first)) {
    std::sort(seen.begin(), seen.end(), text::shorter_first);
  }
  const auto twice = std::adjacent_find(seen.begin(), seen.end());
  if (twice != seen.end()) {
    std::vector<std::string> words;
    FieldSet one;
    one.at(*twice).owned = true;
    list_paths(one, words);
    return invalid("." + path.text() + ": duplicate entries for key " +
                   (words.empty() ? "" : words.front()));
  }
  return {};
}

// What the manager applied last time and not now goes, unless somebody else holds it.
Value prune_dropped(const Schema* schema, const Value& merged, const FieldSet& managed,
                    const FieldSet& last, text::Editor& edit, FieldPool& pool) {
  if (set_difference(last, managed).empty()) return merged;  // the usual case: nothing was dropped
  const FieldSet named_last = with_named_parents(last, schema);
  const Value bare = remove_fields(schema, merged, named_last, edit, pool);
  const FieldSet all = with_named_parents(fields_of(schema, merged, pool), schema);
  const FieldSet keep = set_union(with_named_parents(fields_of(schema, bare, pool), schema),
                                  with_named_parents(managed, schema));
  const Value owned = remove_fields(schema, merged, set_difference(all, keep), edit, pool);
  const FieldSet left = with_named_parents(fields_of(schema, owned, pool), schema);
  return remove_fields(schema, merged, set_intersection(set_difference(all, left), named_last),
                       edit, pool);
}

Value drop_nulls(const Value& value, text::Editor& edit) {
  if (value.is_object()) {
    std::vector<Member> kept;
    for (const Member& member : value.members()) {
      if (!member.value.is_null()) kept.push_back({member.key, drop_nulls(member.value, edit)});
    }
    return edit.object(kept);
  }
  if (value.is_array()) {
    std::vector<Value> kept;
    for (const Value& item : value.items()) kept.push_back(drop_nulls(item, edit));
    return edit.array(kept);
  }
  return value;
}

// An object from before anybody's fields were kept: all of it belongs to one old manager.
void adopt_live(const Kind& kind, const Schema* schema, const Value& live, Managers& managers,
                FieldPool& pool, text::Editor& edit) {
  if (!managers.empty() || live.is_null()) return;
  Manager before;
  before.name = "before-first-apply";
  before.api_version = kind.api_version();
  before.fields = compare_fields(schema, edit.object({}), without_managers(live, edit), pool).added;
  strip_meta(before.fields, pool);
  managers.push_back(std::move(before));
}

}  // namespace

Result<Applied> apply_config(const Kind& kind, const Value& live, const Value& config,
                             const ManagerOptions& options) {
  if (!config.is_object()) return invalid("the configuration is not an object");
  if (options.manager.empty()) return invalid("fieldManager is required for apply patch");
  if (at(config, "metadata.managedFields").size() > 0) {
    return invalid("metadata.managedFields must be nil");
  }
  text::Editor edit;
  FieldPool pool;
  const RootSchema holder(kind);
  const Schema* schema = &holder.root;
  const Value given = drop_nulls(config, edit);
  Path path;
  if (auto checked = check_config(schema, given, path, pool); !checked.ok()) {
    return std::move(checked).error().context("failed to create typed patch object (" +
                                              std::string(text_at(config, "metadata.namespace")) +
                                              "/" + std::string(text_at(config, "metadata.name")) +
                                              "; " + kind.api_version() + ", Kind=" + kind.kind +
                                              ")");
  }
  Managers managers = read_managers(live, pool);
  adopt_live(kind, schema, live, managers, pool, edit);
  const Value old = live.is_null() ? edit.object({}) : without_managers(live, edit);

  Manager self;
  self.name = options.manager;
  self.api_version = kind.api_version();
  self.subresource = options.subresource;
  self.applied = true;
  self.fields = fields_of(schema, given, pool);
  drop_reset_fields(kind, options.subresource, self.fields);
  FieldSet last;
  if (Manager* known = find_manager(managers, self); known != nullptr) {
    last = fields_in_version(kind, *known, old, options, edit, pool);
    self.time = known->time;
    *known = self;
  } else {
    managers.push_back(self);
  }
  Value merged = merge_applied(schema, old, given, edit, pool);
  if (!last.empty()) {
    const FieldSet managed = all_managed(kind, managers, old, options, edit, pool);
    merged = prune_dropped(schema, merged, managed, last, edit, pool);
  }

  ChangesByVersion changes(kind, schema, options, old, merged, pool);
  Applied out;
  const auto clashes = clashes_with(managers, self, changes);
  if (!clashes.empty() && !options.force) {
    describe_clashes(clashes, out);
    return out;
  }
  take_from_others(managers, self, changes);
  Manager* mine = find_manager(managers, self);
  strip_meta(mine->fields, pool);
  const bool changed = live.is_null() || !text::equal(old, merged);
  if (changed || mine->time.empty()) mine->time = options.now;
  drop_empty(managers);
  out.object = text::Editor::finish(with_managers(merged, managers, edit));
  return out;
}

text::Document track_update(const Kind& kind, const Value& live, const Value& object,
                            const ManagerOptions& options) {
  text::Editor edit;
  FieldPool pool;
  const RootSchema holder(kind);
  const Schema* schema = &holder.root;
  const Value& brought = at(object, "metadata.managedFields");
  const bool reset = brought.size() == 1 && brought.items().front().size() == 0;
  Managers managers;
  if (!reset) {
    if (options.subresource.empty()) managers = read_managers(object, pool);
    if (managers.empty()) managers = read_managers(live, pool);
  }
  const Value none = kind.custom ? edit.object({}) : zero_object(*kind.schema, edit);
  const Value old = live.is_null() ? none : without_managers(live, edit);
  const Value now = without_managers(object, edit);
  if (reset) return text::Editor::finish(now);

  Manager self;
  self.name = options.manager.empty() ? "unknown" : std::string(options.manager);
  self.api_version = kind.api_version();
  self.subresource = options.subresource;
  ChangesByVersion changes(kind, schema, options, old, now, pool);
  Manager nobody;
  nobody.name = "current-operation";
  take_from_others(managers, nobody, changes);
  FieldSet mine = changes.own().written;
  strip_meta(mine, pool);
  if (!mine.empty()) {
    Manager* known = find_manager(managers, self);
    if (known == nullptr) known = &managers.emplace_back(self);
    known->fields = set_union(known->fields, mine);
    known->time = options.now;
  }
  drop_empty(managers);
  return text::Editor::finish(with_managers(now, managers, edit));
}

bool same_apart_from_managers(const Value& a, const Value& b) {
  text::Editor edit;
  const auto bare = [&](const Value& object) {
    return edit.without_at(without_managers(object, edit), "metadata.resourceVersion");
  };
  return text::equal(bare(a), bare(b));
}

}  // namespace berth::sim
