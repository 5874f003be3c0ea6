// berth why: why a workload waits, and what would let it start.
#pragma once

#include <string>
#include <vector>

#include "app/plan/policy_option.h"
#include "app/views/cluster_view.h"
#include "app/why/read_budget.h"
#include "people/why/why.h"

namespace berth::app {

struct WhyArguments {
  std::vector<std::string> subject;  // "pod", "ns/name"; or the name alone
  ViewOptions view;
  std::string output = "table";
  PolicyArguments policy;
  bool quota_only = false;
  bool holders = false;       // all of them, on all nodes
  std::string controller;     // where it is asked: why_remote.h
  std::string controller_ca;  // file
  bool no_controller = false;
};

// On a cluster the controller is asked; where nobody answers, what the caller may list is looked
// at. Exit code: that of the answer (docs/why.md), 1 nothing to look at, 2 the command line is
// wrong.
int why_command(const WhyArguments& args, Terminal& terminal);

// The objects of a view, for people/why/.
class ViewObjects : public people::ObjectSource {
 public:
  explicit ViewObjects(const ClusterView& view) : view_(view) {}
  std::optional<people::RawObject> find(std::string_view kind, std::string_view ns,
                                        std::string_view name) const override;
  std::vector<people::RawObject> of_kind(std::string_view kind) const override;
  std::vector<people::RawObject> in_namespace(std::string_view kind,
                                              std::string_view ns) const override;

 private:
  const ClusterView& view_;
};

// How a view is asked about; all three outlive it.
people::WhyOptions why_options(const ClusterView& view, const ViewObjects& objects,
                               ReadBudget& budget);
// The inputs of the view with these changes made to its objects, read anew; also: without nodes and
// the pods on them, but for those.
Result<kinds::Inputs> inputs_with(const ClusterView& view,
                                  const std::vector<people::ObjectChange>& changes,
                                  const kinds::Bound* also = nullptr);

}  // namespace berth::app
