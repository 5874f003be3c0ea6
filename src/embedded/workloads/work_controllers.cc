#include "embedded/workloads/work_controllers.h"

#include "embedded/workloads/budget_controller.h"
#include "embedded/workloads/deployment_controller.h"
#include "embedded/workloads/job_controller.h"
#include "embedded/workloads/node_life.h"
#include "embedded/workloads/replica_controller.h"
#include "embedded/workloads/work_context.h"

namespace berth::sim {

struct WorkControllers::State {
  State(kube::Client& client, Random random, WorkOptions options, const Logger* log,
        MetricsRegistry* metrics)
      : context(client, random, options, log, metrics),
        jobs(context),
        replica_sets(context, context.replica_sets),
        replication_controllers(context, context.replication_controllers),
        deployments(context),
        budgets(context),
        nodes(context) {}

  void start();
  void begin();  // when everything was read once

  WorkContext context;
  JobController jobs;
  ReplicaController replica_sets, replication_controllers;
  DeploymentController deployments;
  BudgetController budgets;
  NodeLife nodes;
  bool begun = false;
};

// Nobody acts on half of the picture: a Job whose pods are not known yet would get them twice.
void WorkControllers::State::begin() {
  if (begun || !context.synced()) return;
  begun = true;
  jobs.start();
  replica_sets.start();
  replication_controllers.start();
  deployments.start();
  budgets.start();
  nodes.start();
}

void WorkControllers::State::start() {
  context.pods.add_handler(
      context.guarded([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        context.book.apply(before, after);
      }));
  nodes.listen();
  for (kube::Informer* informer :
       {&context.pods, &context.jobs, &context.replica_sets, &context.replication_controllers,
        &context.deployments, &context.budgets, &context.nodes, &context.leases}) {
    informer->on_synced(context.guarded(
        [this] { context.client.loop().post(context.guarded([this] { begin(); })); }));
    informer->start();
  }
}

WorkControllers::WorkControllers(kube::Client& client, Random random, WorkOptions options,
                                 const Logger* log, MetricsRegistry* metrics)
    : state_(std::make_unique<State>(client, random, options, log, metrics)) {}

WorkControllers::~WorkControllers() = default;

void WorkControllers::start() { state_->start(); }
bool WorkControllers::synced() const { return state_->begun; }

}  // namespace berth::sim
