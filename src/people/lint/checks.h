// The checks behind the rules, each over one object or over all of them. Only lint.cc calls them.
//
// A check looks at what a manifest means: at kinds, fields and values, never at file names or at
// the order of things. It must stay silent on what it does not know.
#pragma once

#include <deque>

#include "kinds/schema/schemas.h"
#include "people/lint/object.h"

namespace berth::lint {

void check_api(const Object& object, const Schemas* schemas, Reporter& out);
void check_claims(const Object& object, Reporter& out);     // DRA
void check_gpus(const Object& object, Reporter& out);       // resources and labels of GPUs
void check_sharing(const Object& object, Reporter& out);    // ConfigMaps of plugins, autoscaler
void check_values(const Object& object, Reporter& out);     // Helm values in a file
void check_queues(const Object& object, Reporter& out);     // Kueue, Volcano
void check_pools(const Object& object, Reporter& out);      // Karpenter
void check_scalers(const Object& object, Reporter& out);    // HPA, KEDA
void check_jobs(const Object& object, Reporter& out);       // PyTorchJob, MPIJob
void check_pipelines(const Object& object, Reporter& out);  // Argo, Tekton
void check_policies(const Object& object, Reporter& out);   // quotas, network policies, kubelet
void check_metrics(const Object& object, Reporter& out);    // PromQL in objects
// Fields of kinds; last, because it leaves out what a rule above has explained.
void check_shape(const Object& object, const Schemas* schemas, Reporter& out);

// What scripts say about the cluster.
struct ScriptTaint {
  std::string key, value, effect;
  Finding where;  // for somebody who has something to say about it
};
struct ScriptFacts {
  bool mig_single = false, mig_mixed = false;  // mig.strategy of the GPU Operator
  std::vector<Finding> single_at, mixed_at;    // where scripts say so
  std::vector<ScriptTaint> taints;
};
void read_facts(const std::string& file, std::string_view script, ScriptFacts& out);

// Findings between objects: references, and things that contradict one another. Says something
// only where the input holds both sides.
void check_across(const std::deque<Object>& objects, const ScriptFacts& facts,
                  std::vector<Finding>& out);

// The part of it that is about objects of different systems: names, groups, quotas, taints.
void check_contradictions(const std::deque<Object>& objects, const ScriptFacts& facts,
                          std::vector<Finding>& out);

// Whole texts that are no YAML.
void check_script(const std::string& file, std::string_view bytes, std::vector<Finding>& out);
void check_queries(const std::string& file, std::string_view bytes, std::vector<Finding>& out);
void check_python(const std::string& file, std::string_view bytes, std::vector<Finding>& out);

// A finding in such a text, at a byte.
Finding text_finding(const std::string& file, std::string_view bytes, std::size_t at,
                     std::string_view rule, std::string what, std::string fix);

// ---- shared by checks ------------------------------------------------------------------------

// Pod specs wherever they are: mappings with a list of containers.
std::vector<Place> pod_specs(const Object& object);
// Every container of a pod spec, init and ephemeral ones too.
std::vector<Place> containers_of(const Place& pod_spec);
// A namespaced object's namespace, "default" when it names none.
std::string namespace_of(const Object& object);
bool is_gpu_resource(std::string_view name);  // nvidia.com/gpu, .shared, mig-*, amd.com/gpu ...
bool is_extended_resource(std::string_view name);  // has a domain that is not kubernetes.io

// PromQL.
struct QueryFinding {
  std::string_view rule;
  std::size_t begin = 0, end = 0;  // in the query
  std::string what, fix;
  std::vector<TextChange> changes = {};  // empty: nothing to correct without asking
};
std::vector<QueryFinding> check_query(std::string_view query);
// A rule of the Prometheus adapter: is its metricsQuery a template?
std::optional<std::string> adapter_query_trouble(std::string_view metrics_query);

// A value of a Helm chart: "mig.config" of gpu-operator.
struct ValueTrouble {
  std::string_view rule;
  std::string what, fix;
  std::string rename;  // empty: cannot be corrected by renaming
};
std::optional<ValueTrouble> gpu_operator_value(std::string_view key, std::string_view value);

}  // namespace berth::lint
