// How the embedded API server calls admission webhooks: berth's own in this process, without a
// socket; those of others over HTTPS to the URL that their configuration names.
//
// The server sends a POST whose target is the whole URL, and reads an AdmissionReview from the
// answer.
#pragma once

#include <memory>
#include <string>

#include "base/loop.h"
#include "control/queue_board.h"
#include "edge/kube/client.h"
#include "edge/kube/transport.h"

namespace berth::app {

struct OwnWebhookOptions {
  std::string scheduler_name = "berth";
  bool manage_all = true;  // every namespace but those of the system, not only labelled ones
  std::shared_ptr<const control::QueueBoard> board = nullptr;
};

const kube::Resource& webhook_configurations();  // MutatingWebhookConfiguration

struct WebhookPlace {
  std::string url;
  std::string ca_bundle_base64;  // empty: nothing to check it by
  bool manage_all = true;
};
// The MutatingWebhookConfiguration "berth" that sends creations of pods and of what makes pods
// there. A webhook that does not answer stops nobody (failurePolicy Ignore): its pods are then the
// default scheduler's.
std::string webhook_configuration(const WebhookPlace& place);

class OwnWebhook final : public kube::Transport {
 public:
  OwnWebhook(Loop& loop, OwnWebhookOptions options);
  ~OwnWebhook() override;

  std::string configuration() const;  // that names it

  kube::Call send(text::HttpRequest request, const kube::SendOptions& options,
                  Answered answered) override;
  kube::Call stream(text::HttpRequest request, const kube::StreamOptions& options,
                    kube::StreamHandler handler) override;
  void resume(kube::Call stream) override;
  void cancel(kube::Call call) override;

 private:
  kube::Call send_elsewhere(text::HttpRequest request, const kube::SendOptions& options,
                            Answered answered);

  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::app
