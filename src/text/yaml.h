// YAML 1.1 documents as JSON trees, the way sigs.k8s.io/yaml turns manifests into JSON.
//
// Supported: several documents in a stream (empty ones are skipped), anchors, aliases, merge keys
// (<<; explicit keys win), the tags !!str !!int !!float !!bool !!null !!timestamp !!seq !!map.
// Keys that are integers, floats or bools become their text. Scalars: text/yaml_scalar.h.
// Refused, with the line: duplicate keys, null or compound keys, other tags, .inf and .nan,
// invalid UTF-8, an alias inside its own anchor, and anything over the limits (Code::kExhausted);
// the nodes that aliases add are counted, so a small file cannot become a large tree.
//
// Cost: one pass over libyaml's events, about 10 MB/s.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/value.h"

namespace berth::text {

struct YamlOptions {
  Limits limits = {};                     // of one document; max_bytes is of the stream
  std::size_t max_documents = 100'000;    // in one stream
  std::size_t max_alias_nodes = 100'000;  // values made by aliases and merge keys, in one stream
};

// Hands over each document as soon as it is read, so that a long stream is not held at once. An
// error from visit ends the reading and is returned.
Status read_yaml(std::string_view bytes, const std::function<Status(Document)>& visit,
                 const YamlOptions& options = {});

Result<std::vector<Document>> parse_yaml(std::string_view bytes, const YamlOptions& options = {});

// JSON or YAML: JSON alone when the name ends in .json; otherwise JSON when the text starts with {
// or [ and is strictly valid, else YAML. name is only looked at, never opened, and may be empty.
Result<std::vector<Document>> parse_any(std::string_view bytes, std::string_view name = {},
                                        const YamlOptions& options = {});

}  // namespace berth::text
