// lint: what is wrong with manifests, and convert: the same manifests with what can be corrected.
//
// Pure: files come as bytes. A file is YAML or JSON, unless its name says that it is a shell script
// (.sh, .bash), queries (.promql) or Python (.py). Findings are in the order of files and lines;
// the same input gives the same bytes. Input that cannot be read is told apart from findings, and
// convert then gives nothing.
//
// Cost: linear in the input but for converting, which reads a document again for every correction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kinds/schema/schemas.h"
#include "people/lint/finding.h"
#include "people/lint/rule_table.h"

namespace berth::lint {

struct File {
  std::string name;  // as shown; its ending says how it is read
  std::string bytes;
};

struct Unreadable {
  std::string file;
  int document = 0, line = 0;
  std::string message;
};

struct Report {
  std::vector<Finding> findings;
  std::vector<Unreadable> unreadable;
  std::size_t files = 0, documents = 0;
  bool cut = false;  // more findings than kMostFindings
};

inline constexpr std::size_t kMostFindings = 10'000;

// schemas may be nullptr: then fields of built-in kinds are not checked.
Report lint(const std::vector<File>& files, const Schemas* schemas);

struct Conversion {
  std::string bytes;          // as they were when nothing could be corrected
  std::vector<Finding> done;  // what was corrected, in order, and where it stood in the file
  std::vector<Finding> left;  // what lint still finds, and where it stands in bytes
};

// Code::kInvalid: the file cannot be read.
Result<Conversion> convert(const File& file, const Schemas* schemas);

}  // namespace berth::lint
