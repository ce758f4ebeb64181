package addons

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// State is the state of the add-ons in the workload cluster, which the condition AddonsAvailable of a
// HostedControlPlane reports.
type State struct {
	// NoNodes means that the cluster has no Nodes yet on which the add-ons could run.
	NoNodes bool
	// Problem is the reason why an add-on is not ready, as a condition message. Empty means ready.
	Problem string
}

const namespace = metav1.NamespaceSystem

// Names of the kube-proxy DaemonSet and the CoreDNS Deployment.
const (
	kubeProxy = "kube-proxy"
	coreDNS   = "coredns"
)

// Inspect reads the state of the add-ons that are enabled in the params. The HostedControlPlane controller calls it
// after a change of the add-ons, and every few minutes otherwise.
func Inspect(ctx context.Context, access *rest.Config, p Params) (State, error) {
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return State{}, fmt.Errorf("connecting to the workload cluster: %w", err)
	}
	if p.KubeProxy {
		set, err := client.AppsV1().DaemonSets(namespace).Get(ctx, kubeProxy, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return State{Problem: "DaemonSet kube-proxy does not exist in the workload cluster: change spec.addons, or create it"}, nil
		case err != nil:
			return State{}, fmt.Errorf("reading DaemonSet kube-proxy: %w", err)
		case set.Status.DesiredNumberScheduled == 0:
			return State{NoNodes: true}, nil
		case set.Status.ObservedGeneration < set.Generation || set.Status.NumberAvailable < set.Status.DesiredNumberScheduled:
			missing, err := notReady(ctx, client, set.Spec.Selector, set.Spec.Template)
			return State{Problem: "DaemonSet kube-proxy is not available on every Node in the workload cluster" + missing}, err
		}
	}
	if p.CoreDNS {
		deployment, err := client.AppsV1().Deployments(namespace).Get(ctx, coreDNS, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return State{Problem: "Deployment coredns does not exist in the workload cluster: change spec.addons, or create it"}, nil
		case err != nil:
			return State{}, fmt.Errorf("reading Deployment coredns: %w", err)
		case !isAvailable(deployment):
			missing, err := notReady(ctx, client, deployment.Spec.Selector, deployment.Spec.Template)
			return State{Problem: "Deployment coredns is not available in the workload cluster" + missing}, err
		}
	}
	return State{}, nil
}

func isAvailable(d *appsv1.Deployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.Status == corev1.ConditionTrue && d.Status.AvailableReplicas > 0
		}
	}
	return false
}
