#include "edge/kube/events.h"

#include <gtest/gtest.h>

#include "edge/kube/discovery.h"
#include "edge/kube/script_transport_for_test.h"
#include "text/json.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kEventSecond = 1'000'000'000;

struct EventWorld {
  explicit EventWorld(EventOptions options = {}) : recorder(client, std::move(options), &metrics) {}
  static EventNote note(const std::string& pod = "p", const std::string& text = "no room") {
    return {"v1", "Pod", {"d", pod}, "u1", true, "FailedScheduling", "Scheduling", text};
  }
  void answer_all(int status = 201) {
    for (std::size_t i = 0; i < wire.asked.size(); ++i) {
      if (wire.asked[i].open) wire.answer(i, status, "{}");
    }
    loop.run_ready();
  }
  std::uint64_t dropped(const char* why) {
    return metrics
        .counter({.name = "berth_kube_events_dropped_total",
                  .help = "Events that were not written, by reason.",
                  .labels = {"reason"}})
        .with({why})
        .value();
  }
  MetricsRegistry metrics;
  FakeClock clock{1'700'000'000 * kEventSecond};
  SteppedLoop loop{clock};
  ScriptTransport wire{loop};
  Client client{wire, loop, Random(1)};
  EventRecorder recorder;
};

TEST(EventRecorder, writes_what_the_api_wants) {
  EventWorld w;
  w.recorder.record(EventWorld::note());
  w.recorder.record({"v1",
                     "Node",
                     {"", "n1"},
                     "",
                     false,
                     "Cordoned",
                     "Cordon",
                     std::string(1'023, 'x') + "\xc3\xa9 tail"});
  ASSERT_EQ(w.wire.asked.size(), 2u);
  EXPECT_EQ(w.wire.asked[0].path(), "/apis/events.k8s.io/v1/namespaces/d/events");
  auto body = text::parse_json(w.wire.asked[0].request.body);
  ASSERT_TRUE(body.ok());
  std::string name(body->root().find("metadata")->find("name")->string());
  EXPECT_TRUE(name.starts_with("p.") && name.size() == 18) << name;
  EXPECT_EQ(
      w.wire.asked[0].request.body,
      R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"namespace":"d","name":")" +
          name +
          R"("},"eventTime":"2023-11-14T22:13:20.000000Z","reportingController":"berth",)"
          R"("reportingInstance":"berth-0","action":"Scheduling","reason":"FailedScheduling",)"
          R"("regarding":{"apiVersion":"v1","kind":"Pod","namespace":"d","name":"p",)"
          R"("uid":"u1"},"note":"no room","type":"Warning"})");
  EXPECT_EQ(w.wire.asked[1].path(), "/apis/events.k8s.io/v1/namespaces/default/events");
  auto node = text::parse_json(w.wire.asked[1].request.body);
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->root().find("note")->string(), std::string(1'023, 'x')) << "cut at a character";
  EXPECT_EQ(node->root().find("type")->string(), "Normal");
}

TEST(EventRecorder, the_same_again_is_a_series_written_now_and_then) {
  EventWorld w;
  w.recorder.record(EventWorld::note());
  w.recorder.record(EventWorld::note());  // while the first is under way
  EXPECT_EQ(w.wire.asked.size(), 1u);
  w.answer_all();
  ASSERT_EQ(w.wire.asked.size(), 2u);
  EXPECT_EQ(w.wire.asked[1].request.method, "PATCH");
  EXPECT_EQ(w.wire.asked[1].request.body,
            R"({"series":{"count":2,"lastObservedTime":"2023-11-14T22:13:20.000000Z"}})");
  w.answer_all(200);
  for (int i = 0; i < 20; ++i) {
    w.loop.run_for(kEventSecond);
    w.recorder.record(EventWorld::note());
  }
  EXPECT_EQ(w.wire.asked.size(), 2u) << "not more often than every 30 s";
  w.loop.run_for(11 * kEventSecond);
  ASSERT_EQ(w.wire.asked.size(), 3u);
  EXPECT_NE(w.wire.asked[2].request.body.find("\"count\":22"), std::string::npos);
  w.answer_all(404);  // the server forgot it
  w.recorder.record(EventWorld::note());
  EXPECT_EQ(w.wire.asked.back().request.method, "POST");
  w.answer_all();
  w.loop.run_for(400 * kEventSecond);
  w.recorder.record(EventWorld::note());
  EXPECT_EQ(w.wire.asked.back().request.method, "POST") << "six minutes later it is a new one";
  w.recorder.record(EventWorld::note("p", "other words"));
  EXPECT_EQ(w.wire.asked.back().request.method, "POST");
}

TEST(EventRecorder, one_object_cannot_fill_the_store_and_nothing_waits) {
  EventWorld w;
  for (int i = 0; i < 40; ++i) {
    w.recorder.record(EventWorld::note("p", std::to_string(i)));
    w.answer_all();
  }
  EXPECT_EQ(w.wire.asked.size(), 25u);
  EXPECT_EQ(w.dropped("object"), 15u);
  w.recorder.record(EventWorld::note("other"));
  EXPECT_EQ(w.wire.asked.size(), 26u);
  w.answer_all();
  w.loop.run_for(300 * kEventSecond);
  w.recorder.record(EventWorld::note("p", "later"));
  EXPECT_EQ(w.wire.asked.size(), 27u);
  w.answer_all(500);
  EXPECT_EQ(w.dropped("refused"), 1u);
}

TEST(EventRecorder, everything_is_bounded) {
  EventWorld w({.max_remembered = 10, .max_under_way = 4});
  for (int i = 0; i < 6; ++i) w.recorder.record(EventWorld::note("p" + std::to_string(i)));
  EXPECT_EQ(w.wire.asked.size(), 4u);
  EXPECT_EQ(w.dropped("busy"), 2u);
  w.answer_all();
  for (int i = 0; i < 100; ++i) {
    w.loop.run_for(kEventSecond);
    w.recorder.record(EventWorld::note("q" + std::to_string(i)));
    w.answer_all();
  }
  EXPECT_EQ(w.wire.asked.size(), 104u);
  w.recorder.record(EventWorld::note("q99"));
  EXPECT_EQ(w.wire.asked.back().request.method, "PATCH") << "the newest are remembered";
  w.recorder.record(EventWorld::note("q1"));
  EXPECT_EQ(w.wire.asked.back().request.method, "POST") << "the oldest are not";
}

TEST(EventRecorder, its_end_cancels_what_is_under_way) {
  EventWorld w;
  {
    EventRecorder gone(w.client);
    gone.record(EventWorld::note());
  }
  EXPECT_TRUE(w.wire.asked[0].cancelled);
}

// ---- discovery -----------------------------------------------------------------------------

TEST(Discovery, reads_the_aggregated_form) {
  EventWorld w;
  std::optional<Result<ServerResources>> got;
  ask_resources(w.client, [&](Result<ServerResources> r) { got = std::move(r); });
  ASSERT_EQ(w.wire.asked.size(), 2u);
  EXPECT_NE(text::find_header(w.wire.asked[0].request.headers, "Accept")
                ->find("as=APIGroupDiscoveryList"),
            std::string::npos);
  w.wire.answer(
      0, 200,
      R"({"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":)"
      R"("v1","resources":[{"resource":"pods","responseKind":{"kind":"Pod"},"scope":)"
      R"("Namespaced","verbs":["get","list"],"subresources":[{"subresource":"status"}]}]}]}]})");
  w.loop.run_ready();
  EXPECT_FALSE(got);
  w.wire.answer(
      1, 200,
      R"({"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"resource.k8s.io"},)"
      R"("versions":[{"version":"v1","resources":[{"resource":"resourceslices",)"
      R"("scope":"Cluster"}]},{"version":"v1beta2","resources":[{"resource":)"
      R"("resourceslices"}]}]}]})");
  w.loop.run_ready();
  ASSERT_TRUE(got && got->ok());
  const ServerResources& found = **got;
  EXPECT_TRUE(found.has(resources::pods()));
  EXPECT_FALSE(found.has(resources::nodes()));
  EXPECT_TRUE(found.device_claims());
  EXPECT_FALSE(found.kueue() || found.pod_groups());
  EXPECT_EQ(found.find("", "pods")->subresources, std::vector<std::string>{"status"});
  EXPECT_EQ(found.find("", "pods")->resource, resources::pods());
  EXPECT_EQ(found.find("resource.k8s.io", "resourceslices")->resource.version, "v1");
}

TEST(Discovery, asks_group_by_group_where_the_server_is_older) {
  EventWorld w;
  std::optional<Result<ServerResources>> got;
  ask_resources(w.client, [&](Result<ServerResources> r) { got = std::move(r); });
  w.wire.answer(0, 200, R"({"kind":"APIVersions","versions":["v1"]})");
  w.wire.answer(1, 200,
                R"({"kind":"APIGroupList","groups":[{"name":"batch","versions":[{"groupVersion":)"
                R"("batch/v1"}]},{"name":"gone","versions":[{"groupVersion":"gone/v1"}]}]})");
  w.loop.run_ready();
  ASSERT_EQ(w.wire.asked.size(), 5u);
  EXPECT_EQ(w.wire.asked[2].path(), "/api/v1");
  w.wire.answer(2, 200,
                R"({"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"nodes",)"
                R"("kind":"Node","namespaced":false},{"name":"nodes/status","kind":"Node"}]})");
  w.wire.answer(3, 200,
                R"({"groupVersion":"batch/v1","resources":[{"name":"jobs","kind":"Job",)"
                R"("namespaced":true}]})");
  w.wire.answer(4, 404, "{}");
  w.loop.run_ready();
  ASSERT_TRUE(got && got->ok());
  EXPECT_TRUE((*got)->has(resources::nodes()) && (*got)->has(resources::jobs()));
  EXPECT_EQ((*got)->all().size(), 2u);
  EXPECT_EQ((*got)->find("", "nodes")->subresources, std::vector<std::string>{"status"});
}

TEST(Discovery, version_and_failures) {
  EventWorld w;
  std::optional<Result<ServerVersion>> version;
  std::optional<Result<ServerResources>> got;
  ask_version(w.client, [&](Result<ServerVersion> v) { version = std::move(v); });
  w.wire.answer(0, 200, R"({"major":"1","minor":"37+","gitVersion":"v1.37.0"})");
  w.loop.run_ready();
  ASSERT_TRUE(version && version->ok());
  EXPECT_EQ((*version)->minor, 37);
  EXPECT_EQ((*version)->text, "v1.37.0");
  ask_version(w.client, [&](Result<ServerVersion> v) { version = std::move(v); });
  w.wire.answer(1, 200, R"({"hello":1})");
  w.loop.run_ready();
  EXPECT_FALSE(version->ok());
  ask_resources(w.client, [&](Result<ServerResources> r) { got = std::move(r); });
  w.wire.answer(2, 403, "{}");
  w.wire.answer(3, 403, "{}");
  w.loop.run_ready();
  ASSERT_TRUE(got && !got->ok());
  EXPECT_EQ(got->error().to_string(), "/api: 403 Forbidden");
}

}  // namespace
}  // namespace berth::kube
