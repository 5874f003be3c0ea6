// api-attacks: how long one request, or what follows from it, holds the loop of the embedded API
// server, and how that grows.
//
//   api-attacks [--smoke] [--only WORD]
//
// Each attack runs at half its size and at its whole size, twice, in virtual time on a memory
// store. The longest piece of work is in CPU time of the thread, so that a busy machine changes
// little; growth is the CPU of all pieces at the whole size over that at half. Memory: the most of
// the heap that was in use after a piece, and what still is when the attack is over and the server
// is not (objects it left there and their history among it), both over what was before. An arrow: a
// piece took longer than 100 ms, or something grows faster than its size (beyond 2.5 from half to
// whole).
#include <fmt/format.h>
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "edge/store/memory_store.h"
#include "embedded/api/api_server.h"
#include "embedded/api/local_transport.h"
#include "text/json_writer.h"

namespace berth::bench {
namespace {

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double heap_mb() { return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd) / 1e6; }

// A loop that notes how long each piece of work takes.
class MeterLoop final : public Loop {
 public:
  explicit MeterLoop(FakeClock& clock) : inner_(clock) {}

  void post(Work work) override { inner_.post(metered(std::move(work))); }
  Timer after(std::int64_t delay_ns, Work work) override {
    return inner_.after(delay_ns, metered(std::move(work)));
  }
  void cancel(Timer timer) override { inner_.cancel(timer); }
  const MonotonicClock& monotonic() const override { return inner_.monotonic(); }
  const WallClock& wall() const override { return inner_.wall(); }

  SteppedLoop& inner() { return inner_; }
  void reset() {
    longest_ms = total_ms = 0;
    before_mb = peak_mb = heap_mb();
  }
  double longest_ms = 0, total_ms = 0, before_mb = 0, peak_mb = 0;

 private:
  Work metered(Work work) {
    return [this, work = std::move(work)]() mutable {
      const double begin = cpu_ms();
      work();
      work = nullptr;  // what it held is let go on the loop too
      const double took = cpu_ms() - begin;
      longest_ms = std::max(longest_ms, took);
      total_ms += took;
      if (took > 0.5) peak_mb = std::max(peak_mb, heap_mb());
    };
  }
  SteppedLoop inner_;
};

constexpr const char* kJson = "application/json";
constexpr const char* kJsonPatch = "application/json-patch+json";
constexpr const char* kMergePatch = "application/merge-patch+json";
constexpr const char* kStrategic = "application/strategic-merge-patch+json";
constexpr const char* kApply = "application/apply-patch+yaml";
constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";
constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";

class AttackRig {
 public:
  AttackRig() {
    if (!server_.start().ok()) fmt::print(stderr, "the server does not start\n");
    transport_ = std::make_unique<sim::LocalTransport>(loop, server_);
    loop.inner().run_ready();
  }

  // The status; the body is in answer().
  int call(std::string method, std::string target, std::string body = {}, const char* type = kJson,
           const char* accept = kJson) {
    bool done = false;
    int status = 0;
    text::HttpRequest request{std::move(method), std::move(target), {}, std::move(body)};
    request.headers = {{"Content-Type", type}, {"Accept", accept}, {"User-Agent", "attack/1"}};
    transport_->send(std::move(request), {},
                     [&](text::HttpResponse response, const kube::TransportError*) {
                       status = response.status;
                       answer_ = std::move(response.body);
                       done = true;
                     });
    loop.inner().run_until([&] { return done; }, 600'000'000'000);
    return status;
  }
  // What everything before the attack needs: it must work, and is not measured.
  void make(std::string method, std::string target, std::string body = {},
            const char* type = kJson) {
    const int status = call(std::move(method), target, std::move(body), type);
    if (status >= 300) fmt::print(stderr, "set-up: {} {}\n{}\n", target, status, short_answer());
  }
  void settle(std::int64_t ns = 0) {
    loop.inner().run_ready();
    if (ns > 0) loop.inner().run_for(ns);
  }
  void begin() {
    settle();
    loop.reset();
  }

  kube::Call watch(std::string target, const char* accept = kJson) {
    text::HttpRequest request{"GET", std::move(target), {{"Accept", accept}}, {}};
    return transport_->stream(std::move(request), {},
                              {.on_head = [](const text::HttpResponse&) {},
                               .on_data =
                                   [this](std::string_view bytes) {
                                     heard += bytes.size();
                                     return true;
                                   },
                               .on_end = [](const kube::TransportError*) {}});
  }
  void leave(kube::Call call) { transport_->cancel(call); }

  std::string short_answer() const { return answer_.substr(0, 300); }
  const std::string& answer() const { return answer_; }
  std::string version() const { return std::to_string(server_.version()); }

 private:
  FakeClock clock_{1'800'000'000'000'000'000};

 public:
  MeterLoop loop{clock_};
  std::size_t heard = 0;

 private:
  store::MemoryStore store_{loop};
  sim::ApiServer server_{loop, store_, Random(7)};
  std::unique_ptr<sim::LocalTransport> transport_;
  std::string answer_;
};

// "a","b",... by a maker, with commas.
std::string joined(int count, const std::function<std::string(int)>& one) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    out += one(i);
  }
  return out;
}

std::string config_map(const std::string& name, const std::string& data,
                       const std::string& meta = {}) {
  return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name + "\"" + meta +
         R"(},"data":{)" + data + "}}";
}

std::string pod_of(const std::string& name, const std::string& container,
                   const std::string& spec = {}, const std::string& meta = {}) {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + "\"" + meta +
         R"(},"spec":{"containers":[{"name":"c","image":"i")" + container + "}]" + spec + "}}";
}

std::string env_list(int count, int from = 0, const char* value = "1") {
  return joined(count, [&](int i) {
    return fmt::format(R"({{"name":"E{}","value":"{}"}})", from + i, value);
  });
}

std::string data_of(int count) {
  return joined(count,
                [](int i) { return fmt::format(R"("k{:06}":"v{}")", i * 7919 % 1000003, i); });
}

// A custom kind whose spec is whatever the schema says.
void define(AttackRig& rig, const std::string& spec_schema) {
  rig.make(
      "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":)"
      R"({"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced",)"
      R"("names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},)"
      R"("versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":)"
      R"({"type":"object","properties":{"spec":)" +
          spec_schema + "}}}}]}}");
  rig.settle();
}
constexpr const char* kThings = "/apis/example.com/v1/namespaces/default/things";
std::string thing(const std::string& spec) {
  return R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":)" + spec +
         "}";
}

struct Attack {
  std::string name;
  int size;
  std::function<void(AttackRig&, int)> run;
};

using Rig = AttackRig;

void add_objects(std::vector<Attack>& all) {
  all.push_back({"create an object of many keys", 30'000, [](Rig& rig, int n) {
                   const std::string body = config_map("a", data_of(n));
                   rig.begin();
                   rig.call("POST", kMaps, body);
                 }});
  all.push_back({"replace it", 30'000, [](Rig& rig, int n) {
                   rig.make("POST", kMaps, config_map("a", data_of(n)));
                   const std::string body = config_map("a", data_of(n - 1) + R"(,"z":"z")");
                   rig.begin();
                   rig.call("PUT", std::string(kMaps) + "/a", body);
                 }});
  all.push_back({"YAML of many anchors", 100'000, [](Rig& rig, int n) {
                   std::string body =
                       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n";
                   for (int i = 0; i < n; ++i) body += fmt::format(" k{0}: &a{0} x\n", i);
                   rig.begin();
                   rig.call("POST", kMaps, body, "application/yaml");
                 }});
  all.push_back({"a text of many bytes", 1'000'000, [](Rig& rig, int n) {
                   const std::string text(static_cast<std::size_t>(n), 'x');
                   rig.begin();
                   rig.call("POST", kMaps, config_map("a", R"("k":")" + text + "\""));
                   rig.call("PATCH", std::string(kMaps) + "/a", R"({"data":{"n":"1"}})",
                            kMergePatch);
                 }});
  all.push_back({"a pod of many variables", 14'000, [](Rig& rig, int n) {
                   const std::string body = pod_of("a", R"(,"env":[)" + env_list(n) + "]");
                   rig.begin();
                   rig.call("POST", kPods, body);
                 }});
  all.push_back({"a pod of many ports", 8'000, [](Rig& rig, int n) {
                   const std::string ports = joined(n, [](int i) {
                     return fmt::format(R"({{"name":"p{}","containerPort":{},"hostPort":{}}})", i,
                                        i + 1, i + 1);
                   });
                   rig.begin();
                   rig.call("POST", kPods, pod_of("a", R"(,"ports":[)" + ports + "]"));
                 }});
  all.push_back(
      {"a pod of many volumes", 6'000, [](Rig& rig, int n) {
         const std::string volumes =
             joined(n, [](int i) { return fmt::format(R"({{"name":"v{}","emptyDir":{{}}}})", i); });
         const std::string mounts = joined(
             n, [](int i) { return fmt::format(R"({{"name":"v{}","mountPath":"/m{}"}})", i, i); });
         rig.begin();
         rig.call(
             "POST", kPods,
             pod_of("a", R"(,"volumeMounts":[)" + mounts + "]", R"(,"volumes":[)" + volumes + "]"));
       }});
  all.push_back({"a pod of many containers", 5'000, [](Rig& rig, int n) {
                   const std::string more = joined(
                       n, [](int i) { return fmt::format(R"({{"name":"c{}","image":"i"}})", i); });
                   rig.begin();
                   rig.call("POST", kPods, pod_of("a", "", R"(,"initContainers":[)" + more + "]"));
                 }});
}

void add_metadata(std::vector<Attack>& all) {
  all.push_back({"finalizers", 10'000, [](Rig& rig, int n) {
                   const std::string list =
                       joined(n, [](int i) { return fmt::format("\"example.com/f{}\"", i); });
                   rig.make("POST", kMaps, config_map("a", "", R"(,"finalizers":[)" + list + "]"));
                   rig.begin();
                   rig.call("PATCH", std::string(kMaps) + "/a",
                            R"({"metadata":{"finalizers":["example.com/new"]}})", kStrategic);
                   rig.call("DELETE", std::string(kMaps) + "/a");
                 }});
  all.push_back({"owners, all of them controllers", 8'000, [](Rig& rig, int n) {
                   const std::string list = joined(n, [](int i) {
                     return fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","name":"o{}",)"
                                        R"("uid":"u{}","controller":true}})",
                                        i, i);
                   });
                   rig.begin();
                   rig.call("POST", kMaps,
                            config_map("a", "", R"(,"ownerReferences":[)" + list + "]"));
                 }});
  all.push_back(
      {"owners that are gone", 8'000, [](Rig& rig, int n) {
         const std::string list = joined(n, [](int i) {
           return fmt::format(
               R"({{"apiVersion":"v1","kind":"ConfigMap","name":"o{}","uid":"u{}"}})", i, i);
         });
         rig.begin();
         rig.call("POST", kMaps, config_map("a", "", R"(,"ownerReferences":[)" + list + "]"));
         rig.settle();
       }});
}

void add_patches(std::vector<Attack>& all) {
  const auto json_patch = [&all](const char* name, int size, int items,
                                 std::function<std::string(int)> operation) {
    all.push_back(
        {name, size, [items, operation](Rig& rig, int n) {
           define(rig, R"({"type":"object","x-kubernetes-preserve-unknown-fields":true})");
           const int wide = static_cast<int>(std::int64_t{items} * n / 10'000);
           const auto numbers = joined(wide, [](int i) { return std::to_string(i % 10); });
           rig.make("POST", kThings,
                    thing(R"({"list":[)" + numbers + R"(],"map":{)" + data_of(wide / 20) +
                          R"(},"big":{"list":[)" + numbers + "]}}"));
           const std::string body = "[" + joined(n, operation) + "]";
           rig.begin();
           rig.call("PATCH", std::string(kThings) + "/a", body, kJsonPatch);
         }});
  };
  json_patch("JSON patch: insert at the front", 10'000, 200'000,
             [](int) { return std::string(R"({"op":"add","path":"/spec/list/0","value":1})"); });
  json_patch("JSON patch: remove from the middle", 10'000, 200'000,
             [](int) { return std::string(R"({"op":"remove","path":"/spec/list/50000"})"); });
  json_patch("JSON patch: members of a wide object", 10'000, 200'000, [](int i) {
    return fmt::format(R"({{"op":"add","path":"/spec/map/n{}","value":"1"}})", i);
  });
  json_patch("JSON patch: tests", 10'000, 200'000, [](int i) {
    return fmt::format(R"({{"op":"test","path":"/spec/list/{}","value":{}}})", i, i % 10);
  });
  json_patch("JSON patch: moves to and fro", 10'000, 200'000, [](int i) {
    return std::string(i % 2 == 0 ? R"({"op":"move","from":"/spec/big","path":"/spec/other"})"
                                  : R"({"op":"move","from":"/spec/other","path":"/spec/big"})");
  });
  json_patch("JSON patch: copies that double", 10'000, 20'000, [](int i) {
    return fmt::format(R"({{"op":"copy","from":"/spec","path":"/spec/c{}"}})", i);
  });
}

void add_merges(std::vector<Attack>& all) {
  all.push_back({"merge patch: deep and wide", 30'000, [](Rig& rig, int n) {
                   rig.make("POST", kMaps, config_map("a", data_of(n)));
                   const std::string body = R"({"data":{)" + data_of(n) + "}}";
                   rig.begin();
                   rig.call("PATCH", std::string(kMaps) + "/a", body, kMergePatch);
                 }});
  all.push_back({"strategic merge: a list by its key", 30'000, [](Rig& rig, int n) {
                   rig.make("POST", kPods, pod_of("a", R"(,"env":[)" + env_list(n / 2) + "]"));
                   const std::string body = R"({"spec":{"containers":[{"name":"c","env":[)" +
                                            env_list(n, n / 4, "2") + "]}]}}";
                   rig.begin();
                   rig.call("PATCH", std::string(kPods) + "/a", body, kStrategic);
                 }});
  all.push_back({"strategic merge: deletions", 30'000, [](Rig& rig, int n) {
                   rig.make("POST", kPods, pod_of("a", R"(,"env":[)" + env_list(n / 2) + "]"));
                   const std::string gone = joined(n, [](int i) {
                     return fmt::format(R"({{"name":"E{}","$patch":"delete"}})", i);
                   });
                   const std::string body =
                       R"({"spec":{"containers":[{"name":"c","env":[)" + gone + "]}]}}";
                   rig.begin();
                   rig.call("PATCH", std::string(kPods) + "/a", body, kStrategic);
                 }});
  all.push_back({"strategic merge: order of a list", 30'000, [](Rig& rig, int n) {
                   rig.make("POST", kPods, pod_of("a", R"(,"env":[)" + env_list(n / 2) + "]"));
                   const std::string order =
                       joined(n, [n](int i) { return fmt::format(R"({{"name":"E{}"}})", n - i); });
                   const std::string body =
                       R"({"spec":{"containers":[{"name":"c","$setElementOrder/env":[)" + order +
                       R"(],"env":[{"name":"NEW","value":"1"}]}]}})";
                   rig.begin();
                   rig.call("PATCH", std::string(kPods) + "/a", body, kStrategic);
                 }});
  all.push_back({"strategic merge: members", 30'000, [](Rig& rig, int n) {
                   rig.make("POST", kMaps, config_map("a", data_of(n)));
                   rig.begin();
                   rig.call("PATCH", std::string(kMaps) + "/a",
                            R"({"data":{)" + data_of(n) + R"(,"new":"1"}})", kStrategic);
                 }});
  all.push_back(
      {"strategic merge: a set of texts", 30'000, [](Rig& rig, int n) {
         const auto list = [](int from, int count) {
           return joined(count,
                         [&](int i) { return fmt::format("\"example.com/f{}\"", from + i); });
         };
         rig.make("POST", kMaps, config_map("a", "", R"(,"finalizers":[)" + list(0, n) + "]"));
         const std::string body = R"({"metadata":{"$deleteFromPrimitiveList/finalizers":[)" +
                                  list(0, n) + R"(],"finalizers":[)" + list(n, n / 4) + "]}}";
         rig.begin();
         rig.call("PATCH", std::string(kMaps) + "/a", body, kStrategic);
       }});
}

void add_apply(std::vector<Attack>& all) {
  const auto conf = [](const std::string& env) { return pod_of("a", R"(,"env":[)" + env + "]"); };
  all.push_back({"apply: a list by its key", 14'000, [conf](Rig& rig, int n) {
                   const std::string target = std::string(kPods) + "/a?fieldManager=";
                   rig.make("PATCH", target + "one", conf(env_list(n)), kApply);
                   rig.begin();
                   rig.call("PATCH", target + "one", conf(env_list(n - 1)), kApply);
                   rig.call("PATCH", target + "two&force=true", conf(env_list(n, 0, "2")), kApply);
                 }});
  all.push_back({"apply: members", 20'000, [](Rig& rig, int n) {
                   const std::string target = std::string(kMaps) + "/a?fieldManager=";
                   rig.make("PATCH", target + "one", config_map("a", data_of(n)), kApply);
                   rig.begin();
                   rig.call("PATCH", target + "two", config_map("a", data_of(n)), kApply);
                 }});
  all.push_back({"apply: conflicts", 14'000, [conf](Rig& rig, int n) {
                   const std::string target = std::string(kPods) + "/a?fieldManager=";
                   rig.make("PATCH", target + "one", conf(env_list(n)), kApply);
                   rig.begin();
                   rig.call("PATCH", target + "two", conf(env_list(n, 0, "2")), kApply);
                 }});
  all.push_back({"apply: managers of fields", 2'000, [](Rig& rig, int n) {
                   const std::string managers = joined(n, [](int i) {
                     return fmt::format(
                         R"({{"manager":"m{}","operation":"Apply","apiVersion":"v1","fieldsType":)"
                         R"("FieldsV1","fieldsV1":{{"f:data":{{"f:k{:06}":{{}},"f:x{}":{{}}}}}}}})",
                         i, i * 7919 % 1000003, i);
                   });
                   rig.make("POST", kMaps, config_map("a", data_of(n)));
                   rig.make("PUT", std::string(kMaps) + "/a",
                            config_map("a", data_of(n) + R"(,"z":"1")",
                                       R"(,"managedFields":[)" + managers + "]"));
                   const std::string target = std::string(kMaps) + "/a?fieldManager=m1&force=true";
                   rig.begin();
                   rig.call("PATCH", target, config_map("a", data_of(n / 2)), kApply);
                   rig.call("PATCH", target, config_map("a", data_of(n / 4)), kApply);
                 }});
}

void add_bodies(std::vector<Attack>& all) {
  all.push_back({"YAML: aliases of aliases", 24, [](Rig& rig, int n) {
                   std::string body = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n";
                   body += "a0: &a0 [x, x, x, x, x, x, x, x]\n";
                   for (int i = 1; i < n; ++i) {
                     body += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
                   }
                   rig.begin();
                   rig.call("POST", kMaps, body, "application/yaml");
                 }});
  all.push_back({"YAML: a large body", 700'000, [](Rig& rig, int n) {
                   std::string body =
                       "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata:\n";
                   for (int i = 0; body.size() < static_cast<std::size_t>(n); ++i) {
                     body += fmt::format("  k{}: v\n", i);
                   }
                   rig.begin();
                   rig.call("POST", kMaps, body, "application/yaml");
                 }});
  all.push_back({"duplicate keys", 100'000, [](Rig& rig, int n) {
                   const std::string body = config_map(
                       "a", joined(n, [](int i) { return fmt::format(R"("k{}":"")", i % 1000); }));
                   rig.begin();
                   rig.call("POST", kMaps, body);
                 }});
  all.push_back({"unknown fields", 50'000, [](Rig& rig, int n) {
                   const std::string extra =
                       joined(n, [](int i) { return fmt::format(R"("u{}":1)", i); });
                   rig.begin();
                   rig.call("POST", kPods, pod_of("a", "", "," + extra));
                 }});
  all.push_back({"a pattern that tries many ways", 400'000, [](Rig& rig, int n) {
                   define(rig, R"({"type":"object","properties":{"s":{"type":"string","pattern":)"
                               R"("^(([ab]*a[ab]{200})|([ab]*b[ab]{180}))$"}}})");
                   std::string text;
                   for (int i = 0; i < n; ++i) text += i * 7919 % 13 < 6 ? 'a' : 'b';
                   rig.begin();
                   rig.call("POST", kThings, thing(R"({"s":")" + text + "\"}"));
                 }});
  all.push_back({"a definition of many patterns", 4'000, [](Rig& rig, int n) {
                   const std::string fields = joined(n, [](int i) {
                     return fmt::format(
                         R"("p{}":{{"type":"string","pattern":"^((a|b)*){{1,30}}(x|y|z|u|v)+$"}})",
                         i);
                   });
                   rig.begin();
                   define(rig, R"({"type":"object","properties":{)" + fields + "}}");
                 }});
  all.push_back({"alternatives of many items", 16, [](Rig& rig, int n) {
                   define(rig, R"({"type":"object","properties":{"l":{"type":"array","items":)"
                               R"({"type":"object","properties":{"a":{"type":"integer"}},"oneOf":[)"
                               R"({"required":["a"]},{"required":["b"]},{"required":["c"]}]}}}})");
                   const std::string list = joined(n * 1'500, [](int) { return R"({"a":1})"; });
                   rig.begin();
                   rig.call("POST", kThings, thing(R"({"l":[)" + list + "]}"));
                 }});
}

void many_maps(Rig& rig, int n, const std::string& meta = {}, int data = 1) {
  for (int i = 0; i < n; ++i) {
    rig.make("POST", kMaps, config_map(fmt::format("m{:06}", i), data_of(data), meta));
  }
}

void add_lists(std::vector<Attack>& all) {
  all.push_back({"a list of many objects", 20'000, [](Rig& rig, int n) {
                   many_maps(rig, n, "", 20);
                   rig.begin();
                   rig.call("GET", kMaps);
                 }});
  all.push_back({"a table of many objects", 20'000, [](Rig& rig, int n) {
                   many_maps(rig, n);
                   rig.begin();
                   rig.call("GET", kMaps, "", kJson, kTable);
                 }});
  all.push_back({"a list by selectors", 20'000, [](Rig& rig, int n) {
                   many_maps(rig, n);
                   rig.begin();
                   rig.call("GET", std::string(kMaps) +
                                       "?labelSelector=a%21%3Db,c+notin+(d,e)&fieldSelector="
                                       "metadata.name%21%3Dnone");
                 }});
  all.push_back({"a list as YAML", 10'000, [](Rig& rig, int n) {
                   many_maps(rig, n);
                   rig.begin();
                   rig.call("GET", kMaps, "", kJson, "application/yaml");
                 }});
  all.push_back({"a list in pages", 20'000, [](Rig& rig, int n) {
                   many_maps(rig, n);
                   rig.begin();
                   std::string next;
                   do {
                     rig.call("GET", std::string(kMaps) + "?limit=100&continue=" + next);
                     const std::size_t at = rig.answer().find("\"continue\":\"");
                     next.clear();
                     if (at != std::string::npos && at < 300) {
                       next =
                           rig.answer().substr(at + 12, rig.answer().find('"', at + 12) - at - 12);
                     }
                   } while (!next.empty());
                 }});
}

void add_deletions(std::vector<Attack>& all) {
  all.push_back({"delete a collection", 10'000, [](Rig& rig, int n) {
                   many_maps(rig, n);
                   rig.begin();
                   rig.call("DELETE", kMaps);
                   rig.settle();
                 }});
  const auto owned = [](Rig& rig, int n) {
    rig.make("POST", kMaps, config_map("owner", ""));
    const std::size_t at = rig.answer().find("\"uid\":\"") + 7;
    const std::string uid = rig.answer().substr(at, 36);
    many_maps(
        rig, n,
        R"(,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":")" +
            uid + R"(","blockOwnerDeletion":true}])");
    rig.begin();
  };
  all.push_back({"garbage of one owner", 10'000, [owned](Rig& rig, int n) {
                   owned(rig, n);
                   rig.call("DELETE", std::string(kMaps) + "/owner");
                   rig.settle(1'000'000'000);
                 }});
  all.push_back({"garbage, dependents first", 10'000, [owned](Rig& rig, int n) {
                   owned(rig, n);
                   rig.call("DELETE", std::string(kMaps) + "/owner?propagationPolicy=Foreground");
                   rig.settle(1'000'000'000);
                 }});
  all.push_back({"dependents let go", 10'000, [owned](Rig& rig, int n) {
                   owned(rig, n);
                   rig.call("DELETE", std::string(kMaps) + "/owner?propagationPolicy=Orphan");
                   rig.settle(1'000'000'000);
                 }});
  all.push_back({"a namespace that goes", 10'000, [](Rig& rig, int n) {
                   rig.make("POST", "/api/v1/namespaces", R"({"metadata":{"name":"big"}})");
                   for (int i = 0; i < n; ++i) {
                     rig.make("POST", "/api/v1/namespaces/big/configmaps",
                              config_map(fmt::format("m{}", i), ""));
                   }
                   rig.begin();
                   rig.call("DELETE", "/api/v1/namespaces/big");
                   rig.settle(1'000'000'000);
                 }});
}

// So many watches, a change told to all of them, and all of them gone.
void run_watches(Rig& rig, int n, const std::function<std::string(int)>& target,
                 const char* accept = kJson) {
  rig.begin();
  std::vector<kube::Call> calls;
  for (int i = 0; i < n; ++i) calls.push_back(rig.watch(target(i), accept));
  rig.settle(5'000'000'000);
  rig.call("PATCH", std::string(kMaps) + "/a", R"({"data":{"n":"1"}})", kMergePatch);
  rig.settle();
  for (const kube::Call call : calls) rig.leave(call);
  rig.settle();
}

void add_watches(std::vector<Attack>& all) {
  const auto from_now = [](Rig& rig) {
    return std::string(kMaps) + "?watch=true&resourceVersion=" + rig.version();
  };
  all.push_back({"watches, one change", 10'000, [from_now](Rig& rig, int n) {
                   rig.make("POST", kMaps, config_map("a", data_of(2'000)));
                   const std::string target = from_now(rig);
                   run_watches(rig, n, [&](int) { return target; });
                 }});
  all.push_back({"watches with selectors", 10'000, [from_now](Rig& rig, int n) {
                   rig.make("POST", kMaps, config_map("a", "", R"(,"labels":{"x":"1"})"));
                   const std::string target = from_now(rig);
                   run_watches(rig, n, [&](int i) {
                     return target + fmt::format("&labelSelector=x,n{}%21%3D1,m+notin+(a,b,c)", i);
                   });
                 }});
  all.push_back({"watches of tables", 10'000, [from_now](Rig& rig, int n) {
                   rig.make("POST", kMaps, config_map("a", data_of(2'000)));
                   const std::string target = from_now(rig);
                   run_watches(rig, n, [&](int) { return target; }, kTable);
                 }});
  all.push_back({"watches that begin with a list", 1'000, [](Rig& rig, int n) {
                   many_maps(rig, 2'000);
                   rig.make("POST", kMaps, config_map("a", ""));
                   run_watches(rig, n, [&](int) { return std::string(kMaps) + "?watch=true"; });
                 }});
  all.push_back({"one watch of many objects", 40'000, [](Rig& rig, int n) {
                   many_maps(rig, n);
                   rig.make("POST", kMaps, config_map("a", ""));
                   run_watches(rig, 1, [&](int) { return std::string(kMaps) + "?watch=true"; });
                 }});
}

struct Seen {
  double longest_ms = 1e9, total_ms = 1e9, peak_mb = 0, kept_mb = 0;
};

Seen run_attack(const Attack& attack, int size, int rounds) {
  Seen seen;
  for (int round = 0; round < rounds; ++round) {
    AttackRig rig;
    attack.run(rig, size);
    rig.settle();
    seen.longest_ms = std::min(seen.longest_ms, rig.loop.longest_ms);
    seen.total_ms = std::min(seen.total_ms, rig.loop.total_ms);
    seen.peak_mb = rig.loop.peak_mb - rig.loop.before_mb;
    seen.kept_mb = heap_mb() - rig.loop.before_mb;
  }
  return seen;
}

int run_all(bool smoke, const std::string& only) {
  std::vector<Attack> all;
  add_objects(all);
  add_metadata(all);
  add_patches(all);
  add_merges(all);
  add_apply(all);
  add_bodies(all);
  add_lists(all);
  add_deletions(all);
  add_watches(all);
  fmt::print("{:<38} {:>9} {:>11} {:>9} {:>7} {:>8} {:>8}\n", "attack", "size", "longest ms",
             "all ms", "growth", "peak MB", "kept MB");
  for (const Attack& attack : all) {
    if (attack.name.find(only) == std::string::npos) continue;
    const int size = smoke ? std::max(8, attack.size / 20) : attack.size;
    const Seen half = run_attack(attack, size / 2, smoke ? 1 : 2);
    const Seen whole = run_attack(attack, size, smoke ? 1 : 2);
    const double growth = whole.total_ms / std::max(0.1, half.total_ms);
    const bool over = whole.longest_ms > 100 || (growth > 2.5 && whole.total_ms > 20);
    fmt::print("{:<38} {:>9} {:>11.1f} {:>9.1f} {:>7.2f} {:>8.1f} {:>8.1f}{}\n", attack.name, size,
               whole.longest_ms, whole.total_ms, growth, whole.peak_mb, whole.kept_mb,
               over ? "  <--" : "");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  bool smoke = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--smoke") == 0) {
      smoke = true;
    } else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else {
      fmt::print(stderr, "api-attacks [--smoke] [--only WORD]\n");
      return 2;
    }
  }
  return berth::bench::run_all(smoke, only);
}
