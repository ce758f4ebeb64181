package release

import (
	"path"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipwayhq/slipway/internal/providerset"
)

const (
	// replicas run with leader election; all of them serve the webhooks.
	replicas = 2

	webhookPort, diagnosticsPort, healthPort = 9443, 8443, 9440

	// user is an unprivileged user ID; the image has no users.
	user = 65532

	// container is the name of the container whose image and arguments clusterctl changes.
	container = "manager"

	dataFolder, temporaryFolder = "/data", "/tmp"

	// bundlesFolder has the bundles for hosts of the SSH provider. Its volume is empty until the operator replaces it.
	bundlesVolume, bundlesFolder = "bundles", "/bundles"
)

// service returns the name of the Service through which the API server calls the webhooks. The webhook configurations
// contain the same name (component.go). The manager gets it with --webhook-service.
func (u managerWorkload) service() string {
	return strings.Replace(u.name, "slipway-", "slipway-webhook-", 1)
}

// labels returns the labels that select the Pods. The selector of a Deployment is immutable, so an upgrade requires
// that they stay the same.
func (u managerWorkload) labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "slipway", "app.kubernetes.io/component": strings.TrimPrefix(u.name, "slipway-")}
}

func (u managerWorkload) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: u.labels()}
}

func (u managerWorkload) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: u.namespace, Name: name, Labels: u.labels()}
}

// parts returns the Deployment of a manager and its accompanying objects, for the components of a provider and for
// manager.yaml ([providerObjects], [managerObjects]).
func (u managerWorkload) parts(account string) []runtime.Object {
	return []runtime.Object{
		&corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Service"}, ObjectMeta: u.meta(u.service()),
			Spec: corev1.ServiceSpec{Selector: u.labels(), Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromString("webhooks")}}},
		},
		&policyv1.PodDisruptionBudget{
			TypeMeta: metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"}, ObjectMeta: u.meta(u.name),
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: u.selector()},
		},
		u.networkPolicy(),
		u.deployment(account),
	}
}

// networkPolicy allows ingress only to the ports that the Pods serve. Egress is not limited, because workload clusters
// can be anywhere.
func (u managerWorkload) networkPolicy() *networkingv1.NetworkPolicy {
	var ports []networkingv1.NetworkPolicyPort
	for _, port := range []int32{webhookPort, diagnosticsPort, healthPort} {
		ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(port))})
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"}, ObjectMeta: u.meta(u.name),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *u.selector(), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: ports}},
		},
	}
}

// deployment returns the Deployment. Its Pods must comply with the Pod Security standard "restricted", which the
// namespace enforces.
func (u managerWorkload) deployment(account string) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}, ObjectMeta: u.meta(u.name),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)), Selector: u.selector(),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: u.labels(), Annotations: map[string]string{"kubectl.kubernetes.io/default-container": container}},
				Spec: corev1.PodSpec{
					ServiceAccountName: account, TerminationGracePeriodSeconds: new(int64(20)),
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)), FSGroup: new(int64(user)),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
						PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
							Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: u.selector(), TopologyKey: corev1.LabelHostname},
						}},
					}},
					Tolerations: []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}},
					Containers:  []corev1.Container{u.container()},
					Volumes:     u.volumes(),
				},
			},
		},
	}
}

func (u managerWorkload) volumes() []corev1.Volume {
	out := []corev1.Volume{emptyDir("data"), emptyDir("tmp")}
	if u.usesBundles() {
		out = append(out, emptyDir(bundlesVolume))
	}
	return out
}

func (u managerWorkload) mounts() []corev1.VolumeMount {
	out := []corev1.VolumeMount{{Name: "data", MountPath: dataFolder}, {Name: "tmp", MountPath: temporaryFolder}}
	if u.usesBundles() {
		out = append(out, corev1.VolumeMount{Name: bundlesVolume, MountPath: bundlesFolder})
	}
	return out
}

// usesBundles reports whether the manager installs bundles on hosts.
func (u managerWorkload) usesBundles() bool {
	return providerset.Contains(u.sets, providerset.InfrastructureSSH)
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func (u managerWorkload) container() corev1.Container {
	return corev1.Container{
		Name: container, Image: u.Image + ":" + u.Version, ImagePullPolicy: corev1.PullIfNotPresent, Args: u.arguments(),
		Env: []corev1.EnvVar{
			{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		},
		Ports: []corev1.ContainerPort{
			{Name: "webhooks", ContainerPort: webhookPort}, {Name: "metrics", ContainerPort: diagnosticsPort}, {Name: "health", ContainerPort: healthPort},
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
		}},
		// The first start waits for the CRDs of providers that are installed at the same time.
		StartupProbe:   probe("/healthz", 120),
		LivenessProbe:  probe("/healthz", 6),
		ReadinessProbe: probe("/readyz", 3),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Privileged: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: u.mounts(),
	}
}

func probe(path string, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}},
		PeriodSeconds: 5, TimeoutSeconds: 3, FailureThreshold: failures,
	}
}

// arguments returns the arguments of the manager, which must be flags of `slipway manager`. clusterctl replaces the
// variables in them. The names CAPI_* are the same as in Cluster API's core provider.
func (u managerWorkload) arguments() []string {
	args := []string{
		"manager", "--leader-elect", "--webhook-service=" + u.service(), "--webhook-port=" + strconv.Itoa(webhookPort),
		"--health-addr=:" + strconv.Itoa(healthPort), "--data-dir=" + path.Join(dataFolder, "slipway"), // the volume belongs to root, so the manager creates a directory in it
		"--diagnostics-address=${CAPI_DIAGNOSTICS_ADDRESS:=:" + strconv.Itoa(diagnosticsPort) + "}",
		"--insecure-diagnostics=${CAPI_INSECURE_DIAGNOSTICS:=false}",
		"--feature-gates=" + gates(),
	}
	if providerset.Contains(u.sets, providerset.ControlPlaneHosted) {
		args = append(args, "--temporary-data", "--control-plane-pods",
			"--control-plane-service-type=${SLIPWAY_CONTROL_PLANE_SERVICE_TYPE:=LoadBalancer}",
			"--control-plane-service-host=${SLIPWAY_CONTROL_PLANE_SERVICE_HOST:=-}",
			"--control-plane-volume-size=${SLIPWAY_CONTROL_PLANE_VOLUME_SIZE:=8Gi}",
			"--control-plane-storage-class=${SLIPWAY_CONTROL_PLANE_STORAGE_CLASS:=-}")
	}
	if u.usesBundles() {
		args = append(args, "--bundles="+bundlesFolder)
	}
	if u.providers != "" {
		args = slices.Insert(args, 2, "--providers="+u.providers)
	}
	return args
}
