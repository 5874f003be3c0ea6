#include "kinds/pod_body.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "kinds/queue_marks.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::kinds {

using text::Value;

namespace {

std::uint64_t fnv(std::string_view text, std::uint64_t h = 0xcbf29ce484222325u) {
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

}  // namespace

std::string_view api_group(std::string_view version) {
  const std::size_t slash = version.find('/');
  return slash == std::string_view::npos ? std::string_view{} : version.substr(0, slash);
}

std::uint64_t object_digest(std::string_view kind, std::string_view key, const Value& object) {
  std::uint64_t h = fnv(kind);
  h = fnv("|", h);
  h = fnv(key, h);
  h = fnv("|", h);
  return fnv(text_at(object, "metadata.resourceVersion"), h);
}

void BodyHash::add(std::string_view text) {
  mix(text.size() + 0x100);
  while (text.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    mix(word);
    text.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  if (!text.empty()) std::memcpy(&rest, text.data(), text.size());
  mix(rest);
}

void BodyHash::add(const Value& v) {
  mix(static_cast<std::uint64_t>(v.kind()));
  if (v.is_string()) return add(v.string());
  if (v.is_number()) return add(v.number_text());
  if (v.is_bool()) return mix(v.as_bool() ? 2 : 1);
  mix(v.size());
  for (const Value& item : v.items()) add(item);
  for (const text::Member& member : v.members()) {
    if (member.key == "volumeMounts") continue;  // nobody reads them; their names are random
    add(member.key);
    add(member.value);
  }
}

bool indices_of(std::string_view text, std::vector<int>& out) {
  if (text.empty()) return true;
  std::vector<int> indices;
  for (const std::string_view part : split(text, ",")) {
    std::int64_t index = 0;
    if (!parse_int(trim(part), index) || index >= model::kMaxGpusPerNode) return false;
    indices.push_back(static_cast<int>(index));
  }
  std::sort(indices.begin(), indices.end());
  out = std::move(indices);
  return true;
}

namespace {

// Containers by name. Wide pods are looked up in an index: their statuses stand in another order.
class ByName {
 public:
  explicit ByName(const Value& containers) : containers_(containers) {
    if (containers.size() <= kFew) return;
    for (const Value& each : containers.items()) index_.emplace(text_at(each, "name"), &each);
  }
  const Value* find(std::string_view name) const {
    if (containers_.size() > kFew) {
      const auto at = index_.find(name);
      return at == index_.end() ? nullptr : at->second;
    }
    for (const Value& each : containers_.items()) {
      if (text_at(each, "name") == name) return &each;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kFew = 16;

  Value containers_;
  std::map<std::string_view, const Value*> index_;
};

// What a status says that containers have, where it is not what they ask for: a resize.
void add_resizes(BodyHash& h, const Value& pod) {
  const Value& status = at(pod, "status");
  bool any = false;
  const auto add = [&](std::string_view which, const Value* now, const Value* asked) {
    if (now == nullptr || (asked != nullptr && text::equal(*now, *asked))) return;
    h.add(which);
    h.add(*now);
    any = true;
  };
  const auto add_all = [&](const Value& statuses, const Value& containers) {
    std::optional<ByName> by_name;
    for (const Value& now : statuses.items()) {
      const Value* allocated = now.find("allocatedResources");
      const Value* given = find(now, "resources.requests");
      if (allocated == nullptr && given == nullptr) continue;
      if (!by_name) by_name.emplace(containers);
      const std::string_view name = text_at(now, "name");
      const Value* container = by_name->find(name);
      if (container == nullptr) continue;
      const Value* asked = find(*container, "resources.requests");
      add(name, allocated, asked);
      add(name, given, asked);
    }
  };
  add_all(at(status, "containerStatuses"), at(pod, "spec.containers"));
  add_all(at(status, "initContainerStatuses"), at(pod, "spec.initContainers"));
  if (const Value* asked = find(pod, "spec.resources.requests")) {
    add("", status.find("allocatedResources"), asked);
    add("", find(status, "resources.requests"), asked);
  }
  if (!any) return;
  h.mix(text_at(pod, "spec.nodeName").empty() ? 9 : 10);  // what waits has nothing yet
  if (const Value* pending = find_type(at(status, "conditions"), "PodResizePending")) {
    h.add(text_at(*pending, "status"));
    h.add(text_at(*pending, "reason"));
  }
}

}  // namespace

// Everything that pods of one body have in common.
BodyHash hash_of_body(const Value& v, std::uint64_t seed) {
  BodyHash h{seed ^ 0x243f6a8885a308d3u, seed ^ 0x13198a2e03707344u};
  h.add(text_at(v, "metadata.namespace"));
  for (const std::string_view key : {"labels", "ownerReferences"}) {
    const Value* found = at(v, "metadata").find(key);
    if (found != nullptr) h.add(*found);
    h.mix(7);
  }
  if (const Value* annotations = find(v, "metadata.annotations")) {
    for (const text::Member& member : annotations->members()) {
      std::vector<int> ignored;
      if (member.key == kLastApplied) continue;
      if (member.key == kGpusAnnotation && indices_of(member.value.string(), ignored)) continue;
      if (member.key == kChargedAnnotation) continue;
      h.add(member.key);
      h.add(member.value);
    }
  }
  h.mix(8);
  const Value* spec = v.find("spec");
  if (spec == nullptr) return h;
  for (const text::Member& member : spec->members()) {
    if (member.key == "nodeName") continue;
    h.add(member.key);
    if (member.key != "volumes") {
      h.add(member.value);
      continue;
    }
    for (const Value& volume : member.value.items()) {
      if (volume.find("projected") == nullptr) h.add(volume);
    }
  }
  add_resizes(h, v);
  return h;
}

}  // namespace berth::kinds
