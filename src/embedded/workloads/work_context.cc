#include "embedded/workloads/work_context.h"

#include "embedded/workloads/pod_name.h"
#include "embedded/workloads/read.h"
#include "text/path.h"

namespace berth::sim {

namespace {

using kube::Answer;
using Called = std::function<void(bool)>;

const kube::Resource& replication_controllers_resource() {
  static const kube::Resource resource{"", "v1", "replicationcontrollers", "ReplicationController"};
  return resource;
}

kube::InformerOptions informer_of(const kube::Resource& resource, kube::Keep keep,
                                  std::string ns = {}) {
  kube::InformerOptions out{.resource = resource};
  out.keep = keep;
  out.ns = std::move(ns);
  return out;
}

// Takes our finalizer away, whatever others are there: found by its place, and tested.
std::string untrack_patch(const text::Value& pod) {
  const text::Value* finalizers = find(pod, "metadata.finalizers");
  if (finalizers == nullptr) return {};
  for (std::size_t i = 0; const text::Value& finalizer : finalizers->items()) {
    if (finalizer.string() == kJobFinalizer) {
      const std::string path = "/metadata/finalizers/" + std::to_string(i);
      return R"([{"op":"test","path":")" + path + R"(","value":")" + std::string(kJobFinalizer) +
             R"("},{"op":"remove","path":")" + path + R"("}])";
    }
    ++i;
  }
  return {};
}

// Nearly always it is the only one.
std::string untrack_first_patch() {
  return R"([{"op":"test","path":"/metadata/finalizers/0","value":")" + std::string(kJobFinalizer) +
         R"("},{"op":"remove","path":"/metadata/finalizers/0"}])";
}

void untrack(WorkContext& c, const kube::Key& key, const Called& called) {
  const auto settled = [&c, key, called](Answer answer) {
    if (answer.ok()) {
      c.pods.absorb(std::move(answer.body));
      return called(true);
    }
    called(answer.not_found());
  };
  c.client.patch(kube::resources::pods(), key, kube::PatchType::kJson, untrack_first_patch(), {},
                 c.guarded([&c, key, called, settled](Answer answer) {
                   if (answer.ok() || answer.not_found()) return settled(std::move(answer));
                   // Not the first of several, or gone meanwhile: look.
                   c.client.get(kube::resources::pods(), key,
                                c.guarded([&c, key, called, settled](Answer got) {
                                  if (!got.ok()) return called(got.not_found());
                                  const std::string patch = untrack_patch(got.body.root());
                                  if (patch.empty()) return settled(std::move(got));
                                  c.client.patch(kube::resources::pods(), key,
                                                 kube::PatchType::kJson, patch, {},
                                                 c.guarded(settled));
                                }));
                 }));
}

// What a deletion answers: the object when it lives on for a while, else whatever it likes.
bool lives_on(const text::Value& body) {
  const text::Value& meta = at(body, "metadata");
  if (meta.find("deletionTimestamp") == nullptr) return false;
  return at(meta, "finalizers").size() > 0 || int_at(meta, "deletionGracePeriodSeconds") > 0;
}

void remove_object(WorkContext& c, kube::Informer& informer, const kube::Key& key,
                   const kube::DeleteOptions& options, const Called& called) {
  c.client.remove(informer.options().resource, key, options,
                  c.guarded([&c, &informer, key, uid = options.uid, called](Answer answer) {
                    // A conflict: another object of that name, so ours is gone.
                    const bool gone = answer.not_found() || answer.conflict();
                    if (answer.ok() && lives_on(answer.body.root())) {
                      informer.absorb(std::move(answer.body));
                    } else if (answer.ok() || gone) {
                      informer.absorb_removed(key, uid);
                    } else {
                      c.warn("not deleted", key.to_string(), answer);
                    }
                    called(answer.ok() || gone);
                  }));
}

}  // namespace

WorkContext::WorkContext(kube::Client& client_in, Random random_in, WorkOptions options_in,
                         const Logger* log_in, MetricsRegistry* metrics_in)
    : client(client_in),
      random(random_in.split("names")),
      options(options_in),
      log(log_in),
      outbox(options.max_writes_at_once),
      events(client, {.by = {"berth-workloads", "berth-workloads"}}, metrics_in),
      pods(client, random_in.split("pods"), informer_of(kube::resources::pods(), kube::Keep::kKeys),
           metrics_in),
      jobs(client, random_in.split("jobs"),
           informer_of(kube::resources::jobs(), kube::Keep::kWhole), metrics_in),
      replica_sets(client, random_in.split("replicasets"),
                   informer_of(kube::resources::replica_sets(), kube::Keep::kWhole), metrics_in),
      replication_controllers(client, random_in.split("replicationcontrollers"),
                              informer_of(replication_controllers_resource(), kube::Keep::kWhole),
                              metrics_in),
      deployments(client, random_in.split("deployments"),
                  informer_of(kube::resources::deployments(), kube::Keep::kWhole), metrics_in),
      budgets(client, random_in.split("budgets"),
              informer_of(kube::resources::budgets(), kube::Keep::kWhole), metrics_in),
      nodes(client, random_in.split("nodes"),
            informer_of(kube::resources::nodes(), kube::Keep::kKeys), metrics_in),
      leases(client, random_in.split("leases"),
             informer_of(kube::resources::leases(), kube::Keep::kKeys, "kube-node-lease"),
             metrics_in) {}

WorkContext::~WorkContext() { life_.reset(); }

bool WorkContext::synced() const {
  return pods.synced() && jobs.synced() && replica_sets.synced() &&
         replication_controllers.synced() && deployments.synced() && budgets.synced() &&
         nodes.synced() && leases.synced();
}

void WorkContext::warn(std::string_view message, const std::string& what,
                       const Answer& answer) const {
  if (log == nullptr || answer.ok()) return;
  log->warn(message, {{"what", what}, {"why", answer.error().to_string()}});
}

std::string WorkContext::random_suffix() {
  return name_hash(std::to_string(random.next())).substr(0, 5);
}

// ---- Batch ----

std::shared_ptr<Batch> Batch::make(WorkContext& context, Passes::Finished finished) {
  return std::shared_ptr<Batch>(new Batch(context, std::move(finished)));
}

void Batch::push(std::function<void(Called)> call) {
  ++open_;
  context_.outbox.push(
      [self = shared_from_this(), call = std::move(call)](const Outbox::Done& over) {
        call([self, over](bool ok) {
          over();
          self->done(ok);
        });
      });
}

void Batch::done(bool ok) {
  --open_;
  ok_ &= ok;
  if (sealed_ && open_ == 0) finished_(ok_);
}

void Batch::seal() {
  sealed_ = true;
  if (open_ == 0) finished_(ok_);
}

void Batch::create_pod(const kube::Key& key, std::string body, const PodOwner& owner) {
  create(context_.pods, key, std::move(body),
         [self = shared_from_this(), ns = key.ns, owner](const Answer& refusal) {
           if (std::exchange(self->told_, true)) return;
           self->context_.events.record({.api_version = owner.api_version,
                                         .kind = owner.kind,
                                         .key = {ns, owner.name},
                                         .uid = owner.uid,
                                         .warning = true,
                                         .reason = "FailedCreate",
                                         .action = "Create",
                                         .note = "Error creating: " + refusal.message});
         });
}

void Batch::create(kube::Informer& informer, const kube::Key& key, std::string body,
                   std::function<void(const Answer&)> refused) {
  push([&c = context_, &informer, key, body = std::move(body),
        refused = std::move(refused)](const Called& called) {
    const kube::Resource& resource = informer.options().resource;
    c.client.create(resource, key.ns, body, {},
                    c.guarded([&c, &informer, key, refused, called](Answer answer) {
                      if (answer.ok()) {
                        informer.absorb(std::move(answer.body));
                        return called(true);
                      }
                      // It is there, or may be: what the server has is what counts.
                      if (answer.conflict() || answer.maybe_carried_out) {
                        c.client.get(informer.options().resource, key,
                                     c.guarded([&informer, called](Answer got) {
                                       const bool there = got.ok();
                                       if (there) informer.absorb(std::move(got.body));
                                       called(there);
                                     }));
                        return;
                      }
                      c.warn("not created", key.to_string(), answer);
                      if (refused && answer.status >= 400 && answer.status < 500) refused(answer);
                      called(false);
                    }));
  });
}

void Batch::remove_pod(const kube::Key& key, const std::string& uid, bool untrack_first,
                       std::int64_t grace_seconds) {
  push([&c = context_, key, uid, untrack_first, grace_seconds](const Called& called) {
    kube::DeleteOptions options;
    options.uid = uid;
    options.grace_seconds = grace_seconds;
    if (!untrack_first) return remove_object(c, c.pods, key, options, called);
    untrack(c, key, [&c, key, options, called](bool ok) {
      if (!ok) return called(false);
      remove_object(c, c.pods, key, options, called);
    });
  });
}

void Batch::untrack_pod(const kube::Key& key) {
  push([&c = context_, key](const Called& called) { untrack(c, key, called); });
}

void Batch::patch(kube::Informer& informer, const kube::Key& key, kube::PatchType type,
                  std::string body, const std::string& subresource) {
  push([&c = context_, &informer, key, type, body = std::move(body),
        subresource](const Called& called) {
    kube::WriteOptions options;
    options.subresource = subresource;
    c.client.patch(informer.options().resource, key, type, body, options,
                   c.guarded([&c, &informer, key, called](Answer answer) {
                     if (answer.ok()) informer.absorb(std::move(answer.body));
                     // Changed meanwhile: the next pass sees it.
                     if (!answer.ok() && !answer.conflict() && !answer.not_found()) {
                       c.warn("not written", key.to_string(), answer);
                     }
                     called(answer.ok() || answer.not_found());
                   }));
  });
}

void Batch::remove(kube::Informer& informer, const kube::Key& key, const std::string& uid) {
  push([&c = context_, &informer, key, uid](const Called& called) {
    kube::DeleteOptions options;
    options.uid = uid;
    options.propagation = "Background";
    remove_object(c, informer, key, options, called);
  });
}

}  // namespace berth::sim
