// A tenant who means harm, and one who is quiet: what the second gets must not depend on the first.
//
// The second half draws what the first does from a seed: fields, annotations, labels, floods, nodes
// and owners of others. BERTH_SOAK=1 runs ten thousand; BERTH_HOSTILE_SEED=N runs that one alone,
// N-M those.
#include <cstdlib>
#include <map>
#include <set>

#include "controller/rig.h"
#include "text/path.h"

#ifndef BERTH_HOSTILE_SEEDS
#define BERTH_HOSTILE_SEEDS 100
#endif

namespace berth::control_test {
namespace {

constexpr const char* kFourNodes =
    "pools: [{name: m, count: 4, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]";

void add_namespace(Rig& rig, const std::string& name) {
  rig.apply(fmt::format("{{apiVersion: v1, kind: Namespace, metadata: {{name: {}}}}}", name));
}

std::string rules(int pod, int terms) {
  std::string out;
  for (int t = 0; t < terms; ++t) {
    out += fmt::format(R"({}{{"topologyKey":"kubernetes.io/hostname","labelSelector":)"
                       R"({{"matchLabels":{{"app":"x{}"}}}}}})",
                       t == 0 ? "" : ",", pod * terms + t);
  }
  return R"({"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)" + out + "]}}";
}

void post_ruled(Rig& rig, const std::string& ns, int pod, int terms) {
  const auto answer = rig.world.post(
      "/api/v1/namespaces/" + ns + "/pods",
      fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{}"}},"spec":)"
                  R"({{"schedulerName":"berth","affinity":{},"containers":[{{"name":"c",)"
                  R"("image":"i","resources":{{"limits":{{"nvidia.com/gpu":1}}}}}}]}}}})",
                  pod, rules(pod, terms)));
  ASSERT_EQ(answer.status, 201) << answer.body.substr(0, 300);
}

// Pods that bring more rules than are looked at wait, and say why; nobody else notices.
TEST(HostileTenant, RulesWithoutEndAreHisOwnTrouble) {
  Rig rig(kFourNodes);
  add_namespace(rig, "mallory");
  for (int i = 0; i < 40; ++i) post_ruled(rig, "mallory", i, 300);
  for (int i = 40; i < 90; ++i) post_ruled(rig, "mallory", i, 100);
  rig.pod("victim", 1);
  rig.start();
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("victim").empty(); }, 5 * kSecond));
  ASSERT_TRUE(rig.until(
      [&] {
        return rig.condition("/api/v1/namespaces/mallory/pods/p89", "PodScheduled") == "False";
      },
      60 * kSecond));
  const auto said = [&](const std::string& pod) {
    return rig.condition("/api/v1/namespaces/mallory/pods/" + pod, "PodScheduled", "message");
  };
  EXPECT_NE(said("p0").find("300 rules about other pods"), std::string::npos) << said("p0");
  EXPECT_NE(said("p89").find("namespace mallory"), std::string::npos) << said("p89");
  EXPECT_EQ(rig.bound().size(), 1u);
  // With fewer of them they count again.
  for (int i = 0; i < 80; ++i) rig.remove(fmt::format("/api/v1/namespaces/mallory/pods/p{}", i));
  EXPECT_TRUE(rig.until([&] { return rig.bound().size() == 11; }, 60 * kSecond));
}

// ---- one who does anything that he may -----------------------------------------------------

void make_teams(Rig& rig) {
  rig.apply(
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}, spec: {}}");
  for (const char* team : {"quiet", "mallory"}) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {0}, labels: "
        "{{berth.dev/queue-required: 'true'}}}}}}\n---\n"
        "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: {0}}}, spec: "
        "{{namespaceSelector: {{}}, resourceGroups: [{{coveredResources: [nvidia.com/gpu], "
        "flavors: [{{name: f, resources: [{{name: nvidia.com/gpu, nominalQuota: 8}}]}}]}}]}}}}\n"
        "---\n"
        "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{name: {0}, namespace: "
        "{0}}}, spec: {{clusterQueue: {0}}}}}",
        team));
  }
}

constexpr int kQuietJobs = 3;
constexpr int kQuietEvery = 12;  // seconds: a Job of four GPUs, which runs for 15
// What the quiet one may lose to whatever the other does.
constexpr std::int64_t kMostLater = 5 * kSecond;

struct QuietDay {
  std::map<std::string, std::int64_t> waited;  // of each pod, from its Job to its start
  int ended = 0;                               // Jobs
};

// Anything but one: who puts pods with GPUs onto nodes by himself takes them past everybody, and
// has to be kept from it when he makes them (control/bypass.h).
class Mallory {
 public:
  Mallory(Rig& rig, std::uint64_t seed) : rig_(rig), random_(seed) {}

  void act() {
    switch (random_.below(13)) {
      case 12:
        resize();
        break;
      case 10:
        tamper();
        break;
      case 11:
        if (jobs_ > 0) {
          rig_.remove(fmt::format("{}/j{}?propagationPolicy={}", jobs(), random_.below(jobs_),
                                  pick({"Orphan", "Background"})));
        }
        break;
      case 0:
        for (std::uint64_t n = 3 + random_.below(10); n > 0; --n) post_pod("");
        break;
      case 1:
        post_pod(R"("nodeName":")" + node() + R"(",)", random_.below(2) == 0 ? 0 : 64);
        break;
      case 2:
        post_job();
        break;
      case 3:
        if (made_ > 0) {
          rig_.remove(pods() + "/m" + std::to_string(random_.below(made_)));
        }
        break;
      case 4:
        annotate();
        break;
      case 5:
        grow();
        break;
      case 6:
        stray();
        break;
      default:
        post_pod("");
    }
  }

 private:
  static std::string jobs() { return "/apis/batch/v1/namespaces/mallory/jobs"; }
  static std::string pods() { return "/api/v1/namespaces/mallory/pods"; }
  static std::string workloads() {
    return "/apis/kueue.x-k8s.io/v1beta2/namespaces/mallory/workloads";
  }
  // One of a list, by its path; "": there is none.
  std::string any_of(const std::string& collection) {
    const auto list = rig_.get(collection);
    const auto items = list.root().find("items")->items();
    if (items.empty()) return "";
    const text::Value& one = items[random_.below(items.size())];
    return collection + '/' + std::string(one.find("metadata")->find("name")->string());
  }
  std::string node() { return "m-" + std::to_string(random_.below(4)); }
  std::string pick(std::initializer_list<const char*> all) {
    return *(all.begin() + random_.below(all.size()));
  }

  // What anybody may write onto his own objects.
  std::string annotations() {
    std::string out;
    for (std::uint64_t n = random_.below(4); n > 0; --n) {
      out += out.empty() ? "" : ",";
      out += "\"" +
             pick({"berth.dev/gpus", "gpu-fraction", "gpu-memory", "berth.dev/seats",
                   "berth.dev/preemptions", "kueue.x-k8s.io/podset-required-topology",
                   "sim.berth.dev/run-seconds", "scheduling.k8s.io/group-name",
                   "kueue.x-k8s.io/elastic-job", "kueue.x-k8s.io/job-min-parallelism",
                   "kueue.x-k8s.io/pod-group-total-count", "berth.dev/charged-to"}) +
             "\":\"" +
             pick({"0,1,2,3", "-1", "x", "0.5", "99999999999999999999", "", "a/b/c", "5", "true",
                   "true", "1", "2", "kueue/quiet"}) +
             "\"";
    }
    return "{" + out + "}";
  }
  std::string labels() {
    std::string out = R"("job-name":"q)" + std::to_string(random_.below(kQuietJobs)) + "\"";
    if (random_.below(2) == 0) {
      out += R"(,"kueue.x-k8s.io/queue-name":")" + pick({"quiet", "mallory", "nobody"}) + "\"";
    }
    if (random_.below(3) == 0) {
      out += R"(,"kueue.x-k8s.io/pod-group-name":"g","kai.scheduler/queue":"quiet")";
    }
    return "{" + out + "}";
  }
  // A Job of the other, a Job or pod of his own.
  std::string owner() {
    const std::uint64_t whose = random_.below(3);
    const std::string name = whose == 0   ? "q0"
                             : whose == 1 ? fmt::format("j{}", random_.below(jobs_ + 1))
                                          : fmt::format("m{}", random_.below(made_ + 1));
    const auto found = rig_.get(whose == 0   ? "/apis/batch/v1/namespaces/quiet/jobs/q0"
                                : whose == 1 ? jobs() + "/" + name
                                             : pods() + "/" + name);
    const std::string uid = found.status == 200 ? found.at("metadata.uid") : "0";
    return fmt::format(R"([{{"apiVersion":"{}","kind":"{}","name":"{}","uid":"{}",)"
                       R"("controller":true,"blockOwnerDeletion":true}}])",
                       whose == 2 ? "v1" : "batch/v1", whose == 2 ? "Pod" : "Job", name, uid);
  }

  void post_pod(const std::string& where, std::uint64_t gpus = 1) {
    if (where.empty()) gpus = random_.below(6);
    if (!where.empty()) put_.insert(made_);
    // Or the name that a pod of his next Job would have.
    const bool as_of_job = where.empty() && random_.below(4) == 0;
    const std::string name =
        as_of_job ? fmt::format("j{}-{}", jobs_, random_.below(4)) : fmt::format("m{}", made_);
    std::string more;
    if (random_.below(4) == 0) more += R"(,"ownerReferences":)" + owner();
    if (random_.below(4) == 0) more += R"(,"finalizers":["mallory.example/keep"])";
    std::string spec;
    if (random_.below(3) == 0) {
      spec += R"("affinity":)" +
              rules(static_cast<int>(made_), 1 + static_cast<int>(random_.below(150))) + ",";
    }
    if (random_.below(4) == 0) spec += R"("tolerations":[{"operator":"Exists"}],)";
    rig_.world.post(
        pods(),
        fmt::format(
            R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","annotations":{},)"
            R"("labels":{}{}}},"spec":{{{}{}"schedulerName":"berth","containers":[{{)"
            R"("name":"c","image":"i","resources":{{"limits":{{"nvidia.com/gpu":{}}}}}}}]}}}})",
            name, where.empty() ? annotations() : "{}", labels(), more, where, spec, gpus));
    if (name.starts_with('m')) ++made_;
  }
  void post_job() {
    rig_.world.post(
        jobs(),
        fmt::format(
            R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"j{}","annotations":{},)"
            R"("labels":{}{}}},"spec":{{{}"parallelism":{},"completions":{},"template":{{)"
            R"("metadata":{{"annotations":{}}},"spec":{{"schedulerName":"berth",)"
            R"("restartPolicy":"Never","containers":[{{"name":"c","image":"i","resources":)"
            R"({{"limits":{{"nvidia.com/gpu":{}}}}}}}]}}}}}}}})",
            jobs_++, annotations(), labels(),
            random_.below(6) == 0 ? R"(,"finalizers":["mallory.example/stay"])" : "",
            random_.below(6) == 0 ? R"("managedBy":"mallory.example/mine",)" : "",
            1 + random_.below(4), 1 + random_.below(4), annotations(), random_.below(5)));
  }
  // More pods than his Job was let in with, or more GPUs for each while it waits.
  void grow() {
    if (jobs_ == 0) return;
    const std::string job = jobs() + fmt::format("/j{}", random_.below(jobs_));
    if (random_.below(2) == 0) {
      rig_.world.merge(job, fmt::format(R"({{"spec":{{"parallelism":{}}}}})", random_.below(20)));
      return;
    }
    rig_.world.call("PATCH", job,
                    R"([{"op":"replace","path":"/spec/template/spec/containers/0/resources",)"
                    R"("value":{"limits":{"nvidia.com/gpu":"4"}}}])",
                    "application/json-patch+json");
  }
  // A running pod of his asks for more than a node has, or for less again.
  void resize() {
    const std::string path = any_of(pods());
    if (path.empty()) return;
    rig_.world.call("PATCH", path + "/resize",
                    fmt::format(R"({{"spec":{{"containers":[{{"name":"c","resources":{{"requests":)"
                                R"({{"cpu":"{}"}}}}}}]}}}})",
                                pick({"1m", "3", "100", "9000000"})),
                    "application/strategic-merge-patch+json");
  }
  // The Workload that was made for something of his says other things, or is gone.
  void tamper() {
    const std::string path = any_of(workloads());
    if (path.empty()) return;
    const auto answer = rig_.get(path);
    switch (random_.below(7)) {
      case 5:
        beside(answer);
        break;
      case 6:
        rig_.world.call("PATCH", path,
                        R"([{"op":"add","path":"/spec/podSets/0/template/spec/containers/0/)"
                        R"(resources","value":{"limits":{"nvidia.com/gpu":"4"}}}])",
                        "application/json-patch+json");
        break;
      case 0:
        rig_.world.call("PATCH", path,
                        R"([{"op":"replace","path":"/spec/podSets/0/name","value":"x"},)"
                        R"({"op":"replace","path":"/spec/podSets/0/count","value":50}])",
                        "application/json-patch+json");
        break;
      case 1:
        rig_.world.merge(path, R"({"spec":{"priority":2000000000}})");
        break;
      case 2:
        rig_.world.merge(path, R"({"metadata":{"annotations":{"berth.dev/seats":)"
                               R"("{\"main\":[{\"node\":\"m-0\",\"gpus\":[0,1,2,3]},)"
                               R"({\"node\":\"m-1\",\"gpus\":[0,1,2,3]}]}"}}})");
        break;
      case 3:
        rig_.world.post(
            workloads(),
            fmt::format(
                R"({{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{{"name":)"
                R"("v{}","annotations":{{"kueue.x-k8s.io/workload-allowed-resource-flavors":"f"}},)"
                R"("ownerReferences":[{{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload",)"
                R"("name":"{}","uid":"{}","controller":true}}]}},"spec":{{"active":false,)"
                R"("queueName":"mallory","podSets":[{{"name":"main","count":1,"template":{{"spec":)"
                R"({{"containers":[{{"name":"c","image":"i"}}]}}}}}}]}}}})",
                variants_++, answer.at("metadata.name"), answer.at("metadata.uid")));
        break;
      default:
        rig_.remove(path);
    }
  }
  // A second Workload of the same owner, which may call itself a slice of the first.
  void beside(const sim::TestAnswer& first) {
    const text::Value* meta = first.root().find("metadata");
    const text::Value* owners = meta == nullptr ? nullptr : meta->find("ownerReferences");
    if (owners == nullptr) return;
    const std::string slice =
        random_.below(2) == 0
            ? ""
            : fmt::format(
                  R"("annotations":{{"kueue.x-k8s.io/workload-slice-replacement-for":"{}"}},)",
                  first.at("metadata.name"));
    rig_.world.post(
        workloads(),
        fmt::format(
            R"({{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{{{})"
            R"("name":"b{}","ownerReferences":{}}},"spec":{{"queueName":"mallory","podSets":[{{)"
            R"("name":"main","count":{},"template":{{"spec":{{"containers":[{{"name":"c","image":)"
            R"("i","resources":{{"limits":{{"nvidia.com/gpu":"{}"}}}}}}]}}}}}}]}}}})",
            slice, variants_++, text::to_json(*owners), 1 + random_.below(4), random_.below(3)));
  }
  // A pod of his, of a Job or not, that forgets whose it is, or is somebody else's.
  void stray() {
    const std::string path = any_of(pods());
    if (path.empty()) return;
    switch (random_.below(4)) {
      case 0:
        rig_.world.merge(path, R"({"metadata":{"ownerReferences":null,"labels":null}})");
        break;
      case 1:
        rig_.world.merge(path, R"({"metadata":{"ownerReferences":)" + owner() + "}}");
        break;
      case 2:
        rig_.world.merge(path, R"({"metadata":{"labels":)" + labels() + "}}");
        break;
      default:
        rig_.remove(path);
    }
  }
  void annotate() {
    const std::uint64_t pod = random_.below(made_ + 1);
    if (pod >= made_ || put_.contains(pod)) return;
    rig_.world.merge(pods() + "/m" + std::to_string(pod),
                     R"({"metadata":{"annotations":)" + annotations() + "}}");
  }

  Rig& rig_;
  Random random_;
  std::uint64_t made_ = 0, jobs_ = 0, variants_ = 0;
  std::set<std::uint64_t> put_;  // on a node by himself
};

void post_quiet_job(Rig& rig, int number) {
  rig.apply(fmt::format(
      "{{apiVersion: batch/v1, kind: Job, metadata: {{name: q{}, namespace: quiet, labels: "
      "{{kueue.x-k8s.io/queue-name: quiet}}}}, spec: {{parallelism: 4, completions: 4, template: "
      "{{metadata: {{annotations: {{sim.berth.dev/run-seconds: '15'}}}}, spec: {{schedulerName: "
      "berth, restartPolicy: Never, containers: [{{name: c, image: i, resources: {{limits: "
      "{{nvidia.com/gpu: 1}}}}}}]}}}}}}}}",
      number));
}

// What must hold at every moment, whoever does what.
void check_day(Rig& rig) {
  std::map<std::string, int> held;
  int mallorys = 0;
  std::set<std::string> devices;  // node/index, of the quiet one's
  const auto list = rig.get("/api/v1/pods");
  for (const text::Value& pod : list.root().find("items")->items()) {
    const std::string_view ns = pod.find("metadata")->find("namespace")->string();
    const std::string_view name = pod.find("metadata")->find("name")->string();
    const std::string_view phase = pod.find("status")->find("phase")->string();
    if (ns == "quiet") {
      const text::Value* message = pod.find("status")->find("message");
      EXPECT_NE(phase, "Failed") << name << ": " << (message ? message->string() : "");
      EXPECT_EQ(pod.find("metadata")->find("deletionTimestamp"), nullptr) << name << " is evicted";
    }
    const text::Value* node = pod.find("spec")->find("nodeName");
    if (node == nullptr || (phase != "Running" && phase != "Pending")) continue;
    if (ns == "mallory" && phase == "Pending") continue;  // put there by himself: to be refused
    const text::Value* limits =
        pod.find("spec")->find("containers")->items()[0].find("resources")->find("limits");
    const text::Value* gpus = limits == nullptr ? nullptr : limits->find("nvidia.com/gpu");
    if (gpus == nullptr) continue;
    const int count = std::atoi(std::string(gpus->string()).c_str());
    held[std::string(node->string())] += count;
    const std::string_view chosen = text_at(pod, "metadata.annotations[berth.dev/gpus]");
    for (std::size_t at = 0; ns == "quiet" && at < chosen.size();) {
      const std::size_t end = std::min(chosen.find(',', at), chosen.size());
      const std::string device =
          std::string(node->string()) + '/' + std::string(chosen.substr(at, end - at));
      EXPECT_TRUE(devices.insert(device).second) << name << " has " << device << ", and another";
      at = end + 1;
    }
    if (ns == "mallory") mallorys += count;
  }
  EXPECT_LE(mallorys, 8) << "what his queue has";
  for (const auto& [node, gpus] : held) EXPECT_LE(gpus, 4) << node;
  const auto nodes = rig.get("/api/v1/nodes");
  for (const text::Value& node : nodes.root().find("items")->items()) {
    EXPECT_EQ(node.find("spec")->find("taints"), nullptr) << "no node suffers for it";
  }
}

// Names of pods are drawn: of those of a Job each start that is new counts, in order.
void note_starts(Rig& rig, const std::map<std::string, std::int64_t>& posted, QuietDay& day) {
  std::map<std::string, int> started;
  const auto pods = rig.get("/api/v1/namespaces/quiet/pods");
  for (const text::Value& pod : pods.root().find("items")->items()) {
    const std::string_view name = pod.find("metadata")->find("name")->string();
    if (pod.find("status")->find("phase")->string() == "Pending") continue;
    const std::string job(name.substr(0, name.find('-')));
    day.waited.emplace(fmt::format("{}/{}", job, started[job]++),
                       rig.world.clock.ticks_ns() - posted.at(job));
  }
}

QuietDay quiet_day(std::optional<std::uint64_t> hostile_seed) {
  Rig rig(kFourNodes);
  rig.define_kueue();
  make_teams(rig);
  rig.start();
  rig.run(31 * kSecond);  // the collections are found
  std::optional<Mallory> mallory;
  if (hostile_seed) mallory.emplace(rig, *hostile_seed);
  QuietDay day;
  std::map<std::string, std::int64_t> posted;
  for (int second = 0; second < 48; second += 2) {
    // Now and then another leader takes over, with what the API says alone.
    if (hostile_seed && *hostile_seed % 3 == 0 && second == 22) rig.start();
    for (int n = 0; n < 2 && mallory && second < 40; ++n) mallory->act();
    if (second % kQuietEvery == 0 && posted.size() < kQuietJobs) {
      const int number = static_cast<int>(posted.size());
      post_quiet_job(rig, number);
      posted[fmt::format("q{}", number)] = rig.world.clock.ticks_ns();
    }
    rig.run(2 * kSecond);
    note_starts(rig, posted, day);
    if (second % 10 == 0) check_day(rig);
  }
  const auto jobs = rig.get("/apis/batch/v1/namespaces/quiet/jobs");
  for (const text::Value& job : jobs.root().find("items")->items()) {
    const text::Value* done = job.find("status")->find("succeeded");
    day.ended += done != nullptr && done->as_int64().value_or(0) == 4 ? 1 : 0;
  }
  return day;
}

TEST(HostileTenant, WhateverHeDoesTheQuietOneGetsWhatIsHis) {
  const QuietDay alone = quiet_day(std::nullopt);
  ASSERT_EQ(alone.ended, kQuietJobs);
  ASSERT_EQ(alone.waited.size(), 4u * kQuietJobs);
  std::uint64_t first = 1, last = BERTH_HOSTILE_SEEDS;
  if (std::getenv("BERTH_SOAK") != nullptr) last = 10'000;     // NOLINT(concurrency-mt-unsafe)
  if (const char* some = std::getenv("BERTH_HOSTILE_SEED")) {  // NOLINT(concurrency-mt-unsafe)
    char* rest = nullptr;
    first = last = std::strtoull(some, &rest, 10);
    if (*rest == '-') last = std::strtoull(rest + 1, nullptr, 10);
  }
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const QuietDay day = quiet_day(seed);
    EXPECT_EQ(day.ended, kQuietJobs);
    for (const auto& [pod, waited] : alone.waited) {
      const auto it = day.waited.find(pod);
      ASSERT_NE(it, day.waited.end()) << pod << " did not start";
      EXPECT_LE(it->second, waited + kMostLater) << pod;
    }
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace berth::control_test
