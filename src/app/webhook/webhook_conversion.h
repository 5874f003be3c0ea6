// Which of Kueue's kinds the API server converts between their versions by asking our webhook.
//
// deploy/crds marks the kinds whose versions differ in their fields (label berth.dev/conversion:
// webhook). Such a kind is converted by us while we serve, and by nobody (strategy None: what was
// written is shown) otherwise. The kinds that Kueue brought, or has replaced since, have no such
// label or the mark of its generator: they are never written, nor is one that another webhook
// converts. A kind that lost the label is not converted any more.
//
// Every replica does this at every look of app/webhook/webhook_certificate.h; whoever comes second
// finds it done. A conversion that the API server cannot reach would be worse than none: when two
// looks in a row see it fail it is ended, and tried again an hour later.
//
// On the loop's thread. What fails is logged when it changes, and tried again at the next look.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "edge/kube/client.h"

namespace berth::app {

struct ConversionPlace {
  std::string url;  // "https://10.0.0.1:9443/convert", or
  std::string service, service_namespace;
};

class WebhookConversion {
 public:
  // All kinds are as they should be, and were before this look.
  using Settled = std::function<void(bool as_before)>;

  WebhookConversion(kube::Client& client, ConversionPlace place, const Logger& log);
  ~WebhookConversion();

  // bundle: what the API server shall trust; empty: it shall not ask us. begin: we have served long
  // enough to be asked; without it only kinds that ask us already get the bundle.
  void settle(const std::string& bundle_base64, bool begin, Settled settled);

  // Before an uninstall: all kinds back to None, and without the label, so that no replica that
  // still runs begins anew. done: the first thing that failed.
  void end(std::function<void(Status)> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::app
