#include "text/yaml.h"

#include <yaml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "text/builder.h"
#include "text/escape.h"
#include "text/json.h"
#include "text/yaml_scalar.h"

namespace berth::text {

namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

std::string_view yaml_view(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

int line_of(const yaml_mark_t& mark) {
  return static_cast<int>(std::min<std::size_t>(mark.line, 1u << 27)) + 1;
}

Error yaml_error(int line, std::string message, Code code = Code::kInvalid) {
  return Error(code, "line " + std::to_string(line) + ": " + std::move(message));
}

std::string shown_yaml(std::string_view text) {
  return elide_middle(terminal_safe(text.substr(0, 256)), 60);
}

// Owns one libyaml event.
class Event {
 public:
  Event() = default;
  ~Event() { yaml_event_delete(&event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  yaml_event_t* reset() {
    yaml_event_delete(&event_);
    return &event_;
  }
  const yaml_event_t& operator*() const { return event_; }
  const yaml_event_t* operator->() const { return &event_; }
  int line() const { return line_of(event_.start_mark); }

 private:
  yaml_event_t event_ = {};
};

class YamlReader {
 public:
  YamlReader(std::string_view bytes, const YamlOptions& options)
      : bytes_(bytes), options_(options) {
    if (bytes.empty()) bytes = "";  // of nothing: libyaml takes no null pointer
    ready_ = yaml_parser_initialize(&parser_) != 0;
    if (!ready_) return;
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(bytes.data()),
                                 bytes.size());
  }
  ~YamlReader() {
    if (ready_) yaml_parser_delete(&parser_);
  }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;

  Status run(const std::function<Status(Document)>& visit);

 private:
  struct Anchor {
    Value value;
    bool complete = false;
  };

  Status next(Event& event);
  Error parser_error() const;
  Result<Document> document();
  Status node(const Event& event);
  Status scalar(const Event& event);
  Status tagged_scalar(const Event& event, std::string_view tag, std::string_view text);
  Status put(const YamlScalar& scalar, std::string_view text, int line);
  Status sequence(const Event& event);
  Status mapping(const Event& event);
  Status key(const Event& event, bool& merge);
  Status add_merged(const std::vector<Value>& sources, int line);
  Status merge_one(const Value& source, std::set<std::string_view>& known, int line);
  Status alias(const Event& event);
  Status check_tag(std::string_view tag, std::string_view allowed, int line) const;
  Status copy_alias(const Value& value, int line);
  Status built(int line) const;

  std::string_view bytes_;
  const YamlOptions& options_;
  yaml_parser_t parser_ = {};
  bool ready_ = false;
  std::optional<Builder> builder_;  // of the document being read
  std::map<std::string, Anchor, std::less<>> anchors_;
  std::size_t alias_nodes_ = 0;
};

Error YamlReader::parser_error() const {
  const std::string problem = parser_.problem == nullptr ? "not valid YAML" : parser_.problem;
  if (parser_.error == YAML_MEMORY_ERROR) return {Code::kExhausted, "out of memory"};
  if (parser_.error == YAML_READER_ERROR) {  // has an offset and no mark
    const std::size_t offset = std::min(parser_.problem_offset, bytes_.size());
    const auto line =
        1 + std::count(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
    return yaml_error(static_cast<int>(line),
                      "found bytes that are not text, want UTF-8: " + problem);
  }
  std::string message = problem;
  if (parser_.context != nullptr) message += std::string(" ") + parser_.context;
  return yaml_error(line_of(parser_.problem_mark),
                    "column " + std::to_string(parser_.problem_mark.column + 1) + ": " + message);
}

Status YamlReader::next(Event& event) {
  if (yaml_parser_parse(&parser_, event.reset()) == 0) return parser_error();
  return {};
}

Status YamlReader::built(int line) const {
  if (!builder_->failed()) return {};
  const Error error = builder_->error();
  const int at = builder_->failed_line() > 0 ? builder_->failed_line() : line;
  return yaml_error(at, error.message(), error.code());
}

Status YamlReader::run(const std::function<Status(Document)>& visit) {
  if (!ready_) return Error(Code::kExhausted, "out of memory");
  Event event;
  std::size_t documents = 0;
  while (true) {
    BERTH_CHECK(next(event));
    if (event->type == YAML_STREAM_END_EVENT) return {};
    if (event->type != YAML_DOCUMENT_START_EVENT) continue;
    if (++documents > options_.max_documents) {
      return yaml_error(
          event.line(),
          "more than " + std::to_string(options_.max_documents) + " documents, which is the limit",
          Code::kExhausted);
    }
    BERTH_TRY(Document read, document());
    if (!read.root().is_null()) BERTH_CHECK(visit(std::move(read)));
  }
}

Result<Document> YamlReader::document() {
  anchors_.clear();
  builder_.emplace(options_.limits);
  Event event;
  BERTH_CHECK(next(event));
  BERTH_CHECK(node(event));
  BERTH_CHECK(next(event));  // the end of the document
  return std::move(*builder_).finish();
}

// Recursive; the builder's limit on depth keeps the stack small.
Status YamlReader::node(const Event& event) {
  std::string_view name;
  switch (event->type) {
    case YAML_ALIAS_EVENT:
      return alias(event);
    case YAML_SCALAR_EVENT:
      name = yaml_view(event->data.scalar.anchor);
      break;
    case YAML_SEQUENCE_START_EVENT:
      name = yaml_view(event->data.sequence_start.anchor);
      break;
    case YAML_MAPPING_START_EVENT:
      name = yaml_view(event->data.mapping_start.anchor);
      break;
    default:
      return yaml_error(event.line(), "found no value where one must be");
  }
  const std::string anchor(name);
  if (!anchor.empty()) anchors_[anchor] = {};
  if (event->type == YAML_SCALAR_EVENT) {
    BERTH_CHECK(scalar(event));
  } else if (event->type == YAML_SEQUENCE_START_EVENT) {
    BERTH_CHECK(sequence(event));
  } else {
    BERTH_CHECK(mapping(event));
  }
  BERTH_CHECK(built(event.line()));
  if (!anchor.empty()) anchors_[anchor] = {builder_->last(), true};
  return {};
}

Status YamlReader::check_tag(std::string_view tag, std::string_view allowed, int line) const {
  if (tag.empty() || tag == "!" ||
      (tag.starts_with(kTagPrefix) && tag.substr(kTagPrefix.size()) == allowed)) {
    return {};
  }
  return yaml_error(line,
                    "found tag " + shown_yaml(tag) + ", want none or !!" + std::string(allowed));
}

Status YamlReader::put(const YamlScalar& value, std::string_view text, int line) {
  switch (value.type) {
    case YamlScalar::kNull:
      builder_->null(line);
      break;
    case YamlScalar::kBool:
      builder_->boolean(value.truth, line);
      break;
    case YamlScalar::kInt:
    case YamlScalar::kFloat:
      builder_->number(builder_->copy(value.text), line);
      break;
    case YamlScalar::kString:
      builder_->string(builder_->copy(text), line);
      break;
    case YamlScalar::kNotJson:
      return yaml_error(line, "found " + value.text);
  }
  return {};
}

Status YamlReader::scalar(const Event& event) {
  const auto& s = event->data.scalar;
  const std::string_view text(reinterpret_cast<const char*>(s.value), s.length);
  const std::string_view tag = yaml_view(s.tag);
  if (!tag.empty() && tag != "!") return tagged_scalar(event, tag, text);
  const bool plain = s.style == YAML_PLAIN_SCALAR_STYLE && tag.empty();
  return put(plain ? resolve_plain_scalar(text) : YamlScalar(), text, event.line());
}

Status YamlReader::tagged_scalar(const Event& event, std::string_view tag, std::string_view text) {
  const int line = event.line();
  const std::string_view type = tag.starts_with(kTagPrefix) ? tag.substr(kTagPrefix.size()) : "";
  if (type == "str" || type == "timestamp") return put({}, text, line);
  const YamlScalar value = resolve_plain_scalar(text);
  const bool fits =
      (type == "int" && value.type == YamlScalar::kInt) ||
      (type == "float" && (value.type == YamlScalar::kFloat || value.type == YamlScalar::kInt)) ||
      (type == "bool" && value.type == YamlScalar::kBool) ||
      (type == "null" && value.type == YamlScalar::kNull);
  if (fits) return put(value, text, line);
  if (type == "int" || type == "float" || type == "bool" || type == "null") {
    return yaml_error(line, "found \"" + shown_yaml(text) + "\" with the tag !!" +
                                std::string(type) + ", want a value of that type");
  }
  return yaml_error(line, "found tag " + shown_yaml(tag) +
                              ", want none or one of !!str !!int !!float !!bool !!null");
}

Status YamlReader::sequence(const Event& event) {
  const int line = event.line();
  BERTH_CHECK(check_tag(yaml_view(event->data.sequence_start.tag), "seq", line));
  builder_->begin_array(line);
  Event item;
  while (true) {
    BERTH_CHECK(built(line));
    BERTH_CHECK(next(item));
    if (item->type == YAML_SEQUENCE_END_EVENT) break;
    BERTH_CHECK(node(item));
  }
  builder_->end();
  return {};
}

// Reads a key into the builder; merge is set for a plain "<<".
Status YamlReader::key(const Event& event, bool& merge) {
  const int line = event.line();
  const auto column = static_cast<std::uint32_t>(event->start_mark.column + 1);
  if (event->type == YAML_ALIAS_EVENT) {
    const auto found = anchors_.find(yaml_view(event->data.alias.anchor));
    if (found == anchors_.end() || !found->second.complete || !found->second.value.is_string()) {
      return yaml_error(line, "found an alias as a key, want it to name a string");
    }
    builder_->key(found->second.value.string(), line, column);
    return {};
  }
  if (event->type != YAML_SCALAR_EVENT) {
    return yaml_error(line, "found a list or a mapping as a key, want a string");
  }
  const auto& s = event->data.scalar;
  const std::string_view text(reinterpret_cast<const char*>(s.value), s.length);
  const std::string_view tag = yaml_view(s.tag);
  merge = text == "<<" && s.style == YAML_PLAIN_SCALAR_STYLE &&
          (tag.empty() || tag == std::string(kTagPrefix) + "merge");
  if (!merge) BERTH_CHECK(check_tag(tag, "str", line));
  const bool plain = s.style == YAML_PLAIN_SCALAR_STYLE && tag.empty();
  const YamlScalar value = plain && !merge ? resolve_plain_scalar(text) : YamlScalar();
  std::string spelled;
  switch (value.type) {
    case YamlScalar::kString:
      spelled = text;
      break;
    case YamlScalar::kBool:
      spelled = value.truth ? "true" : "false";
      break;
    case YamlScalar::kInt:
      spelled = value.text;
      break;
    case YamlScalar::kFloat:
      spelled = yaml_float_key(value.number);
      break;
    case YamlScalar::kNull:
      return yaml_error(line, "found null as a key, want a string");
    case YamlScalar::kNotJson:
      return yaml_error(line, "found " + value.text);
  }
  const std::string_view kept = builder_->copy(spelled);
  if (s.anchor != nullptr) {
    anchors_[std::string(yaml_view(s.anchor))] = {Value::make_string(kept, line), true};
  }
  builder_->key(kept, line, column);
  return {};
}

Status YamlReader::mapping(const Event& event) {
  const int line = event.line();
  BERTH_CHECK(check_tag(yaml_view(event->data.mapping_start.tag), "map", line));
  builder_->begin_object(line);
  std::vector<Value> merged;
  Event item;
  while (true) {
    BERTH_CHECK(built(line));
    BERTH_CHECK(next(item));
    if (item->type == YAML_MAPPING_END_EVENT) break;
    bool merge = false;
    BERTH_CHECK(key(item, merge));
    BERTH_CHECK(next(item));
    BERTH_CHECK(node(item));
    if (merge) merged.push_back(builder_->pop_member().value);
  }
  if (!merged.empty()) BERTH_CHECK(add_merged(merged, line));
  builder_->end();
  return {};
}

Status YamlReader::add_merged(const std::vector<Value>& sources, int line) {
  std::set<std::string_view> known;
  for (const Member& member : builder_->open_members()) known.insert(member.key);
  for (const Value& source : sources) {
    if (!source.is_array()) {
      BERTH_CHECK(merge_one(source, known, line));
      continue;
    }
    for (const Value& item : source.items()) BERTH_CHECK(merge_one(item, known, line));
  }
  return {};
}

Status YamlReader::merge_one(const Value& source, std::set<std::string_view>& known, int line) {
  if (!source.is_object()) {
    return yaml_error(source.line() > 0 ? source.line() : line,
                      "found " + std::string(name(source.kind())) +
                          " for the merge key <<, want a mapping or a list of mappings");
  }
  for (const Member& member : source.members()) {
    if (!known.insert(member.key).second) continue;
    builder_->key(member.key, line);
    BERTH_CHECK(copy_alias(member.value, line));
  }
  return {};
}

// Shares nothing: the copy counts against the limits like nodes that were written out.
Status YamlReader::copy_alias(const Value& value, int line) {
  const std::size_t before = builder_->nodes();
  const std::size_t left = options_.max_alias_nodes - alias_nodes_;
  std::size_t count = 0;
  std::vector<const Value*> open{&value};
  while (!open.empty() && count <= left) {
    const Value* at = open.back();
    open.pop_back();
    ++count;
    for (const Value& item : at->items()) open.push_back(&item);
    for (const Member& member : at->members()) open.push_back(&member.value);
  }
  if (count > left) {
    return yaml_error(line,
                      "aliases add more than " + std::to_string(options_.max_alias_nodes) +
                          " values, which is the limit",
                      Code::kExhausted);
  }
  builder_->deep_copy(value);
  alias_nodes_ += builder_->nodes() - before;
  return built(line);
}

Status YamlReader::alias(const Event& event) {
  const std::string_view name = yaml_view(event->data.alias.anchor);
  const auto found = anchors_.find(name);
  if (found == anchors_.end()) {
    return yaml_error(event.line(), "found alias *" + shown_yaml(name) +
                                        ", want an anchor of that name before it");
  }
  if (!found->second.complete) {
    return yaml_error(event.line(), "found alias *" + shown_yaml(name) +
                                        " inside the value it names, want no such loop");
  }
  return copy_alias(found->second.value, event.line());
}

}  // namespace

Status read_yaml(std::string_view bytes, const std::function<Status(Document)>& visit,
                 const YamlOptions& options) {
  const std::size_t limit = std::min<std::size_t>(options.limits.max_bytes, 0xffff'ffffu);
  if (bytes.size() > limit) {
    return Error(Code::kExhausted, "found " + std::to_string(bytes.size()) +
                                       " bytes, want at most " + std::to_string(limit));
  }
  return YamlReader(bytes, options).run(visit);
}

Result<std::vector<Document>> parse_yaml(std::string_view bytes, const YamlOptions& options) {
  std::vector<Document> out;
  const auto keep = [&out](Document doc) -> Status {
    out.push_back(std::move(doc));
    return {};
  };
  BERTH_CHECK(read_yaml(bytes, keep, options));
  return out;
}

Result<std::vector<Document>> parse_any(std::string_view bytes, std::string_view name,
                                        const YamlOptions& options) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool is_json = name.ends_with(".json");
  const bool may_be_json =
      first != std::string_view::npos && (bytes[first] == '{' || bytes[first] == '[');
  if (is_json || may_be_json) {
    auto json = parse_json(bytes, {.limits = options.limits});
    if (json.ok()) {
      std::vector<Document> out;
      out.push_back(std::move(*json));
      return out;
    }
    if (is_json || json.error().code() == Code::kExhausted) return std::move(json).error();
  }
  return parse_yaml(bytes, options);
}

}  // namespace berth::text
