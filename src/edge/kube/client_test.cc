#include "edge/kube/client.h"

#include <gtest/gtest.h>

#include "edge/kube/script_transport_for_test.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kClientSecond = 1'000'000'000;
constexpr const char* kNotFound =
    R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"a\" not found",)"
    R"("reason":"NotFound","code":404})";

struct ClientWorld {
  explicit ClientWorld(ClientOptions options = {})
      : client(wire, loop, Random(1), std::move(options), &metrics) {}
  Client::Done keep() {
    return [this](Answer answer) { answers.push_back(std::move(answer)); };
  }
  MetricsRegistry metrics;
  FakeClock clock{1'000 * kClientSecond};
  SteppedLoop loop{clock};
  ScriptTransport wire{loop};
  Client client;
  std::vector<Answer> answers;
};

TEST(Client, paths_and_queries) {
  using namespace resources;
  EXPECT_EQ(Client::path_of(pods(), {"a", "b"}), "/api/v1/namespaces/a/pods/b");
  EXPECT_EQ(Client::path_of(nodes(), {"", "n/1"}, "status"), "/api/v1/nodes/n%2F1/status");
  EXPECT_EQ(Client::collection_path(workloads(), ""), "/apis/kueue.x-k8s.io/v1beta2/workloads");
  EXPECT_EQ(Client::collection_path(jobs(), "x"), "/apis/batch/v1/namespaces/x/jobs");
  EXPECT_EQ(Client::path_of(gpu_nodes(), {"", "n"}), "/apis/berth.dev/v1alpha1/gpunodes/n");
  EXPECT_EQ(events().api_version(), "events.k8s.io/v1");
  EXPECT_EQ(pods().api_version(), "v1");
  EXPECT_EQ((Key{"a", "b"}).to_string(), "a/b");
  EXPECT_EQ((Key{"", "b"}).to_string(), "b");
}

TEST(Client, requests_as_the_api_wants_them) {
  ClientWorld w;
  const Resource& pods = resources::pods();
  w.client.patch(pods, {"a", "p"}, PatchType::kApply, "{}",
                 {.subresource = "status", .force = true, .dry_run = true, .strict = true}, {});
  w.client.patch(pods, {"a", "p"}, PatchType::kJson, "[]", {.manager = "m", .force = true}, {});
  w.client.create(pods, "a", "{}", {}, {});
  w.client.remove(pods, {"a", "p"}, {.uid = "u", .grace_seconds = 0, .propagation = "Orphan"}, {});
  w.client.remove(pods, {"a", "p"}, {}, {});
  w.client.post(pods, {"a", "p"}, "binding", "{}", {});
  w.client.list(pods, {.ns = "a", .label_selector = "x=1", .version = "5", .limit = 3}, {});
  w.client.list(pods, {.version = "5", .next = "tok"}, {});
  auto& asked = w.wire.asked;
  ASSERT_EQ(asked.size(), 8u);
  EXPECT_EQ(asked[0].request.target,
            "/api/v1/namespaces/a/pods/p/"
            "status?fieldManager=berth&force=true&dryRun=All&fieldValidation=Strict");
  EXPECT_EQ(text::find_header(asked[0].request.headers, "content-type"),
            "application/apply-patch+yaml");
  EXPECT_EQ(asked[1].request.target, "/api/v1/namespaces/a/pods/p?fieldManager=m");
  EXPECT_EQ(text::find_header(asked[1].request.headers, "user-agent"), "berth");
  EXPECT_EQ(asked[2].request.method, "POST");
  EXPECT_EQ(asked[3].request.body,
            R"({"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,)"
            R"("propagationPolicy":"Orphan","preconditions":{"uid":"u"}})");
  EXPECT_EQ(asked[4].request.body, "");
  EXPECT_EQ(asked[5].path(), "/api/v1/namespaces/a/pods/p/binding");
  EXPECT_EQ(asked[6].request.target,
            "/api/v1/namespaces/a/pods?labelSelector=x%3D1&limit=3&resourceVersion=5");
  EXPECT_EQ(asked[7].request.target, "/api/v1/pods?continue=tok");
}

TEST(Client, reads_answers) {
  struct Case {
    int status;
    std::string type, body;
    int want;
    std::string reason, message;
  };
  const Case cases[] = {
      {200, "application/json", R"({"a":1})", 200, "", ""},
      {200, "text/plain", "ok", 200, "", "ok"},
      {204, "", "", 204, "", ""},
      {200, "application/json", R"({"a":)", 0, "", "the server's answer cannot be read"},
      {404, "application/json", kNotFound, 404, "NotFound", "pods \"a\" not found"},
      {404, "text/plain", "404 page not found\n", 404, "Not Found", "404 page not found"},
      {500, "application/json", "not \x1b json", 500, "Internal Server Error", "not \\x1b json"},
  };
  for (const Case& c : cases) {
    ClientWorld w;
    w.client.get(resources::pods(), {"a", "p"}, w.keep());
    w.wire.answer(0, c.status, c.body, {{"Content-Type", c.type}, {"Warning", "299 - \"old\""}});
    w.loop.run_ready();
    ASSERT_EQ(w.answers.size(), 1u);
    EXPECT_EQ(w.answers[0].status, c.want) << c.body;
    EXPECT_EQ(w.answers[0].reason, c.reason);
    EXPECT_TRUE(w.answers[0].message.starts_with(c.message)) << w.answers[0].message;
    EXPECT_EQ(w.answers[0].warnings, std::vector<std::string>{"old"});
  }
  ClientWorld w;
  w.client.get(resources::pods(), {"a", "p"}, w.keep());
  w.wire.answer(0, 404, kNotFound);
  w.loop.run_ready();
  EXPECT_EQ(w.answers[0].error().to_string(), "404 NotFound: pods \"a\" not found");
  EXPECT_EQ(w.answers[0].error().code(), Code::kNotFound);
}

// What is tried again: by verb, by what went wrong.
TEST(Client, retries_only_what_is_safe) {
  struct Case {
    const char* what;
    bool write, urgent, eviction;
    int status;  // 0: the connection broke
    bool maybe_carried_out;
    const char* retry_after;
    bool again;
  };
  const Case cases[] = {
      {"broken read", false, false, false, 0, true, "", true},
      {"write that may have happened", true, false, false, 0, true, "", false},
      {"write that never left", true, false, false, 0, false, "", true},
      {"busy", true, false, false, 429, false, "", true},
      {"busy, with a date", true, false, false, 429, false, "1", true},
      {"eviction refused", true, false, true, 429, false, "1", false},
      {"unavailable", true, false, false, 503, false, "", false},
      {"unavailable for now", true, false, false, 503, false, "2", true},
      {"too long a wait", true, false, false, 503, false, "600", false},
      {"error", false, false, false, 500, false, "2", false},
      {"urgent", true, true, false, 429, false, "", false},
  };
  for (const Case& c : cases) {
    ClientWorld w;
    if (c.eviction) {
      w.client.post(resources::pods(), {"a", "p"}, "eviction", "{}", w.keep());
    } else if (c.write) {
      w.client.update(resources::pods(), {"a", "p"}, "{}", {.urgent = c.urgent}, w.keep());
    } else {
      w.client.get(resources::pods(), {"a", "p"}, w.keep());
    }
    if (c.status == 0) {
      w.wire.fail(0, {"gone", false, c.maybe_carried_out});
    } else {
      text::HttpHeaders headers;
      if (*c.retry_after) headers.push_back({"Retry-After", c.retry_after});
      w.wire.answer(0, c.status, "", headers);
    }
    w.loop.run_for(60 * kClientSecond);
    EXPECT_EQ(w.wire.asked.size(), c.again ? 2u : 1u) << c.what;
    EXPECT_EQ(w.answers.size(), c.again ? 0u : 1u) << c.what;
    if (!c.again || w.wire.asked.size() < 2) continue;
    EXPECT_EQ(w.wire.asked[1].request.target, w.wire.asked[0].request.target);
    w.wire.answer(1, 200, "{}");
    w.loop.run_ready();
    ASSERT_EQ(w.answers.size(), 1u);
    EXPECT_TRUE(w.answers[0].ok());
  }
}

TEST(Client, gives_up_after_max_tries_and_waits_as_told) {
  ClientWorld w({.max_tries = 3});
  w.client.get(resources::pods(), {"a", "p"}, w.keep());
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(w.wire.asked.size(), i + 1);
    w.wire.answer(i, 429, "", {{"Retry-After", "10"}});
    w.loop.run_for(9 * kClientSecond);
    EXPECT_EQ(w.wire.asked.size(), i + 1) << "not before Retry-After";
    w.loop.run_for(7 * kClientSecond);
  }
  ASSERT_EQ(w.answers.size(), 1u);
  EXPECT_EQ(w.answers[0].status, 429);
  EXPECT_EQ(w.answers[0].retry_after_ns, 10 * kClientSecond);
}

TEST(Client, a_server_in_trouble_is_not_buried_under_retries) {
  ClientWorld w({.max_tries = 1'000});
  for (int i = 0; i < 300; ++i) w.client.get(resources::nodes(), {"", "n"}, w.keep());
  for (std::size_t i = 0; i < w.wire.asked.size(); ++i) {
    w.wire.fail(i, {"refused", true, false});
    w.loop.run_for(60 * kClientSecond);
  }
  EXPECT_EQ(w.answers.size(), 300u);
  EXPECT_LE(w.wire.asked.size(), 300u + 100u + 61u);
}

TEST(Client, own_rate_limit_lets_urgent_calls_pass) {
  ClientWorld w({.qps = 10, .burst = 2});
  for (int i = 0; i < 5; ++i) w.client.get(resources::nodes(), {"", "n"}, {});
  EXPECT_EQ(w.wire.asked.size(), 2u);
  w.client.update(resources::leases(), {"a", "l"}, "{}", {.urgent = true}, {});
  EXPECT_EQ(w.wire.asked.size(), 3u);
  w.loop.run_for(kClientSecond / 10);
  EXPECT_EQ(w.wire.asked.size(), 4u);
  w.loop.run_for(kClientSecond);
  EXPECT_EQ(w.wire.asked.size(), 6u);
}

TEST(Client, cancel_is_silence) {
  ClientWorld w;
  Call waiting = w.client.get(resources::nodes(), {"", "n"}, w.keep());
  Call again = w.client.get(resources::nodes(), {"", "n"}, w.keep());
  bool ended = false;
  Call stream =
      w.client.stream(resources::nodes(), "", {{"watch", "1"}}, {},
                      {[](const text::HttpResponse&) {}, [](std::string_view) { return true; },
                       [&](const TransportError*) { ended = true; }});
  w.wire.answer(0, 200, "{}");
  w.wire.fail(1, {"broken", false, true});
  w.client.cancel(waiting);
  w.loop.run_ready();
  w.client.cancel(again);  // while it waits for its retry
  w.client.resume(stream);
  EXPECT_EQ(w.wire.resumed.size(), 1u);
  w.client.cancel(stream);
  EXPECT_TRUE(w.wire.asked[2].cancelled);
  w.loop.run_for(100 * kClientSecond);
  EXPECT_EQ(w.wire.asked.size(), 3u);
  EXPECT_TRUE(w.answers.empty());
  EXPECT_FALSE(ended);
  EXPECT_TRUE(w.loop.idle());
}

TEST(Client, its_end_cancels_everything) {
  FakeClock clock;
  SteppedLoop loop(clock);
  ScriptTransport wire(loop);
  bool called = false;
  {
    Client client(wire, loop, Random(1));
    client.get(resources::nodes(), {"", "n"}, [&](Answer) { called = true; });
    wire.answer(0, 200, "{}");
  }
  loop.run_for(kClientSecond);
  EXPECT_FALSE(called);
  EXPECT_TRUE(wire.asked[0].cancelled);
}

TEST(Client, counts) {
  ClientWorld w;
  w.client.get(resources::pods(), {"a", "p"}, {});
  w.client.raw({"GET", "/version", {}, {}}, {}, {});
  w.wire.answer(0, 404, kNotFound, {{"X-Kubernetes-PF-PriorityLevel-UID", "u1"}});
  w.wire.answer(1, 200, "{}", {{"Warning", "299 - \"w\""}});
  w.loop.run_ready();
  std::string text = w.metrics.render(MetricFormat::kPrometheusText);
  for (const char* line :
       {R"(berth_kube_requests_total{verb="GET",resource="pods",code="404"} 1)",
        R"(berth_kube_requests_total{verb="GET",resource="version",code="200"} 1)",
        R"(berth_kube_flow_total{priority_level_uid="u1"} 1)",
        R"(berth_kube_warnings_total{resource="version"} 1)"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

}  // namespace
}  // namespace berth::kube
