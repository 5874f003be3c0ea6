// What rules look at: an object of a manifest, a place in it, and where findings go.
//
// Only for the files of this folder. A Place is a value with its path; asking an absent place for
// its members gives absent places, so that rules read like the manifest. Places are valid while
// their Object lives.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "people/lint/finding.h"
#include "people/lint/rule_table.h"
#include "text/value.h"
#include "text/yaml_source.h"

namespace berth::lint {

class Place {
 public:
  Place() = default;
  Place(text::Value value, text::YamlPath path)
      : value_(value), path_(std::move(path)), there_(true) {}

  bool there() const { return there_; }
  explicit operator bool() const { return there_; }
  const text::Value& value() const { return value_; }
  const text::YamlPath& path() const { return path_; }
  std::string_view text() const { return value_.string(); }
  // A string, or the text of a number or bool: what people write without quotes.
  std::string word() const;
  bool is(std::string_view word) const { return value_.is_string() && value_.string() == word; }

  Place operator[](std::string_view key) const;  // absent ones have a path too
  Place operator[](std::size_t index) const;
  Place up(const Place& root) const;  // the parent; root must be the root
  std::vector<Place> items() const;
  std::vector<Place> members() const;
  const std::string& key() const { return path_.back(); }
  std::size_t size() const { return value_.size(); }
  bool has(std::string_view key) const { return value_.find(key) != nullptr; }

 private:
  text::Value value_;
  text::YamlPath path_;
  bool there_ = false;
};

// "spec.containers[0].image", `metadata.labels[a.b/c]`.
std::string field_of(const text::YamlPath& path, const text::Value& root);

// A document of a file. Read once; the places of its nodes are found when they are asked for.
class Source {
 public:
  Source(std::string bytes, text::Document tree)
      : bytes_(std::move(bytes)), tree_(std::move(tree)) {}
  const std::string& bytes() const { return bytes_; }
  const text::Value& root() const { return tree_.root(); }
  const text::YamlSource* marks() const;  // nullptr: not to be had

 private:
  std::string bytes_;  // from the document's beginning in the file
  text::Document tree_;
  mutable std::optional<text::YamlSource> marks_;
  mutable bool asked_ = false;
};

struct Object {
  std::string file;
  int document = 0;
  int first_line = 1;  // of the document
  std::shared_ptr<const Source> source;
  text::Value value;      // of the object
  text::YamlPath prefix;  // of an item of a List: where it stands in the document
  std::string api, group, version, kind, ns, name;

  Place root() const { return {value, {}}; }
  std::string title() const;  // "Queue research-queue"
  bool is(std::string_view group_name, std::string_view kind_name) const {
    return group == group_name && kind == kind_name;
  }
};

// What people wrote beside a value or on the lines right above it, without the "#"; empty: nothing.
std::string comment_of(const Object& object, const Place& place);

// Collects the findings of one object.
class Reporter {
 public:
  Reporter(const Object& object, std::vector<Finding>& out) : object_(object), out_(out) {}

  // where: the field, present or missing. fix: one line.
  void add(std::string_view rule, const Place& where, std::string what, std::string fix,
           std::optional<Fix> edit = std::nullopt);
  // The same for a place in the YAML that the string at holder contains.
  void add_inside(std::string_view rule, const Place& holder, const Place& where, std::string what,
                  std::string fix, std::optional<Fix> edit = std::nullopt);
  // A rule has said what is wrong with this field and what is below: the schema need not.
  void claim(const text::YamlPath& path) { claimed_.insert(path); }
  bool claimed(const text::YamlPath& path) const;

 private:
  text::YamlPath full(const text::YamlPath& path) const;
  void locate(const text::YamlPath& path, Finding& out) const;

  const Object& object_;
  std::vector<Finding>& out_;
  std::set<text::YamlPath> claimed_;
};

// ---- fixes -----------------------------------------------------------------------------------

std::string json_text(std::string_view text);  // a JSON string
text::YamlChange set_value(const text::YamlPath& at, std::string json);
text::YamlChange set_text(const text::YamlPath& at, std::string_view text);
text::YamlChange rename_key(const text::YamlPath& at, std::string key);
text::YamlChange remove_at(const text::YamlPath& at);
// Removes at, and the parents that would hold nothing else.
text::YamlChange remove_upwards(const Place& root, const text::YamlPath& at);
// Puts json at a path below from; parents that are missing are made.
text::YamlChange put_value(const Place& from, text::YamlPath path, std::string json);
Fix one_change(text::YamlChange change);

// Every place of a tree, parents first. Return false to stay out of what is below.
void walk(const Place& from, const std::function<bool(const Place&)>& visit);

}  // namespace berth::lint
