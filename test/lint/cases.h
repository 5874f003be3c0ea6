// The manifests of test/lint/rules: what each rule must find, and what it must leave alone.
#pragma once

#include <string>
#include <vector>

#include "people/lint/lint.h"

namespace berth::lint_test {

struct Case {
  std::string rule;  // the file's name, without "-2"
  std::string file;  // for messages
  lint::File bad, good;
};

// Sorted by file.
const std::vector<Case>& cases();
// Built-in kinds and the CRDs of deploy/crds.
const lint::Schemas& schemas();

// How often a rule was found.
std::size_t count_rule(const lint::Report& report, std::string_view rule);
std::string words_of(const std::vector<lint::Finding>& findings);
std::string read_text(const std::string& path);

}  // namespace berth::lint_test
