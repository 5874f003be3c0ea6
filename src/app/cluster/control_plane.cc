#include "app/cluster/control_plane.h"

#include <utility>

#include "app/why/why_objects.h"

namespace berth::app {

ControlPlane::ControlPlane(Loop& loop, kube::Client& client, const Random& random,
                           ControlPlaneOptions options, const Logger& log, MetricsRegistry& metrics)
    : loop_(loop), client_(client), options_(std::move(options)), metrics_(metrics) {
  options_.control.name_decisions = options_.page.has_value();
  if (options_.page) {
    options_.page->policy = options_.control.policy;
  }
  controller_ = std::make_unique<control::Controller>(
      client_, random.split("controller"), options_.control, options_.leading, log, metrics_,
      options_.decisions, options_.inputs);
}

ControlPlane::~ControlPlane() {
  page_.reset();
  facts_.reset();
}

Status ControlPlane::start() {
  controller_->start();
  if (!options_.page) return {};
  facts_ =
      std::make_unique<PageFactsKeeper>(loop_, *controller_, options_.cluster, options_.readings);
  facts_->start();
  PageSource source = facts_->source();
  source.objects = [this](const std::string& ns, PageSource::ObjectsKnown known) {
    fetch_why_objects(client_, ns, std::move(known));
  };
  auto started = PageServer::start(loop_, *options_.page, source, metrics_);
  if (!started.ok() && options_.page_or_any) {
    options_.page->port = 0;
    started = PageServer::start(loop_, *options_.page, source, metrics_);
  }
  if (!started.ok()) return started.error();
  page_ = std::move(*started);
  return {};
}

}  // namespace berth::app
