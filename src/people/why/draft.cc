#include "people/why/draft.h"

#include <algorithm>

namespace berth::people {

namespace {

ObjectChange change_of(const RawObject& raw) {
  return {raw.api_version, raw.kind, raw.ns, raw.name, Tree(*raw.value), std::nullopt};
}

}  // namespace

std::vector<RawObject> ObjectSource::in_namespace(std::string_view kind,
                                                  std::string_view ns) const {
  std::vector<RawObject> out = of_kind(kind);
  std::erase_if(out, [ns](const RawObject& raw) { return raw.ns != ns; });
  return out;
}

Tree* Draft::edit(const ObjectSource* source, std::string_view kind, std::string_view ns,
                  std::string_view name) {
  for (ObjectChange& change : objects) {
    if (change.kind == kind && change.ns == ns && change.name == name) {
      return change.after ? &*change.after : nullptr;
    }
  }
  const auto raw = source == nullptr ? std::nullopt : source->find(kind, ns, name);
  if (!raw) return nullptr;
  ObjectChange change = change_of(*raw);
  change.after = change.before;
  objects.push_back(std::move(change));
  return &*objects.back().after;
}

void Draft::remove(const ObjectSource* source, std::string_view kind, std::string_view ns,
                   std::string_view name) {
  for (ObjectChange& change : objects) {
    if (change.kind == kind && change.ns == ns && change.name == name) {
      change.after.reset();
      return;
    }
  }
  const auto raw = source == nullptr ? std::nullopt : source->find(kind, ns, name);
  if (raw) objects.push_back(change_of(*raw));
}

void Draft::create(Tree object) {
  const auto text = [&object](const char* at, const char* key) {
    const Tree* meta = *at == '\0' ? &object : object.find(at);
    const Tree* found = meta == nullptr ? nullptr : meta->find(key);
    return found == nullptr ? std::string() : found->string();
  };
  ObjectChange change{.api_version = text("", "apiVersion"),
                      .kind = text("", "kind"),
                      .ns = text("metadata", "namespace"),
                      .name = text("metadata", "name"),
                      .before = std::nullopt,
                      .after = std::nullopt};
  change.after = std::move(object);
  objects.push_back(std::move(change));
}

}  // namespace berth::people
