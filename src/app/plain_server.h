// A server whose answers are at hand: metrics and probes.
//
// Answers are asked for on the server's thread; they must not wait. GET and HEAD are all it knows.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/host_port.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "edge/serve/server_kinds.h"

namespace berth::app {

using PlainAnswers = std::function<text::HttpResponse(const std::string& target)>;

// The log says where it listens; its own metrics carry the name of the options.
Result<std::unique_ptr<serve::HttpServer>> start_plain_server(serve::HttpServerOptions options,
                                                              const HostPort& where,
                                                              PlainAnswers answers,
                                                              const Logger& log,
                                                              MetricsRegistry& metrics);

}  // namespace berth::app
