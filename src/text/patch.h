// RFC 6902 JSON Patch and RFC 7386 merge patch: a document and a patch give a new document.
//
// The inputs are not changed and the result shares no memory with them. A JSON Patch applies as a
// whole or not at all; the error names the operation by its place ("operation 2 (replace /a/b)").
// A failed "test" is Code::kConflict, a missing target Code::kNotFound, a patch that is not well
// formed Code::kInvalid, a result over Limits Code::kExhausted.
//
// Cost: a container on the path of an operation is opened once, for what it holds; from then on an
// operation costs a logarithm of an object and a piece of an array, whatever their size. The result
// is copied once. Copies are bounded in bytes, so that copies of copies do not grow without end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/value.h"

namespace berth::text {

struct PatchOptions {
  Limits limits = {};  // of the result
  std::size_t max_operations = 10'000;
  std::size_t max_copied_bytes = 3 * 1024 * 1024;  // by "copy", all of them together
};

// patch is an array of operations: add, remove, replace, move, copy, test.
Result<Document> apply_json_patch(const Value& target, const Value& patch,
                                  const PatchOptions& options = {});

// A null in the patch removes; objects merge; everything else replaces.
Result<Document> apply_merge_patch(const Value& target, const Value& patch,
                                   const PatchOptions& options = {});

// RFC 6901: "" is the whole document, "/a~1b/0" the tokens "a/b" and "0".
Result<std::vector<std::string>> parse_pointer(std::string_view pointer);
std::string print_pointer(const std::vector<std::string>& tokens);

// What a pointer points at, or nullptr; "-" points at nothing.
const Value* resolve_pointer(const Value& root, const std::vector<std::string>& tokens);

}  // namespace berth::text
