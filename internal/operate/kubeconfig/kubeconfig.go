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

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/workload"
)

// Reasons of faults.
const (
	// ReasonNotYet is the reason when the kubeconfig does not exist yet; Gone. `slipway get kubeconfig` recognizes it.
	ReasonNotYet = "KubeconfigNotReady"
	// reasonEmpty is the reason when the Secret contains no kubeconfig; Invalid.
	reasonEmpty = "KubeconfigEmpty"
	// reasonUnsafe is the reason when the kubeconfig cannot be parsed, or would make a client run a command or read
	// files chosen by the kubeconfig's author; Invalid.
	reasonUnsafe = "KubeconfigUnsafe"
)

// key is the key of the kubeconfig in the Secret, by Cluster API's contract.
const key = "value"

// ReadKubeconfig returns the administrator's kubeconfig of a workload cluster, for `slipway get kubeconfig` and
// commands that connect to the cluster. If the cluster or its kubeconfig does not exist, the fault explains what to do.
func ReadKubeconfig(ctx context.Context, r client.Reader, name client.ObjectKey) ([]byte, error) {
	secret := &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKey{Namespace: name.Namespace, Name: name.Name + "-kubeconfig"}, secret)
	if apierrors.IsNotFound(err) {
		return nil, missingError(ctx, r, name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", name, err)
	}
	if len(secret.Data[key]) == 0 {
		return nil, fault.New(fault.Invalid, reasonEmpty, "the secret %q in namespace %q has no key %q: delete it, and the control plane provider creates it again",
			secret.Name, secret.Namespace, key)
	}
	if err := workload.CheckKubeconfig(secret.Data[key]); err != nil {
		return nil, fault.New(fault.Invalid, reasonUnsafe, "the secret %q in namespace %q is not passed on: %s", secret.Name, secret.Namespace, fault.UserMessage(err))
	}
	return secret.Data[key], nil
}

// missingError returns the fault for a missing kubeconfig: the cluster does not exist, or its control plane is not
// initialized.
func missingError(ctx context.Context, r client.Reader, name client.ObjectKey) error {
	c, err := describe.GetCluster(ctx, r, name)
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
