// Changes to a YAML text that leave everything else in it as it is: comments, order, quotes,
// indentation, line ends.
//
// A change names what it means by a path, not by bytes; the bytes it touches are those of the
// values it names. JSON is changed the same way and stays JSON. A change that cannot be made (the
// place is not there, comes from an alias, or the text is written in a way that we do not know to
// change) is an error, and the text stays as it was: the result is always checked by reading it.
//
// Cost: each change reads the text once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/yaml_source.h"

namespace berth::text {

struct YamlChange {
  enum class Kind : std::uint8_t {
    kSet,      // the value at `at` becomes json; a scalar keeps its quotes where it can
    kReplace,  // parts of the text of the scalar at `at`
    kRename,   // the key at `at` is called key
    kRemove,   // the member or item at `at` goes
    kPut,      // a new member `at` with the value json; last step "-": a new item of a list
    kMove,    // the member at `at` becomes a member of the mapping `to`, called key ("": as it was)
    kWrap,    // members of the mapping at `at` become members of a new one, its member key
    kUnwrap,  // the mapping at `at` goes, its members stand in its place
  };
  struct Part {  // of a scalar's text: bytes [begin, end) become text
    std::size_t begin = 0, end = 0;
    std::string text = {};
  };

  Kind kind = Kind::kSet;
  YamlPath at = {};
  YamlPath to = {};
  std::string key = {};
  std::string json = {};
  std::vector<std::string> members = {};  // kWrap: which; empty: all
  std::string before = {};                // kPut: the member to stand before; empty: last
  std::vector<Part> parts = {};           // kReplace: in order, apart
};

// The first document of source with the changes made one after the other.
Result<std::string> edit_yaml(std::string_view source, std::span<const YamlChange> changes);

}  // namespace berth::text
