#include "embedded/api/api_server.h"

#include <utility>

#include "embedded/api/server.h"

namespace berth::sim {

struct ApiServer::State {
  State(Loop& loop, store::Store& store, const Random& random, ApiServerOptions options,
        MetricsRegistry* metrics)
      : server(loop, store, random, std::move(options), metrics) {}
  api::Server server;
};

ApiServer::ApiServer(Loop& loop, store::Store& store, Random random, ApiServerOptions options,
                     MetricsRegistry* metrics)
    : state_(std::make_unique<State>(loop, store, random, std::move(options), metrics)) {}

ApiServer::~ApiServer() = default;

Status ApiServer::start() { return state_->server.start(); }

void ApiServer::handle(text::HttpRequest request, std::shared_ptr<serve::Exchange> exchange) {
  state_->server.handle_with_faults(std::move(request), std::move(exchange));
}

void ApiServer::set_fault_hook(FaultHook hook) { state_->server.fault_hook = std::move(hook); }

void ApiServer::on_full(std::function<void(const Error*)> full) {
  state_->server.told_full = std::move(full);
}

void ApiServer::on_broken(std::function<void(const Error&)> broken) {
  state_->server.told_broken = std::move(broken);
}

std::uint64_t ApiServer::version() const { return state_->server.storage.committed(); }
std::size_t ApiServer::objects() const { return state_->server.storage.objects(); }
std::size_t ApiServer::streams() const { return state_->server.hub.size(); }

}  // namespace berth::sim
