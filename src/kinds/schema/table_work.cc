// Controllers of pods, as the API of Kubernetes 1.37 defines them; table.cc says how to read this.
#include "kinds/schema/table.h"

namespace berth::sim {

const char* const kTableWork = R"table(
#io.k8s.api.apps.v1
ControllerRevision: apiVersion:s? data!:a kind:s? metadata:ObjectMeta* revision:l*
DaemonSet: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:DaemonSetSpec* status:DaemonSetStatus*
DaemonSetCondition: lastTransitionTime:t message:s? reason:s? status:s* type:s*
DaemonSetSpec: minReadySeconds:i? revisionHistoryLimit:i=10 selector!:LabelSelector
 template!:PodTemplateSpec* updateStrategy:DaemonSetUpdateStrategy*={}
DaemonSetStatus: collisionCount:i conditions:[DaemonSetCondition]@type%type
 currentNumberScheduled!:i* desiredNumberScheduled!:i* numberAvailable:i? numberMisscheduled!:i*
 numberReady!:i* numberUnavailable:i? observedGeneration:l? updatedNumberScheduled:i?
DaemonSetUpdateStrategy: rollingUpdate:RollingUpdateDaemonSet type:s?="RollingUpdate"
Deployment: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:DeploymentSpec*
 status:DeploymentStatus*
DeploymentCondition: lastTransitionTime:t lastUpdateTime:t message:s? reason:s? status:s* type:s*
DeploymentSpec: minReadySeconds:i? paused:b? progressDeadlineSeconds:i=600 replicas:i=1
 revisionHistoryLimit:i=10 selector!:LabelSelector strategy:DeploymentStrategy~*={}
 template!:PodTemplateSpec*
DeploymentStatus: availableReplicas:i? collisionCount:i conditions:[DeploymentCondition]@type%type
 observedGeneration:l? readyReplicas:i? replicas:i? terminatingReplicas:i unavailableReplicas:i?
 updatedReplicas:i?
DeploymentStrategy: rollingUpdate:RollingUpdateDeployment
 type:s?|Recreate|RollingUpdate="RollingUpdate"
ReplicaSet: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:ReplicaSetSpec*
 status:ReplicaSetStatus*
ReplicaSetCondition: lastTransitionTime:t message:s? reason:s? status:s* type:s*
ReplicaSetSpec: minReadySeconds:i? replicas:i=1 selector!:LabelSelector template:PodTemplateSpec*
ReplicaSetStatus: availableReplicas:i? conditions:[ReplicaSetCondition]@type%type
 fullyLabeledReplicas:i? observedGeneration:l? readyReplicas:i? replicas!:i* terminatingReplicas:i
RollingUpdateDaemonSet: maxSurge:x maxUnavailable:x
RollingUpdateDeployment: maxSurge:x maxUnavailable:x
RollingUpdateStatefulSetStrategy: maxUnavailable:x partition:i
StatefulSet: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:StatefulSetSpec*
 status:StatefulSetStatus*
StatefulSetCondition: lastTransitionTime:t message:s? reason:s? status:s* type:s*
StatefulSetOrdinals: start:i*
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted:s?="Retain" whenScaled:s?="Retain"
StatefulSetSpec: minReadySeconds:i? ordinals:StatefulSetOrdinals
 persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy={}
 podManagementPolicy:s?|OrderedReady|Parallel="OrderedReady" replicas:i=1
 revisionHistoryLimit:i=10 selector!:LabelSelector serviceName:s* template!:PodTemplateSpec*
 updateStrategy:StatefulSetUpdateStrategy*={} volumeClaimTemplates:[PersistentVolumeClaim]
StatefulSetStatus: availableReplicas:i* collisionCount:i
 conditions:[StatefulSetCondition]@type%type currentReplicas:i? currentRevision:s?
 observedGeneration:l? readyReplicas:i? replicas!:i* updateRevision:s? updatedReplicas:i?
StatefulSetUpdateStrategy: rollingUpdate:RollingUpdateStatefulSetStrategy type:s?="RollingUpdate"
#io.k8s.api.autoscaling.v1
CrossVersionObjectReference&: apiVersion:s? kind!:s* name!:s*
HorizontalPodAutoscaler: apiVersion:s? kind:s? metadata:ObjectMeta*
 spec!:HorizontalPodAutoscalerSpec* status:HorizontalPodAutoscalerStatus*
HorizontalPodAutoscalerSpec: maxReplicas!:i* minReplicas:i=1
 scaleTargetRef!:CrossVersionObjectReference* targetCPUUtilizationPercentage:i
HorizontalPodAutoscalerStatus: currentCPUUtilizationPercentage:i currentReplicas!:i*
 desiredReplicas!:i* lastScaleTime:t observedGeneration:l
Scale: apiVersion:s kind:s metadata:ObjectMeta spec:ScaleSpec status:ScaleStatus
ScaleSpec: replicas:i
ScaleStatus: replicas!:i selector:s
#io.k8s.api.autoscaling.v2
ContainerResourceMetricSource: container!:s* name!:s* target!:MetricTarget*
ContainerResourceMetricStatus: container!:s* current!:MetricValueStatus* name!:s*
CrossVersionObjectReference: apiVersion:s? kind!:s* name!:s*
ExternalMetricSource: metric!:MetricIdentifier* target!:MetricTarget*
ExternalMetricStatus: current!:MetricValueStatus* metric!:MetricIdentifier*
HPAScalingPolicy: periodSeconds!:i* type!:s* value!:i*
HPAScalingRules: policies:[HPAScalingPolicy] selectPolicy:s stabilizationWindowSeconds:i
 tolerance:q
HorizontalPodAutoscaler: apiVersion:s? kind:s? metadata:ObjectMeta*
 spec!:HorizontalPodAutoscalerSpec* status:HorizontalPodAutoscalerStatus*
HorizontalPodAutoscalerBehavior: scaleDown:HPAScalingRules scaleUp:HPAScalingRules
HorizontalPodAutoscalerCondition: lastTransitionTime:t message:s? observedGeneration:l reason:s?
 status!:s* type!:s*
HorizontalPodAutoscalerSpec: behavior:HorizontalPodAutoscalerBehavior maxReplicas!:i*
 metrics:[MetricSpec] minReplicas:i=1 scaleTargetRef!:CrossVersionObjectReference*
HorizontalPodAutoscalerStatus: conditions:[HorizontalPodAutoscalerCondition]@type%type
 currentMetrics:[MetricStatus]* currentReplicas:i? desiredReplicas!:i* lastScaleTime:t
 observedGeneration:l
MetricIdentifier: name!:s* selector:LabelSelector
MetricSpec: containerResource:ContainerResourceMetricSource external:ExternalMetricSource
 object:ObjectMetricSource pods:PodsMetricSource resource:ResourceMetricSource type!:s*
MetricStatus: containerResource:ContainerResourceMetricStatus external:ExternalMetricStatus
 object:ObjectMetricStatus pods:PodsMetricStatus resource:ResourceMetricStatus type!:s*
MetricTarget: averageUtilization:i averageValue:q type!:s* value:q
MetricValueStatus: averageUtilization:i averageValue:q value:q
ObjectMetricSource: describedObject!:CrossVersionObjectReference* metric!:MetricIdentifier*
 target!:MetricTarget*
ObjectMetricStatus: current!:MetricValueStatus* describedObject!:CrossVersionObjectReference*
 metric!:MetricIdentifier*
PodsMetricSource: metric!:MetricIdentifier* target!:MetricTarget*
PodsMetricStatus: current!:MetricValueStatus* metric!:MetricIdentifier*
ResourceMetricSource: name!:s* target!:MetricTarget*
ResourceMetricStatus: current!:MetricValueStatus* name!:s*
#io.k8s.api.batch.v1
CronJob: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:CronJobSpec* status:CronJobStatus*
CronJobSpec: concurrencyPolicy:s?|Allow|Forbid|Replace="Allow" failedJobsHistoryLimit:i=1
 jobTemplate!:JobTemplateSpec* schedule!:s* startingDeadlineSeconds:l
 successfulJobsHistoryLimit:i=3 suspend:b=false timeZone:s
CronJobStatus: active:[ObjectReference] lastScheduleTime:t lastSuccessfulTime:t
Job: apiVersion:s? kind:s? metadata:ObjectMeta* spec:JobSpec* status:JobStatus*
JobCondition: lastProbeTime:t lastTransitionTime:t message:s? reason:s? status!:s* type!:s*
JobSchedulingConfiguration: disruptionMode:WorkloadPodGroupDisruptionMode
 resourceClaims:[WorkloadPodGroupResourceClaim]@name%name
 schedulingConstraints:WorkloadPodGroupSchedulingConstraints
 schedulingPolicy:WorkloadPodGroupSchedulingPolicy
JobSpec: activeDeadlineSeconds:l backoffLimit:i backoffLimitPerIndex:i
 completionMode:s|NonIndexed|Indexed completions:i managedBy:s manualSelector:b maxFailedIndexes:i
 parallelism:i podFailurePolicy:PodFailurePolicy podReplacementPolicy:s|Failed|TerminatingOrFailed
 scheduling:JobSchedulingConfiguration selector:LabelSelector successPolicy:SuccessPolicy
 suspend:b template!:PodTemplateSpec* ttlSecondsAfterFinished:i
JobStatus: active:i? completedIndexes:s? completionTime:t conditions:[JobCondition]%type failed:i?
 failedIndexes:s ready:i startTime:t succeeded:i? terminating:i
 uncountedTerminatedPods:UncountedTerminatedPods
JobTemplateSpec: metadata:ObjectMeta* spec:JobSpec*
PodFailurePolicy: rules:[PodFailurePolicyRule]*
PodFailurePolicyOnExitCodesRequirement: containerName:s operator!:s*|In|NotIn values!:[i]^*
PodFailurePolicyOnPodConditionsPattern: status:s*="True" type!:s*
PodFailurePolicyRule: action!:s*|Count|FailIndex|FailJob|Ignore
 onExitCodes:PodFailurePolicyOnExitCodesRequirement
 onPodConditions:[PodFailurePolicyOnPodConditionsPattern]
SuccessPolicy: rules!:[SuccessPolicyRule]*
SuccessPolicyRule: succeededCount:i succeededIndexes:s
UncountedTerminatedPods: failed:[s]^ succeeded:[s]^
#io.k8s.api.policy.v1
Eviction: apiVersion:s? deleteOptions:DeleteOptions kind:s? metadata:ObjectMeta*
PodDisruptionBudget: apiVersion:s? kind:s? metadata:ObjectMeta* spec:PodDisruptionBudgetSpec*
 status:PodDisruptionBudgetStatus*
PodDisruptionBudgetSpec: maxUnavailable:x minAvailable:x selector:LabelSelector
 unhealthyPodEvictionPolicy:s|AlwaysAllow|IfHealthyBudget
PodDisruptionBudgetStatus: conditions:[Condition]@type%type currentHealthy:i* desiredHealthy:i*
 disruptedPods:{t} disruptionsAllowed:i* expectedPods:i* observedGeneration:l?
#io.k8s.api.scheduling.v1alpha3
TopologyConstraint: key!:s*
WorkloadPodGroupAllDisruptionMode:
WorkloadPodGroupBasicSchedulingPolicy:
WorkloadPodGroupDisruptionMode: all:WorkloadPodGroupAllDisruptionMode
 single:WorkloadPodGroupSingleDisruptionMode
WorkloadPodGroupGangSchedulingPolicy: minCount:i
WorkloadPodGroupResourceClaim: name!:s* resourceClaimName:s resourceClaimTemplateName:s
WorkloadPodGroupSchedulingConstraints: topology:[TopologyConstraint]
WorkloadPodGroupSchedulingPolicy: basic:WorkloadPodGroupBasicSchedulingPolicy
 gang:WorkloadPodGroupGangSchedulingPolicy
WorkloadPodGroupSingleDisruptionMode:
)table";

}  // namespace berth::sim
