// Unary calls to one gRPC server on a unix socket, told on the loop. For edge/kubelet/ alone.
//
// One channel, which connects when it is first needed and again within a second after the server
// comes back. Used and destroyed on the loop's thread, or where the loop is destroyed: gRPC must
// not drop a channel on a thread of its own, which would wait for itself. Destroyed: what is under
// way is cancelled and nothing is told any more; waits for gRPC to let go, which does not wait for
// the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/result.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace berth::kubelet {

class ClientCalls {
 public:
  // Starts the call on the channel; the function it is given ends it, on any thread.
  using Begin = std::function<void(const std::shared_ptr<grpc::Channel>&, grpc::ClientContext*,
                                   std::function<void(grpc::Status)>)>;
  using Told = std::function<void(const grpc::Status&)>;

  ClientCalls(Loop& loop, const std::string& socket_path, int max_message_bytes);
  ~ClientCalls();
  ClientCalls(const ClientCalls&) = delete;
  ClientCalls& operator=(const ClientCalls&) = delete;

  // Never tells inside the call. More than 16 at once are refused.
  void call(std::int64_t deadline_ns, const Begin& begin, Told told);

 private:
  using Waiting = std::map<std::uint64_t, Told>;
  struct Open;

  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<Open> open_;        // shared with gRPC's threads
  std::shared_ptr<Waiting> waiting_;  // the loop's
  std::uint64_t last_ = 0;
};

// What the server at the path answered, or why it did not.
Error error_of(const grpc::Status& status, const std::string& socket_path);

}  // namespace berth::kubelet
