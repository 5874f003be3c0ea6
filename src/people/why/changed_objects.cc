#include "people/why/changed_objects.h"

#include <algorithm>

#include "text/json.h"

namespace berth::people {

namespace {

bool same_object(const ObjectChange& a, const ObjectChange& b) {
  return a.kind == b.kind && a.ns == b.ns && a.name == b.name;
}

}  // namespace

ChangedObjects::ChangedObjects(const ObjectSource& below, const std::vector<ObjectChange>& changes)
    : below_(below) {
  for (const ObjectChange& change : changes) {
    Changed one;
    if (const auto old = below.find(change.kind, change.ns, change.name)) one.raw = *old;
    one.raw.api_version = change.api_version;
    one.raw.kind = change.kind;
    one.raw.ns = change.ns;
    one.raw.name = change.name;
    one.raw.value = nullptr;
    one.raw.lasts = false;
    if (change.after) {
      text::JsonWriter json;
      change.after->write(json);
      Result<text::Document> document = text::parse_json(std::move(json).take());
      if (!document.ok()) continue;
      one.document = std::make_unique<const text::Document>(std::move(*document));
      one.raw.value = &one.document->root();
    }
    std::erase_if(changed_, [&](const Changed& earlier) {
      return earlier.raw.kind == change.kind && earlier.raw.ns == change.ns &&
             earlier.raw.name == change.name;
    });
    changed_.push_back(std::move(one));
  }
}

const ChangedObjects::Changed* ChangedObjects::changed(std::string_view kind, std::string_view ns,
                                                       std::string_view name) const {
  const auto it = std::find_if(changed_.begin(), changed_.end(), [&](const Changed& one) {
    return one.raw.kind == kind && one.raw.ns == ns && one.raw.name == name;
  });
  return it == changed_.end() ? nullptr : &*it;
}

std::optional<RawObject> ChangedObjects::find(std::string_view kind, std::string_view ns,
                                              std::string_view name) const {
  const Changed* one = changed(kind, ns, name);
  if (one == nullptr) return below_.find(kind, ns, name);
  return one->document ? std::optional(one->raw) : std::nullopt;
}

std::vector<RawObject> ChangedObjects::of_kind(std::string_view kind) const {
  return over(below_.of_kind(kind), kind, nullptr);
}

std::vector<RawObject> ChangedObjects::in_namespace(std::string_view kind,
                                                    std::string_view ns) const {
  return over(below_.in_namespace(kind, ns), kind, &ns);
}

std::vector<RawObject> ChangedObjects::over(std::vector<RawObject> below, std::string_view kind,
                                            const std::string_view* ns) const {
  std::erase_if(below, [this](const RawObject& raw) {
    return changed(raw.kind, raw.ns, raw.name) != nullptr;
  });
  for (const Changed& one : changed_) {
    const bool here = one.raw.kind == kind && (ns == nullptr || one.raw.ns == *ns);
    if (here && one.document) below.push_back(one.raw);
  }
  return below;
}

std::vector<ObjectChange> one_after_the_other(std::vector<ObjectChange> first,
                                              const std::vector<ObjectChange>& then) {
  for (const ObjectChange& change : then) {
    const auto it = std::find_if(first.rbegin(), first.rend(), [&](const ObjectChange& earlier) {
      return earlier.after && same_object(earlier, change);
    });
    if (it == first.rend()) {
      first.push_back(change);
      continue;
    }
    it->after = change.after;
    if (!it->before && !it->after) first.erase(std::next(it).base());
  }
  return first;
}

}  // namespace berth::people
