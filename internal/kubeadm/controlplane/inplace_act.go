package controlplane

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
)

// objects returns the Machine and its current objects. This file has the writes and calls of an in-place update:
// [controller.checkUpdate] determines whether an extension can make it, and [controller.beginUpdate] starts it, both
// for the steps that inplace_decide.go plans. The Machine controller then calls the extension until the update ends.
func (s snapshot) objects(name string) (inplace.Machine, error) {
	m := s.named(name)
	infra := s.Clones.InfrastructureOf(m.Machine).Unstructured
	if m.Config == nil || infra == nil {
		return inplace.Machine{}, fault.New(fault.Gone, "ObjectDoesNotExist", "the infrastructure machine or the KubeadmConfig of Machine %s does not exist", name)
	}
	u, err := untyped(m.Config)
	return inplace.Machine{Machine: m.Machine, Infrastructure: infra, Bootstrap: u}, err
}

// applied returns the infrastructure machine and the KubeadmConfig for server-side apply: the fields of a new
// Machine, and the annotation update-in-progress.
func (s snapshot) applied(current inplace.Machine) (infra, config *unstructured.Unstructured, err error) {
	d := s.definition()
	infra, err = clone.New(clone.Options{
		Template: s.Infra.Object, Name: current.Infrastructure.GetName(), Cluster: d.Cluster, Labels: d.Labels, Annotations: d.Annotations,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cloning %s %s: %w", s.Infra.Ref.Kind, s.Infra.Ref.Name, err)
	}
	have := s.Configs[current.Bootstrap.GetName()].Spec
	config, err = newConfig(s.ControlPlane, metav1.ObjectMeta{
		Namespace: s.ControlPlane.Namespace, Name: current.Bootstrap.GetName(), Labels: d.Labels, Annotations: d.Annotations,
	}, !have.InitConfiguration.IsDefined())
	if err != nil {
		return nil, nil, err
	}
	for want, live := range map[*unstructured.Unstructured]*unstructured.Unstructured{infra: current.Infrastructure, config: current.Bootstrap} {
		want.SetAPIVersion(live.GetAPIVersion())
		want.SetUID(live.GetUID())
		want.SetOwnerReferences(nil) // owned by the Machine's field manager
		kube.Annotate(want, clusterv1.UpdateInProgressAnnotation, new(""))
	}
	return infra, config, nil
}

// checkUpdate returns whether the extension can update a Machine and its objects to the desired state. The desired
// state is the result of a server-side apply dry run, because other field managers own some of the fields. If the API
// server rejects the dry run, an in-place update is not possible. read calls it, if [decide] has requested the read.
func (c *controller) checkUpdate(ctx context.Context, s snapshot, name string) (inplace.UpdateCheck, error) {
	current, err := s.objects(name)
	if err != nil {
		return inplace.UpdateCheck{}, err
	}
	desired, err := c.updatedMachine(ctx, s, current)
	switch {
	case err == nil:
		return inplace.Caller{Client: c.extensions, Failed: &c.failed, Now: c.now}.CanUpdateMachine(ctx, current, desired)
	case apierrors.IsInvalid(err):
		return inplace.UpdateCheck{Uncovered: strings.Join(kube.FailureMessages(err), "; ")}, nil
	case ctx.Err() != nil, fault.KindOf(err) == fault.Conflict, fault.KindOf(err) == fault.Gone:
		return inplace.UpdateCheck{}, err
	}
	return inplace.UpdateCheck{Problem: fault.New(fault.KindOf(err), "DesiredUnknown", "%s", strings.Join(kube.FailureMessages(err), "; ")).From(err)}, nil
}

func (c *controller) updatedMachine(ctx context.Context, s snapshot, current inplace.Machine) (inplace.Machine, error) {
	out := inplace.Machine{Machine: current.Machine.DeepCopy()}
	out.Machine.Spec.Version = s.ControlPlane.Spec.Version
	infra, config, err := s.applied(current)
	if err != nil {
		return out, err
	}
	if out.Infrastructure, err = c.dryRun(ctx, current.Infrastructure, infra); err != nil {
		return out, err
	}
	if out.Bootstrap, err = c.dryRun(ctx, current.Bootstrap, config); err != nil {
		return out, err
	}
	out.Bootstrap, err = aligned(s.Configs[current.Bootstrap.GetName()].Spec, out.Bootstrap)
	return out, err
}

// dryRun returns an object with the spec that it would have after the apply.
func (c *controller) dryRun(ctx context.Context, live, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	result, err := c.writer.WithManager(manager).DryRun(ctx, live, want)
	if err != nil {
		return nil, err
	}
	out := live.DeepCopy()
	out.Object["spec"] = result.Object["spec"]
	return out, nil
}

// aligned returns a desired KubeadmConfig without the differences for which no Machine is replaced.
func aligned(have bootstrapv1.KubeadmConfigSpec, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	config := &bootstrapv1.KubeadmConfig{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(desired.Object, config); err != nil {
		return nil, fault.New(fault.Bug, "InvalidKubeadmConfig", "KubeadmConfig %s cannot be read", desired.GetName()).From(err)
	}
	config.Spec = alignedConfig(have, config.Spec)
	return untyped(config)
}

// beginUpdate starts the update of a Machine. It writes the annotation, then the infrastructure machine, the
// KubeadmConfig and the Machine's spec, and finally the pending hook. Each step is idempotent, and [continueUpdate]
// continues an interrupted start. act calls it.
func (c *controller) beginUpdate(ctx context.Context, s snapshot, name string) error {
	current, err := s.objects(name)
	if err != nil {
		return err
	}
	infra, config, err := s.applied(current)
	if err != nil {
		return err
	}
	if !inplace.IsMarked(current.Machine) {
		if err := c.writer.Patch(ctx, current.Machine, func(o client.Object) { kube.Annotate(o, clusterv1.UpdateInProgressAnnotation, new("")) }); err != nil {
			return err
		}
	}
	for _, o := range []*unstructured.Unstructured{infra, config} {
		if err := c.writer.WithManager(manager).Apply(ctx, nil, o); err != nil {
			return err
		}
	}
	want := s.machinesState().InPlace(current.Machine)
	want.Spec.Version = s.ControlPlane.Spec.Version
	if err := c.machineWriter().Sync(ctx, current.Machine, want); err != nil {
		return err
	}
	return c.addHook(ctx, current.Machine)
}

// addHook adds the pending hook to the present version of the Machine.
func (c *controller) addHook(ctx context.Context, m *clusterv1.Machine) error {
	live := &clusterv1.Machine{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil {
		return fmt.Errorf("reading Machine %s: %w", m.Name, err)
	}
	if live.UID != m.UID || inplace.StateOf(live) != inplace.Triggering {
		return fault.New(fault.Conflict, "StaleObject", "Machine %s was changed while its in-place update started", m.Name)
	}
	return c.writer.Patch(ctx, live, func(o client.Object) {
		kube.Annotate(o, runtimev1.PendingHooksAnnotation, new(inplace.WithHook(o)))
	})
}
