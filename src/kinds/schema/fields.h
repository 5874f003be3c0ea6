// Sets of fields, as managedFields hold them (fieldsV1), and what they mean on values.
//
// Only for the files of this folder. A set is a tree; the names of its steps ("f:spec",
// 'k:{"name":"a"}', 'v:"x"') are views that the FieldPool of the operation keeps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kinds/schema/node.h"
#include "text/editor.h"

namespace berth::sim {

using text::Member;
using text::Value;

struct FieldSet {
  struct Child;
  bool owned = false;           // the field at this place is in the set
  std::vector<Child> children;  // sorted by step

  const FieldSet* find(std::string_view step) const;
  FieldSet& at(std::string_view step);  // made when absent; for few: whoever makes many sorts once
  bool empty() const;                   // no field in it, here or below
};
struct FieldSet::Child {
  std::string_view step;
  FieldSet set;
};

FieldSet set_union(const FieldSet& a, const FieldSet& b);
FieldSet set_union(std::vector<FieldSet> sets);  // n log n in all they hold
FieldSet set_intersection(const FieldSet& a, const FieldSet& b);
FieldSet set_difference(const FieldSet& a, const FieldSet& b);
void take_away(FieldSet& set, const FieldSet& gone);  // the difference, without a copy
bool set_equal(const FieldSet& a, const FieldSet& b);

// Keeps the texts of steps while an operation runs.
class FieldPool {
 public:
  std::string_view field(std::string_view name);  // "f:name"
  std::string_view keep(std::string_view text) { return arena_.copy(text); }

 private:
  text::Arena arena_;
};

// How the members or items of a value are treated.
enum class Grain : std::uint8_t { kLeaf, kObject, kList };
Grain grain_of(const Schema* schema, const Value& value);
// The schema of a member; nullptr: deduced from the value.
const Schema* member_schema(const Schema* schema, std::string_view key);
bool is_named_field(const Schema* schema, std::string_view key);
// The step of a list item; "" when a key is missing (missing says which).
std::string_view item_step(const Schema& list, const Value& item, FieldPool& pool,
                           std::string_view* missing = nullptr);
const Schema* step_schema(const Schema* schema, std::string_view step);

FieldSet fields_of(const Schema* schema, const Value& value, FieldPool& pool);

struct FieldChanges {
  FieldSet removed, modified, added;
};
// What Go writes of a kind when nothing is set: a create is compared with it, not with nothing.
Value zero_object(const Schema& schema, text::Editor& edit, int depth = 0);

FieldChanges compare_fields(const Schema* schema, const Value& from, const Value& to,
                            FieldPool& pool);

// Parents that are named fields become members; removing a value then takes its parents along.
FieldSet with_named_parents(const FieldSet& set, const Schema* schema);
// value without the members and items of the set.
Value remove_fields(const Schema* schema, const Value& value, const FieldSet& set,
                    text::Editor& edit, FieldPool& pool);
// config laid over live, list items matched by their keys.
Value merge_applied(const Schema* schema, const Value& live, const Value& config,
                    text::Editor& edit, FieldPool& pool);

// fieldsV1 in and out. A text that is not one reads as an empty set.
FieldSet read_fields(const Value& fields, FieldPool& pool, int depth = 0);
Value write_fields(const FieldSet& set, text::Editor& edit);
// ".spec.containers[name=\"a\"].image" for every member, in order.
void list_paths(const FieldSet& set, std::vector<std::string>& out);

}  // namespace berth::sim
