#include "conformance/hook_transport.h"

#include <vector>

#include "text/base64.h"

namespace berth::conformance {

kube::Call HookTransport::send(text::HttpRequest request, const kube::SendOptions& options,
                               Answered answered) {
  std::string authority;
  text::HttpHeaders kept;
  for (text::HttpHeader& header : request.headers) {
    if (header.name == "X-Berth-Ca-Bundle") {
      if (Result<std::string> pem = text::base64_decode(header.value); pem.ok()) authority = *pem;
    } else if (header.name != "Host") {
      kept.push_back(std::move(header));
    }
  }
  request.headers = std::move(kept);
  const std::size_t host = request.target.find("://");
  const std::size_t path = host == std::string::npos ? host : request.target.find('/', host + 3);
  const std::string server = request.target.substr(0, path);
  request.target = path == std::string::npos ? "/" : request.target.substr(path);
  // The word that Go uses, and people look for.
  const auto told = [answered = std::move(answered)](text::HttpResponse answer,
                                                     const kube::TransportError* error) {
    if (error == nullptr || !error->refused) return answered(std::move(answer), error);
    kube::TransportError refused = *error;
    refused.message = "connect: connection refused";
    answered(std::move(answer), &refused);
  };
  return to(server, authority).send(std::move(request), options, told);
}

kube::CurlTransport& HookTransport::to(const std::string& server,
                                       const std::string& authority_pem) {
  std::unique_ptr<kube::CurlTransport>& found = transports_[{server, authority_pem}];
  if (found == nullptr) {
    kube::Config config;
    config.server = server;
    config.ca_data = authority_pem;
    found = std::make_unique<kube::CurlTransport>(loop_, std::move(config));
  }
  return *found;
}

}  // namespace berth::conformance
