#include "app/page/why_service.h"

#include "app/why/read_budget.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace berth::app {

namespace {

std::string text_of(const text::Tree& tree) {
  text::JsonWriter out;
  tree.write(out);
  return std::move(out).take();
}

bool ended(const text::Value& pod) {
  const text::Value* status = pod.find("status");
  const text::Value* phase = status == nullptr ? nullptr : status->find("phase");
  return phase != nullptr && (phase->string() == "Succeeded" || phase->string() == "Failed");
}

// Pods that were fetched and are not in the copy: the watch is behind, or another scheduler binds
// them. Null: there are none.
ClusterCopy with_unknown(const ClusterCopy& cluster, const people::ObjectSource& objects) {
  std::unique_ptr<kinds::ObjectSet> out;
  for (const people::RawObject& pod : objects.of_kind("Pod")) {
    if (cluster->pod(pod.ns + '/' + pod.name) != nullptr || ended(*pod.value)) continue;
    if (!out) out = cluster->copy();
    out->put(pod.api_version, pod.kind, *pod.value);
  }
  return out;
}

}  // namespace

Result<kinds::Inputs> inputs_with(const kinds::ObjectSet& copy,
                                  const std::vector<people::ObjectChange>& changes,
                                  const kinds::Bound* also) {
  const std::unique_ptr<kinds::ObjectSet> set = copy.copy(also);
  for (const people::ObjectChange& change : changes) {
    if (!change.after) {
      set->remove(change.api_version, change.kind, change.ns, change.name);
      continue;
    }
    BERTH_TRY(const text::Document document, text::parse_json(text_of(*change.after)));
    set->put(change.api_version, change.kind, document.root());
  }
  return set->inputs();
}

WhyService::Kept::Kept(ClusterCopy of, std::shared_ptr<const kinds::Inputs> read,
                       const people::PlanOptions& plan)
    : cluster(std::move(of)),
      inputs(std::move(read)),
      now_ns(plan.now_ns),
      examiner(*inputs, [&plan] {
        people::WhyOptions options;
        options.plan = plan;
        return options;
      }()) {}

std::unique_ptr<WhyService::Kept> WhyService::examine(ClusterCopy cluster,
                                                      const people::PlanOptions& plan,
                                                      std::shared_ptr<const kinds::Inputs> inputs) {
  ++examined_;
  if (!inputs) inputs = std::make_shared<const kinds::Inputs>(cluster->inputs());
  return std::make_unique<Kept>(std::move(cluster), std::move(inputs), plan);
}

void WhyService::refresh(const Question& question) {
  if (question.cluster) {
    kept_.reset();  // two would be held at once
    kept_ = examine(question.cluster, question.plan);
    return;
  }
  if (!kept_) return;
  const std::int64_t age_ns = question.plan.now_ns - kept_->now_ns;
  if (age_ns >= 0 && age_ns < kFreshNs) return;
  const ClusterCopy cluster = kept_->cluster;
  const auto inputs = kept_->inputs;
  kept_.reset();
  kept_ = examine(cluster, question.plan, inputs);
}

Result<WhyService::Answered> WhyService::answer(const Question& question) {
  refresh(question);
  if (!kept_) return Error(Code::kUnavailable, "the cluster is not known yet");
  std::unique_ptr<Kept> own;
  if (question.objects) {
    if (ClusterCopy more = with_unknown(kept_->cluster, *question.objects)) {
      own = examine(std::move(more), question.plan);
    }
  }
  Kept& from = own ? *own : *kept_;
  people::WhyOptions how;
  how.live = true;
  how.model_first = true;
  how.objects = question.objects.get();
  how.replay = question.replay;
  how.decided = question.decided;
  if (question.holders) how.most_holders = people::kMostHoldersTold;
  ReadBudget budget(from.cluster->pods() + from.cluster->nodes());
  how.reread = [&](const std::vector<people::ObjectChange>& changes) -> Result<kinds::Inputs> {
    BERTH_CHECK(budget.take());
    return inputs_with(*from.cluster, changes);
  };
  how.reread_part = [&](const std::vector<people::ObjectChange>& changes,
                        const kinds::Bound& also) {
    return inputs_with(*from.cluster, changes, &also);
  };
  BERTH_TRY(people::Answer answer, from.examiner.why(question.subject, std::move(how)));
  return Answered{std::move(answer), from.inputs};
}

}  // namespace berth::app
