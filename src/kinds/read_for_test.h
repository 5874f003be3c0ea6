// Helpers of this folder's tests: YAML text to Inputs.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "kinds/manifest.h"
#include "text/yaml.h"

namespace berth::kinds {

inline void add_yaml(ManifestReader& reader, std::string_view yaml, std::string source = "t.yaml") {
  auto documents = text::parse_yaml(yaml);
  ASSERT_TRUE(documents.ok()) << documents.error().to_string();
  for (int i = 0; const text::Document& document : *documents) reader.add(source, i++, document);
}

inline Inputs read(std::string_view yaml) {
  ManifestReader reader;
  add_yaml(reader, yaml);
  return reader.finish();
}

inline std::string all(const std::vector<Note>& notes) {
  std::string out;
  for (const Note& note : notes) {
    out += note.object + ": " + note.path + ": " + note.message + "\n";
  }
  return out;
}

// Nothing invalid, ignored or warned of.
inline Inputs read_clean(std::string_view yaml) {
  Inputs inputs = read(yaml);
  EXPECT_EQ(all(inputs.invalid) + all(inputs.warnings) + all(inputs.ignored), "");
  return inputs;
}

// A pod "p" whose metadata and spec have these lines besides the usual ones (flow or block YAML).
inline std::string pod_yaml(std::string_view spec_lines, std::string_view meta_lines = "") {
  std::string out = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n";
  out += meta_lines;
  out += "spec:\n";
  if (spec_lines.find("containers:") == std::string_view::npos) {
    out += "  containers: [{name: c}]\n";
  }
  out += spec_lines;
  return out;
}

inline model::PodSpec clean_pod(std::string_view spec_lines, std::string_view meta_lines = "") {
  Inputs inputs = read_clean(pod_yaml(spec_lines, meta_lines));
  if (inputs.pods.size() != 1) {
    ADD_FAILURE() << "not one pod";
    return {};
  }
  return inputs.pods[0];
}

inline std::string pod_errors(std::string_view spec_lines, std::string_view meta_lines = "") {
  Inputs inputs = read(pod_yaml(spec_lines, meta_lines));
  EXPECT_TRUE(inputs.pods.empty() || inputs.invalid.empty());
  return all(inputs.invalid);
}

}  // namespace berth::kinds
