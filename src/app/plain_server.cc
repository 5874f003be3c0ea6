#include "app/plain_server.h"

#include <utility>

namespace berth::app {

Result<std::unique_ptr<serve::HttpServer>> start_plain_server(serve::HttpServerOptions options,
                                                              const HostPort& where,
                                                              PlainAnswers answers,
                                                              const Logger& log,
                                                              MetricsRegistry& metrics) {
  options.address = where.host;
  options.port = where.port;
  const std::string name = options.name;
  BERTH_TRY(std::unique_ptr<serve::HttpServer> server,
            serve::HttpServer::start(
                std::move(options),
                [say = std::move(answers)](const text::HttpRequest& request,
                                           const std::shared_ptr<serve::Exchange>& exchange) {
                  if (request.method != "GET" && request.method != "HEAD") {
                    return exchange->respond({.status = 405,
                                              .headers = {{"Allow", "GET, HEAD"}},
                                              .body = "this is only read: GET\n"});
                  }
                  exchange->respond(say(request.target));
                },
                &metrics));
  log.info("serving " + name,
           {{"address", where.host.empty() ? "all" : where.host}, {"port", server->port()}});
  return server;
}

}  // namespace berth::app
