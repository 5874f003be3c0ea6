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

#include "app/why/why_objects.h"
#include "kinds/object_set.h"
#include "people/why/why.h"

namespace berth::app {

using ClusterCopy = std::shared_ptr<const kinds::ObjectSet>;

// Reads the objects of the copy anew with these changes. O(objects).
Result<kinds::Inputs> inputs_with(const kinds::ObjectSet& copy,
                                  const std::vector<people::ObjectChange>& changes,
                                  const kinds::Bound* also = nullptr);

class WhyService {
 public:
  static constexpr std::int64_t kFreshNs = 5'000'000'000;

  struct Question {
    people::Subject subject;
    people::PlanOptions plan;  // of which now_ns may be older in the answer
    ClusterCopy cluster;       // null: as of the question before
    FetchedObjects objects;    // may be null
    std::string replay;
    people::Decided decided;
    bool holders = false;  // all of them
  };
  struct Answered {
    people::Answer answer;
    std::shared_ptr<const kinds::Inputs> inputs;  // that it was found in
  };
  Result<Answered> answer(const Question& question);
  void forget() { kept_.reset(); }
  int examined() const { return examined_; }  // examiners made so far

 private:
  struct Kept {
    Kept(ClusterCopy of, std::shared_ptr<const kinds::Inputs> read,
         const people::PlanOptions& plan);
    ClusterCopy cluster;
    std::shared_ptr<const kinds::Inputs> inputs;
    std::int64_t now_ns = 0;
    people::Examiner examiner;  // the last: it looks at the inputs
  };
  std::unique_ptr<Kept> examine(ClusterCopy cluster, const people::PlanOptions& plan,
                                std::shared_ptr<const kinds::Inputs> inputs = nullptr);
  void refresh(const Question& question);

  std::unique_ptr<Kept> kept_;
  int examined_ = 0;
};

}  // namespace berth::app
