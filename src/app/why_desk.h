// Answers of a running control plane to `berth why`, from a copy of its objects.
//
// The copy, what it means and the examiner over it are kept from one question to the next: those
// cost a plan of the cluster, and are made again only when the objects are others, or when it was
// too long ago (kFreshNs: rules of time). On one thread, that of whoever answers; the loop gives
// the copy and takes no part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/why_objects.h"
#include "explain/why.h"
#include "objects/object_set.h"

namespace berth::app {

using ClusterCopy = std::shared_ptr<const objects::ObjectSet>;

// Reads the objects of the copy anew with these changes. O(objects).
Result<objects::Inputs> inputs_with(const objects::ObjectSet& copy,
                                    const std::vector<explain::ObjectChange>& changes,
                                    const objects::Bound* also = nullptr);

class WhyDesk {
 public:
  static constexpr std::int64_t kFreshNs = 5'000'000'000;

  struct Question {
    explain::Subject subject;
    explain::PlanOptions plan;  // of which now_ns may be older in the answer
    ClusterCopy cluster;        // null: as of the question before
    FetchedObjects objects;     // may be null
    std::string replay;
    explain::Decided decided;
    bool holders = false;  // all of them
  };
  struct Answered {
    explain::Answer answer;
    std::shared_ptr<const objects::Inputs> inputs;  // that it was found in
  };
  Result<Answered> answer(const Question& question);
  void forget() { kept_.reset(); }
  int examined() const { return examined_; }  // examiners made so far

 private:
  struct Kept {
    Kept(ClusterCopy of, std::shared_ptr<const objects::Inputs> read,
         const explain::PlanOptions& plan);
    ClusterCopy cluster;
    std::shared_ptr<const objects::Inputs> inputs;
    std::int64_t now_ns = 0;
    explain::Examiner examiner;  // the last: it looks at the inputs
  };
  std::unique_ptr<Kept> examine(ClusterCopy cluster, const explain::PlanOptions& plan,
                                std::shared_ptr<const objects::Inputs> inputs = nullptr);
  void refresh(const Question& question);

  std::unique_ptr<Kept> kept_;
  int examined_ = 0;
};

}  // namespace berth::app
