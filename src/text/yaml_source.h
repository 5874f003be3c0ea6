// One YAML document as it is written: nodes with the bytes they stand in.
//
// For what changes a text and leaves the rest of it alone (text/yaml_edit.h), and for what points
// at a place in it. What the text means is parse_yaml()'s to say: give it here only what that
// reads. Nodes are numbered in the order they begin; 0 is the root. Aliases are nodes of their own:
// what they stand for is not followed, so that a path never leads to a place that others share.
//
// Cost: one pass over libyaml's events; about 150 bytes a node beside the texts of its scalars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/value.h"

namespace berth::text {

// Keys, and for items of a list their index in decimal digits.
using YamlPath = std::vector<std::string>;

struct YamlNode {
  enum class Kind : std::uint8_t { kScalar, kSequence, kMapping, kAlias };
  enum class Style : std::uint8_t { kPlain, kSingle, kDouble, kLiteral, kFolded, kBlock, kFlow };
  struct Child {
    std::size_t key = 0;    // the key's node; of an item: unused
    std::size_t value = 0;  // the value's node
    std::size_t dash = 0;   // where the "-" of an item of a block list stands
  };

  Kind kind = Kind::kScalar;
  Style style = Style::kPlain;
  bool decorated = false;  // has an anchor or a tag, which stands before it
  std::size_t begin = 0;   // bytes; after an anchor or a tag
  std::size_t end = 0;     // of a block scalar: of its last line with text, without the line's end
  int line = 0;            // 1-based
  std::size_t column = 0;  // 0-based, in bytes
  std::string text;        // of a scalar
  std::vector<Child> children;  // in source order

  bool is_block() const { return style == Style::kBlock; }
  bool is_block_scalar() const { return style == Style::kLiteral || style == Style::kFolded; }
};

class YamlSource {
 public:
  // The first document of bytes that is not empty. bytes must be UTF-8 and stay alive.
  static Result<YamlSource> read(std::string_view bytes, const Limits& limits = {});

  std::string_view bytes() const { return bytes_; }
  bool empty() const { return nodes_.empty(); }
  const YamlNode& node(std::size_t id) const { return nodes_[id]; }
  const YamlNode& root() const { return nodes_.front(); }

  // The node a path leads to; nothing when there is none or an alias stands in the way.
  std::optional<std::size_t> find(const YamlPath& path) const;
  // The child of a collection by its last step.
  std::optional<std::size_t> find_child(const YamlNode& parent, std::string_view step) const;

  std::size_t line_begin(std::size_t at) const;  // of the line that at stands in
  std::size_t line_end(std::size_t at) const;    // before the line's end; the end of bytes

 private:
  friend class YamlSourceReader;
  std::string_view bytes_;
  std::vector<std::size_t> lines_;  // where each line begins
  std::vector<YamlNode> nodes_;
};

// Where each document of a stream begins in its bytes, empty ones left out, as parse_yaml() counts.
// The bytes of a document reach to the next one's beginning; "---" belongs to what it opens, and
// what stands before the first document belongs to that.
Result<std::vector<std::size_t>> yaml_document_starts(std::string_view bytes);

}  // namespace berth::text
