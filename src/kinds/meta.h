// ObjectMeta, and where an object was found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kinds/readers.h"

namespace berth::kinds {

struct Owner {
  std::string api_version, kind, name, uid;
  bool controller = false;

  std::string_view group() const;  // "batch" of batch/v1, "" of v1
  // Of that group; one without an API version is of any.
  bool is(std::string_view of_group, std::string_view of_kind) const;
  // "Job/train". A kind that is called as one of Kubernetes' own has its group with it, so that two
  // of one name are two: "Job.batch.volcano.sh/train".
  std::string text() const;
  friend bool operator==(const Owner&, const Owner&) = default;
};

struct Meta {
  std::string name, generate_name, ns, uid;
  model::Labels labels, annotations;
  std::int64_t created_ns = 0;
  bool deleted = false;  // has a deletionTimestamp
  std::vector<Owner> owners;

  const std::string* annotation(std::string_view key) const;
  const Owner* controller() const;  // the owner that controls it, or nullptr
};

// Whether the owner's UID is the object's, where both have one: others of that name came before it
// or will come after it.
bool is_uid_of(const Owner& owner, const Meta& object);

void decode(const text::Value& v, Meta& out, text::Decoder& d);

enum class Scope : std::uint8_t { kCluster, kNamespaced };

// Reads and checks metadata of a top-level object: the name must be there and valid, a namespaced
// object without a namespace is in "default", a cluster-scoped one has none.
void read_meta(const text::Value& object, Scope scope, Meta& out, text::Decoder& d);

// Reports at metadata.annotations[key] (or labels).
void annotation_error(const text::Value& object, std::string_view key, std::string allowed,
                      text::Decoder& d);
// Annotations of berth's own that nothing reads: most likely misspelt.
void warn_unknown_annotations(const text::Value& object, const Meta& meta, text::Decoder& d);
void annotation_warning(const text::Value& object, std::string_view key, std::string allowed,
                        text::Decoder& d);

}  // namespace berth::kinds
