#include "kinds/job.h"

#include <algorithm>

namespace berth::kinds {

namespace {

using text::Decoder;
using text::Value;

constexpr std::string_view kIndexKey = "batch.kubernetes.io/job-completion-index";

using J = JobObject;

void read_template(const Value& v, J& out, Decoder& d) {
  decode_template(v, out.meta.ns, out.pod, d);
  if (out.pod.restart_policy != "Always") return;
  Decoder::Step spec(d, "spec");
  Decoder::Step step(d, "restartPolicy");
  d.error(v, "Always (the default)", "OnFailure or Never in a Job");
}

constexpr std::pair<std::string_view, bool> kCompletionModes[] = {{"NonIndexed", false},
                                                                  {"Indexed", true}};
constexpr auto read_pod_count = text::int_between<0, kMaxJobPods>;

void read_completions(const Value& v, std::optional<int>& out, Decoder& d) {
  std::int64_t number = 0;
  if (text::decode_int(v, 0, 2'147'483'647, number, d)) out = static_cast<int>(number);
}

constexpr text::Field<J> kJobSpecFields[] = {
    text::skip<J>("activeDeadlineSeconds"),
    text::skip<J>("backoffLimit"),
    text::skip<J>("backoffLimitPerIndex"),
    text::field<&J::indexed, text::one_of<kCompletionModes>>("completionMode"),
    text::field<&J::completions, read_completions>("completions"),
    text::skip<J>("managedBy"),
    text::skip<J>("manualSelector"),
    text::skip<J>("maxFailedIndexes"),
    text::field<&J::parallelism, read_pod_count>("parallelism"),
    text::skip<J>("podFailurePolicy"),
    text::skip<J>("podReplacementPolicy"),
    text::skip<J>("selector"),
    text::skip<J>("successPolicy"),
    text::field<&J::suspend>("suspend"),
    text::required(text::custom<J>("template", read_template)),
    text::skip<J>("ttlSecondsAfterFinished"),
};

void read_conditions(const Value& v, J& out, Decoder&) {
  for (const Value& condition : v.items()) {
    const Value* type = condition.find("type");
    const Value* status = condition.find("status");
    if (type == nullptr || status == nullptr || status->string() != "True") continue;
    if (type->string() == "Complete" || type->string() == "Failed") out.finished = true;
  }
}
constexpr text::Field<J> kJobStatusFields[] = {
    text::custom<J>("conditions", read_conditions),
    text::field<&J::succeeded>("succeeded"),
};
constexpr text::Field<J> kJobFields[] = {
    text::skip<J>("apiVersion"),
    text::skip<J>("kind"),
    text::skip<J>("metadata"),
    text::required(text::inlined<kJobSpecFields>("spec")),
    text::custom<J>("status", [](const Value& v, J& out,
                                 Decoder& d) { decode_lenient(v, kJobStatusFields, out, d); }),
};

}  // namespace

int JobObject::wanted() const { return suspend ? 0 : parallel(); }

int JobObject::parallel() const {
  if (finished) return 0;
  if (!completions) return succeeded > 0 ? 0 : parallelism;  // a work queue ends with the first
  return std::clamp(*completions - std::max(0, succeeded), 0, parallelism);
}

bool JobObject::is_gang() const { return pod.member.group.empty() && (gang || !topology.empty()); }

void decode(const Value& v, JobObject& out, Decoder& d) {
  read_meta(v, Scope::kNamespaced, out.meta, d);
  decode_object(v, kJobFields, out, d);
  constexpr std::string_view kGang = "berth.dev/gang";
  if (const std::string* gang = out.meta.annotation(kGang)) {
    if (*gang != "true" && *gang != "false") annotation_error(v, kGang, "\"true\" or \"false\"", d);
    out.gang = *gang == "true";
  }
  read_topology(v, out.meta, out.topology, d);
  if (out.topology.empty()) out.topology = out.pod.member.topology;
}

std::vector<PodObject> missing_pods(const JobObject& job,
                                    std::span<const PodObject* const> existing,
                                    const std::set<std::string, std::less<>>& taken) {
  int active = 0;
  std::set<std::string, std::less<>> used;  // completion indices
  for (const PodObject* pod : existing) {
    if (pod->phase == "Failed") continue;  // its index is open again
    if (!pod->finished()) ++active;
    if (const std::string* index = pod->meta.annotation(kIndexKey)) used.insert(*index);
  }
  std::vector<PodObject> out;
  const int missing = job.wanted() - active;
  for (int index = 0; static_cast<int>(out.size()) < missing; ++index) {
    const std::string number = std::to_string(index);
    std::string name = job.meta.name + '-' + number;
    if (taken.contains(name) || (job.indexed && used.contains(number))) continue;
    PodObject pod = job.pod;
    pod.meta.name = pod.spec.name = std::move(name);
    pod.meta.created_ns = pod.spec.created_ns = job.meta.created_ns;
    pod.meta.owners = {{.api_version = "batch/v1",
                        .kind = "Job",
                        .name = job.meta.name,
                        .uid = job.meta.uid,
                        .controller = true}};
    pod.spec.owner = pod.meta.owners.front().text();
    pod.spec.labels["job-name"] = job.meta.name;
    pod.spec.labels["batch.kubernetes.io/job-name"] = job.meta.name;
    if (job.indexed) pod.spec.labels[std::string(kIndexKey)] = number;
    pod.meta.labels = pod.spec.labels;
    out.push_back(std::move(pod));
  }
  return out;
}

}  // namespace berth::kinds
