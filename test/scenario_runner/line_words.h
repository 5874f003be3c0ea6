// The small pieces of a scenario's line: words, items, numbers, ranges. Header-only.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::scenario {

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

// At every separator; pieces are trimmed and empty ones kept.
inline std::vector<std::string> split_at(std::string_view text, std::string_view separator) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t at = text.find(separator);
    out.emplace_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + separator.size());
  }
}

inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::string& word : split_at(text, " ")) {
    if (!word.empty()) out.push_back(std::move(word));
  }
  return out;
}

inline std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "0-3,7"; nothing when it is not a list of numbers.
inline std::optional<std::vector<int>> ranges_of(std::string_view text) {
  std::vector<int> out;
  for (const std::string& part : split_at(text, ",")) {
    const std::size_t dash = part.find('-');
    const auto first = number_of(std::string_view(part).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : number_of(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > 1000) return std::nullopt;
    for (int i = *first; i <= *last; ++i) out.push_back(i);
  }
  return out;
}

}  // namespace berth::scenario
