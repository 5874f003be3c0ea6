#include "app/next_step.h"

namespace berth::app {

namespace {

Error followed_by(const Error& error, const std::string& step) {
  return {error.code(), error.to_string() + "; " + step};
}

bool says(const Error& error, std::string_view word) {
  return error.message().find(word) != std::string::npos;
}

}  // namespace

Error no_config(const Error& error, InputKind input) {
  return followed_by(error, std::string("--kubeconfig says which cluster, ") +
                                (input == InputKind::kCluster ? "" : "-f reads files, ") +
                                "berth up starts a cluster");
}

Error no_answer(const Error& error, InputKind input) {
  // The message alone: what was asked stands in the contexts, and may hold any number.
  if (error.message().starts_with("401 ")) {
    return followed_by(error,
                       "are the credentials of the kubeconfig still valid? "
                       "kubectl auth whoami tries them");
  }
  if (error.message().starts_with("403 ")) {
    return followed_by(error, "kubectl auth can-i --list says what you may");
  }
  if (says(error, "SSL") || says(error, "certificate")) {
    return followed_by(error,
                       "is it the right server? --certificate-authority and --tls-server-name say "
                       "what its certificate must be");
  }
  return followed_by(error, std::string("is the cluster up? --kubeconfig says which") +
                                (input == InputKind::kCluster ? "" : ", -f reads files"));
}

}  // namespace berth::app
