package statefulset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

// Names and annotations must not change, because the objects of existing control planes are found by them.
const (
	// label is on all objects of all control planes.
	label = "controlplane.slipway.dev/hosted"

	// Annotations: the name of the control plane, the configuration hash and the version of a Pod, the data
	// record, and the host of an endpoint.
	nameAnnotation    = "controlplane.slipway.dev/control-plane"
	configAnnotation  = "controlplane.slipway.dev/config"
	versionAnnotation = "controlplane.slipway.dev/kubernetes-version"
	recordAnnotation  = "controlplane.slipway.dev/data"
	hostAnnotation    = "controlplane.slipway.dev/endpoint-host"

	// container is the name of the container, and portName the name of its port.
	container, portName = "control-plane", "api"

	// servicePort is the port of Services and of endpoints without a node port.
	servicePort = 6443

	// user is the user of the manager's image.
	user = 65532

	dataFolder, deliveryFolder = "/data", "/delivery"
)

// objectName returns the name of all objects of a control plane. A StatefulSet name can have 52 characters, and a
// Service name must begin with a letter. The result for a name must never change, because the data is in the claim with
// this name.
func objectName(name string) string {
	const readable = 37
	sum := sha256.Sum256([]byte(name))
	text := strings.ReplaceAll(name, ".", "-")
	if len(text) > readable {
		text = strings.TrimRight(text[:readable], "-")
	}
	return "cp-" + text + "-" + hex.EncodeToString(sum[:5])
}

// nameOf returns the control plane of an object according to its annotation. It is empty if there is none or
// if the object does not have the expected name. Other files find the control plane of an object by it.
func nameOf(o client.Object) string {
	name := o.GetAnnotations()[nameAnnotation]
	of := strings.TrimSuffix(o.GetName(), "-0")
	if o.GetLabels()[label] == "" || name == "" || of != objectName(name) && o.GetName() != objectName(name) {
		return ""
	}
	return name
}

// labels returns the labels of all objects of a control plane, which select its Pod.
func labels(name string) map[string]string {
	return map[string]string{
		label: "true", "app.kubernetes.io/name": "slipway", "app.kubernetes.io/component": "control-plane", "app.kubernetes.io/instance": objectName(name),
	}
}

// desiredPlane is the desired state of a control plane. Start applies the objects that its methods compute.
type desiredPlane struct {
	name, namespace string
	config          processconfig.Config
	files           map[string][]byte
	record          processconfig.Record
	port            int32
	podSettings     managerPodSettings
}

// managerPodSettings contains the properties of this program's Pod that Pods of control planes inherit.
type managerPodSettings struct {
	image       string
	pullSecrets []corev1.LocalObjectReference
	selector    map[string]string
	tolerations []corev1.Toleration
	// host is the address of the Node.
	host string
}

// settingsOfManagerPod reads the properties from the Pod. It leaves out tolerations that every Pod gets. The backend
// calls it before it creates objects.
func settingsOfManagerPod(pod *corev1.Pod, manager string) managerPodSettings {
	out := managerPodSettings{pullSecrets: pod.Spec.ImagePullSecrets, selector: pod.Spec.NodeSelector, host: pod.Status.HostIP}
	for _, c := range pod.Spec.Containers {
		if c.Name == manager || len(pod.Spec.Containers) == 1 {
			out.image = c.Image
		}
	}
	for _, t := range pod.Spec.Tolerations {
		if t.Key != corev1.TaintNodeNotReady && t.Key != corev1.TaintNodeUnreachable {
			out.tolerations = append(out.tolerations, t)
		}
	}
	return out
}

func (o desiredPlane) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.namespace, Name: objectName(o.name), Labels: labels(o.name), Annotations: map[string]string{nameAnnotation: o.name},
	}
}

func typeMeta(gv schema.GroupVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gv.String(), Kind: kind}
}

// encode encodes values that can always be encoded.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // strings and numbers only
		panic(err)
	}
	return string(text)
}

// secret returns the Secret with the configuration and the PKI files. The Pod mounts it.
func (o desiredPlane) secret() *corev1.Secret {
	out := &corev1.Secret{TypeMeta: typeMeta(corev1.SchemeGroupVersion, "Secret"), ObjectMeta: o.meta(), Data: map[string][]byte{
		processconfig.DeliveredConfig: []byte(encode(o.config)), processconfig.DeliveredRecord: []byte(encode(o.record)),
	}}
	for file, content := range o.files {
		out.Data[file] = content
	}
	return out
}

// claim returns the PersistentVolumeClaim of the data.
func (o desiredPlane) claim(v Volume) *corev1.PersistentVolumeClaim {
	out := &corev1.PersistentVolumeClaim{
		TypeMeta: typeMeta(corev1.SchemeGroupVersion, "PersistentVolumeClaim"), ObjectMeta: o.meta(),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: v.Size}},
		},
	}
	if v.Class != "" {
		out.Spec.StorageClassName = &v.Class
	}
	return out
}

// networkPolicy allows ingress to the port of the API server from everywhere, because nodes and users can be
// anywhere. Egress is not restricted. Start applies it.
func (o desiredPlane) networkPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta: typeMeta(networkingv1.SchemeGroupVersion, "NetworkPolicy"), ObjectMeta: o.meta(),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: labels(o.name)}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{
				{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(o.port))},
			}}},
		},
	}
}

// statefulSet returns the StatefulSet. Start applies it last, because its Pod mounts all other objects.
func (o desiredPlane) statefulSet() *appsv1.StatefulSet {
	meta, pod := o.meta(), o.meta()
	meta.Annotations[configAnnotation], meta.Annotations[recordAnnotation] = o.config.Hash(), encode(o.record)
	pod.Namespace, pod.Name = "", ""
	pod.Annotations[configAnnotation], pod.Annotations[versionAnnotation] = o.config.Hash(), o.config.Version
	return &appsv1.StatefulSet{
		TypeMeta: typeMeta(appsv1.SchemeGroupVersion, "StatefulSet"), ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), ServiceName: meta.Name, Selector: &metav1.LabelSelector{MatchLabels: labels(o.name)},
			// A Pod that never became ready is replaced when the configuration changes.
			PodManagementPolicy: appsv1.ParallelPodManagement, RevisionHistoryLimit: new(int32(1)),
			Template: corev1.PodTemplateSpec{ObjectMeta: pod, Spec: o.podSpec()},
		},
	}
}

func (o desiredPlane) podSpec() corev1.PodSpec {
	name := objectName(o.name)
	return corev1.PodSpec{
		AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(60)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)), FSGroup: new(int64(user)),
			// etcd requires the file modes with which it created the database.
			FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		ImagePullSecrets: o.podSettings.pullSecrets, NodeSelector: o.podSettings.selector, Tolerations: o.podSettings.tolerations,
		Containers: []corev1.Container{o.container()},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}},
			// Keys are not on the volume, so that a copy of the volume does not contain the cluster's CAs or
			// encryption keys.
			{Name: "pki", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("8Mi"))}}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "delivery", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: new(int32(0o440))}}},
		},
	}
}

func (o desiredPlane) container() corev1.Container {
	return corev1.Container{
		Name: container, Image: o.podSettings.image, ImagePullPolicy: corev1.PullIfNotPresent,
		Args:  []string{"control-plane", "run", "--delivery", deliveryFolder, "--config", dataFolder + "/config.json"},
		Ports: []corev1.ContainerPort{{Name: portName, ContainerPort: o.port, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
		}},
		StartupProbe: probe("/livez", 60), LivenessProbe: probe("/livez", 12), ReadinessProbe: probe("/readyz", 3),
		// The last log lines are available in the status of the Pod.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Privileged: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "data", MountPath: dataFolder}, {Name: "pki", MountPath: dataFolder + "/pki"}, {Name: "tmp", MountPath: "/tmp"},
			{Name: "delivery", MountPath: deliveryFolder, ReadOnly: true},
		},
	}
}

func probe(path string, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString(portName), Scheme: corev1.URISchemeHTTPS,
		}},
		PeriodSeconds: 5, TimeoutSeconds: 5, FailureThreshold: failures,
	}
}
