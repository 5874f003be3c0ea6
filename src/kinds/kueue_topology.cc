// Workload.status.admission.podSetAssignments[].topologyAssignment, in both encodings.
#include <algorithm>

#include "kinds/kueue_workload.h"
#include "text/json_writer.h"

namespace berth::kinds {

namespace {

using model::TopologyAssignment;
using text::Decoder;
using text::Field;
using text::Value;

constexpr std::size_t kMostAssignmentSlices = 1000, kMostDomains = 100'000;

constexpr auto read_pods = text::int_between<1, kMaxJobPods>;
using Domain = TopologyAssignment::Domain;
constexpr Field<Domain> kDomainFields[] = {
    text::required(text::field<&Domain::values>("values")),
    text::required(text::field<&Domain::count, read_pods>("count")),
};
constexpr auto read_domain = object_of<kDomainFields>;
constexpr Field<TopologyAssignment> kAssignment1Fields[] = {
    text::required(text::field<&TopologyAssignment::levels>("levels")),
    text::required(text::field<&TopologyAssignment::domains, list_of<read_domain>>("domains")),
};

struct LevelValues {
  std::optional<std::string> universal;
  bool individual = false;
  std::string prefix, suffix;
  std::vector<std::string> roots;
};
constexpr Field<LevelValues> kIndividualFields[] = {
    text::field<&LevelValues::prefix>("prefix"),
    text::required(text::field<&LevelValues::roots>("roots")),
    text::field<&LevelValues::suffix>("suffix"),
};
void read_individual(const Value& v, LevelValues& out, Decoder& d) {
  out.individual = true;
  decode_object(v, kIndividualFields, out, d);
}
constexpr Field<LevelValues> kLevelValuesFields[] = {
    text::custom<LevelValues>("individual", read_individual),
    text::field<&LevelValues::universal>("universal"),
};
constexpr auto read_level_values = object_of<kLevelValuesFields>;

void read_pod_number(const Value& v, std::optional<int>& out, Decoder& d) {
  int count = 0;
  const std::size_t before = d.errors();
  read_pods(v, count, d);
  if (d.errors() == before) out = count;
}
struct PodCounts {
  std::optional<int> universal;
  std::vector<int> individual;
};
constexpr Field<PodCounts> kPodCountsFields[] = {
    text::field<&PodCounts::individual, list_of<read_pods>>("individual"),
    text::field<&PodCounts::universal, read_pod_number>("universal"),
};

struct AssignmentSlice {
  int domains = 0;
  std::vector<LevelValues> values;
  PodCounts counts;
};
constexpr Field<AssignmentSlice> kAssignmentSliceFields[] = {
    text::required(
        text::field<&AssignmentSlice::domains, text::int_between<1, kMostDomains>>("domainCount")),
    text::required(text::field<&AssignmentSlice::counts, object_of<kPodCountsFields>>("podCounts")),
    text::required(
        text::field<&AssignmentSlice::values, list_of<read_level_values>>("valuesPerLevel")),
};
constexpr auto read_assignment_slice = object_of<kAssignmentSliceFields>;

struct Assignment2 {
  std::vector<std::string> levels;
  std::vector<AssignmentSlice> slices;
};
constexpr Field<Assignment2> kAssignment2Fields[] = {
    text::required(text::field<&Assignment2::levels>("levels")),
    text::required(text::field<&Assignment2::slices, list_of<read_assignment_slice>>("slices")),
};

bool check_assignment_slice(const Value& at, const AssignmentSlice& slice, std::size_t levels,
                            Decoder& d) {
  const auto domains = static_cast<std::size_t>(slice.domains);
  const std::size_t before = d.errors();
  if (slice.values.size() != levels) {
    d.error(at, std::to_string(slice.values.size()) + " valuesPerLevel", "one for each level");
  }
  for (const LevelValues& values : slice.values) {
    if (values.universal.has_value() == values.individual) {
      d.error(at, "values that are not one of universal and individual", "one of them");
    } else if (values.individual && values.roots.size() != domains) {
      d.error(at, std::to_string(values.roots.size()) + " roots",
              "domainCount " + std::to_string(domains));
    }
  }
  if (slice.counts.universal.has_value() == !slice.counts.individual.empty()) {
    d.error(at, "podCounts that are not one of universal and individual", "one of them");
  } else if (!slice.counts.universal && slice.counts.individual.size() != domains) {
    d.error(at, std::to_string(slice.counts.individual.size()) + " podCounts",
            "domainCount " + std::to_string(domains));
  }
  return d.errors() == before;
}

void read_assignment2(const Value& v, TopologyAssignment& out, Decoder& d) {
  Assignment2 raw;
  const std::size_t before = d.errors();
  decode_object(v, kAssignment2Fields, raw, d);
  if (d.errors() != before) return;
  out.levels = std::move(raw.levels);
  if (raw.slices.size() > kMostAssignmentSlices) {
    return d.error(v, std::to_string(raw.slices.size()) + " slices", "at most 1000");
  }
  for (const AssignmentSlice& slice : raw.slices) {
    if (!check_assignment_slice(v, slice, out.levels.size(), d)) return;
    const auto domains = static_cast<std::size_t>(slice.domains);
    if (out.domains.size() + domains > kMostDomains) {
      return d.error(v, "too many domains", "at most 100000");
    }
    for (std::size_t i = 0; i < domains; ++i) {
      Domain domain;
      for (const LevelValues& values : slice.values) {
        domain.values.push_back(values.universal ? *values.universal
                                                 : values.prefix + values.roots[i] + values.suffix);
      }
      domain.count = slice.counts.universal ? *slice.counts.universal : slice.counts.individual[i];
      out.domains.push_back(std::move(domain));
    }
  }
}

}  // namespace

void read_topology_assignment(const Value& v, KueueVersion version,
                              std::optional<TopologyAssignment>& out, Decoder& d) {
  TopologyAssignment assignment;
  const std::size_t before = d.errors();
  if (version == KueueVersion::kV1beta1) {
    decode_object(v, kAssignment1Fields, assignment, d);
  } else {
    read_assignment2(v, assignment, d);
  }
  if (d.errors() != before) return;
  if (assignment.levels.empty() || assignment.levels.size() > 16) {
    d.error(v, std::to_string(assignment.levels.size()) + " levels", "1 to 16");
  }
  std::sort(assignment.domains.begin(), assignment.domains.end());
  for (std::size_t i = 0; i < assignment.domains.size(); ++i) {
    const Domain& domain = assignment.domains[i];
    if (domain.values.size() != assignment.levels.size()) {
      return d.error(v, std::to_string(domain.values.size()) + " values of a domain",
                     "one for each level");
    }
    if (i > 0 && assignment.domains[i - 1].values == domain.values) {
      return d.error(v, "domain " + quoted(domain.values.back()) + " twice", "each domain once");
    }
  }
  out = std::move(assignment);
}

namespace {

void write_strings(std::string_view key, const std::vector<std::string>& values,
                   text::JsonWriter& out) {
  out.list(key, values);
}

// One slice: what all domains share is written once.
void write_assignment_slice(const TopologyAssignment& assignment, text::JsonWriter& out) {
  const auto& domains = assignment.domains;
  out.object([&] {
    out.field("domainCount", domains.size());
    out.array("valuesPerLevel", [&] {
      for (std::size_t level = 0; level < assignment.levels.size(); ++level) {
        std::vector<std::string> roots;
        for (const auto& domain : domains) roots.push_back(domain.values[level]);
        const bool same = std::all_of(roots.begin(), roots.end(), [&](const std::string& root) {
          return root == roots.front();
        });
        out.object([&] {
          if (same) {
            out.field("universal", roots.front());
          } else {
            out.object("individual", [&] { write_strings("roots", roots, out); });
          }
        });
      }
    });
    out.object("podCounts", [&] {
      const bool same = std::all_of(domains.begin(), domains.end(), [&](const Domain& domain) {
        return domain.count == domains.front().count;
      });
      if (same) {
        out.field("universal", domains.front().count);
      } else {
        out.array("individual", [&] {
          for (const auto& domain : domains) out.value(domain.count);
        });
      }
    });
  });
}

}  // namespace

void write_topology_assignment(const TopologyAssignment& assignment, KueueVersion version,
                               text::JsonWriter& out) {
  out.object([&] {
    write_strings("levels", assignment.levels, out);
    const bool first = version == KueueVersion::kV1beta1;
    out.array(first ? "domains" : "slices", [&] {
      if (first) {
        for (const auto& domain : assignment.domains) {
          out.object([&] {
            write_strings("values", domain.values, out);
            out.field("count", domain.count);
          });
        }
      } else if (!assignment.domains.empty()) {
        write_assignment_slice(assignment, out);
      }
    });
  });
}

}  // namespace berth::kinds
