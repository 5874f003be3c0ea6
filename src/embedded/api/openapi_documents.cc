#include "embedded/api/openapi_documents.h"

#include <charconv>
#include <vector>

#include "kinds/schema/schema.h"

namespace berth::sim::api {

namespace {

std::string hash_text(std::string_view text) {
  std::uint64_t hash = 1469598103934665603ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, hash, 16).ptr;
  return std::string(digits, end);
}

}  // namespace

const std::string& OpenApiDocuments::at(const std::string& path) {
  if (generation_ != registry_.generation()) {
    documents_.clear();
    generation_ = registry_.generation();
  }
  const auto found = documents_.find(path);
  if (found != documents_.end()) return found->second;
  std::vector<KindPtr> kinds;
  for (const TypePtr& type : registry_.types()) {
    const Kind& kind = *type->kind;
    if (!kind.served || type->role == Role::kReview) continue;
    const std::string of =
        kind.group.empty() ? "api/" + kind.version : "apis/" + kind.group + "/" + kind.version;
    if (path.empty() || path == "v2" || path == of) kinds.push_back(type->kind);
  }
  std::string document;
  if (path.empty()) {
    // What a document is made of changes with the registry alone, so its generation is the hash.
    const std::string generation = std::to_string(registry_.generation()) + version_;
    document = openapi_v3_index(
        kinds, [&](std::string_view gv) { return hash_text(std::string(gv) + generation); });
  } else if (path == "v2") {
    document = openapi_v2(kinds, version_);
  } else if (!kinds.empty()) {
    document = openapi_v3(kinds, version_);
  }
  return documents_[path] = std::move(document);
}

}  // namespace berth::sim::api
