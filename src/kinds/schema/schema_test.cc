// Kinds, defaults, pruning, validation of built-in kinds, strategies and tables.
#include "kinds/schema/regex.h"
#include "kinds/schema/schema_for_test.h"

namespace berth::sim {
namespace {

constexpr std::string_view kPod = R"({'apiVersion':'v1','kind':'Pod',
 'metadata':{'name':'a','namespace':'d','labels':{'app':'x'}},
 'spec':{'containers':[{'name':'c','image':'cuda:12','resources':{'limits':{'nvidia.com/gpu':1,
   'cpu':'1500m','memory':'1.5Gi'}},'ports':[{'containerPort':80}],
   'livenessProbe':{'httpGet':{'port':80}}}],'nodeSelector':{'a':'b'}}})";

TEST(Kinds, AreAllThereOnce) {
  std::string seen;
  for (const KindPtr& kind : builtin_kinds()) {
    const std::string one = " " + kind->api_version() + "/" + kind->plural + " ";
    EXPECT_EQ(seen.find(one), std::string::npos) << one;
    seen += one;
    ASSERT_NE(kind->schema, nullptr);
    EXPECT_FALSE(kind->columns.empty()) << one;
  }
  EXPECT_GE(builtin_kinds().size(), 45u);
  EXPECT_EQ(builtin("Pod").api_version(), "v1");
  EXPECT_EQ(builtin("Deployment").group_resource(), "deployments.apps");
  EXPECT_EQ(builtin("CustomResourceDefinition").api_version(), "apiextensions.k8s.io/v1");
  EXPECT_TRUE(builtin("Deployment").has_scale());
  EXPECT_FALSE(builtin("Node").namespaced);
}

struct DefaultCase {
  std::string_view kind, object, path, want;
};

TEST(Normalize, FillsInDefaults) {
  const std::string job =
      "{'spec':{'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c',"
      "'image':'i','resources':{'limits':{'cpu':'1'}}}],'restartPolicy':'Never'}}}}";
  const DefaultCase cases[] = {
      {"Pod", kPod, "spec.restartPolicy", "\"Always\""},
      {"Pod", kPod, "spec.schedulerName", "\"default-scheduler\""},
      {"Pod", kPod, "spec.terminationGracePeriodSeconds", "30"},
      {"Pod", kPod, "spec.securityContext", "{}"},
      {"Pod", kPod, "spec.enableServiceLinks", "true"},
      {"Pod", kPod, "spec.containers[0].imagePullPolicy", "\"IfNotPresent\""},
      {"Pod", kPod, "spec.containers[0].terminationMessagePath", "\"/dev/termination-log\""},
      {"Pod", kPod, "spec.containers[0].ports[0].protocol", "\"TCP\""},
      {"Pod", kPod, "spec.containers[0].resources.requests.cpu", "\"1500m\""},
      {"Pod", kPod, "spec.containers[0].resources.requests.memory", "\"1536Mi\""},
      {"Pod", kPod, "spec.containers[0].resources.requests['nvidia.com/gpu']", "\"1\""},
      {"Pod", kPod, "spec.containers[0].livenessProbe.periodSeconds", "10"},
      {"Pod", kPod, "spec.containers[0].livenessProbe.httpGet.scheme", "\"HTTP\""},
      {"Pod", "{'spec':{'containers':[{'name':'c','image':'r:5000/x'}]}}",
       "spec.containers[0].imagePullPolicy", "\"Always\""},
      {"Pod", "{'spec':{'containers':[{'name':'c','image':'x@sha256:00'}]}}",
       "spec.containers[0].imagePullPolicy", "\"IfNotPresent\""},
      {"Pod", "{'spec':{'containers':[{'name':'c','image':'x:latest'}],'restartPolicy':''}}",
       "spec.restartPolicy", "\"Always\""},
      {"Pod",
       "{'spec':{'hostNetwork':true,'containers':[{'name':'c','ports':"
       "[{'containerPort':9}]}]}}",
       "spec.containers[0].ports[0].hostPort", "9"},
      {"Pod", "{'spec':{'serviceAccountName':'s'}}", "spec.serviceAccount", "\"s\""},
      {"Pod", "{'spec':{'volumes':[{'name':'v'}]}}", "spec.volumes[0].emptyDir", "{}"},
      {"Pod", "{'spec':{'volumes':[{'name':'v','configMap':{'name':'c'}}]}}",
       "spec.volumes[0].configMap.defaultMode", "420"},
      {"Job", job, "spec.completions", "1"},
      {"Job", job, "spec.parallelism", "1"},
      {"Job", job, "spec.backoffLimit", "6"},
      {"Job", job, "spec.completionMode", "\"NonIndexed\""},
      {"Job", job, "spec.podReplacementPolicy", "\"TerminatingOrFailed\""},
      {"Job", job, "spec.suspend", "false"},
      {"Job", job, "metadata.labels.a", "\"b\""},
      {"Job", job, "spec.template.spec.containers[0].resources.requests", "-"},
      {"Job", job, "spec.template.spec.enableServiceLinks", "-"},
      {"Job", "{'spec':{'parallelism':3,'template':{}}}", "spec.completions", "-"},
      {"Deployment", "{'spec':{}}", "spec.strategy",
       R"({"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}})"},
      {"Deployment", "{'spec':{'strategy':{'type':'Recreate'}}}", "spec.strategy.rollingUpdate",
       "-"},
      {"Deployment", "{'spec':{'replicas':0}}", "spec.replicas", "0"},
      {"StatefulSet", "{'spec':{}}", "spec.updateStrategy.rollingUpdate",
       R"({"partition":0,"maxUnavailable":1})"},
      {"CronJob", "{'spec':{'jobTemplate':{'spec':{}}}}", "spec.jobTemplate.spec.suspend", "-"},
      {"LimitRange", "{'spec':{'limits':[{'type':'Container','max':{'cpu':'2'}}]}}",
       "spec.limits[0].defaultRequest", R"({"cpu":"2"})"},
      {"RoleBinding", "{'subjects':[{'kind':'User','name':'u'}]}", "subjects[0].apiGroup",
       R"("rbac.authorization.k8s.io")"},
      {"Service", "{'spec':{'ports':[{'port':80}]}}", "spec.ports[0].targetPort", "80"},
      {"Service", "{'spec':{'ports':[{'port':80}]}}", "spec.internalTrafficPolicy", "\"Cluster\""},
      {"Namespace", "{'metadata':{'name':'n'}}", "metadata.labels['kubernetes.io/metadata.name']",
       "\"n\""},
      {"Node", "{'status':{'capacity':{'cpu':'4'}}}", "status.allocatable.cpu", "\"4\""},
      {"PersistentVolumeClaim", "{'spec':{}}", "spec.volumeMode", "\"Filesystem\""},
      {"ResourceClaim",
       "{'spec':{'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':'g'}}]}}}",
       "spec.devices.requests[0].exactly",
       R"({"deviceClassName":"g","allocationMode":)"
       R"("ExactCount","count":1})"},
      {"CustomResourceDefinition", "{'spec':{'names':{'kind':'GpuNode','plural':'gpunodes'}}}",
       "spec.names.listKind", "\"GpuNodeList\""},
      {"HorizontalPodAutoscaler", "{'spec':{'maxReplicas':3}}",
       "spec.metrics[0].resource.target.averageUtilization", "80"},
  };
  for (const DefaultCase& c : cases) {
    const text::Document object = normalized(builtin(c.kind), doc(c.object).root());
    EXPECT_EQ(field_of(object.root(), c.path), c.want) << c.kind << " " << c.path;
  }
}

TEST(Normalize, DropsAndReportsUnknownFields) {
  const auto made =
      normalize(builtin("Pod"),
                doc("{'foo':1,'metadata':{'nme':'x','labels':{'any':'y'}},'spec':{'nodeNam':1,"
                    "'containers':[{'name':'c','imag':'i'}],'tolerations':null}}")
                    .root());
  ASSERT_TRUE(made.ok());
  const std::vector<std::string> want = {"unknown field \"foo\"", "unknown field \"metadata.nme\"",
                                         "unknown field \"spec.containers[0].imag\"",
                                         "unknown field \"spec.nodeNam\""};
  EXPECT_EQ(made->unknown, want);
  EXPECT_EQ(field_of(made->object.root(), "spec.nodeNam"), "-");
  EXPECT_EQ(field_of(made->object.root(), "spec.tolerations"), "-");
  EXPECT_EQ(field_of(made->object.root(), "metadata.labels.any"), "\"y\"");
  EXPECT_EQ(field_of(made->object.root(), "kind"), "\"Pod\"");
}

TEST(Normalize, RefusesWhatGoCannotDecode) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"{'spec':{'priority':'x'}}",
       "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"},
      {"{'spec':{'priority':1.5}}",
       "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type "
       "int32"},
      {"{'spec':{'containers':{}}}",
       "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type "
       "[]v1.Container"},
      {"{'spec':{'containers':[{'name':5}]}}",
       "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type "
       "string"},
      {"{'spec':'x'}",
       "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec"},
      {"{'metadata':{'labels':{'a':1}}}",
       "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type "
       "string"},
      {"{'spec':{'overhead':{'cpu':'x y'}}}",
       "quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      {"[]", "json: cannot unmarshal array into Go value of type v1.Pod"},
  };
  for (const auto& [object, want] : cases) {
    const auto made = normalize(builtin("Pod"), doc(object).root());
    ASSERT_FALSE(made.ok()) << object;
    EXPECT_EQ(made.error().message(), want);
  }
}

struct RuleCase {
  std::string_view kind, object, want;  // want: a line that must be among the causes; "" none
};

std::string pod_with(std::string_view spec) {
  return "{'metadata':{'name':'a','namespace':'d'},'spec':{'containers':[{'name':'c','image':'i'"
         "}]," +
         std::string(spec) + "}}";
}
std::string container_with(std::string_view fields) {
  return "{'metadata':{'name':'a','namespace':'d'},'spec':{'containers':[{'name':'c','image':'i'," +
         std::string(fields) + "}]}}";
}
std::string job_with(std::string_view fields, std::string_view restart = "Never") {
  return "{'metadata':{'name':'a','namespace':'d','uid':'u'},'spec':{" + std::string(fields) +
         "'template':{'spec':{'containers':[{'name':'c','image':'i'}],'restartPolicy':'" +
         std::string(restart) + "'}}}}";
}

void expect_rule(const RuleCase& c) {
  const Kind& kind = builtin(c.kind);
  const text::Document first = normalized(kind, doc(c.object).root());
  const text::Document object = for_create(kind, first.root());
  const std::string words = words_of(validate(kind, object.root()));
  if (c.want.empty()) {
    EXPECT_EQ(words, "") << c.object;
  } else {
    EXPECT_NE(words.find(std::string(c.want) + "\n"), std::string::npos) << c.want << "\nnot in\n"
                                                                         << words;
  }
}

TEST(Validate, RulesOfPods) {
  const std::string cases[][2] = {
      {std::string(kPod), ""},
      {"{'metadata':{'name':'a','namespace':'d'},'spec':{}}", "spec.containers: Required value"},
      {"{'metadata':{'name':'A_b','namespace':'d'},'spec':{'containers':[{'name':'c','image':'i'}]"
       "}}",
       "metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain must consist of "
       "lower "
       "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
       "character (e.g. 'example.com', regex used for validation is "
       "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
      {"{'metadata':{'name':'a','namespace':'d'},'spec':{'containers':[{'name':'c'}]}}",
       "spec.containers[0].image: Required value"},
      {"{'metadata':{'name':'a','namespace':'d'},'spec':{'containers':[{'name':'c','image':'i'},"
       "{'name':'c','image':'i'}]}}",
       "spec.containers[1].name: Duplicate value: \"c\""},
      {container_with("'imagePullPolicy':'Sometimes'"),
       "spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: "
       "\"Always\", \"IfNotPresent\", \"Never\""},
      {container_with("'resources':{'requests':{'cpu':'2'},'limits':{'cpu':'1'}}"),
       "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to "
       "cpu limit of 1"},
      {container_with("'resources':{'requests':{'nvidia.com/gpu':'1'}}"),
       "spec.containers[0].resources.limits: Required value: Limit must be set for non "
       "overcommitable resources"},
      {container_with("'resources':{'limits':{'nvidia.com/gpu':'500m'}}"),
       "spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: \"500m\": must be an "
       "integer"},
      {container_with("'resources':{'limits':{'gpu':'1'}}"),
       "spec.containers[0].resources.limits[gpu]: Invalid value: \"gpu\": must be a standard "
       "resource type or fully qualified"},
      {container_with("'resources':{'claims':[{'name':'x'}]}"),
       "spec.containers[0].resources.claims[0]: Not found: \"x\": must be one of the names in "
       "pod.spec.resourceClaims which is empty"},
      {container_with("'volumeMounts':[{'name':'v','mountPath':'/x'}]"),
       "spec.containers[0].volumeMounts[0].name: Not found: \"v\""},
      {container_with("'ports':[{'containerPort':70000}]"),
       "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and "
       "65535, inclusive"},
      {container_with("'env':[{'value':'x'}]"), "spec.containers[0].env[0].name: Required value"},
      {pod_with("'tolerations':[{'effect':'NoSchedule'}]"),
       "spec.tolerations[0].operator: Invalid value: \"\": operator must be Exists when `key` is "
       "empty, which means \"match all values and all keys\""},
      {pod_with("'nodeSelector':{'a b':'c'}"),
       "spec.nodeSelector: Invalid value: \"a b\": name part must consist of alphanumeric "
       "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
       "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
       "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
      {pod_with("'schedulingGates':[{'name':'g'}],'nodeName':'n'"),
       "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"},
      {pod_with("'topologySpreadConstraints':[{'maxSkew':0,'topologyKey':'z',"
                "'whenUnsatisfiable':'DoNotSchedule'}]"),
       "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"},
      {pod_with("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"
                "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'In'}]}]}}}"),
       "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
       "nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified when "
       "`operator` is 'In' or 'NotIn'"},
      {pod_with("'resourceClaims':[{'name':'r'}]"),
       "spec.resourceClaims[0]: Invalid value: {\"name\":\"r\"}: must specify one of: "
       "`resourceClaimName`, `resourceClaimTemplateName`"},
      {pod_with("'restartPolicy':'Maybe'"),
       "spec.restartPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", "
       "\"OnFailure\", \"Never\""},
  };
  for (const auto& c : cases) expect_rule({"Pod", c[0], c[1]});
}

TEST(Validate, RulesOfOtherKinds) {
  const std::string deployment =
      "{'metadata':{'name':'a','namespace':'d'},'spec':{'selector':{'matchLabels':{'a':'b'}},"
      "'template':{'metadata':{'labels':{'a':'x'}},'spec':{'containers':[{'name':'c','image':'i'}]"
      "}}}}";
  const std::string cases[][3] = {
      {"Job", job_with(""), ""},
      {"Job", job_with("", "Always"),
       "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""},
      {"Job", job_with("'completionMode':'Indexed','parallelism':2,"),
       "spec.completions: Required value: when completion mode is Indexed"},
      {"Job", job_with("'parallelism':-1,"),
       "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"},
      {"Job", job_with("'backoffLimitPerIndex':1,"),
       "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"},
      {"Deployment", deployment,
       "spec.template.metadata.labels: Invalid value: {\"a\":\"x\"}: `selector` does not match "
       "template `labels`"},
      {"Deployment", "{'metadata':{'name':'a','namespace':'d'},'spec':{'template':{}}}",
       "spec.selector: Required value"},
      {"Service", "{'metadata':{'name':'a.b','namespace':'d'},'spec':{'ports':[{'port':1}]}}",
       "metadata.name: Invalid value: \"a.b\": must not contain dots"},
      {"Pod",
       "{'metadata':{'name':'a','namespace':'d','finalizers':['x']},'spec':{'containers':[{'name':"
       "'c','image':'i'}]}}",
       "metadata.finalizers[0]: Invalid value: \"x\": name is neither a standard finalizer name "
       "nor "
       "is it fully qualified"},
      {"ConfigMap", "{'metadata':{'name':'p','namespace':'d'},'data':{'.x_1':'y'}}", ""},
      {"ResourceClaim",
       "{'metadata':{'name':'p','namespace':'d'},'spec':{'devices':{'requests':[{'name':'r'}]}}}",
       "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is "
       "required"},
      {"Service", "{'metadata':{'name':'a','namespace':'d'},'spec':{}}",
       "spec.ports: Required value"},
      {"Namespace", "{'metadata':{'name':'a.b'}}",
       "metadata.name: Invalid value: \"a.b\": must not contain dots"},
      {"Node", "{'metadata':{'name':'n','namespace':'d'}}",
       "metadata.namespace: Forbidden: not allowed on this type"},
      {"Node",
       "{'metadata':{'name':'n'},'spec':{'taints':[{'key':'a','effect':'NoSchedule'},{'key':'a',"
       "'effect':'NoSchedule'}]}}",
       "metadata.taints[1]: Duplicate value: {\"key\":\"a\",\"effect\":\"NoSchedule\"}: taints "
       "must be "
       "unique by key and effect pair"},
      {"Node", "{'metadata':{'name':'n','labels':{'a':'-'}}}",
       "metadata.labels: Invalid value: \"-\": a valid label must be an empty string or consist of "
       "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
       "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
       "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"},
      {"PriorityClass", "{'metadata':{'name':'p'},'value':2000000000}",
       "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"},
      {"PersistentVolumeClaim", "{'metadata':{'name':'p','namespace':'d'},'spec':{}}",
       "spec.accessModes: Required value: at least 1 access mode is required"},
      {"ConfigMap",
       "{'metadata':{'name':'p','namespace':'d','ownerReferences':[{'kind':'Pod','name':'x',"
       "'apiVersion':'v1'}]}}",
       "metadata.ownerReferences[0].uid: Required value: must not be empty"},
      {"ClusterRole", "{'metadata':{'name':'system:a'}}", ""},
      {"Lease", "{'metadata':{'name':'l','namespace':'d'},'spec':{'holderIdentity':'x'}}", ""},
  };
  for (const auto& c : cases) expect_rule({c[0], c[1], c[2]});
}

TEST(Validate, MessageOfAStatus) {
  const Kind& pod = builtin("Pod");
  const std::vector<Cause> one = {{"FieldValueRequired", "spec.x", "Required value"}};
  EXPECT_EQ(invalid_message(pod, "a", one), "Pod \"a\" is invalid: spec.x: Required value");
  const std::vector<Cause> two = {one[0], {"FieldValueInvalid", "y", "Invalid value: 1: no"}};
  EXPECT_EQ(invalid_message(builtin("Deployment"), "a", two),
            "Deployment.apps \"a\" is invalid: [spec.x: Required value, y: Invalid value: 1: no]");
}

struct UpdateCase {
  std::string_view kind, live, path, value, want;
};

TEST(ValidateUpdate, WhatMayNotChange) {
  const std::string pod(kPod);
  const std::string job = job_with("");
  const std::string held = job_with("'suspend':true,");
  const UpdateCase cases[] = {
      {"Pod", pod, "metadata.labels.z", "'1'", ""},
      {"Pod", pod, "spec.activeDeadlineSeconds", "5", ""},
      {"Pod", pod, "spec.nodeSelector", "{'a':'c'}",
       "spec: Forbidden: pod updates may not change fields other than"},
      {"Pod", pod, "spec.containers", "[]",
       "spec.containers: Forbidden: pod updates may not add or remove containers"},
      {"Job", job, "spec.parallelism", "4", ""},
      {"Job", job, "spec.suspend", "true", ""},
      {"Job", job, "spec.completions", "4",
       "spec.completions: Invalid value: 4: field is immutable"},
      {"Job", job, "spec.template.spec.nodeSelector", "{'a':'b'}", "field is immutable"},
      {"Job", held, "spec.template.spec.nodeSelector", "{'a':'b'}", ""},
      {"Job", held, "spec.template.spec.schedulerName", "'x'", "field is immutable"},
      {"ConfigMap", "{'metadata':{'name':'c','namespace':'d'},'immutable':true}", "data",
       "{'a':'b'}", "data: Forbidden: field is immutable when `immutable` is set"},
      {"PriorityClass", "{'metadata':{'name':'p'},'value':1}", "value", "2",
       "value: Forbidden: may not be changed in an update."},
  };
  for (const UpdateCase& c : cases) {
    const Kind& kind = builtin(c.kind);
    const text::Document live = for_create(kind, normalized(kind, doc(c.live).root()).root());
    const text::Document value = doc(c.value);
    const text::Document changed = with_path(live.root(), c.path, value.root());
    const text::Document object =
        for_update(kind, live.root(), normalized(kind, changed.root()).root());
    const std::string words = words_of(validate_update(kind, live.root(), object.root()));
    if (c.want.empty()) {
      EXPECT_EQ(words, "") << c.path;
    } else {
      EXPECT_NE(words.find(c.want), std::string::npos) << c.path << "\n" << words;
    }
  }
}

TEST(Strategy, CreateAndUpdate) {
  const Kind& pod = builtin("Pod");
  const text::Document live =
      for_create(pod, normalized(pod, doc(std::string(kPod)).root()).root());
  EXPECT_EQ(field_of(live.root(), "status"), R"({"phase":"Pending","qosClass":"Guaranteed"})");
  EXPECT_EQ(field_of(live.root(), "metadata.generation"), "1");
  const Kind& job = builtin("Job");
  const text::Document made = for_create(job, normalized(job, doc(job_with("")).root()).root());
  EXPECT_EQ(field_of(made.root(), "spec.selector.matchLabels"),
            R"({"batch.kubernetes.io/controller-uid":"u"})");
  EXPECT_EQ(field_of(made.root(), "spec.template.metadata.labels['job-name']"), "\"a\"");
  EXPECT_EQ(field_of(made.root(), "status"), "{}");
  // Status on the main endpoint and spec on the status endpoint are not taken.
  const text::Document changed =
      with_path(with_path(made.root(), "status.active", doc("1").root()).root(), "spec.suspend",
                doc("true").root());
  const text::Document by_main = for_update(job, made.root(), changed.root());
  EXPECT_EQ(field_of(by_main.root(), "status"), "{}");
  EXPECT_EQ(field_of(by_main.root(), "spec.suspend"), "true");
  EXPECT_EQ(field_of(by_main.root(), "metadata.generation"), "2");
  const text::Document by_status = for_update(job, made.root(), changed.root(), "status");
  EXPECT_EQ(field_of(by_status.root(), "status.active"), "1");
  EXPECT_EQ(field_of(by_status.root(), "spec.suspend"), "false");
  EXPECT_EQ(field_of(by_status.root(), "metadata.generation"), "1");
}

TEST(Body, DuplicateKeysAreReported) {
  const auto body = parse_body(R"({"a":{"b":1,"b":2},"c":[{"d":1,"d":3}],"\u0061":4})");
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(json_of(body->object.root()), R"({"a":4,"c":[{"d":3}]})");
  const std::vector<std::string> want = {"duplicate field \"a.b\"", "duplicate field \"c[0].d\"",
                                         "duplicate field \"a\""};
  EXPECT_EQ(body->duplicates, want);
  EXPECT_FALSE(parse_body(R"({"a":1,"a":)").ok());
  EXPECT_FALSE(parse_body("{\"a\":1,\"a\":2}x").ok());
  EXPECT_TRUE(parse_body("a: 1", true).ok());
}

TEST(Regexes, MatchAsRe2Does) {
  const std::tuple<std::string_view, std::string_view, bool> cases[] = {
      {"^a$", "a", true},
      {"^a$", "ab", false},
      {"b", "abc", true},
      {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "my-name-1", true},
      {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "-x", false},
      {"^(a|bc|)$", "", true},
      {"^(a|bc|d)+$", "abcda", true},
      {"^(a|bc|d)+$", "abd", false},
      {"^\\d{2,3}$", "12", true},
      {"^\\d{2,3}$", "1234", false},
      {"^x{2}$", "xx", true},
      {"^x{2,}$", "x", false},
      {"^(?:a*)*$", "aaaa", true},
      {"^[^/]+$", "a/b", false},
      {"^.$", "\xc3\xa4", true},
      {"^[\\w.-]+$", "a.b_c-d", true},
      {"^\\.\\+$", ".+", true},
      {"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$", "x_y", true},
      {"^[]a]$", "]", true},
      {"^a{,2}$", "a{,2}", true},
  };
  for (const auto& [pattern, text, want] : cases) {
    const auto regex = Regex::compile(pattern);
    ASSERT_TRUE(regex.ok()) << pattern;
    EXPECT_EQ(regex->matches(text), want) << pattern << " " << text;
  }
  for (const std::string_view bad : {"(", "a)", "[a", "*a", "a{2000}", "[b-a]",
                                     "((a{100}){100}){100}", "\\", "a**", "a{2}{3}", "a+*"}) {
    EXPECT_FALSE(Regex::compile(bad).ok()) << bad;
  }
  // Patterns that take exponential time elsewhere.
  const auto nested = Regex::compile("^(a+)+$");
  ASSERT_TRUE(nested.ok());
  EXPECT_FALSE(nested->matches(std::string(5000, 'a') + "b"));
}

struct CellCase {
  std::string_view kind, object, want;
};

TEST(Tables, CellsOfBuiltinKinds) {
  const std::int64_t now = 1'000'000'000'000'000'000;  // 2001-09-09T01:46:40Z
  const CellCase cases[] = {
      {"Pod",
       "{'metadata':{'name':'a','creationTimestamp':'2001-09-09T01:41:30Z'},'spec':{'containers':"
       "[{},{}],'nodeName':'n'},'status':{'phase':'Running','podIPs':[{'ip':'10.0.0.1'}],"
       "'containerStatuses':[{'ready':true,'state':{'running':{}},'restartCount':2,'lastState':"
       "{'terminated':{'finishedAt':'2001-09-09T01:45:40Z'}}},{'state':{'waiting':{'reason':"
       "'CrashLoopBackOff'}}}]}}",
       R"x(["a","1/2","CrashLoopBackOff","2 (60s ago)","5m10s","10.0.0.1","n",)x"
       R"x("<none>","<none>"])x"},
      {"Pod",
       "{'metadata':{'name':'a','creationTimestamp':'2001-09-09T01:46:40Z'},'spec':{'containers':"
       "[{}],'schedulingGates':[{'name':'x'}]},'status':{'phase':'Pending','conditions':[{'type':"
       "'PodScheduled','status':'False','reason':'SchedulingGated'}]}}",
       R"(["a","0/1","SchedulingGated","0","0s","<none>","<none>","<none>","<none>"])"},
      {"Pod",
       "{'metadata':{'name':'a','deletionTimestamp':'2001-09-09T01:46:40Z'},'spec':{'containers':"
       "[{}],'initContainers':[{'name':'i'}]},'status':{'phase':'Pending',"
       "'initContainerStatuses':[{'name':'i','state':{'running':{}}}]}}",
       R"(["a","0/1","Terminating","0","<unknown>","<none>","<none>","<none>","<none>"])"},
      {"Node",
       "{'metadata':{'name':'n','creationTimestamp':'2001-09-01T01:46:40Z','labels':"
       "{'node-role.kubernetes.io/gpu':''}},'spec':{'unschedulable':true},'status':{'conditions':"
       "[{'type':'Ready','status':'True'}],'nodeInfo':{'kubeletVersion':'v1.37.1'},'addresses':"
       "[{'type':'InternalIP','address':'10.0.0.9'}]}}",
       R"(["n","Ready,SchedulingDisabled","gpu","8d","v1.37.1","10.0.0.9","<none>","<unknown>",)"
       R"("<unknown>","<unknown>"])"},
      {"Job",
       "{'metadata':{'name':'j','creationTimestamp':'2001-09-09T01:46:40Z'},'spec':{'completions':"
       "3,'template':{'spec':{'containers':[{'name':'c','image':'i'}]}},'selector':{'matchLabels':"
       "{'a':'b'}}},'status':{'succeeded':1,'startTime':'2001-09-09T01:46:30Z','conditions':"
       "[{'type':'Suspended','status':'True'}]}}",
       R"(["j","Suspended","1/3","10s","0s","c","i","a=b"])"},
      {"Deployment",
       "{'metadata':{'name':'d','creationTimestamp':'2001-09-09T01:46:40Z'},'spec':{'replicas':3},"
       "'status':{'readyReplicas':1,'updatedReplicas':2,'availableReplicas':1}}",
       R"(["d","1/3",2,1,"0s","","","<none>"])"},
      {"Service",
       "{'metadata':{'name':'s','creationTimestamp':'2001-09-09T01:46:40Z'},'spec':{'type':"
       "'ClusterIP','clusterIP':'10.0.0.1','ports':[{'port':443,'protocol':'TCP'}]}}",
       R"(["s","ClusterIP","10.0.0.1","<none>","443/TCP","0s","<none>"])"},
      {"Event",
       "{'metadata':{'name':'e'},'involvedObject':{'kind':'Pod','name':'a'},'reason':'R','type':"
       "'Normal','message':'m','lastTimestamp':'2001-09-09T01:46:35Z','count':4,'source':"
       "{'component':'berth'}}",
       R"(["5s","Normal","R","pod/a","","berth","m","<unknown>",4,"e"])"},
      {"ConfigMap",
       "{'metadata':{'name':'c','creationTimestamp':'2001-09-09T01:46:40Z'},'data':{'a':'b'}}",
       R"(["c",1,"0s"])"},
      {"PriorityClass",
       "{'metadata':{'name':'p','creationTimestamp':'2001-09-09T01:46:40Z'},'value':7}",
       R"(["p",7,false,"0s",""])"},
      {"Role", "{'metadata':{'name':'r','creationTimestamp':'2001-09-09T01:46:40Z'}}",
       R"(["r","2001-09-09T01:46:40Z"])"},
  };
  for (const CellCase& c : cases) {
    const Kind& kind = builtin(c.kind);
    text::JsonWriter out;
    write_cells(kind, doc(c.object).root(), now, out);
    EXPECT_EQ(out.text(), c.want);
  }
  // As many cells as columns, whatever the object holds.
  for (const KindPtr& kind : builtin_kinds()) {
    text::JsonWriter cells;
    write_cells(*kind, doc("{'metadata':{'name':'x'}}").root(), now, cells);
    const auto parsed = text::parse_json(cells.text());
    ASSERT_TRUE(parsed.ok()) << cells.text();
    EXPECT_EQ(parsed->root().size(), kind->columns.size()) << kind->kind;
  }
}

TEST(Tables, Durations) {
  const std::pair<std::int64_t, std::string_view> cases[] = {
      {-5, "<invalid>"}, {-1, "0s"},          {0, "0s"},           {119, "119s"},
      {120, "2m"},       {310, "5m10s"},      {3600, "60m"},       {4 * 3600 + 60, "4h1m"},
      {9 * 3600, "9h"},  {49 * 3600, "2d1h"}, {30 * 86400, "30d"}, {800 * 86400, "2y70d"},
  };
  for (const auto& [seconds, want] : cases) {
    EXPECT_EQ(human_duration(seconds * 1'000'000'000), want) << seconds;
  }
}

TEST(OpenApi, DocumentsAreJsonAndNameEveryKind) {
  std::vector<KindPtr> apps;
  for (const KindPtr& kind : builtin_kinds()) {
    if (kind->group == "apps") apps.push_back(kind);
  }
  const auto v3 = text::parse_json(openapi_v3(apps, "v1.37.1"));
  ASSERT_TRUE(v3.ok());
  const text::Value& schemas = *find_path(v3->root(), "components.schemas");
  const text::Value* deployment = schemas.find("io.k8s.api.apps.v1.Deployment");
  ASSERT_NE(deployment, nullptr);
  EXPECT_EQ(field_of(*deployment, "x-kubernetes-group-version-kind[0]"),
            R"({"group":"apps","kind":"Deployment","version":"v1"})");
  const text::Value* pod = schemas.find("io.k8s.api.core.v1.PodSpec");
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(field_of(*pod, "properties.containers.x-kubernetes-patch-merge-key"), "\"name\"");
  EXPECT_EQ(field_of(*pod, "properties.volumes.x-kubernetes-patch-strategy"),
            "\"merge,retainKeys\"");
  const text::Value* patch = find_path(
      v3->root(), "paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}'].patch");
  ASSERT_NE(patch, nullptr);
  EXPECT_NE(json_of(*patch).find("fieldValidation"), std::string::npos);
  // Every reference leads somewhere.
  const std::string whole = openapi_v3(builtin_kinds(), "v1.37.1");
  const auto all = text::parse_json(whole);
  ASSERT_TRUE(all.ok());
  const text::Value& defined = *find_path(all->root(), "components.schemas");
  constexpr std::string_view kRef = "\"$ref\":\"#/components/schemas/";
  for (std::size_t i = whole.find(kRef); i != std::string::npos; i = whole.find(kRef, i + 1)) {
    const std::size_t from = i + kRef.size();
    const std::string name = whole.substr(from, whole.find('"', from) - from);
    ASSERT_NE(defined.find(name), nullptr) << name;
  }
  EXPECT_TRUE(text::parse_json(openapi_v2(builtin_kinds(), "v1.37.1")).ok());
  const std::string index =
      openapi_v3_index(builtin_kinds(), [](std::string_view) { return std::string("0"); });
  EXPECT_NE(index.find(R"("apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=0"})"),
            std::string::npos);
}

}  // namespace
}  // namespace berth::sim
