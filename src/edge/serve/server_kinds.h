// The bounds of each kind of server, in one place: what strangers may cost us by it.
//
// Behind every one of them stands a process with other things to do, so all servers of a controller
// or an agent together leave it half of its descriptors, and take a few dozen megabytes.
#pragma once

#include <cstddef>

#include "edge/serve/http_server.h"

namespace berth::serve {

// For kubelets' probes alone, so that nobody else's port can be in their way: few connections, no
// bodies, and descriptors of its own.
HttpServerOptions health_server();
// For Prometheus and a curious person: no bodies.
HttpServerOptions metrics_server();
// For API servers, which keep connections. One takes 3 MiB of an object, writes one byte of it as
// six ("<" is \u003c) and sends it as it is and as it was: 36 MiB. A review that is not taken is an
// object that nobody looked at. There is room for one of that size at a time; others are small.
inline constexpr std::size_t kMostReviewBody = std::size_t{40} << 20;
HttpServerOptions webhook_server();
// For people, maybe many behind one address: no bodies.
HttpServerOptions page_server();
// For clients of the embedded API server, who all live on this machine.
HttpServerOptions api_server();

}  // namespace berth::serve
