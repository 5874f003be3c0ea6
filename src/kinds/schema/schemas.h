// The port to what is known about the fields of kinds.
//
// lint's own tables hold what the embedded API server does not serve; the rest is asked here. An
// implementation is in sim/schema.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/value.h"

namespace berth::lint {

struct Complaint {
  enum class Kind : unsigned char { kUnknownField, kMissing, kInvalid };
  Kind kind = Kind::kInvalid;
  std::string field;    // "spec.containers[0].image"
  std::string message;  // "Required value: ..."
  std::string nearest;  // of an unknown field: the known name it may have meant
};

class Schemas {
 public:
  virtual ~Schemas() = default;
  // What is wrong with the fields of an object; nothing when its kind is not known.
  virtual std::optional<std::vector<Complaint>> check(const text::Value& object) const = 0;
  // The same for a pod template {metadata, spec} inside a kind that is not known.
  virtual std::vector<Complaint> check_template(const text::Value& pod_template) const = 0;
  // "apps/v1" for ("apps", "Deployment"): served versions of the kind, preferred first.
  virtual std::vector<std::string> versions(std::string_view group,
                                            std::string_view kind) const = 0;
  // Groups that serve a kind of this name.
  virtual std::vector<std::string> groups(std::string_view kind) const = 0;
};

}  // namespace berth::lint
