// Changes to YAML: whatever the text and the change, the result is read again, a removal removes
// and a value that was set is there; everything lint can correct is corrected without harm.
#include "fuzz.h"
#include "people/lint/lint.h"
#include "text/json.h"
#include "text/yaml.h"
#include "text/yaml_edit.h"

namespace {

using namespace berth;

void some_paths(const text::Value& value, const text::YamlPath& path,
                std::vector<text::YamlPath>& out) {
  if (out.size() >= 64) return;
  if (!path.empty()) out.push_back(path);
  std::size_t i = 0;
  for (const text::Value& item : value.items()) {
    text::YamlPath next = path;
    next.push_back(std::to_string(i++));
    some_paths(item, next, out);
  }
  for (const text::Member& member : value.members()) {
    text::YamlPath next = path;
    next.emplace_back(member.key);
    some_paths(member.value, next, out);
  }
}

void check_change(std::string_view input, const text::YamlChange& change) {
  const auto made = text::edit_yaml(input, {&change, 1});
  if (!made.ok()) return;
  const auto again = text::parse_yaml(*made);
  fuzz::check(again.ok(), "a change gives YAML");
  if (change.kind != text::YamlChange::Kind::kSet) return;
  const auto source = text::YamlSource::read(*made);
  fuzz::check(source.ok(), "the result has places");
  const auto found = source->find(change.at);
  fuzz::check(found && source->node(*found).text == "new", "the value is the one that was set");
}

}  // namespace

BERTH_FUZZ_TARGET(yaml_edit) {
  const std::string_view input = fuzz::text_of(data, size);
  if (input.size() > 20'000) return 0;
  const text::YamlOptions options{.limits = {.max_nodes = 5'000}, .max_alias_nodes = 1'000};
  const auto read = text::parse_yaml(input, options);
  static_cast<void>(text::YamlSource::read(input));
  static_cast<void>(text::yaml_document_starts(input));
  for (const char* name : {"a.sh", "a.promql", "a.py"}) {
    const auto converted = lint::convert({name, std::string(input)}, nullptr);
    fuzz::check(converted.ok(), "a text is always read");
  }
  if (!read.ok() || read->empty()) return 0;
  std::vector<text::YamlPath> paths;
  some_paths(read->front().root(), {}, paths);
  for (const text::YamlPath& path : paths) {
    using Kind = text::YamlChange::Kind;
    check_change(input, {.kind = Kind::kSet, .at = path, .json = "\"new\""});
    check_change(input, {.kind = Kind::kRemove, .at = path});
    check_change(input, {.kind = Kind::kWrap, .at = path, .key = "wrapped"});
    check_change(input, {.kind = Kind::kUnwrap, .at = path});
    check_change(input, {.kind = Kind::kRename, .at = path, .key = "renamed"});
    text::YamlPath below = path;
    below.emplace_back("added");
    check_change(input, {.kind = Kind::kPut, .at = below, .json = "[1, {\"a\": \"b\"}]"});
    check_change(input, {.kind = Kind::kMove, .at = path, .to = {}, .key = "moved"});
  }
  const auto converted = lint::convert({"a.yaml", std::string(input)}, nullptr);
  if (!converted.ok()) return 0;
  const auto again = lint::convert({"a.yaml", converted->bytes}, nullptr);
  fuzz::check(again.ok(), "what was converted can be read");
  return 0;
}
