#include <algorithm>

#include "rules.h"

namespace berth::tidy {
namespace {

constexpr std::size_t kMaxLines = 700;
constexpr std::size_t kMaxColumns = 100;

// Split in two, or this file would break its own rule.
constexpr std::string_view kUnfinishedMarks[] = {
    "TO"
    "DO",
    "FIX"
    "ME",
    "X"
    "XX"};
constexpr std::string_view kRegistryHosts[] = {
    "deb.debian"
    ".org",
    "security.debian"
    ".org",
    "snapshot.debian"
    ".org",
    "archive.ubuntu"
    ".com",
    "registry.npmjs"
    ".org",
    "registry.yarnpkg"
    ".com",
    "pypi"
    ".org",
    "files.pythonhosted"
    ".org",
    "crates"
    ".io",
    "proxy.golang"
    ".org",
    "rubygems"
    ".org",
    "repo.maven.apache"
    ".org",
    "packages.cloud.google"
    ".com",
    "deb.nodesource"
    ".com",
    "conan"
    ".io"};

std::size_t columns_of(std::string_view line) {  // characters, not bytes
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string Violation::to_string() const {
  return path + ":" + std::to_string(line) + ": " + rule + ": " + fix;
}

Violations file_length(const SourceText& source) {
  if (!source.is_cpp() || source.lines.size() <= kMaxLines) return {};
  return {
      {source.path, source.lines.size(), "file-length",
       "more than " + std::to_string(kMaxLines) + " lines: split it by what its parts are for"}};
}

Violations line_length(const SourceText& source) {
  Violations found;
  if (!source.is_cpp()) return found;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    if (columns_of(source.lines[i]) <= kMaxColumns) continue;
    found.push_back({source.path, i + 1, "line-length", "more than 100 columns: make format"});
  }
  return found;
}

Violations unfinished(const SourceText& source) {
  Violations found;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    for (std::string_view mark : kUnfinishedMarks) {
      if (find_word(source.lines[i], mark) == std::string_view::npos) continue;
      found.push_back({source.path, i + 1, "unfinished",
                       "finish it, or file an issue and describe the limit in a plain sentence"});
    }
  }
  return found;
}

Violations registry_hosts(const SourceText& source) {
  Violations found;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    for (std::string_view host : kRegistryHosts) {
      if (source.lines[i].find(host) == std::string::npos) continue;
      found.push_back({source.path, i + 1, "registry-hosts",
                       "name the package, not the host: people build behind mirrors"});
    }
  }
  return found;
}

Violations markdown_title(const SourceText& source) {
  if (!source.path.ends_with(".md")) return {};
  std::size_t titles = 0, last = 1;
  bool fenced = false;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    if (source.lines[i].starts_with("```")) fenced = !fenced;
    if (fenced || !source.lines[i].starts_with("# ")) continue;
    ++titles;
    last = i + 1;
  }
  if (titles == 1) return {};
  return {{source.path, last, "markdown-title",
           "a page has exactly one '# Title', this one has " + std::to_string(titles)}};
}

Violations header_form(const SourceText& source) {
  if (!source.is_header()) return {};
  Violations found;
  if (source.lines.empty() || !source.lines[0].starts_with("//")) {
    found.push_back(
        {source.path, 1, "header-form",
         "begin with a comment: what it is, who may call it, thread-safety, invariants, "
         "cost"});
  }
  if (std::find(source.lines.begin(), source.lines.end(), "#pragma once") == source.lines.end()) {
    found.push_back({source.path, 1, "header-form", "write #pragma once after the comment"});
  }
  return found;
}

Violations server_bounds(const SourceText& source) {
  Violations found;
  if (!source.path.starts_with("src/") || source.path.starts_with("src/edge/serve/")) return found;
  if (!source.is_cpp() || source.is_test()) return found;
  for (std::size_t i = 0; i < source.code.size(); ++i) {
    std::string_view line = source.code[i];
    const std::size_t at = find_word(line, "HttpServerOptions");
    if (at == std::string_view::npos) continue;
    line.remove_prefix(at);
    // "HttpServerOptions http;" and "HttpServerOptions{...}" have the bounds of nobody.
    const std::size_t end = line.find_first_of("=;(,{)");
    if (end == std::string_view::npos || (line[end] != ';' && line[end] != '{')) continue;
    found.push_back({source.path, i + 1, "server-bounds",
                     "begin with what serve/server_kinds.h gives for its kind"});
  }
  return found;
}

Violations all_rules(const SourceText& source) {
  Violations found;
  for (auto* rule : {known_folder, direction, judge_independence, heavy_headers, pure_stages,
                     determinism, wide_numbers, one_reader, file_length, line_length, unfinished,
                     registry_hosts, markdown_title, header_form, server_bounds}) {
    Violations more = rule(source);
    found.insert(found.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }
  return found;
}

}  // namespace berth::tidy
