// berth lint and berth convert: what is wrong with manifests, and the manifests corrected.
//
// Exit codes: 0 nothing found, 1 findings, 20 something cannot be read, 2 wrong usage.
// docs/lint.md.
#pragma once

#include <string>
#include <vector>

#include "app/cli/cli.h"

namespace berth::app {

struct LintArguments {
  std::vector<std::string> paths;
  std::string output = "text";
  std::string max_input = "256Mi";
  bool strict = false;
  bool rules = false;
};
int lint_command(const LintArguments& args, Terminal& terminal);

struct ConvertArguments {
  std::string path;
  std::string out;  // empty: standard output
  bool in_place = false;
  bool diff = false;
};
int convert_command(const ConvertArguments& args, Terminal& terminal);

}  // namespace berth::app
