package kubeconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/cluster"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeconfig"
)

// Reasons of the faults of this package.
const (
	// ReasonNotYet says that the kubeconfig does not exist yet; the kind is Gone.
	ReasonNotYet = "KubeconfigNotReady"
	// ReasonEmpty says that the Secret holds no kubeconfig; the kind is Invalid.
	ReasonEmpty = "KubeconfigEmpty"
	// ReasonUnsafe says that a client that uses the kubeconfig would run a command or read files that its writer chose, or
	// that it cannot be read; the kind is Invalid.
	ReasonUnsafe = "KubeconfigUnsafe"
)

// key is where the Secret holds the kubeconfig.
const key = "value"

// Read returns the kubeconfig of the cluster. The error is a fault that says what to do when the cluster, or its
// kubeconfig, does not exist.
func Read(ctx context.Context, r client.Reader, name client.ObjectKey) ([]byte, error) {
	secret := &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKey{Namespace: name.Namespace, Name: name.Name + "-kubeconfig"}, secret)
	if apierrors.IsNotFound(err) {
		return nil, absent(ctx, r, name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", name, err)
	}
	if len(secret.Data[key]) == 0 {
		return nil, fault.New(fault.Invalid, ReasonEmpty, "the secret %q in namespace %q has no key %q: delete it, and the control plane provider creates it again",
			secret.Name, secret.Namespace, key)
	}
	if err := kubeconfig.Check(secret.Data[key]); err != nil {
		return nil, fault.New(fault.Invalid, ReasonUnsafe, "the secret %q in namespace %q is not passed on: %s", secret.Name, secret.Namespace, fault.UserMessage(err))
	}
	return secret.Data[key], nil
}

// absent says why there is no kubeconfig: no cluster, or a control plane that is not that far.
func absent(ctx context.Context, r client.Reader, name client.ObjectKey) error {
	c, err := cluster.Get(ctx, r, name)
	if err != nil {
		return err
	}
	why := "its control plane has not written it yet"
	if cond := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition); cond != nil &&
		cond.Status != metav1.ConditionTrue && cond.Message != "" {
		why = cond.Message
	}
	return fault.New(fault.Gone, ReasonNotYet, "there is no kubeconfig of cluster %q yet: %s", name.Name, why)
}
