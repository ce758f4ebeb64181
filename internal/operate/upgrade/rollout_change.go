package upgrade

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
)

// rolloutFieldManager is the name of the field manager without its prefix.
const rolloutFieldManager = "rollout"

// Restart marks all Machines created before now as out of date, so that they are replaced according to the rollout
// strategy. `slipway rollout restart` and the rotation of a CA call it.
func Restart(ctx context.Context, c client.Client, namespace string, r RolloutResource, now time.Time) error {
	return r.change(ctx, c, namespace, func(o client.Object) error {
		if isPaused(o) {
			return fault.New(fault.Invalid, ReasonState, "%s is paused, so that nothing would be replaced; resume it first", r)
		}
		if due := rolloutAfter(o); due.After(now) {
			return fault.New(fault.Invalid, ReasonState, "%s is to be restarted at %s already; remove spec.rollout.after to restart it now", r, due.UTC().Format(time.RFC3339))
		}
		return nil
	}, func(o client.Object) { *rolloutAfter(o) = metav1.NewTime(now.Truncate(time.Second)) })
}

// Pause pauses the rollout. `slipway rollout pause` calls it.
func Pause(ctx context.Context, c client.Client, namespace string, r RolloutResource) error {
	return r.change(ctx, c, namespace, func(o client.Object) error {
		if isPaused(o) {
			return fault.New(fault.Invalid, ReasonState, "%s is paused already", r)
		}
		return nil
	}, func(o client.Object) { setPaused(o, true) })
}

// Resume resumes the rollout. `slipway rollout resume` calls it.
func Resume(ctx context.Context, c client.Client, namespace string, r RolloutResource) error {
	return r.change(ctx, c, namespace, func(o client.Object) error {
		if !isPaused(o) {
			return fault.New(fault.Invalid, ReasonState, "%s is not paused", r)
		}
		return nil
	}, func(o client.Object) { setPaused(o, false) })
}

// change reads the object, checks it and patches it, with retries on conflict.
func (r RolloutResource) change(ctx context.Context, c client.Client, namespace string, check func(client.Object) error, change func(client.Object)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o, err := get(ctx, c, namespace, r)
		if err != nil {
			return err
		}
		if err := check(o); err != nil {
			return err
		}
		if err := kube.NewWriter(c, rolloutFieldManager).Patch(ctx, o, change); err != nil {
			return fmt.Errorf("changing %s: %w", r, err)
		}
		return nil
	})
}

func get(ctx context.Context, c client.Reader, namespace string, r RolloutResource) (client.Object, error) {
	var o client.Object
	switch r.Kind {
	case MachineDeployment:
		o = &clusterv1.MachineDeployment{}
	case kubeadmControlPlane:
		o = &controlplanev1.KubeadmControlPlane{}
	default:
		o = &clusterv1.MachinePool{}
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: r.Name}, o)
	if apierrors.IsNotFound(err) {
		return nil, fault.New(fault.Gone, reasonNotFound, "there is no %s %q in namespace %q; -n names another namespace", r.Kind, r.Name, namespace).From(err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r, err)
	}
	return o, nil
}

// rolloutAfter returns the field spec.rollout.after, or an empty time for kinds without it.
func rolloutAfter(o client.Object) *metav1.Time {
	switch o := o.(type) {
	case *clusterv1.MachineDeployment:
		return &o.Spec.Rollout.After
	case *controlplanev1.KubeadmControlPlane:
		return &o.Spec.Rollout.After
	}
	return &metav1.Time{}
}

func isPaused(o client.Object) bool {
	if d, ok := o.(*clusterv1.MachineDeployment); ok {
		return d.Spec.Paused != nil && *d.Spec.Paused
	}
	_, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]
	return paused
}

func setPaused(o client.Object, paused bool) {
	if d, ok := o.(*clusterv1.MachineDeployment); ok {
		d.Spec.Paused = &paused
		return
	}
	annotations := o.GetAnnotations()
	if !paused {
		delete(annotations, clusterv1.PausedAnnotation)
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1.PausedAnnotation] = "true"
	o.SetAnnotations(annotations)
}
