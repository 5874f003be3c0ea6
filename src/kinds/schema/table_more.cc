// Scheduling, resources, storage, access and extension kinds, as the API of Kubernetes 1.37 defines
// them; table.cc says how to read this.
#include "kinds/schema/table.h"

namespace berth::sim {

const char* const kTableMore = R"table(
#io.k8s.api.admissionregistration.v1
MatchCondition: expression!:s* name!:s*
MutatingWebhook: admissionReviewVersions!:[s]* clientConfig!:WebhookClientConfig*
 failurePolicy:s|Fail|Ignore="Fail" matchConditions:[MatchCondition]@name%name
 matchPolicy:s|Equivalent|Exact="Equivalent" name!:s* namespaceSelector:LabelSelector={}
 objectSelector:LabelSelector={} reinvocationPolicy:s|IfNeeded|Never="Never"
 rules:[RuleWithOperations] sideEffects!:s|None|NoneOnDryRun timeoutSeconds:i=10
MutatingWebhookConfiguration: apiVersion:s? kind:s? metadata:ObjectMeta*
 webhooks:[MutatingWebhook]@name%name
RuleWithOperations: apiGroups:[s] apiVersions:[s] operations:[s] resources:[s] scope:s="*"
ServiceReference: name!:s* namespace!:s* path:s port:i=443
ValidatingWebhook: admissionReviewVersions!:[s]* clientConfig!:WebhookClientConfig*
 failurePolicy:s|Fail|Ignore="Fail" matchConditions:[MatchCondition]@name%name
 matchPolicy:s|Equivalent|Exact="Equivalent" name!:s* namespaceSelector:LabelSelector={}
 objectSelector:LabelSelector={} rules:[RuleWithOperations] sideEffects!:s|None|NoneOnDryRun
 timeoutSeconds:i=10
ValidatingWebhookConfiguration: apiVersion:s? kind:s? metadata:ObjectMeta*
 webhooks:[ValidatingWebhook]@name%name
WebhookClientConfig: caBundle:y service:ServiceReference url:s
#io.k8s.api.certificates.v1
CertificateSigningRequest: apiVersion:s? kind:s? metadata:ObjectMeta*
 spec!:CertificateSigningRequestSpec* status:CertificateSigningRequestStatus*
CertificateSigningRequestCondition: lastTransitionTime:t lastUpdateTime:t message:s? reason:s?
 status!:s* type!:s*
CertificateSigningRequestSpec: expirationSeconds:i extra:{[s]} groups:[s] request!:y* signerName!:s*
 uid:s? usages:[s] username:s?
CertificateSigningRequestStatus: certificate:y conditions:[CertificateSigningRequestCondition]@type
#io.k8s.api.coordination.v1
Lease: apiVersion:s? kind:s? metadata:ObjectMeta* spec:LeaseSpec*
LeaseSpec: acquireTime:u holderIdentity:s leaseDurationSeconds:i leaseTransitions:i
 preferredHolder:s renewTime:u strategy:s
#io.k8s.api.core.v1
TopologySelectorLabelRequirement: key!:s* values!:[s]*
TopologySelectorTerm&: matchLabelExpressions:[TopologySelectorLabelRequirement]
#io.k8s.api.discovery.v1
Endpoint: addresses!:[s]^* conditions:EndpointConditions* deprecatedTopology:{s}
 hints:EndpointHints hostname:s nodeName:s targetRef:ObjectReference zone:s
EndpointConditions: ready:b serving:b terminating:b
EndpointHints: forNodes:[ForNode] forZones:[ForZone]
EndpointPort&: appProtocol:s name:s port:i protocol:s|SCTP|TCP|UDP="TCP"
EndpointSlice: addressType!:s* apiVersion:s? endpoints:[Endpoint]* kind:s? metadata:ObjectMeta*
 ports:[EndpointPort]*
ForNode: name!:s*
ForZone: name!:s*
#io.k8s.api.events.v1
Event: action:s? apiVersion:s? deprecatedCount:i? deprecatedFirstTimestamp:t
 deprecatedLastTimestamp:t deprecatedSource:EventSource* eventTime!:u kind:s? metadata:ObjectMeta*
 note:s? reason:s? regarding:ObjectReference* related:ObjectReference reportingController:s?
 reportingInstance:s? series:EventSeries type:s?
EventSeries: count!:i* lastObservedTime!:u
#io.k8s.api.flowcontrol.v1
ExemptPriorityLevelConfiguration: lendablePercent:i=0 nominalConcurrencyShares:i=0
FlowDistinguisherMethod: type!:s*
FlowSchema: apiVersion:s? kind:s? metadata:ObjectMeta* spec:FlowSchemaSpec* status:FlowSchemaStatus*
FlowSchemaCondition: lastTransitionTime:t message:s? reason:s? status:s? type:s?
FlowSchemaSpec: distinguisherMethod:FlowDistinguisherMethod matchingPrecedence:i*=1000
 priorityLevelConfiguration!:PriorityLevelConfigurationReference* rules:[PolicyRulesWithSubjects]
FlowSchemaStatus: conditions:[FlowSchemaCondition]@type%type
GroupSubject: name!:s*
LimitResponse: queuing:QueuingConfiguration type!:s*
LimitedPriorityLevelConfiguration: borrowingLimitPercent:i lendablePercent:i=0
 limitResponse:LimitResponse* nominalConcurrencyShares:i=30
NonResourcePolicyRule: nonResourceURLs!:[s]^* verbs!:[s]^*
PolicyRulesWithSubjects: nonResourceRules:[NonResourcePolicyRule] resourceRules:[ResourcePolicyRule]
 subjects!:[Subject]*
PriorityLevelConfiguration: apiVersion:s? kind:s? metadata:ObjectMeta*
 spec:PriorityLevelConfigurationSpec* status:PriorityLevelConfigurationStatus*
PriorityLevelConfigurationCondition: lastTransitionTime:t message:s? reason:s? status:s? type:s?
PriorityLevelConfigurationReference: name!:s*
PriorityLevelConfigurationSpec: exempt:ExemptPriorityLevelConfiguration
 limited:LimitedPriorityLevelConfiguration type!:s*
PriorityLevelConfigurationStatus: conditions:[PriorityLevelConfigurationCondition]@type%type
QueuingConfiguration: handSize:i*=8 queueLengthLimit:i*=50 queues:i*=64
ResourcePolicyRule: apiGroups!:[s]^* clusterScope:b? namespaces:[s]^* resources!:[s]^* verbs!:[s]^*
ServiceAccountSubject: name!:s* namespace!:s*
Subject: group:GroupSubject kind!:s* serviceAccount:ServiceAccountSubject user:UserSubject
UserSubject: name!:s*
#io.k8s.api.networking.v1
HTTPIngressPath: backend!:IngressBackend* path:s? pathType!:s|Exact|ImplementationSpecific|Prefix
HTTPIngressRuleValue: paths!:[HTTPIngressPath]*
IPBlock: cidr!:s* except:[s]
Ingress: apiVersion:s? kind:s? metadata:ObjectMeta* spec:IngressSpec* status:IngressStatus*
IngressBackend: resource:core.v1.TypedLocalObjectReference service:IngressServiceBackend
IngressClass: apiVersion:s? kind:s? metadata:ObjectMeta* spec:IngressClassSpec*
IngressClassParametersReference: apiGroup:s kind!:s* name!:s* namespace:s scope:s
IngressClassSpec: controller:s? parameters:IngressClassParametersReference
IngressLoadBalancerIngress: hostname:s? ip:s? ports:[IngressPortStatus]
IngressLoadBalancerStatus: ingress:[IngressLoadBalancerIngress]
IngressPortStatus: error:s port!:i* protocol!:s*
IngressRule: host:s? http:HTTPIngressRuleValue
IngressServiceBackend: name!:s* port:ServiceBackendPort*
IngressSpec: defaultBackend:IngressBackend ingressClassName:s rules:[IngressRule] tls:[IngressTLS]
IngressStatus: loadBalancer:IngressLoadBalancerStatus*
IngressTLS: hosts:[s] secretName:s?
NetworkPolicy: apiVersion:s? kind:s? metadata:ObjectMeta* spec:NetworkPolicySpec*
NetworkPolicyEgressRule: ports:[NetworkPolicyPort] to:[NetworkPolicyPeer]
NetworkPolicyIngressRule: from:[NetworkPolicyPeer] ports:[NetworkPolicyPort]
NetworkPolicyPeer: ipBlock:IPBlock namespaceSelector:LabelSelector podSelector:LabelSelector
NetworkPolicyPort: endPort:i port:x protocol:s="TCP"
NetworkPolicySpec: egress:[NetworkPolicyEgressRule] ingress:[NetworkPolicyIngressRule]
 podSelector:LabelSelector* policyTypes:[s]
ServiceBackendPort&: name:s? number:i?
#io.k8s.api.node.v1
Overhead: podFixed:{q}
RuntimeClass: apiVersion:s? handler!:s* kind:s? metadata:ObjectMeta* overhead:Overhead
 scheduling:Scheduling
Scheduling: nodeSelector:{s}& tolerations:[Toleration]
#io.k8s.api.rbac.v1
AggregationRule: clusterRoleSelectors:[LabelSelector]
ClusterRole: aggregationRule:AggregationRule apiVersion:s? kind:s? metadata:ObjectMeta*
 rules:[PolicyRule]*
ClusterRoleBinding: apiVersion:s? kind:s? metadata:ObjectMeta* roleRef!:RoleRef*
 subjects:[Subject]
PolicyRule: apiGroups:[s] nonResourceURLs:[s] resourceNames:[s] resources:[s] verbs!:[s]*
Role: apiVersion:s? kind:s? metadata:ObjectMeta* rules:[PolicyRule]*
RoleBinding: apiVersion:s? kind:s? metadata:ObjectMeta* roleRef!:RoleRef* subjects:[Subject]
RoleRef&: apiGroup:s*="rbac.authorization.k8s.io" kind!:s*|Role|ClusterRole name!:s*
Subject&: apiGroup:s? kind!:s* name!:s* namespace:s?
#io.k8s.api.resource.v1
AllocatedDeviceStatus: conditions:[Condition]@type* data:a device!:s* driver!:s*
 networkData:NetworkDeviceData pool!:s* shareID:s
AllocationResult: allocationTimestamp:t devices:DeviceAllocationResult* nodeSelector:NodeSelector
CELDeviceSelector: expression!:s*
CapacityRequestPolicy: default:q validRange:CapacityRequestPolicyRange validValues:[q]
CapacityRequestPolicyRange: max:q min!:q step:q
CapacityRequirements: requests:{q}
Counter: value!:q
CounterSet: counters!:{Counter} name!:s*
Device: allNodes:b allowMultipleAllocations:b attributes:{DeviceAttribute} bindingConditions:[s]
 bindingFailureConditions:[s] bindsToNode:b capacity:{DeviceCapacity}
 consumesCounters:[DeviceCounterConsumption] name!:s*
 nodeAllocatableResources:{NodeAllocatableResource} nodeName:s nodeSelector:NodeSelector
 taints:[DeviceTaint]
DeviceAllocationConfiguration: opaque:OpaqueDeviceConfiguration requests:[s] source!:s*
DeviceAllocationResult: config:[DeviceAllocationConfiguration]
 results:[DeviceRequestAllocationResult]
DeviceAttribute: bool:b bools:[b] int:l ints:[l] string:s strings:[s] version:s versions:[s]
DeviceCapacity: requestPolicy:CapacityRequestPolicy value!:q
DeviceClaim: config:[DeviceClaimConfiguration] constraints:[DeviceConstraint]
 requests:[DeviceRequest]*
DeviceClaimConfiguration: opaque:OpaqueDeviceConfiguration requests:[s]
DeviceClass: apiVersion:s? kind:s? metadata:ObjectMeta* spec:DeviceClassSpec*
DeviceClassConfiguration: opaque:OpaqueDeviceConfiguration
DeviceClassSpec: config:[DeviceClassConfiguration] extendedResourceName:s
 selectors:[DeviceSelector]
DeviceConstraint: distinctAttribute:s matchAttribute:s requests:[s]
DeviceCounterConsumption: compatibilityGroups:[s] counterSet!:s* counters!:{Counter}
DeviceDerivedAttribute: expression!:s* name!:s*
DeviceRequest: exactly:ExactDeviceRequest firstAvailable:[DeviceSubRequest] name!:s*
DeviceRequestAllocationResult: adminAccess:b bindingConditions:[s] bindingFailureConditions:[s]
 consumedCapacity:{q} device!:s* driver!:s* pool!:s* request!:s* shareID:s skipNodeOperations:[s]^
 tolerations:[DeviceToleration]
DeviceSelector: cel:CELDeviceSelector
DeviceSubRequest: allocationMode:s?|All|ExactCount="ExactCount" capacity:CapacityRequirements
 count:l? derivedAttributes:[DeviceDerivedAttribute] deviceClassName!:s* name!:s*
 selectors:[DeviceSelector] tolerations:[DeviceToleration]
DeviceTaint: effect!:s* key!:s* timeAdded:t value:s?
DeviceToleration: effect:s? key:s? operator:s? tolerationSeconds:l value:s?
ExactDeviceRequest: adminAccess:b allocationMode:s?|All|ExactCount="ExactCount"
 capacity:CapacityRequirements count:l? derivedAttributes:[DeviceDerivedAttribute]
 deviceClassName!:s* selectors:[DeviceSelector] tolerations:[DeviceToleration]
NetworkDeviceData: hardwareAddress:s? interfaceName:s? ips:[s]
NodeAllocatableMapping: capacityKey:s capacityMultiplier:q deviceMultiplier:q
NodeAllocatableOverhead: perContainer:q perPod:q
NodeAllocatableResource: mapping:NodeAllocatableMapping overhead:NodeAllocatableOverhead
OpaqueDeviceConfiguration: driver!:s* parameters!:a
ResourceClaim: apiVersion:s? kind:s? metadata:ObjectMeta* spec:ResourceClaimSpec*
 status:ResourceClaimStatus*
ResourceClaimConsumerReference: apiGroup:s? name!:s* resource!:s* uid!:s*
ResourceClaimSpec: devices:DeviceClaim*
ResourceClaimStatus: allocation:AllocationResult
 devices:[AllocatedDeviceStatus]@driver,device,pool,shareID
 reservedFor:[ResourceClaimConsumerReference]@uid%uid
ResourceClaimTemplate: apiVersion:s? kind:s? metadata:ObjectMeta* spec:ResourceClaimTemplateSpec*
ResourceClaimTemplateSpec: metadata:ObjectMeta* spec:ResourceClaimSpec*
ResourcePool: generation!:l* name!:s* resourceSliceCount!:l*
ResourceSlice: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:ResourceSliceSpec*
ResourceSliceSpec: allNodes:b devices:[Device] driver!:s* nodeName:s nodeSelector:NodeSelector
 partitionTypeAttribute:s perDeviceNodeSelection:b pool!:ResourcePool* sharedCounters:[CounterSet]
 skipNodeOperations:[s]^
#io.k8s.api.scheduling.v1
PriorityClass: apiVersion:s? description:s? globalDefault:b? kind:s? metadata:ObjectMeta*
 preemptionPolicy:s|Never|PreemptLowerPriority="PreemptLowerPriority" value:i*
#io.k8s.api.scheduling.v1beta1
AllCompositeDisruptionMode:
AllDisruptionMode:
BasicSchedulingPolicy:
CompositeBasicSchedulingPolicy:
CompositeDisruptionMode: all:AllCompositeDisruptionMode single:SingleCompositeDisruptionMode
CompositeGangSchedulingPolicy: minGroupCount!:i*
CompositePodGroupSchedulingConstraints: topology:[TopologyConstraint]
CompositePodGroupSchedulingPolicy: basic:CompositeBasicSchedulingPolicy
 gang:CompositeGangSchedulingPolicy
CompositePodGroupTemplate: compositePodGroupTemplates:[CompositePodGroupTemplate]@name
 disruptionMode:CompositeDisruptionMode name!:s* podGroupTemplates:[PodGroupTemplate]@name
 preemptionPolicy:s priority:i priorityClassName:s?
 schedulingConstraints:CompositePodGroupSchedulingConstraints
 schedulingPolicy!:CompositePodGroupSchedulingPolicy*
DisruptionMode: all:AllDisruptionMode single:SingleDisruptionMode
GangSchedulingPolicy: minCount!:i*
PodGroup: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:PodGroupSpec* status:PodGroupStatus*
PodGroupResourceClaim: name!:s* resourceClaimName:s resourceClaimTemplateName:s
PodGroupResourceClaimStatus: name!:s* resourceClaimName:s
PodGroupSchedulingConstraints: topology:[TopologyConstraint]
PodGroupSchedulingPolicy: basic:BasicSchedulingPolicy gang:GangSchedulingPolicy
PodGroupSpec: disruptionMode:DisruptionMode parentCompositePodGroupName:s preemptionPolicy:s
 priority:i priorityClassName:s? resourceClaims:[PodGroupResourceClaim]@name%name~
 schedulingConstraints:PodGroupSchedulingConstraints schedulingPolicy!:PodGroupSchedulingPolicy*
 workloadRef:WorkloadReference
PodGroupStatus: conditions:[Condition]@type%type
 resourceClaimStatuses:[PodGroupResourceClaimStatus]@name%name~
PodGroupTemplate: disruptionMode:DisruptionMode name!:s* preemptionPolicy:s priority:i
 priorityClassName:s? resourceClaims:[PodGroupResourceClaim]@name%name~
 schedulingConstraints:PodGroupSchedulingConstraints schedulingPolicy!:PodGroupSchedulingPolicy*
SingleCompositeDisruptionMode:
SingleDisruptionMode:
TopologyConstraint: key!:s*
TypedLocalObjectReference: apiGroup:s? kind!:s* name!:s*
Workload: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:WorkloadSpec*
WorkloadReference: templateName!:s* workloadName!:s*
WorkloadSpec: compositePodGroupTemplates:[CompositePodGroupTemplate]@name
 controllerRef:TypedLocalObjectReference podGroupTemplates:[PodGroupTemplate]@name*
#io.k8s.api.storage.v1
CSIDriver: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:CSIDriverSpec*
CSIDriverSpec: attachRequired:b=true fsGroupPolicy:s="ReadWriteOnceWithFSType"
 nodeAllocatableUpdatePeriodSeconds:l podInfoOnMount:b=false preventPodSchedulingIfMissing:b
 requiresRepublish:b=false seLinuxMount:b=false serviceAccountTokenInSecrets:b
 storageCapacity:b=false tokenRequests:[TokenRequest] volumeLifecycleModes:[s]^=["Persistent"]
CSINode: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:CSINodeSpec* status:CSINodeStatus*
CSINodeDriver: allocatable:VolumeNodeResources name!:s* nodeID!:s* topologyKeys:[s]*
CSINodeSpec: drivers!:[CSINodeDriver]@name%name*
CSINodeStatus: storageHealth:[StorageHealth]@name%name
CSIStorageCapacity: apiVersion:s? capacity:q kind:s? maximumVolumeSize:q metadata:ObjectMeta*
 nodeTopology:LabelSelector storageClassName!:s*
StorageClass: allowVolumeExpansion:b allowedTopologies:[TopologySelectorTerm] apiVersion:s?
 kind:s? metadata:ObjectMeta* mountOptions:[s] parameters:{s} provisioner!:s*
 reclaimPolicy:s|Delete|Retain="Delete"
 volumeBindingMode:s|Immediate|WaitForFirstConsumer="Immediate"
StorageHealth: healthConditions:[StorageHealthCondition] name!:s*
StorageHealthCondition: accessMode:s lastTransitionTime:t message:s? reason!:s* status!:s*
 volumeMode:s
TokenRequest: audience!:s* expirationSeconds:l
VolumeAttachment: apiVersion:s? kind:s? metadata:ObjectMeta* spec!:VolumeAttachmentSpec*
 status:VolumeAttachmentStatus*
VolumeAttachmentSource: inlineVolumeSpec:PersistentVolumeSpec persistentVolumeName:s
VolumeAttachmentSpec: attacher!:s* nodeName!:s* source!:VolumeAttachmentSource*
VolumeAttachmentStatus: attachError:VolumeError attached!:b* attachmentMetadata:{s}
 detachError:VolumeError
VolumeError: errorCode:i message:s? time:t
VolumeNodeResources: count:i
#io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1
CustomResourceColumnDefinition: description:s? format:s? jsonPath!:s* name!:s* priority:i?
 type!:s*
CustomResourceConversion: strategy!:s*|None|Webhook webhook:WebhookConversion
CustomResourceDefinition: apiVersion:s? kind:s? metadata:ObjectMeta*
 spec!:CustomResourceDefinitionSpec* status:CustomResourceDefinitionStatus*
CustomResourceDefinitionCondition: lastTransitionTime:t message:s? observedGeneration:l? reason:s?
 status!:s* type!:s*
CustomResourceDefinitionNames: categories:[s] kind!:s* listKind:s? plural!:s* shortNames:[s]
 singular:s?
CustomResourceDefinitionSpec: conversion:CustomResourceConversion={"strategy":"None"} group!:s*
 names!:CustomResourceDefinitionNames* preserveUnknownFields:b? scope!:s*|Cluster|Namespaced
 versions!:[CustomResourceDefinitionVersion]*
CustomResourceDefinitionStatus: acceptedNames:CustomResourceDefinitionNames*
 conditions:[CustomResourceDefinitionCondition]@type* observedGeneration:l? storedVersions:[s]*
CustomResourceDefinitionVersion: additionalPrinterColumns:[CustomResourceColumnDefinition]
 deprecated:b? deprecationWarning:s name!:s* schema:CustomResourceValidation
 selectableFields:[SelectableField] served!:b* storage!:b* subresources:CustomResourceSubresources
CustomResourceSubresourceScale: labelSelectorPath:s specReplicasPath!:s* statusReplicasPath!:s*
CustomResourceSubresourceStatus:
CustomResourceSubresources: scale:CustomResourceSubresourceScale
 status:CustomResourceSubresourceStatus
CustomResourceValidation: openAPIV3Schema:JSONSchemaProps
ExternalDocumentation: description:s? url:s?
JSONSchemaProps: $ref:s $schema:s? additionalItems:a additionalProperties:a
 allOf:[JSONSchemaProps] anyOf:[JSONSchemaProps] default:a definitions:{JSONSchemaProps}
 dependencies:{a} description:s? enum:[a] example:a exclusiveMaximum:b? exclusiveMinimum:b?
 externalDocs:ExternalDocumentation format:s? id:s? items:JSONSchemaProps maxItems:l maxLength:l
 maxProperties:l maximum:n minItems:l minLength:l minProperties:l minimum:n multipleOf:n
 not:JSONSchemaProps nullable:b? oneOf:[JSONSchemaProps] pattern:s?
 patternProperties:{JSONSchemaProps} properties:{JSONSchemaProps} required:[s] title:s? type:s?
 uniqueItems:b? x-kubernetes-embedded-resource:b? x-kubernetes-int-or-string:b?
 x-kubernetes-list-map-keys:[s] x-kubernetes-list-type:s x-kubernetes-map-type:s
 x-kubernetes-preserve-unknown-fields:b x-kubernetes-validations:[ValidationRule]@rule%rule
SelectableField: jsonPath!:s*
ServiceReference: name!:s* namespace!:s* path:s port:i=443
ValidationRule: fieldPath:s? message:s? messageExpression:s? optionalOldSelf:b reason:s rule!:s*
WebhookClientConfig: caBundle:y service:ServiceReference url:s
WebhookConversion: clientConfig:WebhookClientConfig conversionReviewVersions!:[s]*
#io.k8s.kube-aggregator.pkg.apis.apiregistration.v1
APIService: apiVersion:s? kind:s? metadata:ObjectMeta* spec:APIServiceSpec* status:APIServiceStatus*
APIServiceCondition: lastTransitionTime:t message:s? reason:s? status!:s* type!:s*
APIServiceSpec: caBundle:y group:s? groupPriorityMinimum!:i* insecureSkipTLSVerify:b?
 service:ServiceReference version:s? versionPriority!:i*
APIServiceStatus: conditions:[APIServiceCondition]@type%type
ServiceReference: name:s? namespace:s? port:i=443
)table";

}  // namespace berth::sim
