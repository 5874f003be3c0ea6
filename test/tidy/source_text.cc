#include "source_text.h"

#include <algorithm>

namespace berth::tidy {
namespace {

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Where the literal or comment that starts at `at` ends; `at` itself when none starts there.
std::size_t end_of_blank(std::string_view text, std::size_t at) {
  auto after = [&](std::string_view mark, std::size_t from) {
    std::size_t found = text.find(mark, from);
    return found == std::string_view::npos ? text.size() : found + mark.size();
  };
  std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (rest.starts_with("/*")) return after("*/", at + 2);
  bool word_before = at > 0 && is_word_char(text[at - 1]);
  if (rest.starts_with("R\"") && !word_before) {
    std::size_t open = std::min(rest.find('('), rest.size());
    std::string close =
        ")" + std::string(rest.substr(2, std::max<std::size_t>(open, 2) - 2)) + "\"";
    return after(close, at + open);
  }
  bool digit_separator = rest[0] == '\'' && word_before;
  if ((rest[0] == '"' || rest[0] == '\'') && !digit_separator) {
    std::size_t i = at + 1;
    while (i < text.size() && text[i] != rest[0] && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
    return std::min(i + 1, text.size());
  }
  return at;
}

}  // namespace

std::string blank_comments_and_literals(std::string_view text) {
  std::string out(text);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = end_of_blank(text, at);
    std::replace_if(
        out.begin() + static_cast<std::ptrdiff_t>(at),
        out.begin() + static_cast<std::ptrdiff_t>(end), [](char c) { return c != '\n'; }, ' ');
    at = std::max(end, at + 1);
  }
  return out;
}

SourceText::SourceText(std::string path_from_root, std::string_view text)
    : path(std::move(path_from_root)), lines(split_lines(text)) {
  if (is_cpp()) code = split_lines(blank_comments_and_literals(text));
}

bool SourceText::is_cpp() const { return path.ends_with(".cc") || is_header(); }
bool SourceText::is_header() const { return path.ends_with(".h"); }
bool SourceText::is_test() const { return path.ends_with("_test.cc") || path.starts_with("test/"); }

std::string SourceText::folder() const {
  std::string_view rest = path;
  if (rest.starts_with("src/")) rest.remove_prefix(4);
  std::size_t slash = rest.find('/');
  return slash == std::string_view::npos ? "" : std::string(rest.substr(0, slash));
}

std::vector<Include> includes_of(const SourceText& source) {
  std::vector<Include> found;
  for (std::size_t i = 0; i < source.lines.size() && i < source.code.size(); ++i) {
    if (source.code[i].find('#') == std::string::npos) continue;  // a comment or a literal
    std::string_view line = source.lines[i];
    std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string_view::npos || line[hash] != '#') continue;
    std::size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string_view::npos || !line.substr(word).starts_with("include")) continue;
    std::size_t open = line.find_first_of("<\"", word);
    if (open == std::string_view::npos) continue;
    bool quoted = line[open] == '"';
    std::size_t close = line.find(quoted ? '"' : '>', open + 1);
    if (close == std::string_view::npos) continue;
    found.push_back({i + 1, std::string(line.substr(open + 1, close - open - 1)), quoted});
  }
  return found;
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star; at <= text.size(); ++at) {
    if (matches(rest, text.substr(at))) return true;
  }
  return false;
}

std::size_t find_word(std::string_view line, std::string_view word) {
  bool call = word.ends_with('(');
  for (std::size_t at = line.find(word); at != std::string_view::npos;
       at = line.find(word, at + 1)) {
    bool starts = at == 0 || !is_word_char(line[at - 1]);
    std::size_t end = at + word.size();
    bool ends = call || end >= line.size() || !is_word_char(line[end]);
    if (starts && ends) return at;
  }
  return std::string_view::npos;
}

}  // namespace berth::tidy
