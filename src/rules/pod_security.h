// Kubernetes' Pod Security Standards: which a namespace asks for by its labels, and what of a pod
// goes against one, check by check and in the API server's words.
//
// Of 1.37, with the earlier forms of checks for labels that name an earlier version ("latest" and
// whatever is later than 1.37 are 1.37; before 1.19 annotations say what fields say since, and only
// the fields are read). Pure. Cost: a dozen passes over the containers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/value.h"

namespace berth::rules {

struct Standard {
  enum class Level : std::uint8_t { kPrivileged, kBaseline, kRestricted };
  Level level = Level::kPrivileged;
  int minor = kLatest;  // of the version 1.x

  static constexpr int kLatest = 1 << 20;
  friend bool operator==(const Standard&, const Standard&) = default;
};
std::string name_of(const Standard& standard);  // "baseline:latest", "restricted:v1.30"
std::string_view name_of(Standard::Level level);

// What the labels of a namespace ask for. A wrong one is the strictest where it is enforced, and
// nothing otherwise.
struct SecurityPolicy {
  Standard enforce, warn;
};
struct WrongLabel {
  std::string label, value, words;
};
SecurityPolicy policy_of(const text::Value& labels, std::vector<WrongLabel>* wrong = nullptr);

// One check that a pod fails: "privileged", 'container "c" must not set ...'.
struct Offence {
  std::string reason, detail;
};
std::vector<Offence> offences(const Standard& standard, const text::Value& annotations,
                              const text::Value& spec);
// "privileged (container "c" must not set securityContext.privileged=true), host namespaces (...)"
std::string words_of(const std::vector<Offence>& offences);
std::string reasons_of(const std::vector<Offence>& offences);  // without the details

// 'violates PodSecurity "baseline:latest": ...'; nothing: the standard lets the pod be.
std::optional<std::string> violates(const Standard& standard, const text::Value& annotations,
                                    const text::Value& spec);

}  // namespace berth::rules
