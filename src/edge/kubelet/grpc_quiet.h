// gRPC writes what fails to stderr on its own. What matters comes back as a status, so that its
// lines are dropped; only those before an abort are let through. For edge/kubelet/ alone.
#pragma once

namespace berth::kubelet {

void quiet_grpc();  // any thread, any number of times

}  // namespace berth::kubelet
