// A case of test/scenarios/why: a cluster with causes put into it, and what an explanation of one
// workload must and must not say. docs/scenarios.md describes the header.
//
// The header is the comment at the top, so that the file itself is plain manifests:
//   # subject: job team/train
//   # reason: A or B            of several words any will do, also for verdict and stage
//   # also: A, B                causes that stay when the first is mended: exactly these,
//   # maybe: A, B               and perhaps these
//   # not: word, word           may not stand in the verdict line or in also
//   # says: some words          stand in the table; may be given several times
//   # nofix: stop-job           a kind that is not offered
//   # server: yes               the API server's rule: a plan does not know it
//   # cure REASON: patch KIND/NS/NAME [...] | delete KIND/NS/NAME | create {...}
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "objects.h"

namespace berth::why_corpus {

struct Case {
  std::string name;  // "taints/extra-taint"
  std::string kind, ns, subject;
  std::vector<std::string> verdicts, reasons, stages;
  std::vector<std::string> also, maybe, not_named;
  std::vector<std::string> health;  // "gpu-1/3"; empty: not asked
  std::vector<std::string> says;    // in the table, however it is wrapped
  std::string fix;                  // "yes" or a kind; empty: not asked
  std::string no_fix;               // a kind that would be of no use
  std::string start;                // when it would start, or "unknown"; empty: not asked
  std::string now = "2026-01-01T12:00:00Z";
  bool server = false;  // held by what a plan does not know: the truth is what why says when cured
  std::vector<std::pair<std::string, std::string>> cures;  // reason and line
  Objects objects;

  // It runs, or starts with the next decision.
  bool fine() const { return !verdicts.empty() && verdicts[0] == "running"; }
  std::vector<std::string> causes() const;  // reasons that have a cure, each once
};

// folder: test/scenarios/why; name: without ".yaml".
Result<Case> read_case(const std::string& folder, const std::string& name);
std::vector<std::string> case_names(const std::string& folder);
// NAME and why, of known.txt.
std::vector<std::pair<std::string, std::string>> known_failures(const std::string& folder);

// The objects after the cures of these reasons.
Result<Objects> cured(const Case& one, const std::vector<std::string>& reasons);

bool contains(const std::vector<std::string>& list, std::string_view word);

}  // namespace berth::why_corpus
