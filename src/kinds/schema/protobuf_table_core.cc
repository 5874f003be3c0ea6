// Field numbers of metadata and the core kinds in protobuf, as Kubernetes 1.37 assigns them;
// protobuf.cc says how to read this.
#include "kinds/schema/protobuf_table.h"

namespace berth::sim {

const char* const kProtobufCore = R"table(
#meta -
ListMeta 1:selfLink:s 2:resourceVersion:s 3:continue:s 4:remainingItemCount:i!
 5:shardInfo:ShardInfo
ShardInfo 1:selector:s!
ObjectMeta 1:name:s 2:generateName:s 3:namespace:s 4:selfLink:s 5:uid:s 6:resourceVersion:s
 7:generation:i 8:creationTimestamp:t 9:deletionTimestamp:t 10:deletionGracePeriodSeconds:i!
 11:labels:{s} 12:annotations:{s} 13:ownerReferences:[OwnerReference] 14:finalizers:[s]
 17:managedFields:[ManagedFieldsEntry]
OwnerReference 1:kind:s! 3:name:s! 4:uid:s! 5:apiVersion:s! 6:controller:b! 7:blockOwnerDeletion:b!
DeleteOptions 1:gracePeriodSeconds:i! 2:preconditions:Preconditions 3:orphanDependents:b!
 4:propagationPolicy:s! 5:dryRun:[s] 6:ignoreStoreReadErrorWithClusterBreakingPotential:b!
CreateOptions 1:dryRun:[s] 3:fieldManager:s 4:fieldValidation:s
PatchOptions 1:dryRun:[s] 2:force:b! 3:fieldManager:s 4:fieldValidation:s
ApplyOptions 1:dryRun:[s] 2:force:b! 3:fieldManager:s!
UpdateOptions 1:dryRun:[s] 2:fieldManager:s 3:fieldValidation:s
Preconditions 1:uid:s! 2:resourceVersion:s!
APIGroupList 1:groups:[APIGroup]
LabelSelector 1:matchLabels:{s} 2:matchExpressions:[LabelSelectorRequirement]
LabelSelectorRequirement 1:key:s! 2:operator:s! 3:values:[s]
FieldSelectorRequirement 1:key:s! 2:operator:s! 3:values:[s]
ManagedFieldsEntry 1:manager:s 2:operation:s 3:apiVersion:s 4:time:t 6:fieldsType:s 7:fieldsV1:r
 8:subresource:s
Condition 1:type:s! 2:status:s! 3:observedGeneration:i 4:lastTransitionTime:t 5:reason:s!
 6:message:s!
#core v1
Volume 1:name:s! 2::VolumeSource
VolumeSource 1:hostPath:HostPathVolumeSource 2:emptyDir:EmptyDirVolumeSource
 3:gcePersistentDisk:GCEPersistentDiskVolumeSource
 4:awsElasticBlockStore:AWSElasticBlockStoreVolumeSource 5:gitRepo:GitRepoVolumeSource
 6:secret:SecretVolumeSource 7:nfs:NFSVolumeSource 8:iscsi:ISCSIVolumeSource
 9:glusterfs:GlusterfsVolumeSource 10:persistentVolumeClaim:PersistentVolumeClaimVolumeSource
 11:rbd:RBDVolumeSource 12:flexVolume:FlexVolumeSource 13:cinder:CinderVolumeSource
 14:cephfs:CephFSVolumeSource 15:flocker:FlockerVolumeSource 16:downwardAPI:DownwardAPIVolumeSource
 17:fc:FCVolumeSource 18:azureFile:AzureFileVolumeSource 19:configMap:ConfigMapVolumeSource
 20:vsphereVolume:VsphereVirtualDiskVolumeSource 21:quobyte:QuobyteVolumeSource
 22:azureDisk:AzureDiskVolumeSource 23:photonPersistentDisk:PhotonPersistentDiskVolumeSource
 24:portworxVolume:PortworxVolumeSource 25:scaleIO:ScaleIOVolumeSource
 26:projected:ProjectedVolumeSource 27:storageos:StorageOSVolumeSource 28:csi:CSIVolumeSource
 29:ephemeral:EphemeralVolumeSource 30:image:ImageVolumeSource
PersistentVolumeClaimVolumeSource 1:claimName:s! 2:readOnly:b
PersistentVolumeSource 1:gcePersistentDisk:GCEPersistentDiskVolumeSource
 2:awsElasticBlockStore:AWSElasticBlockStoreVolumeSource 3:hostPath:HostPathVolumeSource
 4:glusterfs:GlusterfsPersistentVolumeSource 5:nfs:NFSVolumeSource 6:rbd:RBDPersistentVolumeSource
 7:iscsi:ISCSIPersistentVolumeSource 8:cinder:CinderPersistentVolumeSource
 9:cephfs:CephFSPersistentVolumeSource 10:fc:FCVolumeSource 11:flocker:FlockerVolumeSource
 12:flexVolume:FlexPersistentVolumeSource 13:azureFile:AzureFilePersistentVolumeSource
 14:vsphereVolume:VsphereVirtualDiskVolumeSource 15:quobyte:QuobyteVolumeSource
 16:azureDisk:AzureDiskVolumeSource 17:photonPersistentDisk:PhotonPersistentDiskVolumeSource
 18:portworxVolume:PortworxVolumeSource 19:scaleIO:ScaleIOPersistentVolumeSource
 20:local:LocalVolumeSource 21:storageos:StorageOSPersistentVolumeSource
 22:csi:CSIPersistentVolumeSource
PersistentVolume 1:metadata:meta.ObjectMeta 2:spec:PersistentVolumeSpec
 3:status:PersistentVolumeStatus
PersistentVolumeSpec 1:capacity:{q} 2::PersistentVolumeSource 3:accessModes:[s]
 4:claimRef:ObjectReference 5:persistentVolumeReclaimPolicy:s 6:storageClassName:s
 7:mountOptions:[s] 8:volumeMode:s! 9:nodeAffinity:VolumeNodeAffinity
 10:volumeAttributesClassName:s!
VolumeNodeAffinity 1:required:NodeSelector
PersistentVolumeStatus 1:phase:s 2:message:s 3:reason:s 4:lastPhaseTransitionTime:t
PersistentVolumeClaim 1:metadata:meta.ObjectMeta 2:spec:PersistentVolumeClaimSpec
 3:status:PersistentVolumeClaimStatus
PersistentVolumeClaimSpec 1:accessModes:[s] 2:resources:VolumeResourceRequirements 3:volumeName:s
 4:selector:meta.LabelSelector 5:storageClassName:s! 6:volumeMode:s!
 7:dataSource:TypedLocalObjectReference 8:dataSourceRef:TypedObjectReference
 9:volumeAttributesClassName:s!
TypedObjectReference 1:apiGroup:s! 2:kind:s! 3:name:s! 4:namespace:s!
ModifyVolumeStatus 1:targetVolumeAttributesClassName:s 2:status:s!
PersistentVolumeClaimCondition 1:type:s! 2:status:s! 3:lastProbeTime:t 4:lastTransitionTime:t
 5:reason:s 6:message:s
VolumeHealthCondition 1:status:s! 2:reason:s! 3:message:s
VolumeHealthStatus 1:healthConditions:[VolumeHealthCondition] 2:lastTransitionTime:t
PodVolumeHealth 1:name:s! 2:healthConditions:[VolumeHealthCondition] 3:lastTransitionTime:t
PersistentVolumeClaimStatus 1:phase:s 2:accessModes:[s] 3:capacity:{q}
 4:conditions:[PersistentVolumeClaimCondition] 5:allocatedResources:{q}
 7:allocatedResourceStatuses:{s} 8:currentVolumeAttributesClassName:s!
 9:modifyVolumeStatus:ModifyVolumeStatus 10:healthStatus:VolumeHealthStatus
HostPathVolumeSource 1:path:s! 2:type:s!
EmptyDirVolumeSource 1:medium:s 2:sizeLimit:q 3:mode:i!
GlusterfsVolumeSource 1:endpoints:s! 2:path:s! 3:readOnly:b
GlusterfsPersistentVolumeSource 1:endpoints:s! 2:path:s! 3:readOnly:b 4:endpointsNamespace:s!
RBDVolumeSource 1:monitors:[s] 2:image:s! 3:fsType:s 4:pool:s 5:user:s 6:keyring:s
 7:secretRef:LocalObjectReference 8:readOnly:b
RBDPersistentVolumeSource 1:monitors:[s] 2:image:s! 3:fsType:s 4:pool:s 5:user:s 6:keyring:s
 7:secretRef:SecretReference 8:readOnly:b
CinderVolumeSource 1:volumeID:s! 2:fsType:s 3:readOnly:b 4:secretRef:LocalObjectReference
CinderPersistentVolumeSource 1:volumeID:s! 2:fsType:s 3:readOnly:b 4:secretRef:SecretReference
CephFSVolumeSource 1:monitors:[s] 2:path:s 3:user:s 4:secretFile:s 5:secretRef:LocalObjectReference
 6:readOnly:b
SecretReference 1:name:s 2:namespace:s
CephFSPersistentVolumeSource 1:monitors:[s] 2:path:s 3:user:s 4:secretFile:s
 5:secretRef:SecretReference 6:readOnly:b
FlockerVolumeSource 1:datasetName:s 2:datasetUUID:s
GCEPersistentDiskVolumeSource 1:pdName:s! 2:fsType:s 3:partition:i 4:readOnly:b
QuobyteVolumeSource 1:registry:s! 2:volume:s! 3:readOnly:b 4:user:s 5:group:s 6:tenant:s
FlexPersistentVolumeSource 1:driver:s! 2:fsType:s 3:secretRef:SecretReference 4:readOnly:b
 5:options:{s}
FlexVolumeSource 1:driver:s! 2:fsType:s 3:secretRef:LocalObjectReference 4:readOnly:b 5:options:{s}
AWSElasticBlockStoreVolumeSource 1:volumeID:s! 2:fsType:s 3:partition:i 4:readOnly:b
GitRepoVolumeSource 1:repository:s! 2:revision:s 3:directory:s
SecretVolumeSource 1:secretName:s 2:items:[KeyToPath] 3:defaultMode:i! 4:optional:b!
 5:defaultUser:i!
SecretProjection 1::LocalObjectReference 2:items:[KeyToPath] 4:optional:b!
NFSVolumeSource 1:server:s! 2:path:s! 3:readOnly:b
ISCSIVolumeSource 1:targetPortal:s! 2:iqn:s! 3:lun:i! 4:iscsiInterface:s 5:fsType:s 6:readOnly:b
 7:portals:[s] 8:chapAuthDiscovery:b 10:secretRef:LocalObjectReference 11:chapAuthSession:b
 12:initiatorName:s!
ISCSIPersistentVolumeSource 1:targetPortal:s! 2:iqn:s! 3:lun:i! 4:iscsiInterface:s 5:fsType:s
 6:readOnly:b 7:portals:[s] 8:chapAuthDiscovery:b 10:secretRef:SecretReference 11:chapAuthSession:b
 12:initiatorName:s!
FCVolumeSource 1:targetWWNs:[s] 2:lun:i! 3:fsType:s 4:readOnly:b 5:wwids:[s]
AzureFileVolumeSource 1:secretName:s! 2:shareName:s! 3:readOnly:b
AzureFilePersistentVolumeSource 1:secretName:s! 2:shareName:s! 3:readOnly:b 4:secretNamespace:s!
VsphereVirtualDiskVolumeSource 1:volumePath:s! 2:fsType:s 3:storagePolicyName:s 4:storagePolicyID:s
PhotonPersistentDiskVolumeSource 1:pdID:s! 2:fsType:s
AzureDiskVolumeSource 1:diskName:s! 2:diskURI:s! 3:cachingMode:s! 4:fsType:s! 5:readOnly:b!
 6:kind:s!
PortworxVolumeSource 1:volumeID:s! 2:fsType:s 3:readOnly:b
ScaleIOVolumeSource 1:gateway:s! 2:system:s! 3:secretRef:LocalObjectReference 4:sslEnabled:b
 5:protectionDomain:s 6:storagePool:s 7:storageMode:s 8:volumeName:s 9:fsType:s 10:readOnly:b
ScaleIOPersistentVolumeSource 1:gateway:s! 2:system:s! 3:secretRef:SecretReference 4:sslEnabled:b
 5:protectionDomain:s 6:storagePool:s 7:storageMode:s 8:volumeName:s 9:fsType:s 10:readOnly:b
StorageOSVolumeSource 1:volumeName:s 2:volumeNamespace:s 3:fsType:s 4:readOnly:b
 5:secretRef:LocalObjectReference
StorageOSPersistentVolumeSource 1:volumeName:s 2:volumeNamespace:s 3:fsType:s 4:readOnly:b
 5:secretRef:ObjectReference
ConfigMapVolumeSource 1::LocalObjectReference 2:items:[KeyToPath] 3:defaultMode:i! 4:optional:b!
 5:defaultUser:i!
ConfigMapProjection 1::LocalObjectReference 2:items:[KeyToPath] 4:optional:b!
ServiceAccountTokenProjection 1:audience:s 2:expirationSeconds:i! 3:path:s! 4:user:i!
ClusterTrustBundleProjection 1:name:s! 2:signerName:s! 3:labelSelector:meta.LabelSelector 4:path:s!
 5:optional:b! 6:user:i!
PodCertificateProjection 1:signerName:s 2:keyType:s 3:maxExpirationSeconds:i!
 4:credentialBundlePath:s 5:keyPath:s 6:certificateChainPath:s 7:userAnnotations:{s} 8:user:i!
ProjectedVolumeSource 1:sources:[VolumeProjection] 2:defaultMode:i! 3:defaultUser:i!
VolumeProjection 1:secret:SecretProjection 2:downwardAPI:DownwardAPIProjection
 3:configMap:ConfigMapProjection 4:serviceAccountToken:ServiceAccountTokenProjection
 5:clusterTrustBundle:ClusterTrustBundleProjection 6:podCertificate:PodCertificateProjection
KeyToPath 1:key:s! 2:path:s! 3:mode:i! 4:user:i!
LocalVolumeSource 1:path:s! 2:fsType:s!
CSIPersistentVolumeSource 1:driver:s! 2:volumeHandle:s! 3:readOnly:b 4:fsType:s
 5:volumeAttributes:{s} 6:controllerPublishSecretRef:SecretReference
 7:nodeStageSecretRef:SecretReference 8:nodePublishSecretRef:SecretReference
 9:controllerExpandSecretRef:SecretReference 10:nodeExpandSecretRef:SecretReference
CSIVolumeSource 1:driver:s! 2:readOnly:b! 3:fsType:s! 4:volumeAttributes:{s}
 5:nodePublishSecretRef:LocalObjectReference
EphemeralVolumeSource 1:volumeClaimTemplate:PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate 1:metadata:meta.ObjectMeta 2:spec:PersistentVolumeClaimSpec
ContainerPort 1:name:s 2:hostPort:i 3:containerPort:i! 4:protocol:s 5:hostIP:s
VolumeMount 1:name:s! 2:readOnly:b 3:mountPath:s! 4:subPath:s 5:mountPropagation:s! 6:subPathExpr:s
 7:recursiveReadOnly:s! 8:bindMountOptions:[s]
VolumeDevice 1:name:s! 2:devicePath:s!
EnvVar 1:name:s! 2:value:s 3:valueFrom:EnvVarSource
EnvVarSource 1:fieldRef:ObjectFieldSelector 2:resourceFieldRef:ResourceFieldSelector
 3:configMapKeyRef:ConfigMapKeySelector 4:secretKeyRef:SecretKeySelector
 5:fileKeyRef:FileKeySelector
FileKeySelector 1:volumeName:s! 2:path:s! 3:key:s! 4:optional:b!
ObjectFieldSelector 1:apiVersion:s 2:fieldPath:s!
ResourceFieldSelector 1:containerName:s 2:resource:s! 3:divisor:q
ConfigMapKeySelector 1::LocalObjectReference 2:key:s! 3:optional:b!
SecretKeySelector 1::LocalObjectReference 2:key:s! 3:optional:b!
EnvFromSource 1:prefix:s 2:configMapRef:ConfigMapEnvSource 3:secretRef:SecretEnvSource
ConfigMapEnvSource 1::LocalObjectReference 2:optional:b!
SecretEnvSource 1::LocalObjectReference 2:optional:b!
HTTPHeader 1:name:s! 2:value:s!
HTTPGetAction 1:path:s 2:port:o 3:host:s 4:scheme:s 5:httpHeaders:[HTTPHeader] 6:protocol:s!
TCPSocketAction 1:port:o 2:host:s
GRPCAction 1:port:i! 2:service:s! 3:mode:s!
ExecAction 1:command:[s]
SleepAction 1:seconds:i!
Probe 1::ProbeHandler 2:initialDelaySeconds:i 3:timeoutSeconds:i 4:periodSeconds:i
 5:successThreshold:i 6:failureThreshold:i 7:terminationGracePeriodSeconds:i!
ContainerResizePolicy 1:resourceName:s! 2:restartPolicy:s!
Capabilities 1:add:[s] 2:drop:[s]
ResourceRequirements 1:limits:{q} 2:requests:{q} 3:claims:[ResourceClaim]
VolumeResourceRequirements 1:limits:{q} 2:requests:{q}
ResourceClaim 1:name:s! 2:request:s
Container 1:name:s! 2:image:s 3:command:[s] 4:args:[s] 5:workingDir:s 6:ports:[ContainerPort]
 7:env:[EnvVar] 8:resources:ResourceRequirements 9:volumeMounts:[VolumeMount]
 10:livenessProbe:Probe 11:readinessProbe:Probe 12:lifecycle:Lifecycle 13:terminationMessagePath:s
 14:imagePullPolicy:s 15:securityContext:SecurityContext 16:stdin:b 17:stdinOnce:b 18:tty:b
 19:envFrom:[EnvFromSource] 20:terminationMessagePolicy:s 21:volumeDevices:[VolumeDevice]
 22:startupProbe:Probe 23:resizePolicy:[ContainerResizePolicy] 24:restartPolicy:s!
 25:restartPolicyRules:[ContainerRestartRule]
ProbeHandler 1:exec:ExecAction 2:httpGet:HTTPGetAction 3:tcpSocket:TCPSocketAction
 4:grpc:GRPCAction
LifecycleHandler 1:exec:ExecAction 2:httpGet:HTTPGetAction 3:tcpSocket:TCPSocketAction
 4:sleep:SleepAction
Lifecycle 1:postStart:LifecycleHandler 2:preStop:LifecycleHandler 3:stopSignal:s!
ContainerStateWaiting 1:reason:s 2:message:s
ContainerStateRunning 1:startedAt:t
ContainerStateTerminated 1:exitCode:i! 2:signal:i 3:reason:s 4:message:s 5:startedAt:t
 6:finishedAt:t 7:containerID:s
ContainerState 1:waiting:ContainerStateWaiting 2:running:ContainerStateRunning
 3:terminated:ContainerStateTerminated
ContainerStatus 1:name:s! 2:state:ContainerState 3:lastState:ContainerState 4:ready:b!
 5:restartCount:i! 6:image:s! 7:imageID:s! 8:containerID:s 9:started:b! 10:allocatedResources:{q}
 11:resources:ResourceRequirements 12:volumeMounts:[VolumeMountStatus] 13:user:ContainerUser
 14:allocatedResourcesStatus:[ResourceStatus] 15:stopSignal:s!
ResourceStatus 1:name:s! 2:resources:[ResourceHealth]
ResourceHealth 1:resourceID:s! 2:health:s 6:message:s!
ContainerUser 1:linux:LinuxContainerUser
LinuxContainerUser 1:uid:i! 2:gid:i! 3:supplementalGroups:[i]
PodCondition 1:type:s! 2:status:s! 3:lastProbeTime:t 4:lastTransitionTime:t 5:reason:s 6:message:s
 7:observedGeneration:i
VolumeMountStatus 1:name:s! 2:mountPath:s! 3:readOnly:b 4:recursiveReadOnly:s!
 5:volumeStatus:VolumeStatus
VolumeStatus 1:image:ImageVolumeStatus
ImageVolumeStatus 1:imageRef:s
ContainerRestartRule 1:action:s 2:exitCodes:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes 1:operator:s 2:values:[i]
NodeSelector 1:nodeSelectorTerms:[NodeSelectorTerm]
NodeSelectorTerm 1:matchExpressions:[NodeSelectorRequirement]
 2:matchFields:[NodeSelectorRequirement]
NodeSelectorRequirement 1:key:s! 2:operator:s! 3:values:[s]
TopologySelectorTerm 1:matchLabelExpressions:[TopologySelectorLabelRequirement]
TopologySelectorLabelRequirement 1:key:s! 2:values:[s]
Affinity 1:nodeAffinity:NodeAffinity 2:podAffinity:PodAffinity 3:podAntiAffinity:PodAntiAffinity
PodAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
 2:preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
PodAntiAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
 2:preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
WeightedPodAffinityTerm 1:weight:i! 2:podAffinityTerm:PodAffinityTerm
PodAffinityTerm 1:labelSelector:meta.LabelSelector 2:namespaces:[s] 3:topologyKey:s!
 4:namespaceSelector:meta.LabelSelector 5:matchLabelKeys:[s] 6:mismatchLabelKeys:[s]
NodeAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
 2:preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]
PreferredSchedulingTerm 1:weight:i! 2:preference:NodeSelectorTerm
Taint 1:key:s! 2:value:s 3:effect:s! 4:timeAdded:t
Toleration 1:key:s 2:operator:s 3:value:s 4:effect:s 5:tolerationSeconds:i!
PodReadinessGate 1:conditionType:s!
PodSpec 1:volumes:[Volume] 2:containers:[Container] 3:restartPolicy:s
 4:terminationGracePeriodSeconds:i! 5:activeDeadlineSeconds:i! 6:dnsPolicy:s 7:nodeSelector:{s}
 8:serviceAccountName:s 9:serviceAccount:s 10:nodeName:s 11:hostNetwork:b 12:hostPID:b 13:hostIPC:b
 14:securityContext:PodSecurityContext 15:imagePullSecrets:[LocalObjectReference] 16:hostname:s
 17:subdomain:s 18:affinity:Affinity 19:schedulerName:s 20:initContainers:[Container]
 21:automountServiceAccountToken:b! 22:tolerations:[Toleration] 23:hostAliases:[HostAlias]
 24:priorityClassName:s 25:priority:i! 26:dnsConfig:PodDNSConfig 27:shareProcessNamespace:b!
 28:readinessGates:[PodReadinessGate] 29:runtimeClassName:s! 30:enableServiceLinks:b!
 31:preemptionPolicy:s! 32:overhead:{q} 33:topologySpreadConstraints:[TopologySpreadConstraint]
 34:ephemeralContainers:[EphemeralContainer] 35:setHostnameAsFQDN:b! 36:os:PodOS 37:hostUsers:b!
 38:schedulingGates:[PodSchedulingGate] 39:resourceClaims:[PodResourceClaim]
 40:resources:ResourceRequirements 41:hostnameOverride:s! 43:schedulingGroup:PodSchedulingGroup
 44:evictionResponders:[EvictionResponder]
PodResourceClaim 1:name:s! 3:resourceClaimName:s! 4:resourceClaimTemplateName:s!
PodResourceClaimStatus 1:name:s! 2:resourceClaimName:s!
PodExtendedResourceClaimStatus 1:requestMappings:[ContainerExtendedResourceRequest]
 2:resourceClaimName:s!
ContainerExtendedResourceRequest 1:containerName:s! 2:resourceName:s! 3:requestName:s!
PodOS 1:name:s!
PodSchedulingGate 1:name:s!
PodSchedulingGroup 1:podGroupName:s!
TopologySpreadConstraint 1:maxSkew:i! 2:topologyKey:s! 3:whenUnsatisfiable:s!
 4:labelSelector:meta.LabelSelector 5:minDomains:i! 6:nodeAffinityPolicy:s! 7:nodeTaintsPolicy:s!
 8:matchLabelKeys:[s]
HostAlias 1:ip:s! 2:hostnames:[s]
PodSecurityContext 1:seLinuxOptions:SELinuxOptions 2:runAsUser:i! 3:runAsNonRoot:b!
 4:supplementalGroups:[i] 5:fsGroup:i! 6:runAsGroup:i! 7:sysctls:[Sysctl]
 8:windowsOptions:WindowsSecurityContextOptions 9:fsGroupChangePolicy:s!
 10:seccompProfile:SeccompProfile 11:appArmorProfile:AppArmorProfile 12:supplementalGroupsPolicy:s!
 13:seLinuxChangePolicy:s!
SeccompProfile 1:type:s! 2:localhostProfile:s!
AppArmorProfile 1:type:s! 2:localhostProfile:s!
PodDNSConfig 1:nameservers:[s] 2:searches:[s] 3:options:[PodDNSConfigOption]
PodDNSConfigOption 1:name:s 2:value:s!
PodIP 1:ip:s!
HostIP 1:ip:s!
EphemeralContainerCommon 1:name:s! 2:image:s 3:command:[s] 4:args:[s] 5:workingDir:s
 6:ports:[ContainerPort] 7:env:[EnvVar] 8:resources:ResourceRequirements
 9:volumeMounts:[VolumeMount] 10:livenessProbe:Probe 11:readinessProbe:Probe 12:lifecycle:Lifecycle
 13:terminationMessagePath:s 14:imagePullPolicy:s 15:securityContext:SecurityContext 16:stdin:b
 17:stdinOnce:b 18:tty:b 19:envFrom:[EnvFromSource] 20:terminationMessagePolicy:s
 21:volumeDevices:[VolumeDevice] 22:startupProbe:Probe 23:resizePolicy:[ContainerResizePolicy]
 24:restartPolicy:s! 25:restartPolicyRules:[ContainerRestartRule]
EphemeralContainer 1::EphemeralContainerCommon 2:targetContainerName:s
EvictionResponder 1:name:s! 2:priority:i!
PodStatus 1:phase:s 2:conditions:[PodCondition] 3:message:s 4:reason:s 5:hostIP:s 6:podIP:s
 7:startTime:t 8:containerStatuses:[ContainerStatus] 9:qosClass:s
 10:initContainerStatuses:[ContainerStatus] 11:nominatedNodeName:s 12:podIPs:[PodIP]
 13:ephemeralContainerStatuses:[ContainerStatus] 14:resize:s
 15:resourceClaimStatuses:[PodResourceClaimStatus] 16:hostIPs:[HostIP] 17:observedGeneration:i
 18:extendedResourceClaimStatus:PodExtendedResourceClaimStatus 19:allocatedResources:{q}
 20:resources:ResourceRequirements
 21:nodeAllocatableResourceClaimStatuses:[NodeAllocatableResourceClaimStatus]
 22:volumeHealth:[PodVolumeHealth]
Pod 1:metadata:meta.ObjectMeta 2:spec:PodSpec 3:status:PodStatus
PodTemplateSpec 1:metadata:meta.ObjectMeta 2:spec:PodSpec
PodTemplate 1:metadata:meta.ObjectMeta 2:template:PodTemplateSpec
ReplicationControllerSpec 1:replicas:i! 2:selector:{s} 3:template:PodTemplateSpec
 4:minReadySeconds:i
ReplicationControllerStatus 1:replicas:i! 2:fullyLabeledReplicas:i 3:observedGeneration:i
 4:readyReplicas:i 5:availableReplicas:i 6:conditions:[ReplicationControllerCondition]
ReplicationControllerCondition 1:type:s! 2:status:s! 3:lastTransitionTime:t 4:reason:s 5:message:s
ReplicationController 1:metadata:meta.ObjectMeta 2:spec:ReplicationControllerSpec
 3:status:ReplicationControllerStatus
SessionAffinityConfig 1:clientIP:ClientIPConfig
ClientIPConfig 1:timeoutSeconds:i!
ServiceStatus 1:loadBalancer:LoadBalancerStatus 2:conditions:[meta.Condition]
LoadBalancerStatus 1:ingress:[LoadBalancerIngress]
LoadBalancerIngress 1:ip:s 2:hostname:s 3:ipMode:s! 4:ports:[PortStatus]
ServiceSpec 1:ports:[ServicePort] 2:selector:{s} 3:clusterIP:s 4:type:s 5:externalIPs:[s]
 7:sessionAffinity:s 8:loadBalancerIP:s 9:loadBalancerSourceRanges:[s] 10:externalName:s
 11:externalTrafficPolicy:s 12:healthCheckNodePort:i 13:publishNotReadyAddresses:b
 14:sessionAffinityConfig:SessionAffinityConfig 17:ipFamilyPolicy:s! 18:clusterIPs:[s]
 19:ipFamilies:[s] 20:allocateLoadBalancerNodePorts:b! 21:loadBalancerClass:s!
 22:internalTrafficPolicy:s! 23:trafficDistribution:s!
ServicePort 1:name:s 2:protocol:s 3:port:i! 4:targetPort:o 5:nodePort:i 6:appProtocol:s!
Service 1:metadata:meta.ObjectMeta 2:spec:ServiceSpec 3:status:ServiceStatus
ServiceAccount 1:metadata:meta.ObjectMeta 2:secrets:[ObjectReference]
 3:imagePullSecrets:[LocalObjectReference] 4:automountServiceAccountToken:b!
Endpoints 1:metadata:meta.ObjectMeta 2:subsets:[EndpointSubset]
EndpointSubset 1:addresses:[EndpointAddress] 2:notReadyAddresses:[EndpointAddress]
 3:ports:[EndpointPort]
EndpointAddress 1:ip:s! 2:targetRef:ObjectReference 3:hostname:s 4:nodeName:s!
EndpointPort 1:name:s 2:port:i! 3:protocol:s 4:appProtocol:s!
NodeSpec 1:podCIDR:s 2:externalID:s 3:providerID:s 4:unschedulable:b 5:taints:[Taint]
 6:configSource:NodeConfigSource 7:podCIDRs:[s] 8:podPreemptionPolicy:NodePodPreemptionPolicy
NodePodPreemptionPolicy 1:disableResizePreemption:[s]
NodeConfigSource 2:configMap:ConfigMapNodeConfigSource
ConfigMapNodeConfigSource 1:namespace:s! 2:name:s! 3:uid:s 4:resourceVersion:s
 5:kubeletConfigKey:s!
DaemonEndpoint 1:Port:i!
NodeDaemonEndpoints 1:kubeletEndpoint:DaemonEndpoint
NodeRuntimeHandlerFeatures 1:recursiveReadOnlyMounts:b! 2:userNamespaces:b!
NodeRuntimeHandler 1:name:s! 2:features:NodeRuntimeHandlerFeatures
NodeFeatures 1:supplementalGroupsPolicy:b!
NodeSystemInfo 1:machineID:s! 2:systemUUID:s! 3:bootID:s! 4:kernelVersion:s! 5:osImage:s!
 6:containerRuntimeVersion:s! 7:kubeletVersion:s! 8:kubeProxyVersion:s! 9:operatingSystem:s!
 10:architecture:s! 11:swap:NodeSwapStatus 12:runningInUserNamespace:b!
NodeSwapStatus 1:capacity:i!
NodeConfigStatus 1:assigned:NodeConfigSource 2:active:NodeConfigSource
 3:lastKnownGood:NodeConfigSource 4:error:s
NodeStatus 1:capacity:{q} 2:allocatable:{q} 3:phase:s 4:conditions:[NodeCondition]
 5:addresses:[NodeAddress] 6:daemonEndpoints:NodeDaemonEndpoints 7:nodeInfo:NodeSystemInfo
 8:images:[ContainerImage] 9:volumesInUse:[s] 10:volumesAttached:[AttachedVolume]
 11:config:NodeConfigStatus 12:runtimeHandlers:[NodeRuntimeHandler] 13:features:NodeFeatures
 14:declaredFeatures:[s]
AttachedVolume 1:name:s! 2:devicePath:s!
AvoidPods 1:preferAvoidPods:[PreferAvoidPodsEntry]
PreferAvoidPodsEntry 1:podSignature:PodSignature 2:evictionTime:t 3:reason:s 4:message:s
PodSignature 1:podController:meta.OwnerReference
ContainerImage 1:names:[s] 2:sizeBytes:i
NodeCondition 1:type:s! 2:status:s! 3:lastHeartbeatTime:t 4:lastTransitionTime:t 5:reason:s
 6:message:s
NodeAddress 1:type:s! 2:address:s!
Node 1:metadata:meta.ObjectMeta 2:spec:NodeSpec 3:status:NodeStatus
NamespaceSpec 1:finalizers:[s]
NamespaceStatus 1:phase:s 2:conditions:[NamespaceCondition]
NamespaceCondition 1:type:s! 2:status:s! 4:lastTransitionTime:t 5:reason:s 6:message:s
Namespace 1:metadata:meta.ObjectMeta 2:spec:NamespaceSpec 3:status:NamespaceStatus
Binding 1:metadata:meta.ObjectMeta 2:target:ObjectReference
Preconditions 1:uid:s!
PodLogOptions 1:container:s 2:follow:b 3:previous:b 4:sinceSeconds:i! 5:sinceTime:t 6:timestamps:b
 7:tailLines:i! 8:limitBytes:i! 9:insecureSkipTLSVerifyBackend:b 10:stream:s!
PodAttachOptions 1:stdin:b 2:stdout:b 3:stderr:b 4:tty:b 5:container:s
PodExecOptions 1:stdin:b 2:stdout:b 3:stderr:b 4:tty:b 5:container:s 6:command:[s]
PodPortForwardOptions 1:ports:[i]
PodProxyOptions 1:path:s
NodeProxyOptions 1:path:s
ServiceProxyOptions 1:path:s
ObjectReference 1:kind:s 2:namespace:s 3:name:s 4:uid:s 5:apiVersion:s 6:resourceVersion:s
 7:fieldPath:s
LocalObjectReference 1:name:s
TypedLocalObjectReference 1:apiGroup:s! 2:kind:s! 3:name:s!
SerializedReference 1:reference:ObjectReference
EventSource 1:component:s 2:host:s
Event 1:metadata:meta.ObjectMeta 2:involvedObject:ObjectReference 3:reason:s 4:message:s
 5:source:EventSource 6:firstTimestamp:t 7:lastTimestamp:t 8:count:i 9:type:s 10:eventTime:u
 11:series:EventSeries 12:action:s 13:related:ObjectReference 14:reportingComponent:s!
 15:reportingInstance:s!
EventSeries 1:count:i 2:lastObservedTime:u
LimitRangeItem 1:type:s! 2:max:{q} 3:min:{q} 4:default:{q} 5:defaultRequest:{q}
 6:maxLimitRequestRatio:{q}
LimitRangeSpec 1:limits:[LimitRangeItem]
LimitRange 1:metadata:meta.ObjectMeta 2:spec:LimitRangeSpec
ResourceQuotaSpec 1:hard:{q} 2:scopes:[s] 3:scopeSelector:ScopeSelector
ScopeSelector 1:matchExpressions:[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement 1:scopeName:s! 2:operator:s! 3:values:[s]
ResourceQuotaStatus 1:hard:{q} 2:used:{q}
ResourceQuota 1:metadata:meta.ObjectMeta 2:spec:ResourceQuotaSpec 3:status:ResourceQuotaStatus
Secret 1:metadata:meta.ObjectMeta 2:data:{y} 3:type:s 4:stringData:{s} 5:immutable:b!
ConfigMap 1:metadata:meta.ObjectMeta 2:data:{s} 3:binaryData:{y} 4:immutable:b!
ComponentCondition 1:type:s! 2:status:s! 3:message:s 4:error:s
ComponentStatus 1:metadata:meta.ObjectMeta 2:conditions:[ComponentCondition]
DownwardAPIVolumeSource 1:items:[DownwardAPIVolumeFile] 2:defaultMode:i! 3:defaultUser:i!
DownwardAPIVolumeFile 1:path:s! 2:fieldRef:ObjectFieldSelector
 3:resourceFieldRef:ResourceFieldSelector 4:mode:i! 5:user:i!
DownwardAPIProjection 1:items:[DownwardAPIVolumeFile]
SecurityContext 1:capabilities:Capabilities 2:privileged:b! 3:seLinuxOptions:SELinuxOptions
 4:runAsUser:i! 5:runAsNonRoot:b! 6:readOnlyRootFilesystem:b! 7:allowPrivilegeEscalation:b!
 8:runAsGroup:i! 9:procMount:s! 10:windowsOptions:WindowsSecurityContextOptions
 11:seccompProfile:SeccompProfile 12:appArmorProfile:AppArmorProfile
SELinuxOptions 1:user:s 2:role:s 3:type:s 4:level:s
WindowsSecurityContextOptions 1:gmsaCredentialSpecName:s! 2:gmsaCredentialSpec:s!
 3:runAsUserName:s! 4:hostProcess:b!
RangeAllocation 1:metadata:meta.ObjectMeta 2:range:s! 3:data:y
Sysctl 1:name:s! 2:value:s!
PortStatus 1:port:i! 2:protocol:s! 3:error:s!
ImageVolumeSource 1:reference:s 2:pullPolicy:s
NodeAllocatableResourceClaimStatus 1:resourceClaimName:s! 2:containers:[s]
 4:mapping:[NodeAllocatableMappedResources] 5:overhead:[NodeAllocatableOverheadResources]
NodeAllocatableMappedResources 1:name:s! 2:quantity:q
NodeAllocatableOverheadResources 1:name:s! 2:perPod:q 3:perContainer:q
)table";

}  // namespace berth::sim
