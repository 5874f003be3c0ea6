// ObjectMeta, and where an object was found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "objects/readers.h"

namespace berth::objects {

struct Owner {
  std::string kind, name, uid;
  bool controller = false;
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

}  // namespace berth::objects
