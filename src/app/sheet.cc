#include "app/sheet.h"

#include <algorithm>
#include <cctype>

#include "explain/words.h"
#include "text/escape.h"
#include "text/json.h"
#include "text/value.h"

namespace berth::app {

namespace {

constexpr std::size_t kSheetGap = 2;

std::vector<std::size_t> column_widths(const Sheet& sheet, std::size_t rows) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < sheet.columns.size(); ++c) {
    std::size_t width = explain::width_of(sheet.columns[c].head);
    for (std::size_t r = 0; r < rows; ++r) {
      width = std::max(width, explain::width_of(text::terminal_safe(sheet.rows[r][c])));
    }
    widths.push_back(width);
  }
  const auto total = [&widths] {
    std::size_t sum = kSheetGap * (widths.size() - 1);
    for (const std::size_t width : widths) sum += width;
    return sum;
  };
  while (total() > kScreenWidth) {
    std::size_t widest = widths.size();
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const SheetColumn& column = sheet.columns[c];
      const std::size_t least = std::max(column.at_least, explain::width_of(column.head));
      if (!column.gives || widths[c] <= least) continue;
      if (widest == widths.size() || widths[c] > widths[widest]) widest = c;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  return widths;
}

void table_line(const Sheet& sheet, const std::vector<std::size_t>& widths,
                const std::vector<std::string>& cells, std::string& out) {
  std::string line;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) line.append(kSheetGap, ' ');
    const std::string cell =
        text::elide_middle(text::terminal_safe(cells[c]), std::max<std::size_t>(1, widths[c]));
    line += sheet.columns[c].right ? explain::padded_left(cell, widths[c])
                                   : explain::padded(cell, widths[c]);
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  out += line + '\n';
}

std::string csv_cell(std::string_view text) {
  std::string safe = text::terminal_safe(text);
  if (safe.find_first_of(",\"") == std::string::npos) return safe;
  std::string out = "\"";
  for (const char c : safe) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

void csv_line(const std::vector<std::string>& cells, std::string& out) {
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) out += ',';
    out += csv_cell(cells[c]);
  }
  out += "\r\n";
}

// Block style; strings keep their JSON quotes, which YAML reads alike.
void yaml_lines(const text::Value& v, std::size_t indent, bool in_item, std::string& out) {
  const std::string pad(indent, ' ');
  bool first = in_item;
  for (const text::Member& member : v.members()) {
    out += first ? "" : pad;
    first = false;
    text::Value key = text::Value::make_string(member.key, 0);
    const bool plain = std::all_of(member.key.begin(), member.key.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0;
    });
    out += (plain ? std::string(member.key) : text::to_json(key)) + ':';
    if (member.value.size() == 0) {
      out += ' ' + text::to_json(member.value) + '\n';
      continue;
    }
    out += '\n';
    yaml_lines(member.value, member.value.is_object() ? indent + 2 : indent, false, out);
  }
  for (const text::Value& item : v.items()) {
    out += pad + "- ";
    if (item.is_object() && item.size() > 0) {
      yaml_lines(item, indent + 2, true, out);
    } else {
      out += text::to_json(item) + '\n';
    }
  }
}

}  // namespace

std::string table_text(const Sheet& sheet, std::size_t max_rows) {
  const std::size_t shown = std::min(sheet.rows.size(), max_rows);
  const std::vector<std::size_t> widths = column_widths(sheet, shown);
  std::vector<std::string> heads;
  for (const SheetColumn& column : sheet.columns) heads.push_back(column.head);
  std::string out;
  table_line(sheet, widths, heads, out);
  for (std::size_t r = 0; r < shown; ++r) table_line(sheet, widths, sheet.rows[r], out);
  if (shown < sheet.rows.size()) {
    out += '+' + std::to_string(sheet.rows.size() - shown) + " more (see -o csv)\n";
  }
  return out;
}

std::string csv_text(const Sheet& sheet) {
  std::vector<std::string> heads;
  for (const SheetColumn& column : sheet.columns) {
    std::string head = column.head;
    for (char& c : head) {
      c = c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    heads.push_back(std::move(head));
  }
  std::string out;
  csv_line(heads, out);
  for (const auto& row : sheet.rows) csv_line(row, out);
  return out;
}

std::string yaml_of(const std::string& json) {
  text::JsonOptions options;
  options.limits.max_bytes = (std::size_t{4} << 30) - 1;
  options.limits.max_nodes = std::size_t{1} << 30;
  const Result<text::Document> parsed = text::parse_json(json, options);
  if (!parsed.ok()) return json + '\n';  // JSON is YAML
  std::string out;
  yaml_lines(parsed->root(), 0, false, out);
  return out;
}

std::string show_age(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000, kMinute = 60, kHour = 3600, kDay = 86'400;
  const std::int64_t s = std::max<std::int64_t>(0, ns / kSecond);
  const auto in = [s](std::int64_t unit, const char* name) {
    return std::to_string(s / unit) + ' ' + name;
  };
  if (s < 2 * kMinute) return in(1, "s");
  if (s < 2 * kHour) return in(kMinute, "m");
  if (s < 2 * kDay) return in(kHour, "h");
  return in(kDay, "d");
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string rest = text::terminal_safe(text);
  std::string out;
  const std::size_t room = width > indent + 10 ? width - indent : 10;
  while (explain::width_of(rest) > room) {
    std::size_t cut = std::string::npos;  // the last blank that fits
    std::size_t seen = 0;
    for (std::size_t i = 0; i < rest.size() && seen <= room; ++i) {
      if ((static_cast<unsigned char>(rest[i]) & 0xc0) != 0x80) ++seen;
      if (rest[i] == ' ' && i > 0 && seen <= room + 1) cut = i;
    }
    if (cut == std::string::npos) break;
    std::string line = rest.substr(0, cut);
    while (line.ends_with(' ')) line.pop_back();
    out += line + '\n' + std::string(indent, ' ');
    rest = rest.substr(cut + 1);
  }
  return out + rest;
}

}  // namespace berth::app
