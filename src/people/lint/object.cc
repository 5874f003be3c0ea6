#include "people/lint/object.h"

#include <algorithm>
#include <charconv>

#include "text/escape.h"
#include "text/json_writer.h"
#include "text/yaml.h"

namespace berth::lint {

namespace {

using text::Value;
using text::YamlChange;
using text::YamlPath;

const Value* step_into(const Value& value, const std::string& step) {
  if (value.is_object()) return value.find(step);
  std::size_t index = 0;
  const auto [end, code] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (code != std::errc() || end != step.data() + step.size()) return nullptr;
  return value.is_array() && index < value.size() ? &value.items()[index] : nullptr;
}

const Value* find_value(const Value& root, const YamlPath& path) {
  const Value* at = &root;
  for (const std::string& step : path) {
    at = step_into(*at, step);
    if (at == nullptr) return nullptr;
  }
  return at;
}

}  // namespace

std::string Place::word() const {
  if (value_.is_string()) return std::string(value_.string());
  if (value_.is_number() || value_.is_bool()) return text::to_json(value_);
  return {};
}

Place Place::operator[](std::string_view key) const {
  YamlPath path = path_;
  path.emplace_back(key);
  Place out;
  if (const Value* found = there_ ? value_.find(key) : nullptr) {
    out.value_ = *found;
    out.there_ = true;
  }
  out.path_ = std::move(path);
  return out;
}

Place Place::operator[](std::size_t index) const {
  Place out;
  out.path_ = path_;
  out.path_.push_back(std::to_string(index));
  if (there_ && value_.is_array() && index < value_.size()) {
    out.value_ = value_.items()[index];
    out.there_ = true;
  }
  return out;
}

Place Place::up(const Place& root) const {
  if (path_.empty()) return {};
  YamlPath path(path_.begin(), path_.end() - 1);
  const Value* found = find_value(root.value(), path);
  if (found == nullptr) return {};
  return {*found, std::move(path)};
}

std::vector<Place> Place::items() const {
  std::vector<Place> out;
  for (std::size_t i = 0; i < value_.items().size(); ++i) out.push_back((*this)[i]);
  return out;
}

std::vector<Place> Place::members() const {
  std::vector<Place> out;
  for (const text::Member& member : value_.members()) {
    YamlPath path = path_;
    path.emplace_back(member.key);
    out.emplace_back(member.value, std::move(path));
  }
  return out;
}

std::string field_of(const YamlPath& path, const Value& root) {
  std::string out;
  const Value* at = &root;
  for (const std::string& step : path) {
    const bool index = at != nullptr && at->is_array();
    const bool plain = step.find_first_of("./[] ") == std::string::npos && !step.empty();
    if (index || !plain) {
      out += "[" + step + "]";
    } else {
      out += (out.empty() ? "" : ".") + step;
    }
    if (at != nullptr) at = step_into(*at, step);
  }
  return out;
}

std::string Object::title() const {
  if (kind.empty()) return {};
  return kind + (name.empty() ? "" : " " + (ns.empty() ? name : ns + "/" + name));
}

// ---- findings --------------------------------------------------------------------------------

bool Reporter::claimed(const YamlPath& path) const {
  return std::any_of(claimed_.begin(), claimed_.end(), [&](const YamlPath& one) {
    return one.size() <= path.size() && std::equal(one.begin(), one.end(), path.begin());
  });
}

const text::YamlSource* Source::marks() const {
  if (!asked_) {
    asked_ = true;
    auto read = text::YamlSource::read(bytes_);
    if (read.ok() && !read->empty()) marks_ = std::move(*read);
  }
  return marks_ ? &*marks_ : nullptr;
}

YamlPath Reporter::full(const YamlPath& path) const {
  YamlPath out = object_.prefix;
  out.insert(out.end(), path.begin(), path.end());
  return out;
}

namespace {

// The node to point at: a member's key, an item's value; the nearest parent of what is not there.
const text::YamlNode* node_to_show(const text::YamlSource& marks, YamlPath at) {
  while (!at.empty()) {
    const auto parent = marks.find({at.begin(), at.end() - 1});
    if (parent) {
      const text::YamlNode& owner = marks.node(*parent);
      if (const auto index = marks.find_child(owner, at.back())) {
        const auto& child = owner.children[*index];
        const bool member = owner.kind == text::YamlNode::Kind::kMapping;
        return &marks.node(member ? child.key : child.value);
      }
    }
    at.pop_back();
  }
  return &marks.root();
}

void prefix_changes(std::vector<YamlChange>& changes, const YamlPath& prefix) {
  for (YamlChange& change : changes) {
    change.at.insert(change.at.begin(), prefix.begin(), prefix.end());
    if (change.kind == YamlChange::Kind::kMove) {
      change.to.insert(change.to.begin(), prefix.begin(), prefix.end());
    }
  }
}

}  // namespace

void Reporter::locate(const YamlPath& path, Finding& out) const {
  if (const text::YamlSource* marks = object_.source->marks()) {
    const text::YamlNode* shown = node_to_show(*marks, path);
    out.line = object_.first_line + shown->line - 1;
    out.column = static_cast<int>(shown->column) + 1;
    return;
  }
  const Value* found = find_value(object_.source->root(), path);
  const int line = found == nullptr ? 0 : found->line();
  out.line = object_.first_line + std::max(line, 1) - 1;
}

void Reporter::add(std::string_view rule, const Place& where, std::string what, std::string fix,
                   std::optional<Fix> edit) {
  const Rule* known = find_rule(rule);
  Finding out;
  out.file = object_.file;
  out.document = object_.document;
  out.object = object_.title();
  out.field = field_of(where.path(), object_.value);
  out.rule = rule;
  out.severity = known == nullptr ? Severity::kError : known->severity;
  out.what = std::move(what);
  out.why = known == nullptr ? "" : std::string(known->why);
  out.fix = std::move(fix);
  if (edit && !object_.prefix.empty()) {
    if (!edit->document.empty()) {
      edit.reset();  // nothing can follow an item of a list
    } else if (edit->inside.empty()) {
      prefix_changes(edit->changes, object_.prefix);
    } else {
      edit->inside = full(edit->inside);
    }
  }
  out.edit = std::move(edit);
  locate(full(where.path()), out);
  if (out.severity != Severity::kNote) claim(where.path());
  out_.push_back(std::move(out));
}

void Reporter::add_inside(std::string_view rule, const Place& holder, const Place& where,
                          std::string what, std::string fix, std::optional<Fix> edit) {
  if (edit) edit->inside = holder.path();
  add(rule, holder, std::move(what), std::move(fix), std::move(edit));
  Finding& made = out_.back();
  const auto read = text::parse_yaml(holder.text());
  if (read.ok() && !read->empty()) {
    const std::string inner = field_of(where.path(), read->front().root());
    if (!inner.empty()) made.field += ": " + inner;
  }
  // Lines of a literal block follow its header one by one.
  const text::YamlSource* marks = object_.source->marks();
  const auto outer =
      marks == nullptr ? std::optional<std::size_t>() : marks->find(full(holder.path()));
  if (!outer || marks->node(*outer).style != text::YamlNode::Style::kLiteral) return;
  const auto inside = text::YamlSource::read(holder.text());
  if (!inside.ok() || inside->empty()) return;
  made.line += node_to_show(*inside, where.path())->line;
  made.column = 0;
}

std::string comment_of(const Object& object, const Place& place) {
  const text::YamlSource* marks = object.source->marks();
  if (marks == nullptr) return {};
  YamlPath path = object.prefix;
  path.insert(path.end(), place.path().begin(), place.path().end());
  const auto found = marks->find(path);
  if (!found || marks->node(*found).kind != text::YamlNode::Kind::kScalar) return {};
  const text::YamlNode& node = marks->node(*found);
  if (node.is_block_scalar()) return {};
  const std::string_view bytes = marks->bytes();
  std::string out;
  const std::string_view rest = bytes.substr(node.end, marks->line_end(node.end) - node.end);
  if (const std::size_t hash = rest.find(" #"); hash != std::string_view::npos) {
    out = rest.substr(hash + 2);
  }
  constexpr int kLinesAbove = 5;
  std::size_t line = marks->line_begin(node.begin);
  for (int i = 0; i < kLinesAbove && line > 0; ++i) {
    line = marks->line_begin(line - 1);
    const std::string_view above = bytes.substr(line, marks->line_end(line) - line);
    const std::size_t first = above.find_first_not_of(" \t");
    if (first == std::string_view::npos || above[first] != '#') break;
    out = std::string(above.substr(first + 1)) + " " + out;
  }
  return out;
}

// ---- fixes -----------------------------------------------------------------------------------

std::string json_text(std::string_view text) {
  std::string out;
  text::append_json_string(out, text);
  return out;
}

YamlChange set_value(const YamlPath& at, std::string json) {
  YamlChange out{.kind = YamlChange::Kind::kSet, .at = at};
  out.json = std::move(json);
  return out;
}

YamlChange set_text(const YamlPath& at, std::string_view text) {
  return set_value(at, json_text(text));
}

YamlChange rename_key(const YamlPath& at, std::string key) {
  YamlChange out{.kind = YamlChange::Kind::kRename, .at = at};
  out.key = std::move(key);
  return out;
}

YamlChange remove_at(const YamlPath& at) { return {.kind = YamlChange::Kind::kRemove, .at = at}; }

YamlChange remove_upwards(const Place& root, const YamlPath& at) {
  YamlPath path = at;
  while (path.size() > 1) {
    const Value* parent = find_value(root.value(), {path.begin(), path.end() - 1});
    if (parent == nullptr || parent->size() != 1) break;
    path.pop_back();
  }
  return remove_at(path);
}

YamlChange put_value(const Place& from, YamlPath path, std::string json) {
  const auto parent_there = [&] {
    const Value* parent = find_value(from.value(), {path.begin(), path.end() - 1});
    return parent != nullptr && (parent->is_object() || parent->is_array() || parent->is_null());
  };
  while (path.size() > 1 && !parent_there()) {
    json = "{" + json_text(path.back()) + ":" + json + "}";
    path.pop_back();
  }
  YamlChange out{.kind = YamlChange::Kind::kPut, .at = from.path()};
  out.at.insert(out.at.end(), path.begin(), path.end());
  out.json = std::move(json);
  return out;
}

Fix one_change(YamlChange change) {
  Fix out;
  out.changes.push_back(std::move(change));
  return out;
}

void walk(const Place& from, const std::function<bool(const Place&)>& visit) {
  if (!visit(from)) return;
  for (const Place& member : from.members()) walk(member, visit);
  for (const Place& item : from.items()) walk(item, visit);
}

}  // namespace berth::lint
