// What somebody does next whom a cluster gave no answer: one word for all commands.
//
// Pure. The errors are those of edge/kube/config.h and of edge/kube/answer.h, with whatever context
// was added.
#pragma once

#include "base/result.h"

namespace berth::app {

enum class InputKind : unsigned char { kCluster, kClusterOrFiles };  // has the command -f?

// No kubeconfig, or none that can be used.
Error no_config(const Error& error, InputKind input);
// The server cannot be reached, or does not take the caller for anybody.
Error no_answer(const Error& error, InputKind input);

}  // namespace berth::app
