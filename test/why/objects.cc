#include "objects.h"

#include <algorithm>

#include "text/json.h"
#include "text/patch.h"
#include "text/path.h"
#include "text/yaml.h"

namespace berth::why_corpus {

namespace {

std::string shown(const ObjectRef& ref) {
  return ref.kind + ' ' + (ref.ns.empty() ? "" : ref.ns + '/') + ref.name;
}

// "Node/gpu-1", "Pod/busy/hold-1"
Result<ObjectRef> parse_ref(std::string_view text) {
  const std::size_t first = text.find('/');
  const std::size_t last = text.rfind('/');
  if (first == std::string_view::npos) return invalid("found \"" + std::string(text) + "\"");
  ObjectRef ref;
  ref.kind = text.substr(0, first);
  ref.name = text.substr(last + 1);
  if (last > first) ref.ns = text.substr(first + 1, last - first - 1);
  return ref;
}

}  // namespace

Status Objects::add_yaml(std::string_view bytes) {
  BERTH_TRY(const std::vector<text::Document> documents, text::parse_yaml(bytes));
  for (const text::Document& document : documents) add(document.root());
  return {};
}

Result<std::size_t> Objects::find(const ObjectRef& ref) const {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    BERTH_TRY(const text::Document document, text::parse_json(texts_[i]));
    const text::Value& root = document.root();
    if (text_at(root, "kind") != ref.kind || text_at(root, "metadata.name") != ref.name) {
      continue;
    }
    if (text_at(root, "metadata.namespace") != ref.ns) continue;
    if (!ref.api_version.empty() && text_at(root, "apiVersion") != ref.api_version) continue;
    return i;
  }
  return Error{Code::kNotFound, "no " + shown(ref)};
}

Status Objects::patch(const ObjectRef& ref, const text::Value& operations) {
  BERTH_TRY(const std::size_t at, find(ref));
  BERTH_TRY(const text::Document before, text::parse_json(texts_[at]));
  const Result<text::Document> after = text::apply_json_patch(before.root(), operations);
  if (!after.ok()) return invalid(shown(ref) + ": " + after.error().to_string());
  texts_[at] = text::to_json(after->root());
  return {};
}

Status Objects::remove(const ObjectRef& ref) {
  BERTH_TRY(const std::size_t at, find(ref));
  texts_.erase(texts_.begin() + static_cast<std::ptrdiff_t>(at));
  return {};
}

std::string Objects::stream(bool reversed) const {
  std::vector<std::string> texts = texts_;
  if (reversed) std::reverse(texts.begin(), texts.end());
  std::string out;
  for (const std::string& one : texts) out += one + "\n---\n";
  return out;
}

std::vector<text::Document> Objects::parsed() const {
  std::vector<text::Document> out;
  for (const std::string& one : texts_) {
    Result<text::Document> document = text::parse_json(one);
    if (document.ok()) out.push_back(std::move(*document));
  }
  return out;
}

Status apply_change(const text::Value& change, Objects& objects) {
  if (const text::Value* created = change.find("create")) {
    objects.add(*created);
    return {};
  }
  const ObjectRef ref{.api_version = std::string(text_at(change, "apiVersion")),
                      .kind = std::string(text_at(change, "kind")),
                      .ns = std::string(text_at(change, "namespace")),
                      .name = std::string(text_at(change, "name"))};
  const text::Value* gone = change.find("delete");
  if (gone != nullptr && gone->as_bool()) return objects.remove(ref);
  const text::Value* operations = change.find("patch");
  if (operations == nullptr) return invalid("a change without patch, delete or create");
  return objects.patch(ref, *operations);
}

Status apply_cure(std::string_view line, Objects& objects) {
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return invalid("a cure of one word");
  const std::string_view verb = line.substr(0, blank);
  const std::string_view rest = line.substr(blank + 1);
  if (verb == "create") {
    BERTH_TRY(const text::Document document, text::parse_json(rest));
    objects.add(document.root());
    return {};
  }
  const std::size_t end = rest.find(' ');
  BERTH_TRY(const ObjectRef ref, parse_ref(rest.substr(0, end)));
  if (verb == "delete") return objects.remove(ref);
  if (verb != "patch" || end == std::string_view::npos) {
    return invalid("found \"" + std::string(verb) + "\", want patch, delete or create");
  }
  BERTH_TRY(const text::Document operations, text::parse_json(rest.substr(end + 1)));
  return objects.patch(ref, operations.root());
}

}  // namespace berth::why_corpus
