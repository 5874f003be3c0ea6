// What lint says about a manifest, and how convert corrects it.
//
// Plain values. A finding stands on its own: where, what, why it matters and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/yaml_edit.h"

namespace berth::lint {

// kNote: what a manifest cannot tell by itself and somebody should look at; never a reason to fail.
enum class Severity : std::uint8_t { kNote, kWarning, kError };
inline constexpr const char* name(Severity severity) {
  if (severity == Severity::kNote) return "note";
  return severity == Severity::kError ? "error" : "warning";
}

// Bytes [begin, end) of a text that is not YAML.
struct TextChange {
  std::size_t begin = 0, end = 0;
  std::string text = {};
};

// A correction that can be made without asking. One of the lists is used: changes for YAML, text
// for scripts and queries.
struct Fix {
  std::vector<text::YamlChange> changes = {};
  text::YamlPath inside = {};         // the string that holds the YAML that changes are for
  std::vector<TextChange> text = {};  // of the whole file
  std::string document = {};          // JSON of an object to add after this one
  std::string assumes = {};           // what was taken for granted, for people to check
};

struct Finding {
  std::string file = {};
  int document = 0;         // 1-based; 0: the file is no stream of documents
  int line = 0;             // 1-based
  int column = 0;           // 1-based; 0: not known
  std::string object = {};  // "PyTorchJob ml-training/llama2"; empty: none
  std::string field = {};   // "spec.tasks[1].taskSpec.tolerations"
  std::string rule = {};
  Severity severity = Severity::kError;
  std::string what = {}, why = {}, fix = {};
  std::optional<Fix> edit = {};
};

}  // namespace berth::lint
