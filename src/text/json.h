// A strict reader of RFC 8259 JSON.
//
// Refused, with line and column: duplicate keys, invalid UTF-8, lone surrogates, a byte order mark,
// bytes after the value, and anything over Limits (Code::kExhausted). The bytes are copied once
// into the Document; strings are views of that copy.
//
// Cost: one pass; several hundred MB/s on a PodList (bench/text_bench.cc).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/value.h"

namespace berth::text {

struct JsonOptions {
  Limits limits = {};
  int first_line = 1;  // the number of the first line, for JSON found inside another file
};

Result<Document> parse_json(std::string_view bytes, const JsonOptions& options = {});
// Without the copy, for what is large: bytes is changed, and has to outlive the Document untouched.
Result<Document> parse_json_in_place(std::string& bytes, const JsonOptions& options = {});

}  // namespace berth::text
