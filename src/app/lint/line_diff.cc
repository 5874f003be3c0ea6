#include "app/lint/line_diff.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "text/escape.h"

namespace berth::app {

namespace {

constexpr std::size_t kContext = 3;
constexpr std::size_t kMostCells = 16'000'000;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

struct DiffLine {
  char mark;  // ' ', '-', '+'
  std::string_view text;
};

// By the longest common subsequence of the part between what both begin and end with.
std::vector<DiffLine> compare(const std::vector<std::string_view>& a,
                              const std::vector<std::string_view>& b) {
  std::size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail + head < a.size() && tail + head < b.size() &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
    ++tail;
  }
  const std::size_t n = a.size() - head - tail, m = b.size() - head - tail;
  std::vector<DiffLine> out;
  for (std::size_t i = 0; i < head; ++i) out.push_back({' ', a[i]});
  std::size_t i = 0, j = 0;
  if ((n + 1) * (m + 1) <= kMostCells) {
    std::vector<std::uint32_t> table((n + 1) * (m + 1));
    const auto cell = [&](std::size_t x, std::size_t y) -> std::uint32_t& {
      return table[x * (m + 1) + y];
    };
    for (std::size_t x = n; x-- > 0;) {
      for (std::size_t y = m; y-- > 0;) {
        cell(x, y) = a[head + x] == b[head + y] ? cell(x + 1, y + 1) + 1
                                                : std::max(cell(x + 1, y), cell(x, y + 1));
      }
    }
    while (i < n && j < m) {
      if (a[head + i] == b[head + j]) {
        out.push_back({' ', a[head + i]});
        ++i;
        ++j;
      } else if (cell(i + 1, j) >= cell(i, j + 1)) {
        out.push_back({'-', a[head + i++]});
      } else {
        out.push_back({'+', b[head + j++]});
      }
    }
  }
  while (i < n) out.push_back({'-', a[head + i++]});
  while (j < m) out.push_back({'+', b[head + j++]});
  for (std::size_t k = 0; k < tail; ++k) out.push_back({' ', a[a.size() - tail + k]});
  return out;
}

std::string diff_text(const DiffLine& line) {
  std::string_view text = line.text;
  if (text.ends_with('\n')) text.remove_suffix(1);
  return line.mark + text::terminal_safe(text) + "\n";
}

}  // namespace

std::string line_diff(std::string_view before, std::string_view after, std::string_view name) {
  if (before == after) return {};
  const std::vector<DiffLine> lines = compare(lines_of(before), lines_of(after));
  const std::string title = text::terminal_safe(name);
  std::string out = "--- " + title + "\n+++ " + title + "\n";
  std::size_t old_line = 1, new_line = 1;
  for (std::size_t i = 0; i < lines.size();) {
    // A hunk: from some lines before a change to some after the last one near it.
    std::size_t first = i;
    while (first < lines.size() && lines[first].mark == ' ') ++first;
    if (first == lines.size()) break;
    const std::size_t begin = first > i + kContext ? first - kContext : i;
    for (; i < begin; ++i, ++old_line, ++new_line) {
    }
    std::size_t end = first, quiet = 0;
    for (std::size_t k = first; k < lines.size() && quiet <= 2 * kContext; ++k) {
      quiet = lines[k].mark == ' ' ? quiet + 1 : 0;
      if (quiet == 0) end = k + 1;
    }
    end = std::min(end + kContext, lines.size());
    std::size_t removed = 0, added = 0;
    std::string body;
    for (std::size_t k = begin; k < end; ++k) {
      removed += lines[k].mark != '+' ? 1 : 0;
      added += lines[k].mark != '-' ? 1 : 0;
      body += diff_text(lines[k]);
    }
    out += "@@ -" + std::to_string(old_line) + "," + std::to_string(removed) + " +" +
           std::to_string(new_line) + "," + std::to_string(added) + " @@\n" + body;
    old_line += removed;
    new_line += added;
    i = end;
  }
  return out;
}

}  // namespace berth::app
