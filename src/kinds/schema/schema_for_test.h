// Helpers of this folder's tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "kinds/schema/schema.h"
#include "text/json.h"
#include "text/yaml.h"

namespace berth::sim {

// JSON with ' for ".
inline text::Document doc(std::string_view text) {
  std::string json(text);
  std::replace(json.begin(), json.end(), '\'', '"');
  auto parsed = text::parse_json(json);
  EXPECT_TRUE(parsed.ok()) << json;
  return parsed.ok() ? std::move(parsed).value() : text::Document();
}

inline text::Document yaml_doc(std::string_view text) {
  auto parsed = text::parse_yaml(text);
  EXPECT_TRUE(parsed.ok()) << text;
  if (!parsed.ok() || parsed->empty()) return {};
  return std::move(parsed->front());
}

inline const Kind& builtin(std::string_view name, std::string_view group = "?") {
  for (const KindPtr& kind : builtin_kinds()) {
    if (kind->kind == name && (group == "?" || kind->group == group)) return *kind;
  }
  ADD_FAILURE() << "no kind " << name;
  return *builtin_kinds().front();
}

inline std::string json_of(const text::Value& value) { return text::to_json(value); }

// A value at a path, as JSON; "-" when absent.
inline std::string field_of(const text::Value& object, std::string_view path) {
  const text::Value* found = find_path(object, path);
  return found == nullptr ? "-" : text::to_json(*found);
}

inline text::Document normalized(const Kind& kind, const text::Value& object) {
  auto made = normalize(kind, object);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return made.ok() ? std::move(made->object) : text::Document();
}

inline std::string words_of(const std::vector<Cause>& causes) {
  std::string out;
  for (const Cause& cause : causes) out += cause.field + ": " + cause.message + "\n";
  return out;
}

}  // namespace berth::sim
