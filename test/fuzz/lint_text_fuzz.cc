// Files that lint is shown: the first byte says whether the rest is a shell script, queries, Python
// or YAML. Findings stand inside the text; what is corrected can be read again.
#include <algorithm>
#include <string>

#include "fuzz.h"
#include "people/lint/lint.h"

BERTH_FUZZ_TARGET(lint_text) {
  using namespace berth;
  if (size == 0) return 0;
  static const char* const kNames[] = {"a.sh", "a.promql", "a.py", "a.yaml"};
  const lint::File file{kNames[data[0] % 4], std::string(fuzz::text_of(data + 1, size - 1))};
  const lint::Report report = lint::lint({file}, nullptr);
  fuzz::check(report.findings.size() <= lint::kMostFindings, "findings are bounded");
  const auto lines = std::count(file.bytes.begin(), file.bytes.end(), '\n') + 1;
  for (const lint::Finding& finding : report.findings) {
    fuzz::check(finding.line >= 0 && finding.line <= lines, "a finding is in the file");
  }
  const auto made = lint::convert(file, nullptr);
  fuzz::check(!made.ok() || report.unreadable.empty(), "what cannot be read is not converted");
  if (!made.ok()) return 0;
  const auto again = lint::convert({file.name, made->bytes}, nullptr);
  fuzz::check(again.ok(), "what was converted can be read");
  fuzz::check(!made->done.empty() || made->bytes == file.bytes, "nothing done, nothing changed");
  return 0;
}
