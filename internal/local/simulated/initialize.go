package simulated

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// Names of ConfigMaps that kubeadm creates in a cluster, and the content of the simulated CoreDNS. The names are
// kubeadm's; the version and the Corefile need not follow a release.
const (
	kubeadmConfig   = "kubeadm-config"
	kubeletConfig   = "kubelet-config"
	imageRepository = "slipway.dev"
	coreDNSVersion  = "v1.13.1"
	corefile        = ".:53 {\n    errors\n    health\n    kubernetes cluster.local in-addr.arpa ip6.arpa\n    forward . /etc/resolv.conf\n    cache 30\n}\n"
)

// initialize creates the objects that kubeadm init creates in a cluster and that the KubeadmControlPlane controller
// reads or changes: the configuration of kubeadm and kubelets, the role binding of administrators, kube-proxy and
// CoreDNS. Create calls it for a machine of a control plane while the kubeadm configuration does not exist. It is
// idempotent; the kubeadm configuration is created last, because its existence marks the end.
func initialize(ctx context.Context, c kubernetes.Interface, kubernetesVersion, configuration string) error {
	var said struct {
		ImageRepository string `json:"imageRepository"`
	}
	if configuration == "" { // the cluster is recreated by a machine that had joined it
		configuration = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: " + kubernetesVersion + "\n"
	}
	if err := yaml.Unmarshal([]byte(configuration), &said); err != nil {
		return fmt.Errorf("reading the ClusterConfiguration: %w", err)
	}
	repository := cmp.Or(said.ImageRepository, imageRepository)
	for _, create := range []func() error{
		func() error {
			return configMap(ctx, c, kubeletConfig, map[string]string{"kubelet": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"})
		},
		func() error { return configMap(ctx, c, "coredns", map[string]string{"Corefile": corefile}) },
		func() error { return bindAdministrators(ctx, c) },
		func() error { return kubeProxy(ctx, c, repository+"/kube-proxy:"+kubernetesVersion) },
		func() error { return coreDNS(ctx, c, repository+"/coredns:"+coreDNSVersion) },
		func() error {
			return configMap(ctx, c, kubeadmConfig, map[string]string{"ClusterConfiguration": configuration})
		},
	} {
		if err := create(); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func configMap(ctx context.Context, c kubernetes.Interface, name string, data map[string]string) error {
	_, err := c.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}, Data: data,
	}, metav1.CreateOptions{})
	return err
}

func bindAdministrators(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:cluster-admins"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "kubeadm:cluster-admins"}},
	}, metav1.CreateOptions{})
	return err
}

func kubeProxy(ctx context.Context, c kubernetes.Interface, image string) error {
	labels := map[string]string{"k8s-app": "kube-proxy"}
	_, err := c.AppsV1().DaemonSets(metav1.NamespaceSystem).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-proxy", Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-proxy", Image: image}}},
			},
		},
	}, metav1.CreateOptions{})
	return err
}

// coreDNS creates a Deployment that reports that it is available, because no controller and no Pod stands behind it.
func coreDNS(ctx context.Context, c kubernetes.Interface, image string) error {
	labels, replicas := map[string]string{"k8s-app": "kube-dns"}, int32(2)
	dns, err := c.AppsV1().Deployments(metav1.NamespaceSystem).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "coredns", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "coredns", Image: image}},
					Volumes: []corev1.Volume{{Name: "config-volume", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: "coredns"}, Items: []corev1.KeyToPath{{Key: "Corefile", Path: "Corefile"}},
					}}}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	dns.Status = appsv1.DeploymentStatus{
		ObservedGeneration: dns.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", Message: "Simulated"}},
	}
	_, err = c.AppsV1().Deployments(metav1.NamespaceSystem).UpdateStatus(ctx, dns, metav1.UpdateOptions{})
	return err
}
