// One file of the tree as the rules see it: a path from the root, its lines, and its lines with
// comments and literals blanked out, so that a word in a comment is not taken for code.
//
// Values; pure functions. Cost: linear in the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::tidy {

struct SourceText {
  SourceText(std::string path_from_root, std::string_view text);

  std::string path;                // "src/base/log.cc"
  std::vector<std::string> lines;  // without their newlines
  std::vector<std::string> code;   // of C++: as many lines, comments and literals as blanks

  bool is_cpp() const;         // .cc or .h
  bool is_header() const;      // .h
  bool is_test() const;        // foo_test.cc, or anything under test/
  std::string folder() const;  // below src/: "base"; else the first part of the path: "test"
};

struct Include {
  std::size_t line = 0;  // from 1
  std::string name;      // without quotes or brackets
  bool quoted = false;
};

std::vector<Include> includes_of(const SourceText& source);

// Replaces comments, string and character literals by blanks; newlines stay where they are.
std::string blank_comments_and_literals(std::string_view text);

// '*' stands for any run of characters, '/' included.
bool matches(std::string_view pattern, std::string_view text);

// The column from 0 where `word` stands as a whole word, or npos. A word that ends in '(' must be
// followed by it.
std::size_t find_word(std::string_view line, std::string_view word);

}  // namespace berth::tidy
