#include "edge/kubelet/grpc_quiet.h"

#include <grpc/support/log.h>

#include <cstdio>
#include <string_view>

namespace berth::kubelet {
namespace {

void log_of_grpc(gpr_log_func_args* line) {
  if (!std::string_view(line->message).starts_with("assertion failed")) return;
  std::fprintf(stderr, "gRPC: %s:%d: %s\n", line->file, line->line, line->message);
}

}  // namespace

void quiet_grpc() {
  static const bool once = (gpr_set_log_function(log_of_grpc), true);
  static_cast<void>(once);
}

}  // namespace berth::kubelet
