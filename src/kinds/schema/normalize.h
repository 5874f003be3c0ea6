// Between normalize.cc, which walks an object, and defaults.cc, which knows single types.
#pragma once

#include "kinds/schema/node.h"
#include "text/editor.h"

namespace berth::sim {

using text::Member;
using text::Value;

// The members of an object that is being built; the newest part of one vector.
class Fields {
 public:
  Fields(std::vector<Member>& all, std::size_t from) : all_(all), from_(from) {}
  const Value* get(std::string_view key) const;
  std::string_view text(std::string_view key) const;
  bool has(std::string_view key) const { return get(key) != nullptr; }
  void set(std::string_view key, const Value& value);  // the key must outlive the object
  void remove(std::string_view key);

 private:
  std::vector<Member>& all_;
  std::size_t from_;
};

// Where in an object the walk is.
struct Place {
  bool in_pod = false;  // a Pod itself, not a template of one
  bool in_job = false;  // a Job itself, not the template of one
};

void hook_defaults(const Schema& schema, Fields& fields, const Place& place, text::Editor& edit);
// Of whole objects: a Namespace's label, a Job's labels, phases of volumes.
Value kind_defaults(const Kind& kind, const Value& object, text::Editor& edit);

}  // namespace berth::sim
