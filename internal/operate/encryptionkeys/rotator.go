package encryptionkeys

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// manager is the name of the field manager without its prefix.
const manager = "cli"

// Rotator rotates the encryption keys of a cluster for `slipway rotate encryption CLUSTER`, which calls Prepare and,
// after a confirmation, Run.
type Rotator struct {
	progress.Operation
	// Rewrite rewrites all objects in the workload cluster, as [RewriteAll] does, and returns their number.
	Rewrite func(ctx context.Context, cluster client.ObjectKey) (int, error)
}

// Prepare returns the plan of the rotation of a Cluster's keys, or the state of a rotation in progress. It changes
// nothing.
func (o Rotator) Prepare(ctx context.Context, cluster *clusterv1.Cluster) (Plan, error) {
	s, err := o.read(ctx, client.ObjectKeyFromObject(cluster))
	if err != nil {
		return Plan{}, err
	}
	if err := checkSupported(s); err != nil {
		return Plan{}, err
	}
	return planOf(s), nil
}

// Run executes the plan until the rotation is done.
func (o Rotator) Run(ctx context.Context, namespace string, p Plan) error {
	r := &run{Rotator: o, cluster: client.ObjectKey{Namespace: namespace, Name: p.Cluster}, begun: p.UnderWay}
	return o.Follow(ctx, "the rotation did not complete within --wait-timeout; run the command again to continue it", r.step)
}

// run is one run of a rotation. Once the rotation has started, effective keys without former ones mean that it is done,
// even if the response to the last write was lost. [Rotator.Run] creates it; [progress.Operation.Follow] calls its
// step.
type run struct {
	Rotator
	cluster client.ObjectKey
	begun   bool
}

// step executes the next step and reports it. [progress.Operation.Follow] calls it until it is done, also after a
// conflict, so it reads the state each time.
func (r *run) step(ctx context.Context) (done bool, text string, err error) {
	s, err := r.read(ctx, r.cluster)
	if err != nil {
		return false, "", err
	}
	next, err := decide(s)
	if err != nil {
		return false, "", err
	}
	r.begun = r.begun || s.UnderWay()
	switch {
	case next.Action == actionDone && r.begun:
		return true, "", nil
	case next.Action == actionDone:
		err := r.write(ctx, s, componentconfig.KeySet.Rotated)
		r.begun = err == nil
		return false, "New keys encrypt all further writes", err
	case next.Action == actionRewrite:
		return false, "", r.rewrite(ctx, s)
	}
	return false, next.Wait, nil
}

// rewrite rewrites all objects, and then removes the old keys.
func (r *run) rewrite(ctx context.Context, s snapshot) error {
	r.Report("Rewriting all stored objects")
	n, err := r.Rewrite(ctx, r.cluster)
	if err != nil {
		return err
	}
	r.Report("%d objects are encrypted with the new keys; the old keys are removed", n)
	return r.write(ctx, s, componentconfig.KeySet.WithoutFormer)
}

// write changes the keys in the Secret, and nothing else.
func (o Rotator) write(ctx context.Context, s snapshot, change func(componentconfig.KeySet) componentconfig.KeySet) error {
	keys, err := componentconfig.ParseKeys(s.Secret.Data)
	if err != nil {
		return err
	}
	before, after := keys.Data(), change(keys).Data()
	return kube.NewWriter(o.Client, manager).Patch(ctx, s.Secret, func(o client.Object) {
		secret := o.(*corev1.Secret)
		for name := range before {
			delete(secret.Data, name)
		}
		for name, value := range after {
			secret.Data[name] = value
		}
	})
}

// read reads the input of a decision. It reads the Secret before the HostedControlPlane, whose status follows the
// Secret.
func (o Rotator) read(ctx context.Context, key client.ObjectKey) (snapshot, error) {
	s := snapshot{Cluster: &clusterv1.Cluster{}, Plane: &hostedv1.HostedControlPlane{}, Secret: &corev1.Secret{}}
	if err := o.Client.Get(ctx, key, s.Cluster); err != nil {
		return s, fmt.Errorf("reading Cluster %s: %w", key.Name, err)
	}
	ref := s.Cluster.Spec.ControlPlaneRef
	if ref.Kind != "HostedControlPlane" || ref.APIGroup != hostedv1.GroupVersion.Group {
		return s, fault.New(fault.Invalid, reasonUnsupported,
			"the provider of its control plane manages the encryption of cluster %q: its kind is %q, and this command supports HostedControlPlane", key.Name, ref.Kind)
	}
	secret := client.ObjectKey{Namespace: key.Namespace, Name: secretName(key.Name)}
	err := o.Client.Get(ctx, secret, s.Secret)
	if apierrors.IsNotFound(err) {
		s.Secret = nil
	} else if err != nil {
		return s, fmt.Errorf("reading Secret %s: %w", secret.Name, err)
	}
	if err := o.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: ref.Name}, s.Plane); err != nil {
		return s, fmt.Errorf("reading HostedControlPlane %s: %w", ref.Name, err)
	}
	return s, nil
}
