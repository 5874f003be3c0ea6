// Bodies with duplicate keys, and paths into objects.
#include <charconv>
#include <map>

#include "sim/schema/edit.h"
#include "sim/schema/node.h"
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

// One step of ".a['b.c'][0]"; false at the end or where it is not understood.
struct PathStep {
  std::string_view key;
  std::size_t index = 0;
  bool is_index = false;
};

bool next_step(std::string_view& path, PathStep& step) {
  if (path.empty()) return false;
  if (path.front() == '[') {
    const std::size_t end = path.find(']');
    if (end == std::string_view::npos) return false;
    std::string_view inner = path.substr(1, end - 1);
    path.remove_prefix(end + 1);
    if (inner.size() >= 2 && (inner.front() == '\'' || inner.front() == '"')) {
      step = {inner.substr(1, inner.size() - 2), 0, false};
      return true;
    }
    step = {{}, 0, true};
    const auto [ptr, code] = std::from_chars(inner.data(), inner.data() + inner.size(), step.index);
    return code == std::errc() && ptr == inner.data() + inner.size();
  }
  if (path.front() == '.') path.remove_prefix(1);
  const std::size_t end = std::min(path.find_first_of(".["), path.size());
  step = {path.substr(0, end), 0, false};
  path.remove_prefix(end);
  return !step.key.empty();
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
  const Value* now = &object;
  PathStep step;
  while (!path.empty()) {
    if (!next_step(path, step)) return nullptr;
    if (step.is_index) {
      if (step.index >= now->items().size()) return nullptr;
      now = &now->items()[step.index];
    } else {
      now = now->find(step.key);
    }
    if (now == nullptr) return nullptr;
  }
  return now;
}

text::Document with_path(const Value& object, std::string_view path, const Value& value) {
  std::vector<std::string_view> keys;
  PathStep step;
  while (!path.empty() && next_step(path, step) && !step.is_index) keys.push_back(step.key);
  Draft draft;
  return Draft::finish(draft.set_in(object, std::span<const std::string_view>(keys), value));
}

}  // namespace berth::sim
