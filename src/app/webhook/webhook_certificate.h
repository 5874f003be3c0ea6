// The certificate of the webhook, made and renewed by the controllers themselves.
//
// The authorities are kept in the Secret berth-webhook, which all replicas share (edge/serve/
// authority_set.h says which of them does what); each replica signs its own serving certificate. A
// look, every minute or so: read the Secret, put a new authority into it when one is due, see that
// the webhook's configuration and the kinds that it converts (app/webhook/webhook_conversion.h)
// trust what the Secret holds, serve by the authority that signs now. Of two replicas that change
// the Secret at once one is refused and reads what the other wrote. A certificate is only changed
// in a look that found the configuration as it should be, so that a replica that is behind cannot
// take the trust from under one that is ahead.
//
// On the loop's thread. What fails is logged when it changes, and tried again at the next look.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/webhook/webhook_conversion.h"
#include "base/log.h"
#include "edge/kube/client.h"
#include "edge/serve/authority_set.h"
#include "edge/serve/http_server.h"

namespace berth::app {

struct WebhookCertificateOptions {
  std::string secret_namespace = "berth-system";
  std::string host;  // by which the API server calls
  serve::RotationOptions rotation;
  // The whole configuration that trusts this bundle; null: manifests made it, and only its bundle
  // is ours.
  std::function<std::string(const std::string& ca_bundle_base64)> configuration;
  ConversionPlace conversion;  // where the API server has Kueue's kinds converted
};

class WebhookCertificate {
 public:
  // Serves with these from now on.
  using Serve = std::function<Status(const serve::TlsFiles&)>;

  WebhookCertificate(kube::Client& client, WebhookCertificateOptions options, const Logger& log,
                     Serve serve);
  ~WebhookCertificate();
  void start();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::app
