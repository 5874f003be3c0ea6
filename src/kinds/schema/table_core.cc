// Metadata and the core kinds, as the API of Kubernetes 1.37 defines them; table.cc says how to
// read this.
#include "kinds/schema/table.h"

namespace berth::sim {

const char* const kTableCore = R"table(
#io.k8s.apimachinery.pkg.apis.meta.v1
Condition: lastTransitionTime!:t message!:s* observedGeneration:l? reason!:s* status!:s* type!:s*
DeleteOptions: apiVersion:s? dryRun:[s] gracePeriodSeconds:l
 ignoreStoreReadErrorWithClusterBreakingPotential:b kind:s? orphanDependents:b
 preconditions:Preconditions propagationPolicy:s
LabelSelector&: matchExpressions:[LabelSelectorRequirement] matchLabels:{s}
LabelSelectorRequirement: key!:s* operator!:s*|DoesNotExist|Exists|In|NotIn values:[s]
ListMeta: continue:s remainingItemCount:l resourceVersion:s selfLink:s shardInfo:ShardInfo
ManagedFieldsEntry: apiVersion:s? fieldsType:s? fieldsV1:a manager:s? operation:s? subresource:s?
 time:t
ObjectMeta: annotations:{s} creationTimestamp:t deletionGracePeriodSeconds:l deletionTimestamp:t
 finalizers:[s]^% generateName:s? generation:l? labels:{s} managedFields:[ManagedFieldsEntry]
 name:s? namespace:s? ownerReferences:[OwnerReference]@uid%uid resourceVersion:s? selfLink:s?
 uid:s?
OwnerReference&: apiVersion!:s* blockOwnerDeletion:b controller:b kind!:s* name!:s* uid!:s*
Preconditions: resourceVersion:s uid:s
ShardInfo: selector!:s
Status: apiVersion:s code:i details:StatusDetails kind:s message:s metadata:ListMeta reason:s
 status:s
StatusCause: field:s message:s reason:s
StatusDetails: causes:[StatusCause] group:s kind:s name:s retryAfterSeconds:i uid:s
#io.k8s.api.core.v1
AttachedVolume: devicePath!:s* name!:s*
AzureFilePersistentVolumeSource: readOnly:b? secretName!:s* secretNamespace:s shareName!:s*
Binding: apiVersion:s? kind:s? metadata:ObjectMeta* target!:ObjectReference*
CSIPersistentVolumeSource: controllerExpandSecretRef:SecretReference
 controllerPublishSecretRef:SecretReference driver!:s* fsType:s?
 nodeExpandSecretRef:SecretReference nodePublishSecretRef:SecretReference
 nodeStageSecretRef:SecretReference readOnly:b? volumeAttributes:{s} volumeHandle!:s*
CephFSPersistentVolumeSource: monitors!:[s]* path:s? readOnly:b? secretFile:s?
 secretRef:SecretReference user:s?
CinderPersistentVolumeSource: fsType:s? readOnly:b? secretRef:SecretReference volumeID!:s*
ClientIPConfig: timeoutSeconds:i=10800
ConfigMap: apiVersion:s? binaryData:{y} data:{s} immutable:b kind:s? metadata:ObjectMeta*
ConfigMapNodeConfigSource: kubeletConfigKey!:s* name!:s* namespace!:s* resourceVersion:s? uid:s?
ContainerImage: names:[s]* sizeBytes:l?
DaemonEndpoint: Port!:i*
EndpointAddress&: hostname:s? ip!:s* nodeName:s targetRef:ObjectReference
EndpointPort&: appProtocol:s name:s? port!:i* protocol:s?|SCTP|TCP|UDP="TCP"
EndpointSubset: addresses:[EndpointAddress] notReadyAddresses:[EndpointAddress]
 ports:[EndpointPort]
Endpoints: apiVersion:s? kind:s? metadata:ObjectMeta* subsets:[EndpointSubset]
Event: action:s? apiVersion:s? count:i? eventTime:u firstTimestamp:t
 involvedObject!:ObjectReference* kind:s? lastTimestamp:t message:s? metadata!:ObjectMeta*
 reason:s? related:ObjectReference reportingComponent:s* reportingInstance:s* series:EventSeries
 source:EventSource* type:s?
EventSeries: count:i? lastObservedTime:u
EventSource: component:s? host:s?
FlexPersistentVolumeSource: driver!:s* fsType:s? options:{s} readOnly:b? secretRef:SecretReference
GlusterfsPersistentVolumeSource: endpoints!:s* endpointsNamespace:s path!:s* readOnly:b?
ISCSIPersistentVolumeSource: chapAuthDiscovery:b? chapAuthSession:b? fsType:s? initiatorName:s
 iqn!:s* iscsiInterface:s?="default" lun!:i* portals:[s] readOnly:b? secretRef:SecretReference
 targetPortal!:s*
LimitRange: apiVersion:s? kind:s? metadata:ObjectMeta* spec:LimitRangeSpec*
LimitRangeItem: default:{q} defaultRequest:{q} max:{q} maxLimitRequestRatio:{q} min:{q} type!:s*
LimitRangeSpec: limits!:[LimitRangeItem]*
LoadBalancerIngress: hostname:s? ip:s? ipMode:s ports:[PortStatus]
LoadBalancerStatus: ingress:[LoadBalancerIngress]
LocalVolumeSource: fsType:s path!:s*
ModifyVolumeStatus: status!:s* targetVolumeAttributesClassName:s?
Namespace: apiVersion:s? kind:s? metadata:ObjectMeta* spec:NamespaceSpec*={}
 status:NamespaceStatus*
NamespaceCondition: lastTransitionTime:t message:s? reason:s? status!:s* type!:s*
NamespaceSpec: finalizers:[s]
NamespaceStatus: conditions:[NamespaceCondition]@type%type phase:s?
Node: apiVersion:s? kind:s? metadata:ObjectMeta* spec:NodeSpec* status:NodeStatus*
NodeAddress: address!:s* type!:s*
NodeCondition: lastHeartbeatTime:t lastTransitionTime:t message:s? reason:s? status!:s* type!:s*
NodeConfigSource: configMap:ConfigMapNodeConfigSource
NodeConfigStatus: active:NodeConfigSource assigned:NodeConfigSource error:s?
 lastKnownGood:NodeConfigSource
NodeDaemonEndpoints: kubeletEndpoint:DaemonEndpoint*
NodeFeatures: supplementalGroupsPolicy:b
NodePodPreemptionPolicy: disableResizePreemption:[s]^
NodeRuntimeHandler: features:NodeRuntimeHandlerFeatures name:s*
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts:b userNamespaces:b
NodeSpec: configSource:NodeConfigSource externalID:s? podCIDR:s? podCIDRs:[s]^%
 podPreemptionPolicy:NodePodPreemptionPolicy providerID:s? taints:[Taint] unschedulable:b?
NodeStatus: addresses:[NodeAddress]@type%type allocatable:{q} capacity:{q}
 conditions:[NodeCondition]@type%type config:NodeConfigStatus daemonEndpoints:NodeDaemonEndpoints*
 declaredFeatures:[s] features:NodeFeatures images:[ContainerImage] nodeInfo:NodeSystemInfo*
 phase:s? runtimeHandlers:[NodeRuntimeHandler] volumesAttached:[AttachedVolume] volumesInUse:[s]
NodeSwapStatus: capacity:l
NodeSystemInfo: architecture!:s* bootID!:s* containerRuntimeVersion!:s* kernelVersion!:s*
 kubeProxyVersion!:s* kubeletVersion!:s* machineID!:s* operatingSystem!:s* osImage!:s*
 runningInUserNamespace:b swap:NodeSwapStatus systemUUID!:s*
ObjectReference&: apiVersion:s? fieldPath:s? kind:s? name:s? namespace:s? resourceVersion:s?
 uid:s?
PersistentVolume: apiVersion:s? kind:s? metadata:ObjectMeta* spec:PersistentVolumeSpec*
 status:PersistentVolumeStatus*
PersistentVolumeClaim: apiVersion:s? kind:s? metadata:ObjectMeta* spec:PersistentVolumeClaimSpec*
 status:PersistentVolumeClaimStatus*
PersistentVolumeClaimCondition: lastProbeTime:t lastTransitionTime:t message:s? reason:s?
 status!:s* type!:s*
PersistentVolumeClaimStatus: accessModes:[s] allocatedResourceStatuses:{s} allocatedResources:{q}
 capacity:{q} conditions:[PersistentVolumeClaimCondition]@type%type
 currentVolumeAttributesClassName:s healthStatus:VolumeHealthStatus
 modifyVolumeStatus:ModifyVolumeStatus phase:s?
PersistentVolumeSpec: accessModes:[s] awsElasticBlockStore:AWSElasticBlockStoreVolumeSource
 azureDisk:AzureDiskVolumeSource azureFile:AzureFilePersistentVolumeSource capacity:{q}
 cephfs:CephFSPersistentVolumeSource cinder:CinderPersistentVolumeSource claimRef:ObjectReference
 csi:CSIPersistentVolumeSource fc:FCVolumeSource flexVolume:FlexPersistentVolumeSource
 flocker:FlockerVolumeSource gcePersistentDisk:GCEPersistentDiskVolumeSource
 glusterfs:GlusterfsPersistentVolumeSource hostPath:HostPathVolumeSource
 iscsi:ISCSIPersistentVolumeSource local:LocalVolumeSource mountOptions:[s] nfs:NFSVolumeSource
 nodeAffinity:VolumeNodeAffinity persistentVolumeReclaimPolicy:s?|Delete|Recycle|Retain="Retain"
 photonPersistentDisk:PhotonPersistentDiskVolumeSource portworxVolume:PortworxVolumeSource
 quobyte:QuobyteVolumeSource rbd:RBDPersistentVolumeSource scaleIO:ScaleIOPersistentVolumeSource
 storageClassName:s? storageos:StorageOSPersistentVolumeSource volumeAttributesClassName:s
 volumeMode:s|Block|Filesystem="Filesystem" vsphereVolume:VsphereVirtualDiskVolumeSource
PersistentVolumeStatus: lastPhaseTransitionTime:t message:s? phase:s? reason:s?
PortStatus: error:s port!:i* protocol!:s*
RBDPersistentVolumeSource: fsType:s? image!:s* keyring:s? monitors!:[s]* pool:s? readOnly:b?
 secretRef:SecretReference user:s?
ReplicationController: apiVersion:s? kind:s? metadata:ObjectMeta* spec:ReplicationControllerSpec*
 status:ReplicationControllerStatus*
ReplicationControllerCondition: lastTransitionTime:t message:s? reason:s? status!:s* type!:s*
ReplicationControllerSpec: minReadySeconds:i? replicas:i=1 selector:{s}& template:PodTemplateSpec
ReplicationControllerStatus: availableReplicas:i?
 conditions:[ReplicationControllerCondition]@type%type fullyLabeledReplicas:i?
 observedGeneration:l? readyReplicas:i? replicas!:i*
ResourceQuota: apiVersion:s? kind:s? metadata:ObjectMeta* spec:ResourceQuotaSpec*
 status:ResourceQuotaStatus*
ResourceQuotaSpec: hard:{q} scopeSelector:ScopeSelector scopes:[s]
ResourceQuotaStatus: hard:{q} used:{q}
ScaleIOPersistentVolumeSource: fsType:s? gateway!:s* protectionDomain:s? readOnly:b?
 secretRef!:SecretReference sslEnabled:b? storageMode:s? storagePool:s? system!:s* volumeName:s?
ScopeSelector&: matchExpressions:[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement: operator!:s* scopeName!:s* values:[s]
Secret: apiVersion:s? data:{y} immutable:b kind:s? metadata:ObjectMeta* stringData:{s}
 type:s?="Opaque"
SecretReference&: name:s? namespace:s?
Service: apiVersion:s? kind:s? metadata:ObjectMeta* spec:ServiceSpec* status:ServiceStatus*
ServiceAccount: apiVersion:s? automountServiceAccountToken:b
 imagePullSecrets:[LocalObjectReference] kind:s? metadata:ObjectMeta*
 secrets:[ObjectReference]@name%name
ServicePort: appProtocol:s name:s? nodePort:i? port!:i* protocol:s?|SCTP|TCP|UDP="TCP"
 targetPort:x
ServiceSpec: allocateLoadBalancerNodePorts:b clusterIP:s? clusterIPs:[s] externalIPs:[s]
 externalName:s? externalTrafficPolicy:s? healthCheckNodePort:i? internalTrafficPolicy:s
 ipFamilies:[s] ipFamilyPolicy:s loadBalancerClass:s loadBalancerIP:s?
 loadBalancerSourceRanges:[s] ports:[ServicePort]@port,protocol%port publishNotReadyAddresses:b?
 selector:{s}& sessionAffinity:s?|ClientIP|None="None" sessionAffinityConfig:SessionAffinityConfig
 trafficDistribution:s type:s?|ClusterIP|ExternalName|LoadBalancer|NodePort="ClusterIP"
ServiceStatus: conditions:[Condition]@type%type loadBalancer:LoadBalancerStatus*
SessionAffinityConfig: clientIP:ClientIPConfig
StorageOSPersistentVolumeSource: fsType:s? readOnly:b? secretRef:ObjectReference volumeName:s?
 volumeNamespace:s?
Taint: effect!:s*|NoSchedule|PreferNoSchedule|NoExecute key!:s* timeAdded:t value:s?
VolumeHealthStatus: healthConditions:[VolumeHealthCondition]@status,reason%status
 lastTransitionTime:t
VolumeNodeAffinity: required:NodeSelector
)table";

}  // namespace berth::sim
