// What the embedded API server would say about the fields of a manifest: lint's port to the kinds
// that are built in and to those of CustomResourceDefinitions.
//
// Immutable after it was made; may be asked from many threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kinds/schema/schema.h"
#include "kinds/schema/schemas.h"

namespace berth::sim {

class ManifestCheck final : public lint::Schemas {
 public:
  // crds: a YAML stream of CustomResourceDefinitions beside the built-in kinds; may be empty.
  static Result<std::unique_ptr<ManifestCheck>> make(std::string_view crds);

  std::optional<std::vector<lint::Complaint>> check(const text::Value& object) const override;
  std::vector<lint::Complaint> check_template(const text::Value& pod_template) const override;
  std::vector<std::string> versions(std::string_view group, std::string_view kind) const override;
  std::vector<std::string> groups(std::string_view kind) const override;

 private:
  const Kind* find(std::string_view api_version, std::string_view kind) const;

  std::vector<KindPtr> kinds_;
};

}  // namespace berth::sim
