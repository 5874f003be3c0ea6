// The objects of a cluster as JSON texts, to be changed the way fixes and cures say.
//
// A change that does not apply (no such object, a patch that fails) is an error: a fix that cannot
// be applied does not work.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/value.h"

namespace berth::why_corpus {

struct ObjectRef {
  std::string api_version;  // empty: any
  std::string kind, ns, name;
};

class Objects {
 public:
  Status add_yaml(std::string_view bytes);
  void add(const text::Value& object) { texts_.push_back(text::to_json(object)); }
  void add_json(std::string json) { texts_.push_back(std::move(json)); }

  Status patch(const ObjectRef& ref, const text::Value& operations);
  Status remove(const ObjectRef& ref);

  // As berth reads them from standard input.
  std::string stream(bool reversed = false) const;
  std::vector<text::Document> parsed() const;
  std::size_t size() const { return texts_.size(); }

 private:
  Result<std::size_t> find(const ObjectRef& ref) const;

  std::vector<std::string> texts_;
};

// An element of a fix's "changes": a patch, a delete or a create.
Status apply_change(const text::Value& change, Objects& objects);

// "patch Node/gpu-1 [...]", "delete Pod/busy/x", "create {...}": a cure of a case.
Status apply_cure(std::string_view line, Objects& objects);

}  // namespace berth::why_corpus
