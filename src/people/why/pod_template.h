// A template of pods as its object writes it, and what a namespace makes of it: for the rules of
// the API server (server_rules.h, namespace_rules.h). Pure; a template keeps pointers into the
// objects that it was read from.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kinds/pod_spec.h"
#include "people/why/draft.h"
#include "rules/limit_range.h"
#include "rules/quota.h"

namespace berth::people {

// cpu in thousandths, everything else in pieces or bytes, as the model counts.
model::Amounts amounts_of(const text::Value& object);
std::int64_t amount_of(std::string_view resource, const text::Quantity& amount);
// As Kubernetes writes amounts; resource: "cpu", "requests.memory".
std::string show_amount(std::string_view resource, std::int64_t amount);

// A template as written, and what its pods ask for.
struct PodTemplate {
  const RawObject* object = nullptr;
  const text::Value* whole = nullptr;  // the pod, or the template
  const text::Value* spec = nullptr;
  kinds::RawPodSpec pod;
  model::Amounts requests, limits;
  rules::Sums usage;   // of quota; of pods that are there
  int fresh = 0;       // pods of it that are yet to be made
  bool ended = false;  // a pod that is there still, and does nothing
};

// False: the spec is not one that the API server would take.
bool read_spec(const text::Value& spec, PodTemplate& out);

bool has_ended(const text::Value& pod);
// An object of the API server's: a manifest that nobody has applied yet has neither.
bool was_admitted(const RawObject& object);

// Pods that are there, each read once for all changes that are tried. Of at most kMost it is kept.
class PodReadings {
 public:
  static constexpr std::size_t kMost = 8'000;

  // Null: as read_spec() says. What is returned is gone with the next one when pod does not last.
  const PodTemplate* get(const RawObject& pod);

 private:
  std::unordered_map<const text::Value*, std::optional<PodTemplate>> known_;
  std::optional<PodTemplate> last_;
};

// A LimitRange, with what the API server makes of its gaps.
struct Range {
  std::string name;
  std::vector<rules::RangeItem> items;
};
std::vector<Range> ranges_of(const ObjectSource& objects, const std::string& ns);

}  // namespace berth::people
