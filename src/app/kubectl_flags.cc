#include "app/kubectl_flags.h"

#include <algorithm>

namespace berth::app {

namespace {

constexpr KubectlFlag kFlags[] = {
    {"-n"},
    {"--namespace"},
    {"-A", false},
    {"--all-namespaces", false},
    {"--context"},
    {"--kubeconfig", true, true},
    {"--cluster"},
    {"--user"},
    {"-s"},
    {"--server"},
    {"--token"},
    {"--as"},
    {"--as-group"},
    {"--certificate-authority", true, true},
    {"--tls-server-name"},
    {"--insecure-skip-tls-verify", false},
};

}  // namespace

std::span<const KubectlFlag> kubectl_flags() { return kFlags; }

std::vector<std::string> command_first(const std::vector<std::string>& arguments) {
  std::size_t at = 0;
  while (at < arguments.size() && arguments[at].starts_with('-')) {
    const std::string& word = arguments[at];
    const std::size_t equals = word.find('=');
    const auto flag = std::find_if(
        std::begin(kFlags), std::end(kFlags),
        [&](const KubectlFlag& known) { return known.name == word.substr(0, equals); });
    if (flag == std::end(kFlags)) return arguments;
    at += flag->value && equals == std::string::npos ? 2 : 1;
  }
  if (at == 0 || at >= arguments.size()) return arguments;
  const auto command = arguments.begin() + static_cast<std::ptrdiff_t>(at);
  std::vector<std::string> out = {*command};
  out.insert(out.end(), arguments.begin(), command);
  out.insert(out.end(), command + 1, arguments.end());
  return out;
}

void set_kubectl_flag(std::string_view name, const std::string& value, kube::ConfigChoice& choice) {
  const std::pair<std::string_view, std::string kube::ConfigChoice::*> kFields[] = {
      {"--context", &kube::ConfigChoice::context},
      {"--kubeconfig", &kube::ConfigChoice::kubeconfig},
      {"--cluster", &kube::ConfigChoice::cluster},
      {"--user", &kube::ConfigChoice::user},
      {"-s", &kube::ConfigChoice::server},
      {"--server", &kube::ConfigChoice::server},
      {"--token", &kube::ConfigChoice::token},
      {"--as", &kube::ConfigChoice::as},
      {"--certificate-authority", &kube::ConfigChoice::ca_file},
      {"--tls-server-name", &kube::ConfigChoice::tls_server_name},
  };
  for (const auto& [flag, field] : kFields) {
    if (flag == name) choice.*field = value;
  }
  if (name == "--as-group") choice.as_groups.push_back(value);
  if (name == "--insecure-skip-tls-verify") choice.insecure = true;
}

}  // namespace berth::app
