// What the controllers of this folder share: the client, the informers, the book of pods, and ways
// to write. Inside this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "edge/kube/client.h"
#include "edge/kube/events.h"
#include "edge/kube/informer.h"
#include "embedded/workloads/outbox.h"
#include "embedded/workloads/passes.h"
#include "embedded/workloads/pod_book.h"
#include "embedded/workloads/pod_template.h"
#include "embedded/workloads/work_controllers.h"

namespace berth::sim {

struct WorkContext {
  WorkContext(kube::Client& client_in, Random random_in, WorkOptions options_in,
              const Logger* log_in, MetricsRegistry* metrics_in);
  ~WorkContext();

  std::int64_t wall() const { return client.loop().wall().now_ns(); }
  std::int64_t ticks() const { return client.loop().monotonic().ticks_ns(); }
  bool synced() const;
  void warn(std::string_view message, const std::string& what, const kube::Answer& answer) const;
  std::string random_suffix();  // five letters

  // Nothing runs after the context is gone.
  template <class F>
  auto guarded(F f) const {
    return [life = std::weak_ptr<int>(life_), f = std::move(f)](auto&&... args) {
      if (!life.expired()) f(std::forward<decltype(args)>(args)...);
    };
  }
  void later(std::int64_t delay_ns, std::function<void()> work) const {
    client.loop().after(delay_ns, guarded([work = std::move(work)] { work(); }));
  }

  kube::Client& client;
  Random random;
  const WorkOptions options;
  const Logger* log;
  Outbox outbox;
  kube::EventRecorder events;
  PodBook book;
  kube::Informer pods, jobs, replica_sets, replication_controllers, deployments, budgets, nodes,
      leases;

 private:
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

// Several writes of one pass: waits for all of them, and remembers whether one failed.
//
//   auto batch = Batch::make(context, finished);
//   batch->create_pod(...); batch->remove_pod(...);
//   batch->seal();  // finished is called when all are answered
class Batch : public std::enable_shared_from_this<Batch> {
 public:
  static std::shared_ptr<Batch> make(WorkContext& context, Passes::Finished finished);

  // The pod is seen at once; one that exists already is fetched and counts as made. The first that
  // the server refuses is told of as an event of the owner.
  void create_pod(const kube::Key& key, std::string body, const PodOwner& owner);
  // untrack_first: the finalizer of Jobs is taken away before.
  void remove_pod(const kube::Key& key, const std::string& uid, bool untrack_first,
                  std::int64_t grace_seconds = -1);
  void untrack_pod(const kube::Key& key);
  void patch(kube::Informer& informer, const kube::Key& key, kube::PatchType type, std::string body,
             const std::string& subresource = {});
  void create(kube::Informer& informer, const kube::Key& key, std::string body,
              std::function<void(const kube::Answer& refusal)> refused = {});
  void remove(kube::Informer& informer, const kube::Key& key, const std::string& uid);
  void seal();

 private:
  Batch(WorkContext& context, Passes::Finished finished)
      : context_(context), finished_(std::move(finished)) {}
  void push(std::function<void(std::function<void(bool)>)> call);
  void done(bool ok);

  WorkContext& context_;
  Passes::Finished finished_;
  int open_ = 0;
  bool sealed_ = false, ok_ = true, told_ = false;
};

}  // namespace berth::sim
