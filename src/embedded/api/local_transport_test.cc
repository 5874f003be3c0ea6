#include "embedded/api/local_transport.h"

#include <gtest/gtest.h>

#include "edge/kube/transport_suite_for_test.h"
#include "embedded/api/world_for_test.h"

namespace berth::sim {
namespace {

constexpr const char* kNotes = "/api/v1/namespaces/default/configmaps";

class LocalWorld final : public kube::TransportWorld {
 public:
  kube::Transport& transport() override { return *world_.transport; }
  void end_transport() override { world_.transport.reset(); }
  bool run_until(const std::function<bool()>& done) override {
    return world_.loop.run_until(done, 3'600'000'000'000);
  }
  text::HttpRequest good_request() override { return {"GET", "/version", {}, {}}; }
  text::HttpRequest missing_request() override {
    return {"GET", std::string(kNotes) + "/nothing", {}, {}};
  }
  text::HttpRequest stream_request() override {
    return {"GET", std::string(kNotes) + "?watch=true", {}, {}};
  }
  void note(const std::string& text) override {
    bool written = false;  // so that what follows is after it
    other_.send({"POST", kNotes, {}, "{\"metadata\":{\"name\":\"" + text + "\"}}"}, {},
                [&](const text::HttpResponse&, const kube::TransportError*) { written = true; });
    EXPECT_TRUE(run_until([&] { return written; }));
  }
  void end_streams() override {
    world_.server->set_fault_hook([this](const text::HttpRequest& request) {
      if (request.target != "/livez") return ApiFault{};
      world_.server->set_fault_hook({});
      return ApiFault{ApiFault::Kind::kEndStreams, 0, 0};
    });
    other_.send({"GET", "/livez", {}, {}}, {},
                [](const text::HttpResponse&, const kube::TransportError*) {});
  }

 private:
  TestWorld world_;
  LocalTransport other_{world_.loop, *world_.server};
};

}  // namespace
}  // namespace berth::sim

namespace berth::kube {

INSTANTIATE_TEST_SUITE_P(Local, TransportSuite, ::testing::Values(+[]() {
                           return std::unique_ptr<TransportWorld>(new sim::LocalWorld);
                         }));

}  // namespace berth::kube
