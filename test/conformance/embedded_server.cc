// The embedded API server over HTTPS, for the conformance suite and kubectl: the same ApiServer as
// `berth up`, without nodes and controllers beside it.
//
//   conformance_server KUBECONFIG [DATABASE]
//
// Writes the kubeconfig (as JSON), prints "ready URL" and serves until its input ends: whoever
// started it cannot leave it behind. State is in memory, or in the SQLite file that is named.
// A request with "X-Berth-Test: compact" makes the server forget its history first, as compaction
// of etcd does; so does the first request of all, because a real server knows nothing from before
// its start either.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "base/run_loop.h"
#include "base/system_clock.h"
#include "conformance/hook_transport.h"
#include "edge/serve/certificate.h"
#include "edge/serve/http_server.h"
#include "edge/store/memory_store.h"
#include "edge/store/sqlite_store.h"
#include "embedded/api/api_server.h"
#include "text/base64.h"
#include "text/http.h"

namespace berth {
namespace {

constexpr std::int64_t kHourNs = 3'600'000'000'000;
constexpr const char* kToken = "token-of-conformance";

Status write_kubeconfig(const std::string& path, const std::string& url,
                        const std::string& authority_pem) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << R"({"apiVersion":"v1","kind":"Config","current-context":"test","clusters":)"
      << R"([{"name":"test","cluster":{"server":")" << url << R"(","certificate-authority-data":")"
      << text::base64_encode(authority_pem) << R"("}}],"users":[{"name":"admin","user":)"
      << R"({"token":")" << kToken << R"("}}],"contexts":[{"name":"test","context":)"
      << R"({"cluster":"test","user":"admin"}}]})"
      << "\n";
  out.close();
  if (!out) return Error(Code::kInternal, "cannot write " + path);
  return {};
}

sim::FaultHook compaction_on_wish() {
  return [first = true](const text::HttpRequest& request) mutable {
    const bool wished = text::find_header(request.headers, "X-Berth-Test") == "compact";
    sim::ApiFault fault;
    if (first || wished) fault.kind = sim::ApiFault::Kind::kCompact;
    first = false;
    return fault;
  };
}

Result<std::unique_ptr<store::Store>> open_store(const std::string& database, RunLoop& loop) {
  if (!database.empty()) return store::open_sqlite({.path = database}, loop);
  return std::unique_ptr<store::Store>(std::make_unique<store::MemoryStore>(loop));
}

Status serve_until_input_ends(const std::string& kubeconfig, const std::string& database) {
  const SystemWallClock wall;
  const SystemMonotonicClock monotonic;
  RunLoop loop(monotonic, wall);
  BERTH_TRY(const std::unique_ptr<store::Store> store, open_store(database, loop));

  conformance::HookTransport hooks(loop);
  sim::ApiServerOptions options;
  options.admin_token = kToken;
  options.webhooks = &hooks;
  sim::ApiServer api(loop, *store, Random(7), options);
  api.set_fault_hook(compaction_on_wish());
  BERTH_CHECK(api.start());

  const std::int64_t now_ns = wall.now_ns();
  BERTH_TRY(const serve::Certificate authority,
            serve::make_authority({.common_name = "conformance authority",
                                   .hosts = {},
                                   .not_before_ns = now_ns - kHourNs,
                                   .valid_ns = 48 * kHourNs}));
  BERTH_TRY(const serve::Certificate certificate,
            serve::make_certificate({.common_name = "conformance",
                                     .hosts = {"127.0.0.1", "localhost"},
                                     .not_before_ns = now_ns - kHourNs,
                                     .valid_ns = 48 * kHourNs},
                                    authority));
  serve::HttpServerOptions http;
  http.tls = serve::TlsFiles{certificate.certificate_pem, certificate.key_pem};
  BERTH_TRY(std::unique_ptr<serve::HttpServer> server,
            serve::HttpServer::start(
                http, [&](text::HttpRequest request, std::shared_ptr<serve::Exchange> exchange) {
                  loop.post([&api, asked = std::move(request), to = std::move(exchange)]() mutable {
                    api.handle(std::move(asked), std::move(to));
                  });
                }));

  const std::string url = "https://127.0.0.1:" + std::to_string(server->port());
  BERTH_CHECK(write_kubeconfig(kubeconfig, url, authority.certificate_pem));
  std::printf("ready %s\n", url.c_str());
  std::fflush(stdout);

  std::thread input([&loop] {
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
    loop.stop();
  });
  loop.run();
  input.join();
  server.reset();  // no handler runs from here on; what it posted goes with the loop
  return {};
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: conformance_server KUBECONFIG [DATABASE]\n");
    return 2;
  }
  const berth::Status status =
      berth::serve_until_input_ends(argv[1], argc > 2 ? argv[2] : std::string());
  if (!status.ok()) {
    std::fprintf(stderr, "conformance_server: %s\n", status.error().to_string().c_str());
    return 1;
  }
  return 0;
}
