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

// State is how the add-ons fare in the workload cluster.
type State struct {
	// NoNodes: there is nothing that they could run on yet.
	NoNodes bool
	// Problem is what is not ready, for a condition; empty: nothing.
	Problem string
}

const namespace = metav1.NamespaceSystem

// Names of the DaemonSet and of the Deployment.
const (
	KubeProxy = "kube-proxy"
	CoreDNS   = "coredns"
)

// Inspect reads how the add-ons of the params fare.
func Inspect(ctx context.Context, access *rest.Config, p Params) (State, error) {
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return State{}, fmt.Errorf("connecting to the workload cluster: %w", err)
	}
	if p.KubeProxy {
		set, err := client.AppsV1().DaemonSets(namespace).Get(ctx, KubeProxy, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return State{Problem: "DaemonSet kube-proxy does not exist in the workload cluster: change spec.addons, or create it"}, nil
		case err != nil:
			return State{}, fmt.Errorf("reading DaemonSet kube-proxy: %w", err)
		case set.Status.DesiredNumberScheduled == 0:
			return State{NoNodes: true}, nil
		case set.Status.ObservedGeneration < set.Generation || set.Status.NumberAvailable < set.Status.DesiredNumberScheduled:
			return State{Problem: notReady("DaemonSet kube-proxy", "on every Node", set.Spec.Template)}, nil
		}
	}
	if p.CoreDNS {
		deployment, err := client.AppsV1().Deployments(namespace).Get(ctx, CoreDNS, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return State{Problem: "Deployment coredns does not exist in the workload cluster: change spec.addons, or create it"}, nil
		case err != nil:
			return State{}, fmt.Errorf("reading Deployment coredns: %w", err)
		case !isAvailable(deployment):
			return State{Problem: notReady("Deployment coredns", "", deployment.Spec.Template)}, nil
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

// notReady names the image, because one that no Node has is the most frequent cause.
func notReady(what, where string, template corev1.PodTemplateSpec) string {
	if where != "" {
		where = " " + where
	}
	image := ""
	if len(template.Spec.Containers) > 0 {
		image = "; the Nodes need the image " + template.Spec.Containers[0].Image
	}
	return what + " is not available" + where + " in the workload cluster" + image
}
