// Bodies with duplicate keys, and paths into objects.
#include <map>
#include <optional>

#include "kinds/schema/node.h"
#include "text/editor.h"
#include "text/json.h"
#include "text/yaml.h"

namespace berth::sim {
namespace {

// Writes JSON again with the last of duplicate keys. Only run on a text whose one fault is a
// duplicate; any other fault makes it give up, and the reader's own error stands.
class Deduplicator {
 public:
  Deduplicator(std::string_view text, int max_depth) : text_(text), left_(max_depth) {}

  bool run(std::string& out) { return value(out) && (skip(), at_ == text_.size()); }
  std::vector<std::string> duplicates;

 private:
  struct Members {
    std::vector<std::pair<std::string, std::string>> list;
    std::map<std::string, std::size_t> places;
  };

  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool value(std::string& out) {
    skip();
    if (at_ >= text_.size()) return false;
    if (text_[at_] == '{' || text_[at_] == '[') {
      if (--left_ < 0) return false;
      const bool good = text_[at_] == '{' ? object(out) : array(out);
      ++left_;
      return good;
    }
    if (text_[at_] == '"') {
      std::string_view raw;
      if (!string(raw)) return false;
      out += raw;
      return true;
    }
    const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    if (end == at_) return false;
    out += text_.substr(at_, end - at_);
    at_ = end;
    return true;
  }

  bool string(std::string_view& raw) {
    skip();
    const std::size_t from = at_;
    if (at_ >= text_.size() || text_[at_] != '"') return false;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    if (at_ >= text_.size()) return false;
    ++at_;
    raw = text_.substr(from, at_ - from);
    return true;
  }

  bool array(std::string& out) {
    ++at_;
    out += '[';
    if (take(']')) {
      out += ']';
      return true;
    }
    for (std::size_t i = 0;; ++i) {
      const Path::Mark mark = path_.mark();
      path_.index(i);
      if (!value(out)) return false;
      path_.back(mark);
      if (take(']')) break;
      if (!take(',')) return false;
      out += ',';
    }
    out += ']';
    return true;
  }

  bool object(std::string& out) {
    ++at_;
    Members members;
    if (!take('}')) {
      while (true) {
        if (!member(members)) return false;
        if (take('}')) break;
        if (!take(',')) return false;
      }
    }
    out += '{';
    for (bool first = true; const auto& [key, text] : members.list) {
      if (!first) out += ',';
      first = false;
      text::append_json_string(out, key);
      out += ':' + text;
    }
    out += '}';
    return true;
  }

  bool member(Members& members) {
    std::string_view raw;
    if (!string(raw) || !take(':')) return false;
    const auto decoded = text::parse_json(raw);
    if (!decoded.ok()) return false;
    const std::string key(decoded->root().string());
    const Path::Mark mark = path_.mark();
    path_.child(key);
    std::string inner;
    if (!value(inner)) return false;
    const auto [place, fresh] = members.places.emplace(key, members.list.size());
    if (fresh) {
      members.list.emplace_back(key, std::move(inner));
    } else {
      if (duplicates.size() < 100) duplicates.push_back("duplicate field \"" + path_.text() + "\"");
      members.list[place->second].second = std::move(inner);
    }
    path_.back(mark);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int left_;
  Path path_;
};

// ".spec.replicas" as JSONPath has it; nothing for what is no path.
std::optional<text::Path> simple_path(std::string_view path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  return text::Path::parse(path);
}

}  // namespace

Result<Body> parse_body(std::string_view bytes, bool yaml, const text::Limits& limits) {
  // Most of what is sent as YAML is JSON, which has a quicker reader.
  if (yaml && bytes.substr(0, 1) == "{") {
    auto json = text::parse_json(bytes, {.limits = limits});
    if (json.ok()) return Body{std::move(json).value(), {}};
  }
  if (yaml) {
    // A value of YAML costs four times one of JSON, and the server's loop waits for it. Clients
    // send large objects as JSON.
    text::YamlOptions options;
    options.limits = limits;
    options.limits.max_nodes = std::min(limits.max_nodes, kMostYamlNodes);
    options.max_alias_nodes = std::min(options.max_alias_nodes, kMostYamlNodes);
    BERTH_TRY(auto documents, text::parse_yaml(bytes, options));
    if (documents.size() != 1) return invalid("the body is not one YAML document");
    return Body{std::move(documents.front()), {}};
  }
  text::JsonOptions options;
  options.limits = limits;
  auto plain = text::parse_json(bytes, options);
  if (plain.ok()) return Body{std::move(plain).value(), {}};
  Deduplicator again(bytes, limits.max_depth);
  std::string out;
  if (!again.run(out) || again.duplicates.empty()) return std::move(plain).error();
  BERTH_TRY(auto document, text::parse_json(out, options));
  return Body{std::move(document), std::move(again.duplicates)};
}

const Value* find_path(const Value& object, std::string_view path) {
  const std::optional<text::Path> known = simple_path(path);
  return known ? find(object, *known) : nullptr;
}

text::Document with_path(const Value& object, std::string_view path, const Value& value) {
  text::Editor edit;
  const std::optional<text::Path> known = simple_path(path);
  return text::Editor::finish(known ? edit.with_at(object, *known, value) : object);
}

}  // namespace berth::sim
