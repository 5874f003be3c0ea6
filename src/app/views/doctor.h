// Checks of a cluster: what is broken, what will break, what can never work, and what to do.
//
// Pure but for nothing: a function of the view (a cluster that answered, files or a snapshot).
// Every check has an id that docs/doctor.md explains; a check whose objects could not be seen says
// so and finds nothing. Findings are sorted: errors first, then by id and object; those of one id
// and text are one finding with a count. O(objects).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/views/cluster_view.h"
#include "people/view/fleet.h"
#include "people/view/queue_view.h"

namespace berth::app {

enum class Severity : std::uint8_t { kError, kWarning, kInfo };
std::string_view name(Severity severity);  // "error"

struct Finding {
  std::string id;  // "node-not-ready": a section of docs/doctor.md
  Severity severity = Severity::kWarning;
  std::string object;  // "Node n1", "2 nodes: n1, n2"
  std::string message;
  std::string fix;
};

struct Diagnosis {
  std::vector<Finding> findings;
  std::vector<std::string> checks;   // ids of all that were run, in order
  std::vector<std::string> skipped;  // "webhook-...: webhook configurations were not seen"
  int errors = 0, warnings = 0;
};

struct DoctorInput {
  const ClusterView& view;
  const people::Fleet& fleet;
  const people::QueueView& queues;
};

Diagnosis diagnose(const DoctorInput& input);

// All ids, as docs/doctor.md has sections: a test compares.
const std::vector<std::string>& doctor_checks();

// ---- for the checks themselves (doctor_*.cc) ----

class Findings {
 public:
  void add(std::string_view id, Severity severity, std::string object, std::string message,
           std::string fix);
  std::vector<Finding> take();  // sorted, equal ones joined

 private:
  std::vector<Finding> all_;
};

void check_nodes(const DoctorInput& input, Findings& out);     // nodes, agents, devices
void check_control(const DoctorInput& input, Findings& out);   // leases, CRDs, versions
void check_webhooks(const DoctorInput& input, Findings& out);  // failurePolicy, CA, service
void check_queues(const DoctorInput& input, Findings& out);    // quotas, reach
void check_loads(const DoctorInput& input, Findings& out);     // groups, other schedulers

}  // namespace berth::app
