// The objects behind a question, fetched for the controller's answer: it keeps what it decides on,
// not the objects as they are written, and fixes are patches of those.
//
// Pods, Jobs, Workloads and ProvisioningRequests of the subject's namespace, and what autoscalers
// write, one page each; what cannot be listed is left out, and fixes of it name no changes. On the
// loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "explain/draft.h"
#include "kube/client.h"

namespace berth::app {

using FetchedObjects = std::shared_ptr<const explain::ObjectSource>;

void fetch_why_objects(kube::Client& client, const std::string& ns,
                       std::function<void(FetchedObjects)> done);

}  // namespace berth::app
