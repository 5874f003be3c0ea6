#include "app/views/sheet.h"

#include <algorithm>
#include <cctype>

#include "people/view/words.h"
#include "people/view/wrap.h"
#include "text/columns.h"
#include "text/escape.h"
#include "text/json.h"
#include "text/value.h"

namespace berth::app {

namespace {

constexpr std::size_t kSheetGap = 2;

// Takes a column at a time from the widest that may give until the line is short enough.
template <typename Least>
void shrink(std::vector<std::size_t>& widths, const Least& least) {
  std::size_t total = kSheetGap * (widths.size() - 1);
  for (const std::size_t width : widths) total += width;
  for (; total > kScreenWidth; --total) {
    std::size_t widest = widths.size();
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] <= least(c)) continue;
      if (widest == widths.size() || widths[c] > widths[widest]) widest = c;
    }
    if (widest == widths.size()) return;
    --widths[widest];
  }
}

std::vector<std::size_t> column_widths(const Sheet& sheet, std::size_t rows) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < sheet.columns.size(); ++c) {
    const SheetColumn& column = sheet.columns[c];
    std::size_t width = people::width_of(column.head);
    for (std::size_t r = 0; r < rows; ++r) {
      width = std::max(width, people::width_of(text::terminal_safe(sheet.rows[r][c])));
    }
    widths.push_back(std::min(width, std::max(column.at_most, people::width_of(column.head))));
  }
  const auto least = [&](std::size_t c) {
    return std::max(sheet.columns[c].at_least, people::width_of(sheet.columns[c].head));
  };
  constexpr std::size_t kNothing = kScreenWidth * 1000, kStub = 3;
  shrink(widths, [&](std::size_t c) { return sheet.columns[c].wraps ? least(c) : kNothing; });
  shrink(widths, [&](std::size_t c) { return sheet.columns[c].gives ? least(c) : kNothing; });
  shrink(widths, [&](std::size_t c) { return sheet.columns[c].right ? kNothing : kStub; });
  return widths;
}

void table_line(const Sheet& sheet, const std::vector<std::size_t>& widths,
                const std::vector<std::string>& cells, std::string& out) {
  std::string line;
  std::size_t begun = 0;  // columns
  const auto end_line = [&] {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + '\n';
  };
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) line.append(kSheetGap, ' ');
    std::string cell = text::terminal_safe(cells[c]);
    const std::size_t width = std::max<std::size_t>(1, widths[c]);
    while (sheet.columns[c].wraps && people::width_of(cell) > width) {
      const std::string_view fits = text::first_columns(cell, width);
      std::size_t cut = cell[fits.size()] == ' ' ? fits.size() : fits.rfind(' ');
      if (cut == std::string_view::npos || cut == 0) cut = std::max<std::size_t>(1, fits.size());
      line += cell.substr(0, cut);
      end_line();
      line.assign(begun + kSheetGap * c, ' ');
      cell.erase(0, cell[cut] == ' ' ? cut + 1 : cut);
    }
    cell = text::elide_middle(cell, width);
    line += sheet.columns[c].right ? people::padded_left(cell, widths[c])
                                   : people::padded(cell, widths[c]);
    begun += widths[c];
  }
  end_line();
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

std::string table_text(const Sheet& sheet, std::size_t max_rows, std::string_view whole) {
  const std::size_t shown = std::min(sheet.rows.size(), max_rows);
  const std::vector<std::size_t> widths = column_widths(sheet, shown);
  std::vector<std::string> heads;
  for (const SheetColumn& column : sheet.columns) heads.push_back(column.head);
  std::string out;
  table_line(sheet, widths, heads, out);
  for (std::size_t r = 0; r < shown; ++r) table_line(sheet, widths, sheet.rows[r], out);
  if (shown < sheet.rows.size()) {
    out += '+' + std::to_string(sheet.rows.size() - shown) + " more (see " + std::string(whole) +
           ")\n";
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

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  people::wrap(std::string(indent, ' '), indent, text::terminal_safe(text), out);
  return out.substr(indent, out.size() - indent - 1);
}

}  // namespace berth::app
