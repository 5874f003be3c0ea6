// Pods and what a pod template may hold, as the API of Kubernetes 1.37 defines them; table.cc says
// how to read this.
#include "kinds/schema/table.h"

namespace berth::sim {

const char* const kTablePod = R"table(
#io.k8s.api.core.v1
AWSElasticBlockStoreVolumeSource: fsType:s? partition:i? readOnly:b? volumeID!:s*
Affinity: nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity
AppArmorProfile: localhostProfile:s type!:s*
AzureDiskVolumeSource: cachingMode:s="ReadWrite" diskName!:s* diskURI!:s* fsType:s="ext4"
 kind:s="Shared" readOnly:b=false
AzureFileVolumeSource: readOnly:b? secretName!:s* shareName!:s*
CSIVolumeSource: driver!:s* fsType:s nodePublishSecretRef:LocalObjectReference readOnly:b
 volumeAttributes:{s}
Capabilities: add:[s] drop:[s]
CephFSVolumeSource: monitors!:[s]* path:s? readOnly:b? secretFile:s?
 secretRef:LocalObjectReference user:s?
CinderVolumeSource: fsType:s? readOnly:b? secretRef:LocalObjectReference volumeID!:s*
ClusterTrustBundleProjection: labelSelector:LabelSelector name:s optional:b path!:s* signerName:s
 user:l
ConfigMapEnvSource: name:s? optional:b
ConfigMapKeySelector&: key!:s* name:s? optional:b
ConfigMapProjection: items:[KeyToPath] name:s? optional:b
ConfigMapVolumeSource: defaultMode:i=420 defaultUser:l items:[KeyToPath] name:s? optional:b
Container: args:[s] command:[s] env:[EnvVar]@name%name envFrom:[EnvFromSource] image:s?
 imagePullPolicy:s?|Always|IfNotPresent|Never lifecycle:Lifecycle livenessProbe:Probe name!:s*
 ports:[ContainerPort]@containerPort,protocol%containerPort readinessProbe:Probe
 resizePolicy:[ContainerResizePolicy] resources:ResourceRequirements*={} restartPolicy:s
 restartPolicyRules:[ContainerRestartRule] securityContext:SecurityContext startupProbe:Probe
 stdin:b? stdinOnce:b? terminationMessagePath:s?="/dev/termination-log"
 terminationMessagePolicy:s?|File|FallbackToLogsOnError="File" tty:b?
 volumeDevices:[VolumeDevice]@devicePath%devicePath volumeMounts:[VolumeMount]@mountPath%mountPath
 workingDir:s?
ContainerExtendedResourceRequest: containerName!:s* requestName!:s* resourceName!:s*
ContainerPort: containerPort!:i* hostIP:s? hostPort:i? name:s? protocol:s?|SCTP|TCP|UDP="TCP"
ContainerResizePolicy: resourceName!:s* restartPolicy!:s*
ContainerRestartRule: action!:s? exitCodes:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator!:s? values:[i]^
ContainerState: running:ContainerStateRunning terminated:ContainerStateTerminated
 waiting:ContainerStateWaiting
ContainerStateRunning: startedAt:t
ContainerStateTerminated: containerID:s? exitCode!:i* finishedAt:t message:s? reason:s? signal:i?
 startedAt:t
ContainerStateWaiting: message:s? reason:s?
ContainerStatus: allocatedResources:{q} allocatedResourcesStatus:[ResourceStatus]@name%name
 containerID:s? image!:s* imageID!:s* lastState:ContainerState* name!:s* ready!:b*
 resources:ResourceRequirements restartCount!:i* started:b state:ContainerState* stopSignal:s
 user:ContainerUser volumeMounts:[VolumeMountStatus]@mountPath%mountPath
ContainerUser: linux:LinuxContainerUser
DownwardAPIProjection: items:[DownwardAPIVolumeFile]
DownwardAPIVolumeFile: fieldRef:ObjectFieldSelector mode:i path!:s*
 resourceFieldRef:ResourceFieldSelector user:l
DownwardAPIVolumeSource: defaultMode:i=420 defaultUser:l items:[DownwardAPIVolumeFile]
EmptyDirVolumeSource: medium:s? mode:i sizeLimit:q
EnvFromSource: configMapRef:ConfigMapEnvSource prefix:s? secretRef:SecretEnvSource
EnvVar: name!:s* value:s? valueFrom:EnvVarSource
EnvVarSource: configMapKeyRef:ConfigMapKeySelector fieldRef:ObjectFieldSelector
 fileKeyRef:FileKeySelector resourceFieldRef:ResourceFieldSelector secretKeyRef:SecretKeySelector
EphemeralContainer: args:[s] command:[s] env:[EnvVar]@name%name envFrom:[EnvFromSource] image:s?
 imagePullPolicy:s? lifecycle:Lifecycle livenessProbe:Probe name!:s*
 ports:[ContainerPort]@containerPort,protocol%containerPort readinessProbe:Probe
 resizePolicy:[ContainerResizePolicy] resources:ResourceRequirements*={} restartPolicy:s
 restartPolicyRules:[ContainerRestartRule] securityContext:SecurityContext startupProbe:Probe
 stdin:b? stdinOnce:b? targetContainerName:s? terminationMessagePath:s?="/dev/termination-log"
 terminationMessagePolicy:s?="File" tty:b? volumeDevices:[VolumeDevice]@devicePath%devicePath
 volumeMounts:[VolumeMount]@mountPath%mountPath workingDir:s?
EphemeralVolumeSource: volumeClaimTemplate:PersistentVolumeClaimTemplate
EvictionResponder&: name!:s* priority!:i
ExecAction: command:[s]
FCVolumeSource: fsType:s? lun:i readOnly:b? targetWWNs:[s] wwids:[s]
FileKeySelector&: key!:s* optional:b path!:s* volumeName!:s*
FlexVolumeSource: driver!:s* fsType:s? options:{s} readOnly:b? secretRef:LocalObjectReference
FlockerVolumeSource: datasetName:s? datasetUUID:s?
GCEPersistentDiskVolumeSource: fsType:s? partition:i? pdName!:s* readOnly:b?
GRPCAction: mode:s port!:i* service:s=""
GitRepoVolumeSource: directory:s? repository!:s* revision:s?
GlusterfsVolumeSource: endpoints!:s* path!:s* readOnly:b?
HTTPGetAction: host:s? httpHeaders:[HTTPHeader] path:s?="/" port!:x protocol:s
 scheme:s?|HTTP|HTTPS="HTTP"
HTTPHeader: name!:s* value!:s*
HostAlias: hostnames:[s] ip!:s*
HostIP: ip!:s*
HostPathVolumeSource: path!:s* type:s=""
ISCSIVolumeSource: chapAuthDiscovery:b? chapAuthSession:b? fsType:s? initiatorName:s iqn!:s*
 iscsiInterface:s?="default" lun!:i* portals:[s] readOnly:b? secretRef:LocalObjectReference
 targetPortal!:s*
ImageVolumeSource: pullPolicy:s? reference:s?
ImageVolumeStatus: imageRef!:s?
KeyToPath: key!:s* mode:i path!:s* user:l
Lifecycle: postStart:LifecycleHandler preStop:LifecycleHandler stopSignal:s
LifecycleHandler: exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction
 tcpSocket:TCPSocketAction
LinuxContainerUser: gid!:l* supplementalGroups:[l] uid!:l*
LocalObjectReference&: name:s?
NFSVolumeSource: path!:s* readOnly:b? server!:s*
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]
 requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
NodeAllocatableMappedResources: name!:s* quantity!:q
NodeAllocatableOverheadResources: name!:s* perContainer:q perPod:q
NodeAllocatableResourceClaimStatus: containers:[s]^
 mapping:[NodeAllocatableMappedResources]@name%name
 overhead:[NodeAllocatableOverheadResources]@name%name resourceClaimName!:s*
NodeSelector&: nodeSelectorTerms!:[NodeSelectorTerm]*
NodeSelectorRequirement: key!:s* operator!:s*|DoesNotExist|Exists|Gt|In|Lt|NotIn values:[s]
NodeSelectorTerm&: matchExpressions:[NodeSelectorRequirement]
 matchFields:[NodeSelectorRequirement]
ObjectFieldSelector&: apiVersion:s?="v1" fieldPath!:s*
PersistentVolumeClaimSpec: accessModes:[s] dataSource:TypedLocalObjectReference
 dataSourceRef:TypedObjectReference resources:VolumeResourceRequirements* selector:LabelSelector
 storageClassName:s volumeAttributesClassName:s volumeMode:s|Block|Filesystem="Filesystem"
 volumeName:s?
PersistentVolumeClaimTemplate: metadata:ObjectMeta* spec!:PersistentVolumeClaimSpec*
PersistentVolumeClaimVolumeSource: claimName!:s* readOnly:b?
PhotonPersistentDiskVolumeSource: fsType:s? pdID!:s*
Pod: apiVersion:s? kind:s? metadata:ObjectMeta* spec:PodSpec* status:PodStatus*
PodAffinity: preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
 requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
PodAffinityTerm: labelSelector:LabelSelector matchLabelKeys:[s] mismatchLabelKeys:[s]
 namespaceSelector:LabelSelector namespaces:[s] topologyKey!:s*
PodAntiAffinity: preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
 requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
PodCertificateProjection: certificateChainPath:s? credentialBundlePath:s? keyPath:s? keyType!:s?
 maxExpirationSeconds:i signerName!:s? user:l userAnnotations:{s}
PodCondition: lastProbeTime:t lastTransitionTime:t message:s? observedGeneration:l? reason:s?
 status!:s* type!:s*
PodDNSConfig: nameservers:[s] options:[PodDNSConfigOption] searches:[s]
PodDNSConfigOption: name:s? value:s
PodExtendedResourceClaimStatus: requestMappings!:[ContainerExtendedResourceRequest]*
 resourceClaimName!:s*
PodIP: ip!:s*
PodOS: name!:s*|linux|windows
PodReadinessGate: conditionType!:s*
PodResourceClaim: name!:s* resourceClaimName:s resourceClaimTemplateName:s
PodResourceClaimStatus: name!:s* resourceClaimName:s
PodSchedulingGate: name!:s*
PodSchedulingGroup: podGroupName:s
PodSecurityContext: appArmorProfile:AppArmorProfile fsGroup:l fsGroupChangePolicy:s runAsGroup:l
 runAsNonRoot:b runAsUser:l seLinuxChangePolicy:s seLinuxOptions:SELinuxOptions
 seccompProfile:SeccompProfile supplementalGroups:[l] supplementalGroupsPolicy:s sysctls:[Sysctl]
 windowsOptions:WindowsSecurityContextOptions
PodSpec: activeDeadlineSeconds:l affinity:Affinity automountServiceAccountToken:b
 containers!:[Container]@name%name* dnsConfig:PodDNSConfig
 dnsPolicy:s?|ClusterFirstWithHostNet|ClusterFirst|Default|None="ClusterFirst"
 enableServiceLinks:b ephemeralContainers:[EphemeralContainer]@name%name
 evictionResponders:[EvictionResponder]@name%name hostAliases:[HostAlias]@ip%ip hostIPC:b?
 hostNetwork:b? hostPID:b? hostUsers:b hostname:s? hostnameOverride:s
 imagePullSecrets:[LocalObjectReference]@name%name initContainers:[Container]@name%name
 nodeName:s? nodeSelector:{s}& os:PodOS overhead:{q} preemptionPolicy:s|Never|PreemptLowerPriority
 priority:i priorityClassName:s? readinessGates:[PodReadinessGate]
 resourceClaims:[PodResourceClaim]@name%name~ resources:ResourceRequirements
 restartPolicy:s?|Always|OnFailure|Never="Always" runtimeClassName:s
 schedulerName:s?="default-scheduler" schedulingGates:[PodSchedulingGate]@name%name
 schedulingGroup:PodSchedulingGroup securityContext:PodSecurityContext={} serviceAccount:s?
 serviceAccountName:s? setHostnameAsFQDN:b shareProcessNamespace:b subdomain:s?
 terminationGracePeriodSeconds:l=30 tolerations:[Toleration]
 topologySpreadConstraints:[TopologySpreadConstraint]@topologyKey,whenUnsatisfiable%topologyKey
 volumes:[Volume]@name%name~
PodStatus: allocatedResources:{q} conditions:[PodCondition]@type%type
 containerStatuses:[ContainerStatus] ephemeralContainerStatuses:[ContainerStatus]
 extendedResourceClaimStatus:PodExtendedResourceClaimStatus hostIP:s? hostIPs:[HostIP]%ip
 initContainerStatuses:[ContainerStatus] message:s?
 nodeAllocatableResourceClaimStatuses:[NodeAllocatableResourceClaimStatus]@resourceClaimName$
 nominatedNodeName:s? observedGeneration:l? phase:s? podIP:s? podIPs:[PodIP]@ip%ip qosClass:s?
 reason:s? resize:s? resourceClaimStatuses:[PodResourceClaimStatus]@name%name~
 resources:ResourceRequirements startTime:t volumeHealth:[PodVolumeHealth]@name
PodTemplate: apiVersion:s? kind:s? metadata:ObjectMeta* template:PodTemplateSpec*
PodTemplateSpec: metadata:ObjectMeta* spec:PodSpec*
PodVolumeHealth: healthConditions:[VolumeHealthCondition]@status,reason%status
 lastTransitionTime:t name!:s*
PortworxVolumeSource: fsType:s? readOnly:b? volumeID!:s*
PreferredSchedulingTerm: preference!:NodeSelectorTerm* weight!:i*
Probe: exec:ExecAction failureThreshold:i?=3 grpc:GRPCAction httpGet:HTTPGetAction
 initialDelaySeconds:i? periodSeconds:i?=10 successThreshold:i?=1 tcpSocket:TCPSocketAction
 terminationGracePeriodSeconds:l timeoutSeconds:i?=1
ProjectedVolumeSource: defaultMode:i=420 defaultUser:l sources:[VolumeProjection]*
QuobyteVolumeSource: group:s? readOnly:b? registry!:s* tenant:s? user:s? volume!:s*
RBDVolumeSource: fsType:s? image!:s* keyring:s?="/etc/ceph/keyring" monitors!:[s]* pool:s?="rbd"
 readOnly:b? secretRef:LocalObjectReference user:s?="admin"
ResourceClaim: name!:s* request:s?
ResourceFieldSelector&: containerName:s? divisor:q resource!:s*
ResourceHealth: health:s? message:s resourceID!:s*
ResourceRequirements: claims:[ResourceClaim]@name limits:{q} requests:{q}
ResourceStatus: name!:s* resources:[ResourceHealth]@resourceID
SELinuxOptions: level:s? role:s? type:s? user:s?
ScaleIOVolumeSource: fsType:s?="xfs" gateway!:s* protectionDomain:s? readOnly:b?
 secretRef!:LocalObjectReference sslEnabled:b? storageMode:s?="ThinProvisioned" storagePool:s?
 system!:s* volumeName:s?
SeccompProfile: localhostProfile:s type!:s*|Localhost|RuntimeDefault|Unconfined
SecretEnvSource: name:s? optional:b
SecretKeySelector&: key!:s* name:s? optional:b
SecretProjection: items:[KeyToPath] name:s? optional:b
SecretVolumeSource: defaultMode:i=420 defaultUser:l items:[KeyToPath] optional:b secretName:s?
SecurityContext: allowPrivilegeEscalation:b appArmorProfile:AppArmorProfile
 capabilities:Capabilities privileged:b procMount:s readOnlyRootFilesystem:b runAsGroup:l
 runAsNonRoot:b runAsUser:l seLinuxOptions:SELinuxOptions seccompProfile:SeccompProfile
 windowsOptions:WindowsSecurityContextOptions
ServiceAccountTokenProjection: audience:s? expirationSeconds:l=3600 path!:s* user:l
SleepAction: seconds!:l*
StorageOSVolumeSource: fsType:s? readOnly:b? secretRef:LocalObjectReference volumeName:s?
 volumeNamespace:s?
Sysctl: name!:s* value!:s*
TCPSocketAction: host:s? port!:x
Toleration: effect:s?|NoSchedule|PreferNoSchedule|NoExecute key:s? operator:s?|Equal|Exists|Gt|Lt
 tolerationSeconds:l value:s?
TopologySpreadConstraint: labelSelector:LabelSelector matchLabelKeys:[s] maxSkew!:i* minDomains:i
 nodeAffinityPolicy:s|Honor|Ignore nodeTaintsPolicy:s|Honor|Ignore topologyKey!:s*
 whenUnsatisfiable!:s*|DoNotSchedule|ScheduleAnyway
TypedLocalObjectReference&: apiGroup:s kind!:s* name!:s*
TypedObjectReference: apiGroup:s kind!:s* name!:s* namespace:s
Volume: awsElasticBlockStore:AWSElasticBlockStoreVolumeSource azureDisk:AzureDiskVolumeSource
 azureFile:AzureFileVolumeSource cephfs:CephFSVolumeSource cinder:CinderVolumeSource
 configMap:ConfigMapVolumeSource csi:CSIVolumeSource downwardAPI:DownwardAPIVolumeSource
 emptyDir:EmptyDirVolumeSource ephemeral:EphemeralVolumeSource fc:FCVolumeSource
 flexVolume:FlexVolumeSource flocker:FlockerVolumeSource
 gcePersistentDisk:GCEPersistentDiskVolumeSource gitRepo:GitRepoVolumeSource
 glusterfs:GlusterfsVolumeSource hostPath:HostPathVolumeSource image:ImageVolumeSource
 iscsi:ISCSIVolumeSource name!:s* nfs:NFSVolumeSource
 persistentVolumeClaim:PersistentVolumeClaimVolumeSource
 photonPersistentDisk:PhotonPersistentDiskVolumeSource portworxVolume:PortworxVolumeSource
 projected:ProjectedVolumeSource quobyte:QuobyteVolumeSource rbd:RBDVolumeSource
 scaleIO:ScaleIOVolumeSource secret:SecretVolumeSource storageos:StorageOSVolumeSource
 vsphereVolume:VsphereVirtualDiskVolumeSource
VolumeDevice: devicePath!:s* name!:s*
VolumeHealthCondition: message:s? reason!:s* status!:s*
VolumeMount: bindMountOptions:[s]^ mountPath!:s*
 mountPropagation:s|Bidirectional|HostToContainer|None name!:s* readOnly:b? recursiveReadOnly:s
 subPath:s? subPathExpr:s?
VolumeMountStatus: mountPath!:s* name!:s* readOnly:b? recursiveReadOnly:s
 volumeStatus:VolumeStatus
VolumeProjection: clusterTrustBundle:ClusterTrustBundleProjection configMap:ConfigMapProjection
 downwardAPI:DownwardAPIProjection podCertificate:PodCertificateProjection secret:SecretProjection
 serviceAccountToken:ServiceAccountTokenProjection
VolumeResourceRequirements: limits:{q} requests:{q}
VolumeStatus: image:ImageVolumeStatus
VsphereVirtualDiskVolumeSource: fsType:s? storagePolicyID:s? storagePolicyName:s? volumePath!:s*
WeightedPodAffinityTerm: podAffinityTerm!:PodAffinityTerm* weight!:i*
WindowsSecurityContextOptions: gmsaCredentialSpec:s gmsaCredentialSpecName:s hostProcess:b
 runAsUserName:s
)table";

}  // namespace berth::sim
