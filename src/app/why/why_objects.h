// The objects behind a question, fetched for the controller's answer: it keeps what it decides on,
// not the objects as they are written, and fixes are patches of those. Rules of the API server
// (people/why/server_rules.h) are read from objects too, most of which it does not watch.
//
// Of the subject's namespace: pods, Jobs, Workloads, claims, quotas, ranges, accounts and
// ProvisioningRequests, and the namespace itself; of the cluster: its classes and volumes, and what
// autoscalers write. All at once, each in pages, up to a bound. What cannot be listed, or is more
// than the bound, is left out: fixes of it name no changes, and no rule is read from a part of it.
// On the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "edge/kube/client.h"
#include "people/why/draft.h"

namespace berth::app {

using FetchedObjects = std::shared_ptr<const people::ObjectSource>;

inline constexpr std::size_t kMostFetched = 2'000;  // of a kind

void fetch_why_objects(kube::Client& client, const std::string& ns,
                       std::function<void(FetchedObjects)> done);

}  // namespace berth::app
