// The rules of the tree, each a function from one file to what is wrong with it.
//
// What may include what, which words and headers a folder may not use, and how long a file and a
// line may be. The tables stand in the .cc files: change a table to change a rule, with the reason
// beside it. Pure functions; tree_test.cc runs them over the tree, rules_test.cc over small
// snippets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "source_text.h"

namespace berth::tidy {

struct Violation {
  std::string path;
  std::size_t line = 0;
  std::string rule;  // one word: "direction"
  std::string fix;   // what to do instead

  std::string to_string() const;  // "src/a/b.cc:3: direction: ..."
};

using Violations = std::vector<Violation>;

// include_rules.cc
// The room of src/README.md that a source is in, or what is named as an #include names it; "":
// none.
std::string room_of(const SourceText& source);
std::string room_of(std::string_view path);
Violations known_folder(const SourceText& source);  // every source lives in a folder of the design
Violations direction(const SourceText& source);     // who may include whom
Violations judge_independence(const SourceText& source);  // test/judge does not use what it judges
Violations heavy_headers(const SourceText& source);  // libraries that cost seconds stay in few .cc

// pure_rules.cc
Violations pure_stages(const SourceText& source);   // base to stages: no I/O, threads, clocks
Violations determinism(const SourceText& source);   // everywhere: no unseeded chance, no sleeping
Violations wide_numbers(const SourceText& source);  // decisions: what strangers can grow is not cut

Violations one_reader(const SourceText& source);  // values are asked by text/path.h alone

// text_rules.cc
Violations file_length(const SourceText& source);
Violations line_length(const SourceText& source);
Violations unfinished(const SourceText& source);  // marks of work left undone
Violations registry_hosts(
    const SourceText& source);  // where packages come from is the user's choice
Violations markdown_title(const SourceText& source);
Violations header_form(const SourceText& source);    // a comment first, #pragma once
Violations server_bounds(const SourceText& source);  // a server has the bounds of its kind

// name_rules.cc
// Over the whole tree: no two unnamed namespaces that are compiled together have a function of one
// name.
Violations same_names(const std::vector<SourceText>& sources);

Violations all_rules(const SourceText& source);

}  // namespace berth::tidy
