#include "kinds/manifest.h"

#include <algorithm>

#include "kinds/counted.h"
#include "kinds/gathered.h"
#include "kinds/kind_table.h"
#include "kinds/pod_body.h"
#include "text/path.h"

namespace berth::kinds {

namespace {

using text::Decoder;
using text::Value;

constexpr int kMaxListDepth = 4;

std::string unquoted(std::string_view text) {
  const std::string safe = quoted(text);
  return safe.substr(1, safe.size() - 2);
}

// "Pod team-a/x". Other kinds show a namespace only where they give one.
std::string shown_name(const Value& v, std::string_view kind, const KindRow* known) {
  if (known != nullptr && known->plural.empty()) return std::string(kind);  // a file has no name
  const std::string_view name = text_at(v, "metadata.name");
  std::string_view ns = text_at(v, "metadata.namespace");
  if (known != nullptr && ns.empty()) ns = "default";
  if (known != nullptr && !known->namespaced) ns = {};
  std::string out = kind.empty() ? "object" : unquoted(kind);
  out += ' ';
  if (!ns.empty()) out += unquoted(ns) + '/';
  return out + (name.empty() ? "?" : unquoted(name));
}

// Versions of the kind in the same API group; those of other groups where it has none there.
std::string versions_read(std::string_view kind, std::string_view version) {
  std::string out, others;
  for (const KindRow& row : kind_table()) {
    if (row.kind != kind) continue;
    std::string& list = row.group == api_group(version) ? out : others;
    for (std::size_t i = row.read().size(); i-- > 0;) {  // the oldest first
      if (row.versions[i].take == nullptr) continue;
      if (!list.empty()) list += ", ";
      list += row.api_version(i);
    }
  }
  return out.empty() ? others : out;
}

// How it is read; null: it is not.
TakeKind take_of(const KindRow* row, std::string_view version) {
  for (std::size_t i = 0; row != nullptr && i < row->read().size(); ++i) {
    if (row->api_version(i) == version) return row->versions[i].take;
  }
  return nullptr;
}

Note note_of(const text::Issue& issue, const Origin& origin, const std::string& shown,
             const std::string& path) {
  Note note = Gathered::note(origin, shown, path + issue.path, "found " + issue.found);
  if (!issue.allowed.empty()) note.message += ", want " + issue.allowed;
  if (issue.line > 0) note.line = issue.line;
  return note;
}

std::vector<Note> errors_of(const Decoder& d, const Origin& origin, const std::string& shown,
                            const std::string& path) {
  std::vector<Note> out;
  for (const text::Issue& issue : d.issues()) {
    if (issue.severity == text::Issue::kError) out.push_back(note_of(issue, origin, shown, path));
  }
  if (d.errors() > out.size()) {
    const std::string more = std::to_string(d.errors() - out.size()) + " more errors";
    out.push_back(Gathered::note(origin, shown, path, more));
  }
  return out;
}

// One document: its objects in order, lists flattened.
class DocumentReader {
 public:
  DocumentReader(Origin origin, Gathered& out) : origin_(std::move(origin)), out_(out) {}

  void read(const Value& v, std::string_view version, std::string_view kind,
            const std::string& path, int depth) {
    ++origin_.item;
    origin_.line = v.line();
    if (!v.is_object()) {
      const std::string at = path.ends_with('.') ? path.substr(0, path.size() - 1) : path;
      return refuse("object ?", at, "found " + text::describe(v) + ", want an object");
    }
    if (const Value* given = v.find("apiVersion"); given != nullptr) version = given->string();
    if (const Value* given = v.find("kind"); given != nullptr) kind = given->string();
    if (version.empty() || kind.empty()) {
      const std::string shown = shown_name(v, kind, nullptr);
      if (version.empty() && kind.empty()) {
        return refuse(shown, path + "apiVersion",
                      "found neither apiVersion nor kind, want a Kubernetes object");
      }
      const char* field = version.empty() ? "apiVersion" : "kind";
      return refuse(
          shown, path + field,
          version.empty() ? "found nothing, want a version" : "found nothing, want a kind");
    }
    const Value* items = v.find("items");
    if (kind.ends_with("List") && (items != nullptr || kind == "List")) {
      return read_list(items, version, kind, path, depth);
    }
    read_object(v, version, kind, path);
  }

 private:
  void read_list(const Value* items, std::string_view version, std::string_view kind,
                 const std::string& path, int depth) {
    if (items == nullptr || items->is_null()) return;
    const std::string shown = unquoted(kind) + " ?";
    if (!items->is_array()) {
      return refuse(shown, path + "items", "found " + text::describe(*items) + ", want an array");
    }
    if (depth >= kMaxListDepth) {
      return refuse(shown, path + "items", "found lists in lists, want at most 4 levels");
    }
    // The items of a typed list need not repeat their kind.
    const bool typed = kind != "List";
    const std::string_view item_kind = typed ? kind.substr(0, kind.size() - 4) : "";
    for (std::size_t i = 0; i < items->size(); ++i) {
      read(items->items()[i], typed ? version : "", item_kind,
           path + "items[" + std::to_string(i) + "].", depth + 1);
    }
  }

  void read_object(const Value& v, std::string_view version, std::string_view kind,
                   const std::string& path) {
    const KindRow* row = find_kind_of(version, kind);
    TakeKind take = take_of(row, version);
    if (kind == "ConfigMap" && !holds_queue_config(v)) take = nullptr;
    const std::string shown = shown_name(v, kind, take == nullptr ? nullptr : row);
    if (take == nullptr) {
      const std::string versions = kind == "ConfigMap" ? "" : versions_read(kind, version);
      out_.ignored.add(Gathered::note(
          origin_, shown, path,
          versions.empty() ? "kind " + unquoted(kind) + " of " + unquoted(version) + " is not read"
                           : "version " + unquoted(version) + " is not read; " + unquoted(kind) +
                                 " is read in " + versions));
      return;
    }
    ++out_.counts.objects;
    Decoder d;
    const Counted counts = take(v, origin_, shown, out_, d);
    for (const text::Issue& issue : d.issues()) {
      if (issue.severity == text::Issue::kWarning) {
        out_.warnings.add(note_of(issue, origin_, shown, path));
      }
    }
    if (d.ok()) return;
    std::vector<Note> errors = errors_of(d, origin_, shown, path);
    if (counts.as.empty()) {
      ++out_.counts.invalid_objects;
      for (Note& error : errors) out_.invalid.add(std::move(error));
    } else {
      out_.count_in_part(std::move(errors), counts);
    }
  }

  void refuse(const std::string& shown, std::string path, std::string message) {
    ++out_.counts.invalid_objects;
    out_.invalid.add(Gathered::note(origin_, shown, std::move(path), std::move(message)));
  }

  Origin origin_;
  Gathered& out_;
};

}  // namespace

void read_object(const Value& object, std::string_view version, std::string_view kind,
                 Origin origin, Gathered& out) {
  DocumentReader(std::move(origin), out).read(object, version, kind, "", 0);
}

std::vector<Note> read_pod(const Value& object, PodObject& out) {
  Decoder d;
  decode(object, out, d);
  return errors_of(d, {.source = "cluster"}, shown_name(object, "Pod", find_kind("", "Pod")), "");
}

struct ManifestReader::State {
  ManifestOptions options;
  Gathered gathered;
};

ManifestReader::ManifestReader(ManifestOptions options)
    : state_(std::make_unique<State>(State{options, Gathered()})) {}
ManifestReader::~ManifestReader() = default;
ManifestReader::ManifestReader(ManifestReader&&) noexcept = default;
ManifestReader& ManifestReader::operator=(ManifestReader&&) noexcept = default;

void ManifestReader::add(std::string source_name, int document_index,
                         const text::Document& document) {
  if (document.root().is_null()) return;  // an empty document between two ---
  Origin origin;
  origin.source = std::move(source_name);
  origin.document = document_index;
  DocumentReader(std::move(origin), state_->gathered).read(document.root(), "", "", "", 0);
}

Inputs ManifestReader::finish() {
  Gathered gathered = std::exchange(state_->gathered, Gathered());
  return resolve(std::move(gathered), state_->options);
}

}  // namespace berth::kinds
