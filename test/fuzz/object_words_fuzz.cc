// Texts inside objects that anybody may write: seats, fractions of GPUs, indices. The first byte
// says how many seats are there before.
#include <algorithm>
#include <string>

#include "fuzz.h"
#include "kinds/gpu_demand.h"
#include "kinds/kueue_workload_body.h"
#include "kinds/pod_body.h"

namespace {

using namespace berth;
using Seats = std::vector<model::WorkloadSpec::Seat>;

void check_seats(std::string_view input) {
  Seats seats = {{"before", "n", {}}};
  const std::string want = kinds::seats_in(input, seats);
  if (!want.empty()) return fuzz::check(seats.size() == 1, "a bad text adds nothing");
  seats.erase(seats.begin());
  for (const auto& seat : seats) fuzz::check(!seat.node.empty(), "a seat is on a node");
  Seats again;
  fuzz::check(kinds::seats_in(kinds::seats_text(seats), again).empty(), "seats are written");
  // Those of a pod set stay in order; the sets are sorted.
  std::stable_sort(seats.begin(), seats.end(),
                   [](const auto& a, const auto& b) { return a.pod_set < b.pod_set; });
  fuzz::check(again == seats, "seats read back");
}

}  // namespace

BERTH_FUZZ_TARGET(object_words) {
  const std::string_view input = fuzz::text_of(data, size);
  check_seats(input);
  int milli = 0;
  bool exact = false;
  if (kinds::parse_fraction(input, milli, exact)) fuzz::check(milli >= 0, "no negative part");
  std::vector<int> indices;
  if (kinds::indices_of(input, indices)) {
    fuzz::check(std::is_sorted(indices.begin(), indices.end()), "indices are sorted");
    fuzz::check(indices.empty() || indices.front() >= 0, "and none is negative");
  }
  return 0;
}
