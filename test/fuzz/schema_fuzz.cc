// Kinds of the embedded API server: whatever the bytes, reading an object of a built-in kind or of
// a kind that the bytes themselves define ends, normalizing twice changes nothing, and what is
// applied is managed, merges with itself and can be taken away again.
//
// The input is YAML documents: a CRD makes its kinds known to the documents after it; any other is
// read as the kind it names.
#include <string>
#include <vector>

#include "fuzz.h"
#include "kinds/schema/schema.h"
#include "text/json.h"
#include "text/yaml.h"

namespace {

using namespace berth;

const sim::Kind* find_kind(const std::vector<sim::KindPtr>& kinds, const text::Value& object) {
  const text::Value* kind = object.find("kind");
  const text::Value* version = object.find("apiVersion");
  if (kind == nullptr || version == nullptr) return nullptr;
  for (const sim::KindPtr& one : kinds) {
    if (one->kind == kind->string() && one->api_version() == version->string()) return one.get();
  }
  return nullptr;
}

void check_applied(const sim::Kind& kind, const text::Value& object) {
  const sim::ManagerOptions options{.manager = "m", .now = "2026-01-01T00:00:00Z"};
  const auto first = sim::apply_config(kind, text::Value(), object, options);
  if (!first.ok()) return;
  fuzz::check(first->conflicts.empty(), "nobody is there to clash with");
  const auto again = sim::apply_config(kind, first->object.root(), object, options);
  fuzz::check(again.ok(), "what was applied can be applied again");
  fuzz::check(again->conflicts.empty(), "nobody clashes with himself");
  fuzz::check(text::equal(first->object.root(), again->object.root()),
              "applying the same twice changes nothing");
  const auto tracked = sim::track_update(kind, first->object.root(), first->object.root(),
                                         {.manager = "n", .now = "2026-01-02T00:00:00Z"});
  fuzz::check(text::equal(tracked.root(), first->object.root()),
              "an update that changes nothing has no manager");
}

void check_object(const sim::Kind& kind, const text::Value& object) {
  const auto made = sim::normalize(kind, object);
  if (!made.ok()) return;
  const auto again = sim::normalize(kind, made->object.root());
  fuzz::check(again.ok(), "what was normalized can be read");
  fuzz::check(text::equal(made->object.root(), again->object.root()),
              "normalizing twice changes nothing");
  fuzz::check(again->unknown.empty(), "unknown fields are gone");
  const text::Document created = sim::for_create(kind, made->object.root());
  const auto causes = sim::validate(kind, created.root());
  fuzz::check(causes.size() <= 100, "causes are bounded");
  (void)sim::validate_update(kind, created.root(), made->object.root());
  (void)sim::strategic_merge_patch(kind, made->object.root(), object);
  text::JsonWriter cells;
  sim::write_cells(kind, made->object.root(), 1'700'000'000'000'000'000, cells);
  const auto row = text::parse_json(cells.text());
  fuzz::check(row.ok() && row->root().size() == kind.columns.size(), "a cell for each column");
  check_applied(kind, made->object.root());
}

}  // namespace

BERTH_FUZZ_TARGET(schema) {
  const std::string_view bytes = fuzz::text_of(data, size);
  (void)sim::parse_body(bytes);
  const text::YamlOptions options{.limits = {.max_nodes = 5'000}, .max_alias_nodes = 1'000};
  const auto documents = text::parse_yaml(bytes, options);
  if (!documents.ok()) return 0;
  std::vector<sim::KindPtr> kinds = sim::builtin_kinds();
  for (const text::Document& document : *documents) {
    const sim::Kind* kind = find_kind(kinds, document.root());
    if (kind == nullptr) continue;
    check_object(*kind, document.root());
    if (kind->kind != "CustomResourceDefinition") continue;
    const auto made = sim::read_crd(document.root());
    if (made.ok()) kinds.insert(kinds.end(), made->begin(), made->end());
  }
  return 0;
}
