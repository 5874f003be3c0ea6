#include "text/yaml_source.h"

#include <yaml.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>

#include "text/yaml_scalar.h"

namespace berth::text {

// Named, because the reader below is a friend of YamlSource and has members of these types.
namespace yaml_marks {

using NodeKind = YamlNode::Kind;
using SourceStyle = YamlNode::Style;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

class MarkedEvent {
 public:
  MarkedEvent() = default;
  ~MarkedEvent() { yaml_event_delete(&event_); }
  MarkedEvent(const MarkedEvent&) = delete;
  MarkedEvent& operator=(const MarkedEvent&) = delete;
  yaml_event_t* fresh() {
    yaml_event_delete(&event_);
    return &event_;
  }
  const yaml_event_t* operator->() const { return &event_; }

 private:
  yaml_event_t event_ = {};
};

// libyaml counts characters; texts are bytes.
class Offsets {
 public:
  explicit Offsets(std::string_view bytes) : bytes_(bytes) {
    base_ = bytes.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    const bool ascii = std::all_of(bytes.begin(), bytes.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (ascii) return;
    for (std::size_t at = base_; at < bytes.size(); ++at) {
      if ((static_cast<unsigned char>(bytes[at]) & 0xc0) != 0x80) starts_.push_back(at);
    }
    starts_.push_back(bytes.size());
  }
  std::size_t of(const yaml_mark_t& mark) const {
    if (starts_.empty()) return std::min(base_ + mark.index, bytes_.size());
    return mark.index < starts_.size() ? starts_[mark.index] : bytes_.size();
  }

 private:
  std::string_view bytes_;
  std::size_t base_ = 0;
  std::vector<std::size_t> starts_;  // of each character; empty: one byte each
};

Error source_error(const yaml_parser_t& parser) {
  const std::string problem = parser.problem == nullptr ? "not valid YAML" : parser.problem;
  return invalid("line " + std::to_string(parser.problem_mark.line + 1) + ": " + problem);
}

struct ParserClosed {
  void operator()(yaml_parser_t* parser) const {
    yaml_parser_delete(parser);
    delete parser;
  }
};
using Parser = std::unique_ptr<yaml_parser_t, ParserClosed>;

Parser open_parser(std::string_view bytes) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  if (bytes.empty()) bytes = "";  // of nothing: libyaml takes no null pointer
  auto parser = std::make_unique<yaml_parser_t>();
  if (yaml_parser_initialize(parser.get()) == 0) return nullptr;
  yaml_parser_set_input_string(parser.get(), reinterpret_cast<const unsigned char*>(bytes.data()),
                               bytes.size());
  yaml_parser_set_encoding(parser.get(), YAML_UTF8_ENCODING);
  return Parser(parser.release());
}

SourceStyle scalar_style(yaml_scalar_style_t style) {
  switch (style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
      return SourceStyle::kSingle;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
      return SourceStyle::kDouble;
    case YAML_LITERAL_SCALAR_STYLE:
      return SourceStyle::kLiteral;
    case YAML_FOLDED_SCALAR_STYLE:
      return SourceStyle::kFolded;
    default:
      return SourceStyle::kPlain;
  }
}

bool is_null_event(const MarkedEvent& event) {
  if (event->type != YAML_SCALAR_EVENT) return false;
  const auto& s = event->data.scalar;
  const std::string_view text(reinterpret_cast<const char*>(s.value), s.length);
  return s.style == YAML_PLAIN_SCALAR_STYLE && resolve_plain_scalar(text).type == YamlScalar::kNull;
}

}  // namespace yaml_marks

using namespace yaml_marks;

// Reads events into nodes. Recursive; the limit on depth keeps the stack small.
class YamlSourceReader {
 public:
  YamlSourceReader(std::string_view bytes, const Limits& limits)
      : bytes_(bytes), limits_(limits), offsets_(bytes), parser_(open_parser(bytes)) {}

  Result<YamlSource> run() {
    if (parser_ == nullptr) return Error(Code::kExhausted, "out of memory");
    source_.bytes_ = bytes_;
    source_.lines_.push_back(0);
    for (std::size_t at = bytes_.find('\n'); at != std::string_view::npos;
         at = bytes_.find('\n', at + 1)) {
      source_.lines_.push_back(at + 1);
    }
    MarkedEvent event;
    while (true) {
      BERTH_CHECK(next(event));
      if (event->type == YAML_STREAM_END_EVENT) return std::move(source_);
      if (event->type != YAML_DOCUMENT_START_EVENT) continue;
      BERTH_CHECK(next(event));
      const bool empty = is_null_event(event);
      BERTH_CHECK(node(event, 0));
      if (!empty) return std::move(source_);
      source_.nodes_.clear();
    }
  }

 private:
  Status next(MarkedEvent& event) {
    if (yaml_parser_parse(parser_.get(), event.fresh()) == 0) return source_error(*parser_);
    return {};
  }

  Result<std::size_t> node(const MarkedEvent& event, int depth) {
    if (depth > std::min(limits_.max_depth, 1000)) {
      return Error(Code::kExhausted, "nested deeper than the limit");
    }
    if (source_.nodes_.size() >= limits_.max_nodes) {
      return Error(Code::kExhausted, "more values than the limit");
    }
    const std::size_t id = source_.nodes_.size();
    YamlNode made;
    made.begin = offsets_.of(event->start_mark);
    made.end = offsets_.of(event->end_mark);
    made.line = static_cast<int>(std::min<std::size_t>(event->start_mark.line, 1u << 27)) + 1;
    made.column = made.begin - source_.line_begin(made.begin);
    const yaml_event_type_t type = event->type;
    if (type == YAML_ALIAS_EVENT) {
      made.kind = NodeKind::kAlias;
      source_.nodes_.push_back(std::move(made));
      return id;
    }
    if (type == YAML_SCALAR_EVENT) {
      scalar(event, made);
      source_.nodes_.push_back(std::move(made));
      return id;
    }
    if (type != YAML_SEQUENCE_START_EVENT && type != YAML_MAPPING_START_EVENT) {
      return invalid("line " + std::to_string(made.line) + ": found no value where one must be");
    }
    const bool sequence = type == YAML_SEQUENCE_START_EVENT;
    const auto& s = event->data.sequence_start;
    const auto& m = event->data.mapping_start;
    made.kind = sequence ? NodeKind::kSequence : NodeKind::kMapping;
    const bool flow =
        sequence ? s.style == YAML_FLOW_SEQUENCE_STYLE : m.style == YAML_FLOW_MAPPING_STYLE;
    made.style = flow ? SourceStyle::kFlow : SourceStyle::kBlock;
    made.decorated = sequence ? s.anchor != nullptr || s.tag != nullptr
                              : m.anchor != nullptr || m.tag != nullptr;
    if (made.decorated) made.begin = skip_decoration(made.begin);
    source_.nodes_.push_back(std::move(made));
    BERTH_CHECK(sequence ? items(id, depth) : members(id, depth));
    finish(id);
    return id;
  }

  void scalar(const MarkedEvent& event, YamlNode& made) const {
    const auto& s = event->data.scalar;
    made.text.assign(reinterpret_cast<const char*>(s.value), s.length);
    made.style = scalar_style(s.style);
    made.decorated = s.anchor != nullptr || s.tag != nullptr;
    if (made.decorated) made.begin = std::min(skip_decoration(made.begin), made.end);
    if (!made.is_block_scalar()) return;
    while (made.end > made.begin && (bytes_[made.end - 1] == '\n' || bytes_[made.end - 1] == '\r' ||
                                     bytes_[made.end - 1] == ' ')) {
      --made.end;
    }
  }

  // Past "&anchor", "!tag" and what separates them from the node.
  std::size_t skip_decoration(std::size_t at) const {
    while (at < bytes_.size()) {
      const char c = bytes_[at];
      if (c == '&' || c == '!') {
        at = std::min(bytes_.find_first_of(" \t\r\n", at), bytes_.size());
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++at;
      } else if (c == '#') {
        at = source_.line_end(at);
      } else {
        break;
      }
    }
    return at;
  }

  Status items(std::size_t id, int depth) {
    MarkedEvent event;
    while (true) {
      BERTH_CHECK(next(event));
      if (event->type == YAML_SEQUENCE_END_EVENT) break;
      BERTH_TRY(const std::size_t item, node(event, depth + 1));
      YamlNode::Child child{.key = 0, .value = item, .dash = 0};
      if (source_.nodes_[id].is_block()) {
        BERTH_TRY(child.dash, dash_of(id, item));
      }
      source_.nodes_[id].children.push_back(child);
    }
    close(id, event);
    return {};
  }

  Status members(std::size_t id, int depth) {
    MarkedEvent event;
    while (true) {
      BERTH_CHECK(next(event));
      if (event->type == YAML_MAPPING_END_EVENT) break;
      BERTH_TRY(const std::size_t key, node(event, depth + 1));
      BERTH_CHECK(next(event));
      BERTH_TRY(const std::size_t value, node(event, depth + 1));
      source_.nodes_[id].children.push_back({.key = key, .value = value, .dash = 0});
    }
    close(id, event);
    return {};
  }

  void close(std::size_t id, const MarkedEvent& event) {
    if (!source_.nodes_[id].is_block()) source_.nodes_[id].end = offsets_.of(event->end_mark);
  }

  // The events of a block collection end where the next token begins; it ends with its last child.
  void finish(std::size_t id) {
    YamlNode& made = source_.nodes_[id];
    if (!made.is_block() || made.children.empty()) return;
    const YamlNode::Child& last = made.children.back();
    made.end = source_.nodes_[last.value].end;
    if (made.kind == NodeKind::kMapping)
      made.end = std::max(made.end, source_.nodes_[last.key].end);
    made.end = std::max(made.end, made.kind == NodeKind::kSequence ? last.dash + 1 : made.begin);
    const std::size_t first = made.kind == NodeKind::kMapping
                                  ? source_.nodes_[made.children.front().key].begin
                                  : made.children.front().dash;
    made.column = first - source_.line_begin(first);
  }

  // Every "-" of a list stands in the column of the first.
  Result<std::size_t> dash_of(std::size_t id, std::size_t item) const {
    const YamlNode& list = source_.nodes_[id];
    if (list.children.empty()) return list.begin;
    const std::size_t first = list.children.front().dash;
    const std::size_t column = first - source_.line_begin(first);
    const std::size_t floor = list.children.back().dash;
    std::size_t line = source_.line_begin(source_.nodes_[item].begin);
    while (line > floor) {
      const std::size_t at = line + column;
      const bool blank = at < bytes_.size() && bytes_.substr(line, column).find_first_not_of(' ') ==
                                                   std::string_view::npos;
      if (blank && bytes_[at] == '-') return at;
      if (line == 0) break;
      line = source_.line_begin(line - 1);
    }
    return invalid("line " + std::to_string(source_.nodes_[item].line) + ": found no \"-\"");
  }

  std::string_view bytes_;
  const Limits& limits_;
  Offsets offsets_;
  Parser parser_;
  YamlSource source_;
};

Result<YamlSource> YamlSource::read(std::string_view bytes, const Limits& limits) {
  if (bytes.size() > std::min<std::size_t>(limits.max_bytes, 0xffff'ffffu)) {
    return Error(Code::kExhausted, "more bytes than the limit");
  }
  return YamlSourceReader(bytes, limits).run();
}

std::optional<std::size_t> YamlSource::find_child(const YamlNode& parent,
                                                  std::string_view step) const {
  if (parent.kind == NodeKind::kSequence) {
    std::size_t index = 0;
    const auto [end, code] = std::from_chars(step.data(), step.data() + step.size(), index);
    if (code != std::errc() || end != step.data() + step.size()) return std::nullopt;
    if (index >= parent.children.size()) return std::nullopt;
    return index;
  }
  if (parent.kind != NodeKind::kMapping) return std::nullopt;
  for (std::size_t i = 0; i < parent.children.size(); ++i) {
    const YamlNode& key = nodes_[parent.children[i].key];
    if (key.kind == NodeKind::kScalar && key.text == step) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> YamlSource::find(const YamlPath& path) const {
  if (nodes_.empty()) return std::nullopt;
  std::size_t at = 0;
  for (const std::string& step : path) {
    const auto child = find_child(nodes_[at], step);
    if (!child) return std::nullopt;
    at = nodes_[at].children[*child].value;
  }
  return at;
}

std::size_t YamlSource::line_begin(std::size_t at) const {
  return *std::prev(std::upper_bound(lines_.begin(), lines_.end(), at));
}

std::size_t YamlSource::line_end(std::size_t at) const {
  std::size_t found = std::min(bytes_.find('\n', at), bytes_.size());
  if (found > at && found < bytes_.size() && bytes_[found - 1] == '\r') --found;
  return found;
}

Result<std::vector<std::size_t>> yaml_document_starts(std::string_view bytes) {
  const Parser parser = open_parser(bytes);
  if (parser == nullptr) return Error(Code::kExhausted, "out of memory");
  const Offsets offsets(bytes);
  std::vector<std::size_t> out;
  MarkedEvent event;
  std::size_t start = 0;
  bool fresh = false;  // the next event is a document's root
  while (true) {
    if (yaml_parser_parse(parser.get(), event.fresh()) == 0) return source_error(*parser);
    if (event->type == YAML_STREAM_END_EVENT) break;
    if (event->type == YAML_DOCUMENT_START_EVENT) {
      start = offsets.of(event->start_mark);
      fresh = true;
      continue;
    }
    if (!fresh) continue;
    fresh = false;
    if (!is_null_event(event)) out.push_back(out.empty() ? 0 : start);
  }
  return out;
}

}  // namespace berth::text
