#include "people/lint/shapes.h"

#include <algorithm>

namespace berth::lint {

namespace {

constexpr std::string_view kPool = "karpenter.sh/v1";
constexpr std::string_view kKedaApi = "keda.sh/v1alpha1";
constexpr std::string_view kArgo = "argoproj.io/v1alpha1";
constexpr std::string_view kTekton = "tekton.dev/v1";
constexpr std::string_view kTektonOld = "tekton.dev/v1beta1";
constexpr std::string_view kServe = "serving.kserve.io/v1beta1";
constexpr std::string_view kRule = "monitoring.coreos.com/v1";

constexpr std::string_view kTop = "apiVersion! kind! metadata:m spec!:m status:m";
constexpr std::string_view kTaskSpec =
    "params:l displayName:s description:s steps:l volumes:l stepTemplate:m sidecars:l workspaces:l "
    "results:l apiVersion:s kind:s spec metadata:m resources";
constexpr std::string_view kPipelineTask =
    "name:s displayName:s description:s taskRef:m taskSpec:m when:l retries:i runAfter:l params:l "
    "matrix:m workspaces:l timeout:s pipelineRef:m pipelineSpec:m onError:s conditions resources";
constexpr std::string_view kPipelineSpec =
    "displayName:s description:s params:l tasks:l workspaces:l results:l finally:l resources";

constexpr Shape kShapes[] = {
    {kPool, "NodePool", "", kTop},
    {kPool, "NodePool", "spec", "template!:m disruption:m limits:m weight:i replicas:i"},
    {kPool, "NodePool", "spec.template", "metadata:m spec!:m"},
    {kPool, "NodePool", "spec.template.metadata", "labels:m annotations:m"},
    {kPool, "NodePool", "spec.template.spec",
     "requirements!:l taints:l startupTaints:l nodeClassRef!:m expireAfter:s "
     "terminationGracePeriod:s"},
    {kPool, "NodePool", "spec.template.spec.requirements[]",
     "key!:s operator!:s values:l minValues:i"},
    {kPool, "NodePool", "spec.template.spec.taints[]", "key!:s value:s effect!:s timeAdded:s"},
    {kPool, "NodePool", "spec.template.spec.nodeClassRef", "group!:s kind!:s name!:s"},
    {kPool, "NodePool", "spec.disruption", "consolidateAfter:s consolidationPolicy:s budgets:l"},
    {kPool, "NodePool", "spec.disruption.budgets[]", "nodes! reasons:l schedule:s duration:s"},
    {kPool, "NodeClaim", "", kTop},

    {kKedaApi, "ScaledObject", "", kTop},
    {kKedaApi, "ScaledObject", "spec",
     "scaleTargetRef!:m pollingInterval:i initialCooldownPeriod:i cooldownPeriod:i "
     "idleReplicaCount:i minReplicaCount:i maxReplicaCount:i advanced:m triggers!:l fallback:m"},
    {kKedaApi, "ScaledObject", "spec.scaleTargetRef",
     "apiVersion:s kind:s name!:s envSourceContainerName:s"},
    {kKedaApi, "ScaledObject", "spec.triggers[]",
     "type!:s name:s metadata!:m authenticationRef:m metricType:s useCachedMetrics:b"},
    {kKedaApi, "ScaledObject", "spec.advanced",
     "horizontalPodAutoscalerConfig:m restoreToOriginalReplicaCount:b scalingModifiers:m"},
    {kKedaApi, "ScaledJob", "", kTop},
    {kKedaApi, "TriggerAuthentication", "", "apiVersion! kind! metadata:m spec:m status:m"},
    {kKedaApi, "ClusterTriggerAuthentication", "", "apiVersion! kind! metadata:m spec:m status:m"},

    {kArgo, "Workflow", "", kTop},
    {kArgo, "Workflow", "spec",
     "activeDeadlineSeconds affinity:m archiveLogs:b arguments:m artifactGC:m "
     "artifactRepositoryRef:m automountServiceAccountToken:b dnsConfig:m dnsPolicy:s entrypoint:s "
     "executor:m hooks:m hostAliases:l hostNetwork:b imagePullSecrets:l metrics:m nodeSelector:m "
     "onExit:s parallelism:i podDisruptionBudget:m podGC:m podMetadata:m podPriorityClassName:s "
     "podSpecPatch:s priority:i retryStrategy:m schedulerName:s securityContext:m "
     "serviceAccountName:s shutdown:s suspend:b synchronization:m templateDefaults:m templates:l "
     "tolerations:l ttlStrategy:m volumeClaimGC:m volumeClaimTemplates:l volumes:l "
     "workflowMetadata:m workflowTemplateRef:m podPriority:i"},
    {kArgo, "Workflow", "spec.templates[]",
     "activeDeadlineSeconds affinity:m annotations:m archiveLocation:m "
     "automountServiceAccountToken:b container:m containerSet:m daemon:b dag:m data:m executor:m "
     "failFast:b hostAliases:l http:m initContainers:l inputs:m memoize:m metadata:m metrics:m "
     "name:s nodeSelector:m outputs:m parallelism:i plugin:m podSpecPatch:s priority:i "
     "priorityClassName:s resource:m retryStrategy:m schedulerName:s script:m securityContext:m "
     "serviceAccountName:s sidecars:l steps:l suspend synchronization:m timeout:s tolerations:l "
     "volumes:l"},
    {kArgo, "Workflow", "spec.templates[].steps[][]",
     "arguments:m continueOn:m hooks:m inline:m name:s onExit:s template:s templateRef:m when:s "
     "withItems:l withParam:s withSequence:m"},
    {kArgo, "Workflow", "spec.templates[].dag.tasks[]",
     "arguments:m continueOn:m dependencies:l depends:s hooks:m inline:m name!:s onExit:s "
     "template:s templateRef:m when:s withItems:l withParam:s withSequence:m"},
    {kArgo, "Workflow", "spec.templates[].retryStrategy",
     "affinity:m backoff:m expression:s limit retryPolicy:s"},
    {kArgo, "Workflow", "spec.templates[].retryStrategy.backoff",
     "cap:s duration:s factor maxDuration:s"},
    {kArgo, "WorkflowTemplate", "", kTop},
    {kArgo, "CronWorkflow", "", kTop},
    {kArgo, "Application", "", "apiVersion! kind! metadata:m spec!:m status:m operation:m"},

    {kTekton, "Pipeline", "", kTop},
    {kTekton, "Pipeline", "spec", kPipelineSpec},
    {kTekton, "Pipeline", "spec.tasks[]", kPipelineTask},
    {kTekton, "Pipeline", "spec.tasks[].taskSpec", kTaskSpec},
    {kTekton, "Pipeline", "spec.finally[]", kPipelineTask},
    {kTekton, "Pipeline", "spec.finally[].taskSpec", kTaskSpec},
    {kTekton, "PipelineRun", "", kTop},
    {kTekton, "PipelineRun", "spec",
     "pipelineRef:m pipelineSpec:m params:l status:s timeouts:m taskRunTemplate:m workspaces:l "
     "taskRunSpecs:l managedBy:s"},
    {kTekton, "PipelineRun", "spec.taskRunTemplate", "podTemplate:m serviceAccountName:s"},
    {kTekton, "Task", "", kTop},
    {kTekton, "Task", "spec", kTaskSpec},
    {kTekton, "TaskRun", "", kTop},
    {kTektonOld, "Pipeline", "", kTop},
    {kTektonOld, "Pipeline", "spec", kPipelineSpec},
    {kTektonOld, "Pipeline", "spec.tasks[]", kPipelineTask},
    {kTektonOld, "Pipeline", "spec.tasks[].taskSpec", kTaskSpec},
    {kTektonOld, "PipelineRun", "", kTop},
    {kTektonOld, "Task", "", kTop},
    {kTektonOld, "Task", "spec", kTaskSpec},
    {kTektonOld, "TaskRun", "", kTop},

    {kServe, "InferenceService", "", kTop},
    {kServe, "InferenceService", "spec", "predictor!:m transformer:m explainer:m"},
    {kServe, "InferenceService", "spec.predictor.model",
     "modelFormat!:m runtime:s storageUri:s storage:m runtimeVersion:s protocolVersion:s "
     "resources:m env:l envFrom:l args:l command:l image:s imagePullPolicy:s name:s ports:l "
     "volumeMounts:l volumeDevices:l livenessProbe:m readinessProbe:m startupProbe:m lifecycle:m "
     "securityContext:m stdin:b stdinOnce:b terminationMessagePath:s terminationMessagePolicy:s "
     "tty:b workingDir:s resizePolicy:l restartPolicy:s storageUris:l"},
    {kServe, "InferenceService", "spec.predictor.model.modelFormat", "name!:s version:s"},

    {kRule, "PrometheusRule", "", kTop},
    {kRule, "PrometheusRule", "spec", "groups:l"},
    {kRule, "PrometheusRule", "spec.groups[]",
     "name!:s interval:s rules:l limit:i labels:m query_offset:s partial_response_strategy:s"},
    {kRule, "PrometheusRule", "spec.groups[].rules[]",
     "record:s alert:s expr! for:s keep_firing_for:s labels:m annotations:m"},
    {kRule, "ServiceMonitor", "", kTop},
    {kRule, "PodMonitor", "", kTop},
};

std::string_view group_of(std::string_view api) {
  const std::size_t slash = api.find('/');
  return slash == std::string_view::npos ? std::string_view() : api.substr(0, slash);
}

void keep(std::vector<std::string>& out, std::string_view text) {
  if (std::find(out.begin(), out.end(), text) == out.end()) out.emplace_back(text);
}

}  // namespace

std::span<const Shape> shapes() { return kShapes; }

std::vector<std::string> shape_groups(std::string_view kind) {
  std::vector<std::string> out;
  for (const Shape& shape : kShapes) {
    if (shape.kind == kind) keep(out, group_of(shape.api));
  }
  return out;
}

std::vector<std::string> shape_versions(std::string_view group, std::string_view kind) {
  std::vector<std::string> out;
  for (const Shape& shape : kShapes) {
    if (shape.kind == kind && group_of(shape.api) == group) keep(out, shape.api);
  }
  return out;
}

}  // namespace berth::lint
