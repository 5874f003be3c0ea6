// Texts inside objects that anybody may write: seats, fractions of GPUs, indices. The first byte
// says how many seats are there before.
#include <algorithm>
#include <string>

#include "control/workload_bodies.h"
#include "fuzz.h"
#include "objects/gpu_demand.h"
#include "objects/kueue_workload.h"
#include "objects/pod_body.h"

namespace {

using namespace berth;
using Seats = std::vector<model::WorkloadSpec::Seat>;

void check_seats(std::string_view input) {
  Seats seats = {{"before", "n", {}}};
  const std::string want = objects::seats_in(input, seats);
  if (!want.empty()) return fuzz::check(seats.size() == 1, "a bad text adds nothing");
  seats.erase(seats.begin());
  std::vector<control::KnownPlace> places;
  for (const auto& seat : seats) {
    fuzz::check(!seat.node.empty(), "a seat is on a node");
    places.push_back({seat.pod_set, "", seat.node, seat.gpus});
  }
  Seats again;
  fuzz::check(objects::seats_in(control::seats_text(places), again).empty(), "seats are written");
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
  if (objects::parse_fraction(input, milli, exact)) fuzz::check(milli >= 0, "no negative part");
  std::vector<int> indices;
  if (objects::indices_of(input, indices)) {
    fuzz::check(std::is_sorted(indices.begin(), indices.end()), "indices are sorted");
    fuzz::check(indices.empty() || indices.front() >= 0, "and none is negative");
  }
  return 0;
}
