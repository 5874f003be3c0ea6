// The bounds of each kind of server, in one place: what strangers may cost us by it.
//
// Behind every one of them stands a process with other things to do, so all servers of a controller
// or an agent together leave it half of its descriptors, and take a few dozen megabytes.
#pragma once

#include "serve/http_server.h"

namespace berth::serve {

// For kubelets' probes alone, so that nobody else's port can be in their way: few connections, no
// bodies, and descriptors of its own.
HttpServerOptions health_server();
// For Prometheus and a curious person: no bodies.
HttpServerOptions metrics_server();
// For API servers, which keep connections: reviews of an object before and after, which has 3 MiB
// at most. Conversions come by the list and are larger (max_body_of).
HttpServerOptions webhook_server();
// For people, maybe many behind one address: no bodies.
HttpServerOptions page_server();
// For clients of the embedded API server, who all live on this machine.
HttpServerOptions api_server();

}  // namespace berth::serve
