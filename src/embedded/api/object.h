// One stored object: its JSON text once, and beside it the few facts that selecting, deleting and
// collecting garbage ask for, so that the text is parsed only by writes and odd formats.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinds/schema/schema.h"
#include "text/editor.h"
#include "text/selector.h"

namespace berth::sim::api {

using text::Member;
using text::Value;

struct Owner {
  std::string uid;
  bool controller = false;
  bool blocks = false;  // blockOwnerDeletion
};

struct Object {  // immutable once it is shared
  std::string ns, name, uid;
  std::uint64_t version = 0;  // the resourceVersion in the text
  std::string json;           // begins with kind and apiVersion, so that a list can cut them off
  std::size_t head = 0;       // bytes of '{"kind":...,"apiVersion":...,'
  std::vector<std::pair<std::string, std::string>> labels;  // by key
  std::vector<std::string> fields;                          // of Kind::selectable_fields, in order
  std::vector<Owner> owners;
  bool terminating = false;  // deletionTimestamp is set
  bool finalizers = false;   // there are some

  std::optional<std::string_view> label(std::string_view key) const;
};
using ObjectPtr = std::shared_ptr<const Object>;

// The key of an object within its shelf: "ns/name" or "name", ordered as etcd orders them.
std::string object_key(std::string_view ns, std::string_view name);

// The object with that version written into it; 0: without one. kind: the stored version of its
// kind.
ObjectPtr make_object(const Kind& kind, text::Editor& edit, const Value& root,
                      std::uint64_t version);
// From text that make_object wrote.
Result<ObjectPtr> read_object(const Kind& kind, std::string_view json, std::uint64_t version);
// The text alone: kind and apiVersion first.
std::string print_object(std::string_view kind, std::string_view api_version, const Value& root,
                         std::size_t* head = nullptr);

// What `metadata.name=a,spec.nodeName=b` and labels select.
struct Selection {
  text::Selector labels;
  text::Selector fields;
  bool everything() const { return labels.empty() && fields.empty(); }
};
bool selects(const Selection& selection, const Kind& kind, const Object& object);

}  // namespace berth::sim::api
