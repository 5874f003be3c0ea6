#include "text/yaml_edit.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "text/json.h"
#include "text/yaml.h"
#include "text/yaml_emit.h"
#include "text/yaml_scalar.h"

namespace berth::text {

namespace {

using ChangeKind = YamlChange::Kind;
using NodeKind = YamlNode::Kind;
using NodeStyle = YamlNode::Style;

struct Patch {
  std::size_t begin = 0, end = 0;
  std::string text = {};
};

std::string dotted(const YamlPath& path) {
  std::string out;
  for (const std::string& step : path) out += (out.empty() ? "" : ".") + step;
  return out.empty() ? "the document" : out;
}

Error no_place(const YamlPath& path) {
  return {Code::kNotFound, dotted(path) + " is not written there"};
}

// Lines after the first, moved right by so many spaces, or left where shift is negative.
std::string shifted(std::string_view text, int shift) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (at > 0 && shift > 0 && line.find_first_not_of(" \r") != std::string_view::npos) {
      out += std::string(static_cast<std::size_t>(shift), ' ');
    }
    if (at > 0 && shift < 0) {
      const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
      line.remove_prefix(std::min(blanks, static_cast<std::size_t>(-shift)));
    }
    out += line;
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

bool blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

class YamlEditor {
 public:
  explicit YamlEditor(const YamlSource& source)
      : source_(source),
        bytes_(source.bytes()),
        line_end_(bytes_.find("\r\n") == std::string_view::npos ? "\n" : "\r\n") {}

  Status make(const YamlChange& change);
  Result<std::string> result();

 private:
  struct Place {
    const YamlNode* parent = nullptr;
    std::size_t index = 0;
    const YamlNode::Child& child() const { return parent->children[index]; }
  };

  const YamlNode& node(std::size_t id) const { return source_.node(id); }
  const YamlNode& key_of(const YamlNode& parent, std::size_t i) const {
    return node(parent.children[i].key);
  }
  const YamlNode& value_of(const YamlNode& parent, std::size_t i) const {
    return node(parent.children[i].value);
  }
  Result<Place> place(const YamlPath& path) const;
  Result<const YamlNode*> mapping(const YamlPath& path) const;

  Status set(const YamlChange& change);
  Status replace(const YamlChange& change);
  Status rename(const YamlChange& change);
  Status remove(const Place& place);
  Status put(const YamlChange& change);
  Status put_member(const YamlNode& parent, const std::string& key, const Value& value,
                    const std::string& before);
  Status put_item(const YamlNode& parent, const Value& value);
  Status put_lines(const YamlNode& parent, const std::string& lines);
  Status move(const YamlChange& change);
  Status wrap(const YamlChange& change);
  Status unwrap(const YamlChange& change);

  void patch(std::size_t begin, std::size_t end, std::string text) {
    patches_.push_back({begin, end, std::move(text)});
  }
  bool first_on_line(std::size_t at) const {
    return blank(bytes_.substr(source_.line_begin(at), at - source_.line_begin(at)));
  }
  // Where the child begins and where its text ends, its comment on the same line not included.
  std::size_t begin_of(const YamlNode& parent, std::size_t i) const {
    if (parent.kind == NodeKind::kMapping) return key_of(parent, i).begin;
    return parent.is_block() ? parent.children[i].dash : value_of(parent, i).begin;
  }
  std::size_t end_of(const YamlNode& parent, std::size_t i) const;
  // After the line that the child ends on, with its line end.
  std::size_t next_line(const YamlNode& parent, std::size_t i) const {
    const std::size_t end = source_.line_end(end_of(parent, i));
    return std::min(std::min(bytes_.find('\n', end), bytes_.size()) + 1, bytes_.size());
  }
  // A value after a key or a dash that has none.
  void put_where_nothing_is(const Place& place, const std::string& text);
  YamlPlace style_of(const YamlNode& parent) const;
  std::string block_scalar(const YamlNode& old, std::string_view text) const;
  std::string scalar_text(const YamlNode& old, const Value& value, YamlPlace style) const;
  std::optional<std::vector<Patch>> parts_in_source(
      const YamlNode& scalar, const std::vector<YamlChange::Part>& parts) const;
  std::string in_lines(std::string text) const;  // "\n" as this text ends its lines

  const YamlSource& source_;
  std::string_view bytes_;
  std::string line_end_;
  std::vector<Patch> patches_;
};

std::string YamlEditor::in_lines(std::string text) const {
  if (line_end_ == "\n") return text;
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) out += '\r';
    out += text[i];
  }
  return out;
}

std::size_t YamlEditor::end_of(const YamlNode& parent, std::size_t i) const {
  const YamlNode& value = value_of(parent, i);
  std::size_t end = value.end;
  if (parent.kind == NodeKind::kMapping) {
    end = std::max(end, key_of(parent, i).end);
    if (value.begin == value.end && parent.is_block()) {  // nothing after the colon
      const std::size_t colon = bytes_.find(':', key_of(parent, i).end);
      if (colon != std::string_view::npos) end = std::max(end, colon + 1);
    }
  } else if (parent.is_block()) {
    end = std::max(end, parent.children[i].dash + 1);
  }
  return end;
}

YamlPlace YamlEditor::style_of(const YamlNode& parent) const {
  if (parent.is_block()) return YamlPlace::kBlock;
  const YamlNode& root = source_.root();
  const bool json = root.style == NodeStyle::kFlow && root.kind == NodeKind::kMapping &&
                    !root.children.empty() && key_of(root, 0).style == NodeStyle::kDouble;
  return json ? YamlPlace::kJson : YamlPlace::kFlow;
}

Result<YamlEditor::Place> YamlEditor::place(const YamlPath& path) const {
  if (path.empty()) return no_place(path);
  const auto parent = source_.find({path.begin(), path.end() - 1});
  if (!parent) return no_place(path);
  const auto index = source_.find_child(node(*parent), path.back());
  if (!index) return no_place(path);
  return Place{&node(*parent), *index};
}

Result<const YamlNode*> YamlEditor::mapping(const YamlPath& path) const {
  const auto found = source_.find(path);
  if (!found || node(*found).kind != NodeKind::kMapping) return no_place(path);
  return &node(*found);
}

Status YamlEditor::make(const YamlChange& change) {
  switch (change.kind) {
    case ChangeKind::kSet:
      return set(change);
    case ChangeKind::kReplace:
      return replace(change);
    case ChangeKind::kRename:
      return rename(change);
    case ChangeKind::kRemove: {
      BERTH_TRY(const Place found, place(change.at));
      return remove(found);
    }
    case ChangeKind::kPut:
      return put(change);
    case ChangeKind::kMove:
      return move(change);
    case ChangeKind::kWrap:
      return wrap(change);
    case ChangeKind::kUnwrap:
      return unwrap(change);
  }
  return invalid("no such change");
}

// ---- scalars ---------------------------------------------------------------------------------

std::string YamlEditor::block_scalar(const YamlNode& old, std::string_view text) const {
  const std::size_t header_end = source_.line_end(old.begin);
  std::string header(bytes_.substr(old.begin, header_end - old.begin));
  std::size_t content = std::min(bytes_.find('\n', header_end), bytes_.size()) + 1;
  std::size_t indent = 0;
  while (content + indent < old.end && bytes_[content + indent] == ' ') ++indent;
  while (content < old.end && blank(bytes_.substr(content, source_.line_end(content) - content))) {
    content = source_.line_end(content) + line_end_.size();
    for (indent = 0; content + indent < old.end && bytes_[content + indent] == ' ';) ++indent;
  }
  const std::size_t mark = std::min(header.find_first_of(" \t#"), header.size());
  std::string chomp = text.ends_with("\n\n") ? "+" : text.ends_with('\n') ? "" : "-";
  header = "|" + chomp + header.substr(mark);
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::string out = header;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    out += "\n" + (line.empty() ? "" : std::string(indent, ' ') + std::string(line));
    at = end + 1;
  }
  return out;
}

std::string YamlEditor::scalar_text(const YamlNode& old, const Value& value,
                                    YamlPlace style) const {
  if (!value.is_string()) return yaml_flow(value, style);
  const std::string_view text = value.string();
  const bool simple =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c != 0x7f; });
  if (old.style == NodeStyle::kSingle && simple) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
    return out + "'";
  }
  if (old.style == NodeStyle::kDouble) return yaml_string(text, YamlPlace::kJson);
  return yaml_string(text, style);
}

void YamlEditor::put_where_nothing_is(const Place& place, const std::string& text) {
  const std::size_t end = end_of(*place.parent, place.index);
  if (place.parent->is_block() || place.parent->kind != NodeKind::kMapping) {
    patch(end, end, " " + text);
    return;
  }
  // {key} and {key:} are both written.
  const std::size_t key = node(place.child().key).end;
  const std::size_t colon = bytes_.find_first_not_of(" \t\r\n", key);
  const bool has_colon = colon != std::string_view::npos && bytes_[colon] == ':';
  const std::size_t at = has_colon ? colon + 1 : key;
  patch(at, at, (has_colon ? " " : ": ") + text);
}

Status YamlEditor::set(const YamlChange& change) {
  BERTH_TRY(const Document value, parse_json(change.json));
  BERTH_TRY(const Place found, place(change.at));
  const YamlNode& old = node(found.child().value);
  if (old.kind == NodeKind::kAlias) return no_place(change.at);
  if (old.is_block()) {  // a block gives way to one line
    patch(old.begin, old.end, yaml_flow(value.root(), YamlPlace::kFlow));
    return {};
  }
  if (old.begin == old.end && old.kind == NodeKind::kScalar) {  // nothing is written
    put_where_nothing_is(found, yaml_flow(value.root(), style_of(*found.parent)));
    return {};
  }
  if (old.is_block_scalar() && value.root().is_string() && !blank(old.text)) {
    patch(old.begin, old.end, in_lines(block_scalar(old, value.root().string())));
    return {};
  }
  if (old.is_block_scalar()) {
    patch(old.begin, old.end, yaml_flow(value.root(), YamlPlace::kFlow));
    return {};
  }
  patch(old.begin, old.end, scalar_text(old, value.root(), style_of(*found.parent)));
  return {};
}

// Which bytes of the source a part of a scalar's text stands in: both have the same characters but
// for blanks, unless there are escapes. Nothing when that cannot be said.
std::optional<std::vector<Patch>> YamlEditor::parts_in_source(
    const YamlNode& scalar, const std::vector<YamlChange::Part>& parts) const {
  std::size_t at = scalar.begin;
  std::size_t end = scalar.end;
  if (scalar.style == NodeStyle::kSingle || scalar.style == NodeStyle::kDouble) {
    if (end < at + 2) return std::nullopt;
    ++at;
    --end;
  } else if (scalar.is_block_scalar()) {
    at = std::min(source_.line_end(at) + 1, end);
  }
  const std::string_view written = bytes_.substr(at, end - at);
  if (scalar.style == NodeStyle::kDouble && written.find('\\') != std::string_view::npos) return {};
  if (scalar.style == NodeStyle::kSingle && written.find("''") != std::string_view::npos) return {};
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  std::vector<std::size_t> where(scalar.text.size() + 1, std::string::npos);
  std::size_t read = 0;
  for (std::size_t i = 0; i < scalar.text.size(); ++i) {
    if (is_blank(scalar.text[i])) continue;
    while (read < written.size() && is_blank(written[read])) ++read;
    if (read >= written.size() || written[read] != scalar.text[i]) return std::nullopt;
    where[i] = at + read++;
  }
  std::vector<Patch> out;
  for (const YamlChange::Part& part : parts) {
    if (part.begin > part.end || part.end > scalar.text.size()) return std::nullopt;
    if (part.begin == part.end) {  // between two characters
      const bool after = where[part.begin] == std::string::npos;
      if (after && (part.begin == 0 || where[part.begin - 1] == std::string::npos)) return {};
      const std::size_t here = after ? where[part.begin - 1] + 1 : where[part.begin];
      out.push_back({here, here, part.text});
      continue;
    }
    if (where[part.begin] == std::string::npos || where[part.end - 1] == std::string::npos) {
      return std::nullopt;
    }
    out.push_back({where[part.begin], where[part.end - 1] + 1, part.text});
  }
  return out;
}

Status YamlEditor::replace(const YamlChange& change) {
  BERTH_TRY(const Place found, place(change.at));
  const YamlNode& old = node(found.child().value);
  if (old.kind != NodeKind::kScalar) return no_place(change.at);
  std::string fresh;
  std::size_t done = 0;
  bool plain = true;
  for (const YamlChange::Part& part : change.parts) {
    if (part.begin < done || part.end < part.begin || part.end > old.text.size()) {
      return invalid("the parts of " + dotted(change.at) + " overlap");
    }
    fresh += old.text.substr(done, part.begin - done) + part.text;
    done = part.end;
    plain = plain && part.text.find_first_of("\n'\"\\") == std::string::npos;
  }
  fresh += old.text.substr(done);
  const bool quoted = old.style == NodeStyle::kSingle || old.style == NodeStyle::kDouble;
  const bool safe =
      old.style != NodeStyle::kPlain || yaml_string(fresh, style_of(*found.parent)) == fresh;
  if ((plain || !quoted) && safe) {
    if (auto parts = parts_in_source(old, change.parts)) {
      for (Patch& part : *parts) patch(part.begin, part.end, std::move(part.text));
      return {};
    }
  }
  YamlChange whole{.kind = ChangeKind::kSet, .at = change.at};
  whole.json = to_json(Value::make_string(fresh, 0));
  return set(whole);
}

Status YamlEditor::rename(const YamlChange& change) {
  BERTH_TRY(const Place found, place(change.at));
  if (found.parent->kind != NodeKind::kMapping) return no_place(change.at);
  const YamlNode& key = node(found.child().key);
  const Value name = Value::make_string(change.key, 0);
  patch(key.begin, key.end, scalar_text(key, name, style_of(*found.parent)));
  return {};
}

// ---- members and items -----------------------------------------------------------------------

Status YamlEditor::remove(const Place& found) {
  const YamlNode& parent = *found.parent;
  const std::size_t i = found.index;
  const std::size_t count = parent.children.size();
  const std::size_t begin = begin_of(parent, i);
  const std::size_t end = end_of(parent, i);
  if (!parent.is_block()) {
    if (i + 1 < count) {
      patch(begin, begin_of(parent, i + 1), "");
    } else {
      patch(i > 0 ? end_of(parent, i - 1) : begin, end, "");
    }
    return {};
  }
  const bool first = first_on_line(begin);
  if (count == 1) {
    const std::string none = parent.kind == NodeKind::kMapping ? "{}" : "[]";
    // A list may stand in its parent's column; a flow value may not.
    patch(begin, end, (first && parent.kind == NodeKind::kSequence ? " " : "") + none);
    return {};
  }
  if (first) {
    patch(source_.line_begin(begin), next_line(parent, i), "");
    return {};
  }
  if (i + 1 == count) return invalid("a last member beside a dash");
  const std::size_t next = begin_of(parent, i + 1);
  const bool only_blanks =
      blank(bytes_.substr(source_.line_end(end), next - source_.line_end(end)));
  if (only_blanks) {
    patch(begin, next, "");
  } else {
    patch(begin, source_.line_end(end), "");
  }
  return {};
}

Status YamlEditor::put(const YamlChange& change) {
  BERTH_TRY(const Document value, parse_json(change.json));
  if (change.at.empty()) return no_place(change.at);
  const YamlPath up(change.at.begin(), change.at.end() - 1);
  const auto found = source_.find(up);
  if (!found) return no_place(up);
  const YamlNode& parent = node(*found);
  const std::string& key = change.at.back();
  if (parent.kind == NodeKind::kSequence && key == "-") return put_item(parent, value.root());
  if (parent.kind == NodeKind::kMapping) {
    return put_member(parent, key, value.root(), change.before);
  }
  const bool nothing = parent.kind == NodeKind::kScalar && parent.begin == parent.end;
  if (!nothing || up.empty() || key == "-") return no_place(up);
  BERTH_TRY(const Place place_of_parent, place(up));
  put_where_nothing_is(place_of_parent, "{" + yaml_string(key, YamlPlace::kFlow) + ": " +
                                            yaml_flow(value.root(), YamlPlace::kFlow) + "}");
  return {};
}

// Lines after the last child of a block; the first is not indented yet.
Status YamlEditor::put_lines(const YamlNode& parent, const std::string& lines) {
  const std::size_t last = parent.children.size() - 1;
  const std::size_t at = next_line(parent, last);
  const std::string pad(parent.column, ' ');
  const bool open = at == bytes_.size() && !bytes_.ends_with('\n');
  patch(at, at, in_lines((open ? "\n" : "") + pad + lines + (open ? "" : "\n")));
  return {};
}

Status YamlEditor::put_member(const YamlNode& parent, const std::string& key, const Value& value,
                              const std::string& before) {
  if (source_.find_child(parent, key)) return Error(Code::kConflict, key + " is there already");
  const YamlPlace style = style_of(parent);
  const auto next = before.empty() ? std::nullopt : source_.find_child(parent, before);
  if (parent.is_block()) {
    const std::string lines = yaml_block_member(key, value, parent.column);
    if (!next) return put_lines(parent, lines);
    const std::size_t at = begin_of(parent, *next);
    patch(at, at, in_lines(lines + "\n" + std::string(parent.column, ' ')));
    return {};
  }
  const std::string member = yaml_string(key, style) + ": " + yaml_flow(value, style);
  if (next) {
    patch(begin_of(parent, *next), begin_of(parent, *next), member + ", ");
  } else if (parent.children.empty()) {
    patch(parent.begin, parent.end, "{" + member + "}");
  } else {
    const std::size_t end = end_of(parent, parent.children.size() - 1);
    patch(end, end, ", " + member);
  }
  return {};
}

Status YamlEditor::put_item(const YamlNode& parent, const Value& value) {
  if (parent.is_block()) {
    std::string lines = yaml_block_value(value, parent.column + 2);
    if (lines.starts_with("\n")) lines = " " + lines.substr(1 + parent.column + 2);
    return put_lines(parent, "-" + lines);
  }
  const std::string item = yaml_flow(value, style_of(parent));
  if (parent.children.empty()) {
    patch(parent.begin, parent.end, "[" + item + "]");
  } else {
    const std::size_t end = end_of(parent, parent.children.size() - 1);
    patch(end, end, ", " + item);
  }
  return {};
}

Status YamlEditor::move(const YamlChange& change) {
  BERTH_TRY(const Place from, place(change.at));
  BERTH_TRY(const YamlNode* to, mapping(change.to));
  if (from.parent->kind != NodeKind::kMapping) return no_place(change.at);
  const YamlNode& key = node(from.child().key);
  const YamlNode& value = node(from.child().value);
  if (to->begin >= key.begin && to->end <= value.end) return invalid("a move into itself");
  const std::string name = change.key.empty() ? key.text : change.key;
  if (source_.find_child(*to, name)) return Error(Code::kConflict, name + " is there already");
  if (to->is_block() && !to->children.empty()) {
    const std::size_t end = end_of(*from.parent, from.index);
    const std::size_t stop = from.parent->is_block() ? source_.line_end(end) : end;
    const std::string rest(bytes_.substr(key.end, stop - key.end));
    const auto here = static_cast<int>(key.begin - source_.line_begin(key.begin));
    const int shift = from.parent->is_block() ? static_cast<int>(to->column) - here : 0;
    BERTH_CHECK(put_lines(*to, yaml_string(name, YamlPlace::kBlock) + shifted(rest, shift)));
  } else {
    // Into braces: as one line, by value.
    BERTH_TRY(const std::vector<Document> documents, parse_yaml(bytes_));
    if (documents.empty()) return no_place(change.at);
    Value at = documents.front().root();
    for (const std::string& step : change.at) {
      const Value* next = at.is_array() ? nullptr : at.find(step);
      if (at.is_array()) {
        const auto index = static_cast<std::size_t>(std::strtoul(step.c_str(), nullptr, 10));
        next = index < at.size() ? &at.items()[index] : nullptr;
      }
      if (next == nullptr) return no_place(change.at);
      at = *next;
    }
    BERTH_CHECK(put_member(*to, name, at, {}));
  }
  return remove(from);
}

Status YamlEditor::wrap(const YamlChange& change) {
  BERTH_TRY(const YamlNode* found, mapping(change.at));
  const YamlNode& parent = *found;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < parent.children.size(); ++i) {
    const std::string& name = key_of(parent, i).text;
    if (change.members.empty() || std::count(change.members.begin(), change.members.end(), name)) {
      chosen.push_back(i);
    }
  }
  if (chosen.empty()) return no_place(change.at);
  if (!parent.is_block()) {
    std::string inside;
    for (const std::size_t i : chosen) {
      const std::size_t begin = begin_of(parent, i);
      inside += (inside.empty() ? "" : ", ") +
                std::string(bytes_.substr(begin, end_of(parent, i) - begin));
    }
    const std::string key = yaml_string(change.key, style_of(parent));
    for (std::size_t n = 1; n < chosen.size(); ++n) {
      patch(end_of(parent, chosen[n] - 1), end_of(parent, chosen[n]), "");
    }
    patch(begin_of(parent, chosen[0]), end_of(parent, chosen[0]), key + ": {" + inside + "}");
    return {};
  }
  // Runs of neighbours keep what stands between them.
  const std::string pad(parent.column + 2, ' ');
  std::string lines = yaml_string(change.key, YamlPlace::kBlock) + ":";
  for (std::size_t n = 0; n < chosen.size();) {
    std::size_t last = n;
    while (last + 1 < chosen.size() && chosen[last + 1] == chosen[last] + 1) ++last;
    const std::size_t begin = begin_of(parent, chosen[n]);
    const std::size_t end = source_.line_end(end_of(parent, chosen[last]));
    lines += line_end_ + pad + shifted(bytes_.substr(begin, end - begin), 2);
    if (n > 0) patch(source_.line_begin(begin), next_line(parent, chosen[last]), "");
    n = last + 1;
  }
  std::size_t run = 0;
  while (run + 1 < chosen.size() && chosen[run + 1] == chosen[run] + 1) ++run;
  patch(begin_of(parent, chosen[0]), source_.line_end(end_of(parent, chosen[run])), lines);
  return {};
}

Status YamlEditor::unwrap(const YamlChange& change) {
  BERTH_TRY(const Place found, place(change.at));
  const YamlNode& inner = node(found.child().value);
  if (found.parent->kind != NodeKind::kMapping || inner.kind != NodeKind::kMapping ||
      inner.children.empty() || inner.decorated) {
    return no_place(change.at);
  }
  const YamlNode& key = node(found.child().key);
  if (inner.is_block()) {
    const std::size_t begin = begin_of(inner, 0);
    const std::size_t end = source_.line_end(inner.end);
    const auto shift = static_cast<int>(found.parent->column) - static_cast<int>(inner.column);
    // Comments between the key and its first member stay, as lines of their own.
    std::string between(bytes_.substr(key.end, begin - key.end));
    const std::size_t comment = between.find('#');
    between = comment == std::string::npos ? "" : between.substr(comment);
    const std::string lines = shifted(between, shift);
    patch(key.begin, end, lines + shifted(bytes_.substr(begin, end - begin), shift));
    return {};
  }
  const std::string glue =
      found.parent->is_block() ? line_end_ + std::string(found.parent->column, ' ') : ", ";
  std::string members;
  for (std::size_t i = 0; i < inner.children.size(); ++i) {
    const std::size_t begin = begin_of(inner, i);
    members += (i == 0 ? "" : glue) + std::string(bytes_.substr(begin, end_of(inner, i) - begin));
  }
  patch(key.begin, inner.end, members);
  return {};
}

Result<std::string> YamlEditor::result() {
  std::stable_sort(patches_.begin(), patches_.end(),
                   [](const Patch& a, const Patch& b) { return a.begin < b.begin; });
  std::string out;
  std::size_t done = 0;
  for (const Patch& one : patches_) {
    if (one.begin < done) return invalid("two changes touch the same text");
    out += bytes_.substr(done, one.begin - done);
    out += one.text;
    done = one.end;
  }
  out += bytes_.substr(done);
  return out;
}

// What was set must be what is read.
Status check_set(const YamlChange& change, std::string_view text) {
  BERTH_TRY(const Document want, parse_json(change.json));
  if (!want.root().is_string()) return {};
  BERTH_TRY(const YamlSource read, YamlSource::read(text));
  const auto found = read.find(change.at);
  if (!found || read.node(*found).text != want.root().string()) {
    return invalid(dotted(change.at) + " cannot be written there");
  }
  return {};
}

}  // namespace

Result<std::string> edit_yaml(std::string_view source, std::span<const YamlChange> changes) {
  std::string text(source);
  for (const YamlChange& change : changes) {
    BERTH_TRY(const YamlSource read, YamlSource::read(text));
    if (read.empty()) return Error(Code::kNotFound, "the document is empty");
    YamlEditor editor(read);
    BERTH_CHECK(editor.make(change));
    BERTH_TRY(std::string next, editor.result());
    const auto again = parse_yaml(next);
    if (!again.ok()) return Error(Code::kInvalid, "the change would not be valid YAML");
    if (change.kind == ChangeKind::kSet) BERTH_CHECK(check_set(change, next));
    text = std::move(next);
  }
  return text;
}

}  // namespace berth::text
