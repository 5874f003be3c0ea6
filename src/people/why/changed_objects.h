// What comes after a change: the objects as it leaves them, and two changes as one.
//
// Where a cause hides another (a queue that is stopped and too small), the first is mended, and the
// same question is asked of the objects as they are then.
#pragma once

#include <memory>
#include <vector>

#include "people/why/draft.h"
#include "text/value.h"

namespace berth::people {

// Objects with changes laid over them. Keeps below and copies the changes; costs a copy of each
// changed object.
class ChangedObjects : public ObjectSource {
 public:
  ChangedObjects(const ObjectSource& below, const std::vector<ObjectChange>& changes);

  std::optional<RawObject> find(std::string_view kind, std::string_view ns,
                                std::string_view name) const override;
  std::vector<RawObject> of_kind(std::string_view kind) const override;
  std::vector<RawObject> in_namespace(std::string_view kind, std::string_view ns) const override;

 private:
  struct Changed {
    RawObject raw;
    std::unique_ptr<const text::Document> document;  // null: deleted
  };
  std::vector<RawObject> over(std::vector<RawObject> below, std::string_view kind,
                              const std::string_view* ns) const;
  const Changed* changed(std::string_view kind, std::string_view ns, std::string_view name) const;

  const ObjectSource& below_;
  std::vector<Changed> changed_;
};

// What was changed first and then changed again, told as changes of what was there at first.
std::vector<ObjectChange> one_after_the_other(std::vector<ObjectChange> first,
                                              const std::vector<ObjectChange>& then);

}  // namespace berth::people
