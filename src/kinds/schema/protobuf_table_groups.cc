// Field numbers of the kinds outside of the core group in protobuf, as Kubernetes 1.37 assigns
// them; protobuf.cc says how to read this.
#include "kinds/schema/protobuf_table.h"

namespace berth::sim {

const char* const kProtobufGroups = R"table(
#apps apps/v1
StatefulSet 1:metadata:meta.ObjectMeta 2:spec:StatefulSetSpec 3:status:StatefulSetStatus
StatefulSetUpdateStrategy 1:type:s 2:rollingUpdate:RollingUpdateStatefulSetStrategy
RollingUpdateStatefulSetStrategy 1:partition:i! 2:maxUnavailable:o
StatefulSetPersistentVolumeClaimRetentionPolicy 1:whenDeleted:s 2:whenScaled:s
StatefulSetOrdinals 1:start:i!
StatefulSetSpec 1:replicas:i! 2:selector:meta.LabelSelector 3:template:core.PodTemplateSpec
 4:volumeClaimTemplates:[core.PersistentVolumeClaim] 5:serviceName:s! 6:podManagementPolicy:s
 7:updateStrategy:StatefulSetUpdateStrategy 8:revisionHistoryLimit:i! 9:minReadySeconds:i
 10:persistentVolumeClaimRetentionPolicy:StatefulSetPersistentVolumeClaimRetentionPolicy
 11:ordinals:StatefulSetOrdinals
StatefulSetStatus 1:observedGeneration:i 2:replicas:i! 3:readyReplicas:i 4:currentReplicas:i
 5:updatedReplicas:i 6:currentRevision:s 7:updateRevision:s 9:collisionCount:i!
 10:conditions:[StatefulSetCondition] 11:availableReplicas:i!
StatefulSetCondition 1:type:s! 2:status:s! 3:lastTransitionTime:t 4:reason:s 5:message:s
Deployment 1:metadata:meta.ObjectMeta 2:spec:DeploymentSpec 3:status:DeploymentStatus
DeploymentSpec 1:replicas:i! 2:selector:meta.LabelSelector 3:template:core.PodTemplateSpec
 4:strategy:DeploymentStrategy 5:minReadySeconds:i 6:revisionHistoryLimit:i! 7:paused:b
 9:progressDeadlineSeconds:i!
DeploymentStrategy 1:type:s 2:rollingUpdate:RollingUpdateDeployment
RollingUpdateDeployment 1:maxUnavailable:o 2:maxSurge:o
DeploymentStatus 1:observedGeneration:i 2:replicas:i 3:updatedReplicas:i 4:availableReplicas:i
 5:unavailableReplicas:i 6:conditions:[DeploymentCondition] 7:readyReplicas:i 8:collisionCount:i!
 9:terminatingReplicas:i!
DeploymentCondition 1:type:s! 2:status:s! 4:reason:s 5:message:s 6:lastUpdateTime:t
 7:lastTransitionTime:t
DaemonSetUpdateStrategy 1:type:s 2:rollingUpdate:RollingUpdateDaemonSet
RollingUpdateDaemonSet 1:maxUnavailable:o 2:maxSurge:o
DaemonSetSpec 1:selector:meta.LabelSelector 2:template:core.PodTemplateSpec
 3:updateStrategy:DaemonSetUpdateStrategy 4:minReadySeconds:i 6:revisionHistoryLimit:i!
DaemonSetStatus 1:currentNumberScheduled:i! 2:numberMisscheduled:i! 3:desiredNumberScheduled:i!
 4:numberReady:i! 5:observedGeneration:i 6:updatedNumberScheduled:i 7:numberAvailable:i
 8:numberUnavailable:i 9:collisionCount:i! 10:conditions:[DaemonSetCondition]
DaemonSetCondition 1:type:s! 2:status:s! 3:lastTransitionTime:t 4:reason:s 5:message:s
DaemonSet 1:metadata:meta.ObjectMeta 2:spec:DaemonSetSpec 3:status:DaemonSetStatus
ReplicaSet 1:metadata:meta.ObjectMeta 2:spec:ReplicaSetSpec 3:status:ReplicaSetStatus
ReplicaSetSpec 1:replicas:i! 2:selector:meta.LabelSelector 3:template:core.PodTemplateSpec
 4:minReadySeconds:i
ReplicaSetStatus 1:replicas:i! 2:fullyLabeledReplicas:i 3:observedGeneration:i 4:readyReplicas:i
 5:availableReplicas:i 6:conditions:[ReplicaSetCondition] 7:terminatingReplicas:i!
ReplicaSetCondition 1:type:s! 2:status:s! 3:lastTransitionTime:t 4:reason:s 5:message:s
ControllerRevision 1:metadata:meta.ObjectMeta 2:data:r 3:revision:i!
#batch batch/v1
Job 1:metadata:meta.ObjectMeta 2:spec:JobSpec 3:status:JobStatus
PodFailurePolicyOnExitCodesRequirement 1:containerName:s! 2:operator:s! 3:values:[i]
PodFailurePolicyOnPodConditionsPattern 1:type:s! 2:status:s!
PodFailurePolicyRule 1:action:s! 2:onExitCodes:PodFailurePolicyOnExitCodesRequirement
 3:onPodConditions:[PodFailurePolicyOnPodConditionsPattern]
PodFailurePolicy 1:rules:[PodFailurePolicyRule]
SuccessPolicy 1:rules:[SuccessPolicyRule]
SuccessPolicyRule 1:succeededIndexes:s! 2:succeededCount:i!
JobSpec 1:parallelism:i! 2:completions:i! 3:activeDeadlineSeconds:i! 4:selector:meta.LabelSelector
 5:manualSelector:b! 6:template:core.PodTemplateSpec 7:backoffLimit:i! 8:ttlSecondsAfterFinished:i!
 9:completionMode:s! 10:suspend:b! 11:podFailurePolicy:PodFailurePolicy 12:backoffLimitPerIndex:i!
 13:maxFailedIndexes:i! 14:podReplacementPolicy:s! 15:managedBy:s! 16:successPolicy:SuccessPolicy
 17:scheduling:JobSchedulingConfiguration
JobSchedulingConfiguration
JobStatus 1:conditions:[JobCondition] 2:startTime:t 3:completionTime:t 4:active:i 5:succeeded:i
 6:failed:i 7:completedIndexes:s 8:uncountedTerminatedPods:UncountedTerminatedPods 9:ready:i!
 10:failedIndexes:s! 11:terminating:i!
UncountedTerminatedPods 1:succeeded:[s] 2:failed:[s]
JobCondition 1:type:s! 2:status:s! 3:lastProbeTime:t 4:lastTransitionTime:t 5:reason:s 6:message:s
JobTemplateSpec 1:metadata:meta.ObjectMeta 2:spec:JobSpec
CronJob 1:metadata:meta.ObjectMeta 2:spec:CronJobSpec 3:status:CronJobStatus
CronJobSpec 1:schedule:s! 2:startingDeadlineSeconds:i! 3:concurrencyPolicy:s 4:suspend:b!
 5:jobTemplate:JobTemplateSpec 6:successfulJobsHistoryLimit:i! 7:failedJobsHistoryLimit:i!
 8:timeZone:s!
CronJobStatus 1:active:[core.ObjectReference] 4:lastScheduleTime:t 5:lastSuccessfulTime:t
#policy policy/v1
PodDisruptionBudgetSpec 1:minAvailable:o 2:selector:meta.LabelSelector 3:maxUnavailable:o
 4:unhealthyPodEvictionPolicy:s!
PodDisruptionBudgetStatus 1:observedGeneration:i 2:disruptedPods:{t} 3:disruptionsAllowed:i!
 4:currentHealthy:i! 5:desiredHealthy:i! 6:expectedPods:i! 7:conditions:[meta.Condition]
PodDisruptionBudget 1:metadata:meta.ObjectMeta 2:spec:PodDisruptionBudgetSpec
 3:status:PodDisruptionBudgetStatus
Eviction 1:metadata:meta.ObjectMeta 2:deleteOptions:meta.DeleteOptions
#rbac rbac.authorization.k8s.io/v1
PolicyRule 1:verbs:[s] 2:apiGroups:[s] 3:resources:[s] 4:resourceNames:[s] 5:nonResourceURLs:[s]
Subject 1:kind:s! 2:apiGroup:s 3:name:s! 4:namespace:s
RoleRef 1:apiGroup:s! 2:kind:s! 3:name:s!
Role 1:metadata:meta.ObjectMeta 2:rules:[PolicyRule]
RoleBinding 1:metadata:meta.ObjectMeta 2:subjects:[Subject] 3:roleRef:RoleRef
ClusterRole 1:metadata:meta.ObjectMeta 2:rules:[PolicyRule] 3:aggregationRule:AggregationRule
AggregationRule 1:clusterRoleSelectors:[meta.LabelSelector]
ClusterRoleBinding 1:metadata:meta.ObjectMeta 2:subjects:[Subject] 3:roleRef:RoleRef
#scheduling scheduling.k8s.io/v1
PriorityClass 1:metadata:meta.ObjectMeta 2:value:i! 3:globalDefault:b 4:description:s
 5:preemptionPolicy:s!
#coordination coordination.k8s.io/v1
Lease 1:metadata:meta.ObjectMeta 2:spec:LeaseSpec
LeaseSpec 1:holderIdentity:s! 2:leaseDurationSeconds:i! 3:acquireTime:u 4:renewTime:u
 5:leaseTransitions:i! 6:strategy:s! 7:preferredHolder:s!
#events events.k8s.io/v1
Event 1:metadata:meta.ObjectMeta 2:eventTime:u 3:series:EventSeries 4:reportingController:s
 5:reportingInstance:s 6:action:s 7:reason:s 8:regarding:core.ObjectReference
 9:related:core.ObjectReference 10:note:s 11:type:s 12:deprecatedSource:core.EventSource
 13:deprecatedFirstTimestamp:t 14:deprecatedLastTimestamp:t 15:deprecatedCount:i
EventSeries 1:count:i! 2:lastObservedTime:u
#networking networking.k8s.io/v1
NetworkPolicy 1:metadata:meta.ObjectMeta 2:spec:NetworkPolicySpec
NetworkPolicySpec 1:podSelector:meta.LabelSelector 2:ingress:[NetworkPolicyIngressRule]
 3:egress:[NetworkPolicyEgressRule] 4:policyTypes:[s]
NetworkPolicyIngressRule 1:ports:[NetworkPolicyPort] 2:from:[NetworkPolicyPeer]
NetworkPolicyEgressRule 1:ports:[NetworkPolicyPort] 2:to:[NetworkPolicyPeer]
NetworkPolicyPort 1:protocol:s! 2:port:o 3:endPort:i!
IPBlock 1:cidr:s! 2:except:[s]
NetworkPolicyPeer 1:podSelector:meta.LabelSelector 2:namespaceSelector:meta.LabelSelector
 3:ipBlock:IPBlock
Ingress 1:metadata:meta.ObjectMeta 2:spec:IngressSpec 3:status:IngressStatus
IngressSpec 1:defaultBackend:IngressBackend 2:tls:[IngressTLS] 3:rules:[IngressRule]
 4:ingressClassName:s!
IngressTLS 1:hosts:[s] 2:secretName:s
IngressStatus 1:loadBalancer:IngressLoadBalancerStatus
IngressLoadBalancerStatus 1:ingress:[IngressLoadBalancerIngress]
IngressLoadBalancerIngress 1:ip:s 2:hostname:s 4:ports:[IngressPortStatus]
IngressPortStatus 1:port:i! 2:protocol:s! 3:error:s!
IngressRule 1:host:s 2::IngressRuleValue
IngressRuleValue 1:http:HTTPIngressRuleValue
HTTPIngressRuleValue 1:paths:[HTTPIngressPath]
HTTPIngressPath 1:path:s 2:backend:IngressBackend 3:pathType:s!
IngressBackend 3:resource:core.TypedLocalObjectReference 4:service:IngressServiceBackend
IngressServiceBackend 1:name:s! 2:port:ServiceBackendPort
ServiceBackendPort 1:name:s 2:number:i
IngressClass 1:metadata:meta.ObjectMeta 2:spec:IngressClassSpec
IngressClassSpec 1:controller:s 2:parameters:IngressClassParametersReference
IngressClassParametersReference 1:apiGroup:s! 2:kind:s! 3:name:s! 4:scope:s! 5:namespace:s!
IPAddress 1:metadata:meta.ObjectMeta 2:spec:IPAddressSpec
IPAddressSpec 1:parentRef:ParentReference
ParentReference 1:group:s 2:resource:s 3:namespace:s 4:name:s
ServiceCIDR 1:metadata:meta.ObjectMeta 2:spec:ServiceCIDRSpec 3:status:ServiceCIDRStatus
ServiceCIDRSpec 1:cidrs:[s]
ServiceCIDRStatus 1:conditions:[meta.Condition]
#storage storage.k8s.io/v1
StorageClass 1:metadata:meta.ObjectMeta 2:provisioner:s! 3:parameters:{s} 4:reclaimPolicy:s!
 5:mountOptions:[s] 6:allowVolumeExpansion:b! 7:volumeBindingMode:s!
 8:allowedTopologies:[core.TopologySelectorTerm]
VolumeAttachment 1:metadata:meta.ObjectMeta 2:spec:VolumeAttachmentSpec
 3:status:VolumeAttachmentStatus
VolumeAttachmentSpec 1:attacher:s! 2:source:VolumeAttachmentSource 3:nodeName:s!
VolumeAttachmentSource 1:persistentVolumeName:s! 2:inlineVolumeSpec:core.PersistentVolumeSpec
VolumeAttachmentStatus 1:attached:b! 2:attachmentMetadata:{s} 3:attachError:VolumeError
 4:detachError:VolumeError
VolumeError 1:time:t 2:message:s 3:errorCode:i!
CSIDriver 1:metadata:meta.ObjectMeta 2:spec:CSIDriverSpec
CSIDriverSpec 1:attachRequired:b! 2:podInfoOnMount:b! 3:volumeLifecycleModes:[s]
 4:storageCapacity:b! 5:fsGroupPolicy:s! 6:tokenRequests:[TokenRequest] 7:requiresRepublish:b!
 8:seLinuxMount:b! 9:nodeAllocatableUpdatePeriodSeconds:i! 10:serviceAccountTokenInSecrets:b!
 11:preventPodSchedulingIfMissing:b!
TokenRequest 1:audience:s! 2:expirationSeconds:i!
CSINode 1:metadata:meta.ObjectMeta 2:spec:CSINodeSpec 3:status:CSINodeStatus
CSINodeSpec 1:drivers:[CSINodeDriver]
CSINodeDriver 1:name:s! 2:nodeID:s! 3:topologyKeys:[s] 4:allocatable:VolumeNodeResources
VolumeNodeResources 1:count:i!
StorageHealthCondition 1:status:s! 2:reason:s! 3:message:s 4:accessMode:s! 5:volumeMode:s!
 6:lastTransitionTime:t
StorageHealth 1:name:s! 2:healthConditions:[StorageHealthCondition]
CSINodeStatus 1:storageHealth:[StorageHealth]
CSIStorageCapacity 1:metadata:meta.ObjectMeta 2:nodeTopology:meta.LabelSelector
 3:storageClassName:s! 4:capacity:q 5:maximumVolumeSize:q
VolumeAttributesClass 1:metadata:meta.ObjectMeta 2:driverName:s! 3:parameters:{s}
#resource resource.k8s.io/v1
ResourceSlice 1:metadata:meta.ObjectMeta 2:spec:ResourceSliceSpec
ResourceSliceSpec 1:driver:s! 2:pool:ResourcePool 3:nodeName:s! 4:nodeSelector:core.NodeSelector
 5:allNodes:b! 6:devices:[Device] 7:perDeviceNodeSelection:b! 8:sharedCounters:[CounterSet]
 9:partitionTypeAttribute:s! 10:skipNodeOperations:[s]
CounterSet 1:name:s! 2:counters:{Counter}
ResourcePool 1:name:s! 2:generation:i! 3:resourceSliceCount:i!
Device 1:name:s! 2:attributes:{DeviceAttribute} 3:capacity:{DeviceCapacity}
 4:consumesCounters:[DeviceCounterConsumption] 5:nodeName:s! 6:nodeSelector:core.NodeSelector
 7:allNodes:b! 8:taints:[DeviceTaint] 9:bindsToNode:b! 10:bindingConditions:[s]
 11:bindingFailureConditions:[s] 12:allowMultipleAllocations:b!
 14:nodeAllocatableResources:{NodeAllocatableResource}
NodeAllocatableResource 3:mapping:NodeAllocatableMapping 4:overhead:NodeAllocatableOverhead
NodeAllocatableMapping 1:capacityKey:s! 2:capacityMultiplier:q 3:deviceMultiplier:q
NodeAllocatableOverhead 1:perPod:q 2:perContainer:q
DeviceCounterConsumption 1:counterSet:s! 2:counters:{Counter} 3:compatibilityGroups:[s]
DeviceCapacity 1:value:q 2:requestPolicy:CapacityRequestPolicy
Counter 1:value:q
CapacityRequestPolicy 1:default:q 3:validValues:[q] 4:validRange:CapacityRequestPolicyRange
CapacityRequestPolicyRange 1:min:q 2:max:q 3:step:q
DeviceAttribute 2:int:i! 3:bool:b! 4:string:s! 5:version:s! 6:ints:[i] 7:bools:[b] 8:strings:[s]
 9:versions:[s]
DeviceTaint 1:key:s! 2:value:s 3:effect:s! 4:timeAdded:t
DeviceTaintRule 1:metadata:meta.ObjectMeta 2:spec:DeviceTaintRuleSpec
 3:status:DeviceTaintRuleStatus
DeviceTaintRuleSpec 1:deviceSelector:DeviceTaintSelector 2:taint:DeviceTaint
DeviceTaintSelector 2:driver:s! 3:pool:s! 4:device:s!
DeviceTaintRuleStatus 1:conditions:[meta.Condition]
ResourceClaim 1:metadata:meta.ObjectMeta 2:spec:ResourceClaimSpec 3:status:ResourceClaimStatus
ResourceClaimSpec 1:devices:DeviceClaim
DeviceClaim 1:requests:[DeviceRequest] 2:constraints:[DeviceConstraint]
 3:config:[DeviceClaimConfiguration]
DeviceRequest 1:name:s! 2:exactly:ExactDeviceRequest 3:firstAvailable:[DeviceSubRequest]
ExactDeviceRequest 1:deviceClassName:s! 2:selectors:[DeviceSelector] 3:allocationMode:s 4:count:i
 5:adminAccess:b! 6:tolerations:[DeviceToleration] 7:capacity:CapacityRequirements
 8:derivedAttributes:[DeviceDerivedAttribute]
DeviceSubRequest 1:name:s! 2:deviceClassName:s! 3:selectors:[DeviceSelector] 4:allocationMode:s
 5:count:i 6:tolerations:[DeviceToleration] 7:capacity:CapacityRequirements
 8:derivedAttributes:[DeviceDerivedAttribute]
CapacityRequirements 1:requests:{q}
DeviceSelector 1:cel:CELDeviceSelector
CELDeviceSelector 1:expression:s!
DeviceDerivedAttribute 1:name:s! 2:expression:s!
DeviceConstraint 1:requests:[s] 2:matchAttribute:s! 3:distinctAttribute:s!
DeviceClaimConfiguration 1:requests:[s] 2::DeviceConfiguration
DeviceConfiguration 1:opaque:OpaqueDeviceConfiguration
OpaqueDeviceConfiguration 1:driver:s! 2:parameters:r
DeviceToleration 1:key:s 2:operator:s 3:value:s 4:effect:s 5:tolerationSeconds:i!
ResourceClaimStatus 1:allocation:AllocationResult 2:reservedFor:[ResourceClaimConsumerReference]
 4:devices:[AllocatedDeviceStatus]
ResourceClaimConsumerReference 1:apiGroup:s 3:resource:s! 4:name:s! 5:uid:s!
AllocationResult 1:devices:DeviceAllocationResult 3:nodeSelector:core.NodeSelector
 5:allocationTimestamp:t
DeviceAllocationResult 1:results:[DeviceRequestAllocationResult]
 2:config:[DeviceAllocationConfiguration]
DeviceRequestAllocationResult 1:request:s! 2:driver:s! 3:pool:s! 4:device:s! 5:adminAccess:b!
 6:tolerations:[DeviceToleration] 7:bindingConditions:[s] 8:bindingFailureConditions:[s]
 9:shareID:s! 10:consumedCapacity:{q} 11:skipNodeOperations:[s]
DeviceAllocationConfiguration 1:source:s! 2:requests:[s] 3::DeviceConfiguration
DeviceClass 1:metadata:meta.ObjectMeta 2:spec:DeviceClassSpec
DeviceClassSpec 1:selectors:[DeviceSelector] 2:config:[DeviceClassConfiguration]
 4:extendedResourceName:s!
DeviceClassConfiguration 1::DeviceConfiguration
ResourceClaimTemplate 1:metadata:meta.ObjectMeta 2:spec:ResourceClaimTemplateSpec
ResourceClaimTemplateSpec 1:metadata:meta.ObjectMeta 2:spec:ResourceClaimSpec
AllocatedDeviceStatus 1:driver:s! 2:pool:s! 3:device:s! 4:conditions:[meta.Condition] 5:data:r
 6:networkData:NetworkDeviceData 7:shareID:s!
NetworkDeviceData 1:interfaceName:s 2:ips:[s] 3:hardwareAddress:s
#node node.k8s.io/v1
RuntimeClass 1:metadata:meta.ObjectMeta 2:handler:s! 3:overhead:Overhead 4:scheduling:Scheduling
Overhead 1:podFixed:{q}
Scheduling 1:nodeSelector:{s} 2:tolerations:[core.Toleration]
#certificates certificates.k8s.io/v1
CertificateSigningRequest 1:metadata:meta.ObjectMeta 2:spec:CertificateSigningRequestSpec
 3:status:CertificateSigningRequestStatus
CertificateSigningRequestSpec 1:request:y 2:username:s 3:uid:s 4:groups:[s] 5:usages:[s] 6:extra:{e}
 7:signerName:s! 8:expirationSeconds:i!
CertificateSigningRequestStatus 1:conditions:[CertificateSigningRequestCondition] 2:certificate:y
CertificateSigningRequestCondition 1:type:s! 2:reason:s 3:message:s 4:lastUpdateTime:t
 5:lastTransitionTime:t 6:status:s!
#flowcontrol flowcontrol.apiserver.k8s.io/v1
FlowSchema 1:metadata:meta.ObjectMeta 2:spec:FlowSchemaSpec 3:status:FlowSchemaStatus
FlowSchemaSpec 1:priorityLevelConfiguration:PriorityLevelConfigurationReference
 2:matchingPrecedence:i! 3:distinguisherMethod:FlowDistinguisherMethod
 4:rules:[PolicyRulesWithSubjects]
FlowDistinguisherMethod 1:type:s!
PriorityLevelConfigurationReference 1:name:s!
PolicyRulesWithSubjects 1:subjects:[Subject] 2:resourceRules:[ResourcePolicyRule]
 3:nonResourceRules:[NonResourcePolicyRule]
Subject 1:kind:s! 2:user:UserSubject 3:group:GroupSubject 4:serviceAccount:ServiceAccountSubject
UserSubject 1:name:s!
GroupSubject 1:name:s!
ServiceAccountSubject 1:namespace:s! 2:name:s!
ResourcePolicyRule 1:verbs:[s] 2:apiGroups:[s] 3:resources:[s] 4:clusterScope:b 5:namespaces:[s]
NonResourcePolicyRule 1:verbs:[s] 6:nonResourceURLs:[s]
FlowSchemaStatus 1:conditions:[FlowSchemaCondition]
FlowSchemaCondition 1:type:s 2:status:s 3:lastTransitionTime:t 4:reason:s 5:message:s
PriorityLevelConfiguration 1:metadata:meta.ObjectMeta 2:spec:PriorityLevelConfigurationSpec
 3:status:PriorityLevelConfigurationStatus
PriorityLevelConfigurationSpec 1:type:s! 2:limited:LimitedPriorityLevelConfiguration
 3:exempt:ExemptPriorityLevelConfiguration
LimitedPriorityLevelConfiguration 1:nominalConcurrencyShares:i! 2:limitResponse:LimitResponse
 3:lendablePercent:i! 4:borrowingLimitPercent:i!
ExemptPriorityLevelConfiguration 1:nominalConcurrencyShares:i! 2:lendablePercent:i!
LimitResponse 1:type:s! 2:queuing:QueuingConfiguration
QueuingConfiguration 1:queues:i! 2:handSize:i! 3:queueLengthLimit:i!
PriorityLevelConfigurationStatus 1:conditions:[PriorityLevelConfigurationCondition]
PriorityLevelConfigurationCondition 1:type:s 2:status:s 3:lastTransitionTime:t 4:reason:s
 5:message:s
#autoscaling autoscaling/v1
CrossVersionObjectReference 1:kind:s! 2:name:s! 3:apiVersion:s
HorizontalPodAutoscalerSpec 1:scaleTargetRef:CrossVersionObjectReference 2:minReplicas:i!
 3:maxReplicas:i! 4:targetCPUUtilizationPercentage:i!
HorizontalPodAutoscalerStatus 1:observedGeneration:i! 2:lastScaleTime:t 3:currentReplicas:i!
 4:desiredReplicas:i! 5:currentCPUUtilizationPercentage:i!
HorizontalPodAutoscaler 1:metadata:meta.ObjectMeta 2:spec:HorizontalPodAutoscalerSpec
 3:status:HorizontalPodAutoscalerStatus
Scale 1:metadata:meta.ObjectMeta 2:spec:ScaleSpec 3:status:ScaleStatus
ScaleSpec 1:replicas:i
ScaleStatus 1:replicas:i! 2:selector:s
MetricSpec 1:type:s! 2:object:ObjectMetricSource 3:pods:PodsMetricSource
 4:resource:ResourceMetricSource 5:external:ExternalMetricSource
 7:containerResource:ContainerResourceMetricSource
ObjectMetricSource 1:target:CrossVersionObjectReference 2:metricName:s! 3:targetValue:q
 4:selector:meta.LabelSelector 5:averageValue:q
PodsMetricSource 1:metricName:s! 2:targetAverageValue:q 3:selector:meta.LabelSelector
ResourceMetricSource 1:name:s! 2:targetAverageUtilization:i! 3:targetAverageValue:q
ContainerResourceMetricSource 1:name:s! 2:targetAverageUtilization:i! 3:targetAverageValue:q
 5:container:s!
ExternalMetricSource 1:metricName:s! 2:metricSelector:meta.LabelSelector 3:targetValue:q
 4:targetAverageValue:q
MetricStatus 1:type:s! 2:object:ObjectMetricStatus 3:pods:PodsMetricStatus
 4:resource:ResourceMetricStatus 5:external:ExternalMetricStatus
 7:containerResource:ContainerResourceMetricStatus
HorizontalPodAutoscalerCondition 1:type:s! 2:status:s! 3:lastTransitionTime:t 4:reason:s
 5:message:s 6:observedGeneration:i!
ObjectMetricStatus 1:target:CrossVersionObjectReference 2:metricName:s! 3:currentValue:q
 4:selector:meta.LabelSelector 5:averageValue:q
PodsMetricStatus 1:metricName:s! 2:currentAverageValue:q 3:selector:meta.LabelSelector
ResourceMetricStatus 1:name:s! 2:currentAverageUtilization:i! 3:currentAverageValue:q
ContainerResourceMetricStatus 1:name:s! 2:currentAverageUtilization:i! 3:currentAverageValue:q
 4:container:s!
ExternalMetricStatus 1:metricName:s! 2:metricSelector:meta.LabelSelector 3:currentValue:q
 4:currentAverageValue:q
#autoscalingv2 autoscaling/v2
HorizontalPodAutoscaler 1:metadata:meta.ObjectMeta 2:spec:HorizontalPodAutoscalerSpec
 3:status:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerSpec 1:scaleTargetRef:CrossVersionObjectReference 2:minReplicas:i!
 3:maxReplicas:i! 4:metrics:[MetricSpec] 5:behavior:HorizontalPodAutoscalerBehavior
CrossVersionObjectReference 1:kind:s! 2:name:s! 3:apiVersion:s
MetricSpec 1:type:s! 2:object:ObjectMetricSource 3:pods:PodsMetricSource
 4:resource:ResourceMetricSource 5:external:ExternalMetricSource
 7:containerResource:ContainerResourceMetricSource
HorizontalPodAutoscalerBehavior 1:scaleUp:HPAScalingRules 2:scaleDown:HPAScalingRules
HPAScalingRules 1:selectPolicy:s! 2:policies:[HPAScalingPolicy] 3:stabilizationWindowSeconds:i!
 4:tolerance:q
HPAScalingPolicy 1:type:s! 2:value:i! 3:periodSeconds:i!
ObjectMetricSource 1:describedObject:CrossVersionObjectReference 2:target:MetricTarget
 3:metric:MetricIdentifier
PodsMetricSource 1:metric:MetricIdentifier 2:target:MetricTarget
ResourceMetricSource 1:name:s! 2:target:MetricTarget
ContainerResourceMetricSource 1:name:s! 2:target:MetricTarget 3:container:s!
ExternalMetricSource 1:metric:MetricIdentifier 2:target:MetricTarget
MetricIdentifier 1:name:s! 2:selector:meta.LabelSelector
MetricTarget 1:type:s! 2:value:q 3:averageValue:q 4:averageUtilization:i!
HorizontalPodAutoscalerStatus 1:observedGeneration:i! 2:lastScaleTime:t 3:currentReplicas:i
 4:desiredReplicas:i! 5:currentMetrics:[MetricStatus]
 6:conditions:[HorizontalPodAutoscalerCondition]
HorizontalPodAutoscalerCondition 1:type:s! 2:status:s! 3:lastTransitionTime:t 4:reason:s
 5:message:s 6:observedGeneration:i!
MetricStatus 1:type:s! 2:object:ObjectMetricStatus 3:pods:PodsMetricStatus
 4:resource:ResourceMetricStatus 5:external:ExternalMetricStatus
 7:containerResource:ContainerResourceMetricStatus
ObjectMetricStatus 1:metric:MetricIdentifier 2:current:MetricValueStatus
 3:describedObject:CrossVersionObjectReference
PodsMetricStatus 1:metric:MetricIdentifier 2:current:MetricValueStatus
ResourceMetricStatus 1:name:s! 2:current:MetricValueStatus
ContainerResourceMetricStatus 1:name:s! 2:current:MetricValueStatus 3:container:s!
ExternalMetricStatus 1:metric:MetricIdentifier 2:current:MetricValueStatus
MetricValueStatus 1:value:q 2:averageValue:q 3:averageUtilization:i!
#authorization authorization.k8s.io/v1
SubjectAccessReview 1:metadata:meta.ObjectMeta 2:spec:SubjectAccessReviewSpec
 3:status:SubjectAccessReviewStatus
SelfSubjectAccessReview 1:metadata:meta.ObjectMeta 2:spec:SelfSubjectAccessReviewSpec
 3:status:SubjectAccessReviewStatus
LocalSubjectAccessReview 1:metadata:meta.ObjectMeta 2:spec:SubjectAccessReviewSpec
 3:status:SubjectAccessReviewStatus
ResourceAttributes 1:namespace:s 2:verb:s 3:group:s 4:version:s 5:resource:s 6:subresource:s
 7:name:s 8:fieldSelector:FieldSelectorAttributes 9:labelSelector:LabelSelectorAttributes
LabelSelectorAttributes 1:rawSelector:s 2:requirements:[meta.LabelSelectorRequirement]
FieldSelectorAttributes 1:rawSelector:s 2:requirements:[meta.FieldSelectorRequirement]
NonResourceAttributes 1:path:s 2:verb:s
SubjectAccessReviewSpec 1:resourceAttributes:ResourceAttributes
 2:nonResourceAttributes:NonResourceAttributes 3:user:s 4:groups:[s] 5:extra:{e} 6:uid:s
SelfSubjectAccessReviewSpec 1:resourceAttributes:ResourceAttributes
 2:nonResourceAttributes:NonResourceAttributes
SubjectAccessReviewStatus 1:allowed:b! 2:reason:s 3:evaluationError:s 4:denied:b
SelfSubjectRulesReview 1:metadata:meta.ObjectMeta 2:spec:SelfSubjectRulesReviewSpec
 3:status:SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec 1:namespace:s
SubjectRulesReviewStatus 1:resourceRules:[ResourceRule] 2:nonResourceRules:[NonResourceRule]
 3:incomplete:b! 4:evaluationError:s
ResourceRule 1:verbs:[s] 2:apiGroups:[s] 3:resources:[s] 4:resourceNames:[s]
NonResourceRule 1:verbs:[s] 2:nonResourceURLs:[s]
#authentication authentication.k8s.io/v1
TokenReview 1:metadata:meta.ObjectMeta 2:spec:TokenReviewSpec 3:status:TokenReviewStatus
TokenReviewSpec 1:token:s 2:audiences:[s]
TokenReviewStatus 1:authenticated:b 2:user:UserInfo 3:error:s 4:audiences:[s]
UserInfo 1:username:s 2:uid:s 3:groups:[s] 4:extra:{e}
TokenRequest 1:metadata:meta.ObjectMeta 2:spec:TokenRequestSpec 3:status:TokenRequestStatus
TokenRequestSpec 1:audiences:[s] 3:boundObjectRef:BoundObjectReference 4:expirationSeconds:i!
 5:attestations:{[s]}
TokenRequestStatus 1:token:s! 2:expirationTimestamp:t
BoundObjectReference 1:kind:s 2:apiVersion:s 3:name:s 4:uid:s
SelfSubjectReview 1:metadata:meta.ObjectMeta 2:status:SelfSubjectReviewStatus
SelfSubjectReviewStatus 1:userInfo:UserInfo
#discovery discovery.k8s.io/v1
EndpointSlice 1:metadata:meta.ObjectMeta 2:endpoints:[Endpoint] 3:ports:[EndpointPort]
 4:addressType:s!
Endpoint 1:addresses:[s] 2:conditions:EndpointConditions 3:hostname:s!
 4:targetRef:core.ObjectReference 5:deprecatedTopology:{s} 6:nodeName:s! 7:zone:s!
 8:hints:EndpointHints
EndpointConditions 1:ready:b! 2:serving:b! 3:terminating:b!
EndpointHints 1:forZones:[ForZone] 2:forNodes:[ForNode]
ForZone 1:name:s!
ForNode 1:name:s!
EndpointPort 1:name:s! 2:protocol:s! 3:port:i! 4:appProtocol:s!
#admissionregistration admissionregistration.k8s.io/v1
Rule 1:apiGroups:[s] 2:apiVersions:[s] 3:resources:[s] 4:scope:s!
ValidatingAdmissionPolicy 1:metadata:meta.ObjectMeta 2:spec:ValidatingAdmissionPolicySpec
 3:status:ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyStatus 1:observedGeneration:i 2:typeChecking:TypeChecking
 3:conditions:[meta.Condition]
TypeChecking 1:expressionWarnings:[ExpressionWarning]
ExpressionWarning 2:fieldRef:s! 3:warning:s!
ValidatingAdmissionPolicySpec 1:paramKind:ParamKind 2:matchConstraints:MatchResources
 3:validations:[Validation] 4:failurePolicy:s! 5:auditAnnotations:[AuditAnnotation]
 6:matchConditions:[MatchCondition] 7:variables:[Variable]
ParamKind 1:apiVersion:s 2:kind:s
Validation 1:expression:s! 2:message:s 3:reason:s! 4:messageExpression:s
Variable 1:name:s! 2:expression:s!
AuditAnnotation 1:key:s! 2:valueExpression:s!
ValidatingAdmissionPolicyBinding 1:metadata:meta.ObjectMeta
 2:spec:ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec 1:policyName:s 2:paramRef:ParamRef
 3:matchResources:MatchResources 4:validationActions:[s]
ParamRef 1:name:s 2:namespace:s 3:selector:meta.LabelSelector 4:parameterNotFoundAction:s!
MatchResources 1:namespaceSelector:meta.LabelSelector 2:objectSelector:meta.LabelSelector
 3:resourceRules:[NamedRuleWithOperations] 4:excludeResourceRules:[NamedRuleWithOperations]
 7:matchPolicy:s!
NamedRuleWithOperations 1:resourceNames:[s] 2::RuleWithOperations
ValidatingWebhookConfiguration 1:metadata:meta.ObjectMeta 2:webhooks:[ValidatingWebhook]
MutatingWebhookConfiguration 1:metadata:meta.ObjectMeta 2:webhooks:[MutatingWebhook]
ValidatingWebhook 1:name:s! 2:clientConfig:WebhookClientConfig 3:rules:[RuleWithOperations]
 4:failurePolicy:s! 5:namespaceSelector:meta.LabelSelector 6:sideEffects:s! 7:timeoutSeconds:i!
 8:admissionReviewVersions:[s] 9:matchPolicy:s! 10:objectSelector:meta.LabelSelector
 11:matchConditions:[MatchCondition]
MutatingWebhook 1:name:s! 2:clientConfig:WebhookClientConfig 3:rules:[RuleWithOperations]
 4:failurePolicy:s! 5:namespaceSelector:meta.LabelSelector 6:sideEffects:s! 7:timeoutSeconds:i!
 8:admissionReviewVersions:[s] 9:matchPolicy:s! 10:reinvocationPolicy:s!
 11:objectSelector:meta.LabelSelector 12:matchConditions:[MatchCondition]
MutatingAdmissionPolicy 1:metadata:meta.ObjectMeta 2:spec:MutatingAdmissionPolicySpec
MutatingAdmissionPolicySpec 1:paramKind:ParamKind 2:matchConstraints:MatchResources
 3:variables:[Variable] 4:mutations:[Mutation] 5:failurePolicy:s!
 6:matchConditions:[MatchCondition] 7:reinvocationPolicy:s
Mutation 2:patchType:s! 3:applyConfiguration:ApplyConfiguration 4:jsonPatch:JSONPatch
ApplyConfiguration 1:expression:s
JSONPatch 1:expression:s
MutatingAdmissionPolicyBinding 1:metadata:meta.ObjectMeta 2:spec:MutatingAdmissionPolicyBindingSpec
MutatingAdmissionPolicyBindingSpec 1:policyName:s 2:paramRef:ParamRef
 3:matchResources:MatchResources
RuleWithOperations 1:operations:[s] 2::Rule
WebhookClientConfig 1:service:ServiceReference 2:caBundle:y 3:url:s!
ServiceReference 1:namespace:s! 2:name:s! 3:path:s! 4:port:i!
MatchCondition 1:name:s! 2:expression:s!
#apiextensions apiextensions.k8s.io/v1
CustomResourceDefinition 1:metadata:meta.ObjectMeta 2:spec:CustomResourceDefinitionSpec
 3:status:CustomResourceDefinitionStatus
CustomResourceDefinitionSpec 1:group:s! 3:names:CustomResourceDefinitionNames 4:scope:s!
 7:versions:[CustomResourceDefinitionVersion] 9:conversion:CustomResourceConversion
 10:preserveUnknownFields:b
CustomResourceDefinitionNames 1:plural:s! 2:singular:s 3:shortNames:[s] 4:kind:s! 5:listKind:s
 6:categories:[s]
CustomResourceDefinitionVersion 1:name:s! 2:served:b! 3:storage:b! 4:schema:CustomResourceValidation
 5:subresources:CustomResourceSubresources
 6:additionalPrinterColumns:[CustomResourceColumnDefinition] 7:deprecated:b
 8:deprecationWarning:s! 9:selectableFields:[SelectableField]
SelectableField 1:jsonPath:s!
CustomResourceColumnDefinition 1:name:s! 2:type:s! 3:format:s 4:description:s 5:priority:i
 6:jsonPath:s!
CustomResourceSubresources 1:status:CustomResourceSubresourceStatus
 2:scale:CustomResourceSubresourceScale
CustomResourceSubresourceStatus
CustomResourceSubresourceScale 1:specReplicasPath:s! 2:statusReplicasPath:s! 3:labelSelectorPath:s!
CustomResourceConversion 1:strategy:s! 2:webhook:WebhookConversion
WebhookConversion 2:clientConfig:WebhookClientConfig 3:conversionReviewVersions:[s]
WebhookClientConfig 1:service:ServiceReference 2:caBundle:y 3:url:s!
ServiceReference 1:namespace:s! 2:name:s! 3:path:s! 4:port:i!
CustomResourceDefinitionStatus 1:conditions:[CustomResourceDefinitionCondition]
 2:acceptedNames:CustomResourceDefinitionNames 3:storedVersions:[s] 4:observedGeneration:i
CustomResourceDefinitionCondition 1:type:s! 2:status:s! 3:lastTransitionTime:t 4:reason:s
 5:message:s 6:observedGeneration:i
CustomResourceValidation 1:openAPIV3Schema:JSONSchemaProps
JSONSchemaProps 1:id:s 2:$schema:s 3:$ref:s! 4:description:s 5:type:s 6:format:s 7:title:s
 8:default:r 9:maximum:d! 10:exclusiveMaximum:b 11:minimum:d! 12:exclusiveMinimum:b 13:maxLength:i!
 14:minLength:i! 15:pattern:s 16:maxItems:i! 17:minItems:i! 18:uniqueItems:b 19:multipleOf:d!
 20:enum:[r] 21:maxProperties:i! 22:minProperties:i! 23:required:[s] 24:items:A!
 25:allOf:[JSONSchemaProps] 26:oneOf:[JSONSchemaProps] 27:anyOf:[JSONSchemaProps]
 28:not:JSONSchemaProps 29:properties:{JSONSchemaProps} 30:additionalProperties:O!
 31:patternProperties:{JSONSchemaProps} 32:dependencies:{S} 33:additionalItems:O!
 34:definitions:{JSONSchemaProps} 35:externalDocs:ExternalDocumentation 36:example:r 37:nullable:b
 38:x-kubernetes-preserve-unknown-fields:b! 39:x-kubernetes-embedded-resource:b
 40:x-kubernetes-int-or-string:b 41:x-kubernetes-list-map-keys:[s] 42:x-kubernetes-list-type:s!
 43:x-kubernetes-map-type:s! 44:x-kubernetes-validations:[ValidationRule]
ValidationRule 1:rule:s! 2:message:s 3:messageExpression:s 4:reason:s! 5:fieldPath:s
 6:optionalOldSelf:b!
ExternalDocumentation 1:description:s 2:url:s
#apiregistration apiregistration.k8s.io/v1
APIService 1:metadata:meta.ObjectMeta 2:spec:APIServiceSpec 3:status:APIServiceStatus
APIServiceSpec 1:service:ServiceReference 2:group:s 3:version:s 4:insecureSkipTLSVerify:b
 5:caBundle:y 7:groupPriorityMinimum:i! 8:versionPriority:i!
APIServiceStatus 1:conditions:[APIServiceCondition]
APIServiceCondition 1:type:s! 2:status:s! 3:lastTransitionTime:t 4:reason:s 5:message:s
ServiceReference 1:namespace:s 2:name:s 3:port:i!
)table";

}  // namespace berth::sim
