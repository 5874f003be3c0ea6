// The YAML reader: every document it gives is a JSON value that survives printing and reading.
#include "fuzz.h"
#include "text/json.h"
#include "text/yaml.h"

BERTH_FUZZ_TARGET(yaml) {
  using namespace berth;
  const std::string_view input = fuzz::text_of(data, size);
  const text::YamlOptions options{.limits = {.max_nodes = 20'000}, .max_alias_nodes = 1'000};
  std::size_t documents = 0;
  const auto visit = [&](text::Document doc) -> Status {
    ++documents;
    const auto again = text::parse_json(text::to_json(doc.root()));
    fuzz::check(again.ok(), "a document is valid JSON");
    fuzz::check(text::equal(again->root(), doc.root()), "round trip");
    return {};
  };
  const Status status = text::read_yaml(input, visit, options);
  const auto any = text::parse_any(input, {}, options);
  if (status.ok() && any.ok()) {
    fuzz::check(any->size() == documents || any->size() == 1, "the same number of documents");
  }
  fuzz::check(!status.ok() || any.ok() || any.error().code() == Code::kExhausted,
              "parse_any takes what YAML takes");
  return 0;
}
