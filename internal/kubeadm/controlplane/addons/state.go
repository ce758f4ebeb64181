package addons

import (
	"context"
	"errors"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// KubeadmState contains the objects that kubeadm created in a workload cluster. The KubeadmControlPlane controller
// caches it between reconciliations, and all decisions of this package are computed from it. Missing objects are nil.
type KubeadmState struct {
	// At is the time of the read, or zero if it never happened.
	At time.Time
	// Problem is the reason why the objects could not be read, or empty.
	Problem string
	// Config is kubeadm's configuration.
	Config *corev1.ConfigMap
	// Roles contains the names of the existing roles and bindings that kubeadm needs.
	Roles map[string]bool
	// Proxy is kube-proxy.
	Proxy *appsv1.DaemonSet
	// DNS is CoreDNS, DNSRole is its ClusterRole, and Corefile is its configuration.
	DNS      *appsv1.Deployment
	DNSRole  *rbacv1.ClusterRole
	Corefile *corev1.ConfigMap
}

// desiredState is the desired state from a KubeadmControlPlane.
type desiredState struct {
	Version string
	Cluster bootstrapv1.ClusterConfiguration
	// SkipProxy and SkipDNS exclude the addons from upgrades.
	SkipProxy, SkipDNS bool
}

// DesiredBy returns the desired state from a control plane. The KubeadmControlPlane controller calls it before each of
// the plans and for the condition.
func DesiredBy(plane *controlplanev1.KubeadmControlPlane) desiredState {
	_, proxy := plane.Annotations[controlplanev1.SkipKubeProxyAnnotation]
	_, dns := plane.Annotations[controlplanev1.SkipCoreDNSAnnotation]
	return desiredState{Version: plane.Spec.Version, Cluster: plane.Spec.KubeadmConfigSpec.ClusterConfiguration, SkipProxy: proxy, SkipDNS: dns}
}

// Names of kubeadm's objects in namespace kube-system, and of their keys. They must not change, because kubeadm and
// CoreDNS define them; backupKey has the name that kubeadm upgrade uses.
const (
	configName    = "kubeadm-config"
	configKey     = "ClusterConfiguration"
	proxyName     = "kube-proxy"
	dnsName       = "coredns"
	dnsRoleName   = "system:coredns"
	corefileKey   = "Corefile"
	backupKey     = "Corefile-backup"
	dnsVolumeName = "config-volume"
)

// Read reads the objects that kubeadm created in a workload cluster. The KubeadmControlPlane controller calls it when
// the state in its cache is too old for the next step.
func Read(ctx context.Context, c client.Reader, now time.Time) (KubeadmState, error) {
	out := KubeadmState{At: now, Roles: map[string]bool{}}
	for _, role := range roles() {
		there, err := get(ctx, c, role.GetName(), role)
		if err != nil {
			return KubeadmState{}, err
		}
		out.Roles[roleKey(role)] = there != nil
	}
	var err error
	if out.Config, err = get(ctx, c, configName, &corev1.ConfigMap{}); err != nil {
		return KubeadmState{}, err
	}
	if out.Proxy, err = get(ctx, c, proxyName, &appsv1.DaemonSet{}); err != nil {
		return KubeadmState{}, err
	}
	if out.DNS, err = get(ctx, c, dnsName, &appsv1.Deployment{}); err != nil {
		return KubeadmState{}, err
	}
	if out.DNSRole, err = get(ctx, c, dnsRoleName, &rbacv1.ClusterRole{}); err != nil {
		return KubeadmState{}, err
	}
	if out.Corefile, err = get(ctx, c, dnsName, &corev1.ConfigMap{}); err != nil {
		return KubeadmState{}, err
	}
	return out, nil
}

// get reads an object in namespace kube-system, or a cluster-scoped object. It returns nil if the object does not
// exist.
func get[T client.Object](ctx context.Context, c client.Reader, name string, into T) (none T, err error) {
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}
	switch any(into).(type) {
	case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		key.Namespace = ""
	}
	err = c.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fault.New(fault.KindOf(err), "KubeadmStateUnreadable", "%s of the workload cluster cannot be read: %s", describe(into, name), responseText(err)).From(err)
	}
	return into, nil
}

// responseText summarizes the error of an API server, without any text from the API server.
func responseText(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return "it responds with status " + strconv.Itoa(int(status.Status().Code))
	}
	return "it does not respond"
}

func describe(o client.Object, name string) string {
	kind := "ConfigMap"
	switch o.(type) {
	case *appsv1.DaemonSet:
		kind = "DaemonSet"
	case *appsv1.Deployment:
		kind = "Deployment"
	case *rbacv1.ClusterRole:
		kind = "ClusterRole"
	case *rbacv1.ClusterRoleBinding:
		kind = "ClusterRoleBinding"
	case *rbacv1.Role:
		kind = "Role"
	case *rbacv1.RoleBinding:
		kind = "RoleBinding"
	}
	return kind + " " + name
}
