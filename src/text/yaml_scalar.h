// What a YAML 1.1 scalar means, as go-yaml v2 (so kubectl and the API server's clients) reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::text {

struct YamlScalar {
  enum Type : std::uint8_t { kString, kNull, kBool, kInt, kFloat, kNotJson };
  Type type = kString;
  bool truth = false;  // kBool
  double number = 0;   // kFloat
  std::string text;    // kInt, kFloat: a JSON number; kNotJson: why it cannot be one
};

// A plain (unquoted) scalar. y/n, yes/no, on/off and true/false, as usually spelt, are bools; ~,
// null and nothing are null; 0x1f, 0o17, 017, 0b11, 1_000 and +1 are integers; .5, 1e3 and 08 are
// floats; dates stay strings.
YamlScalar resolve_plain_scalar(std::string_view text);

// The text of a float used as a key: Go's FormatFloat(v, 'g', -1, 32).
std::string yaml_float_key(double v);

}  // namespace berth::text
