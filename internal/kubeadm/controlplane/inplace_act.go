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
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
)

// updateWriter calls in-place update extensions and writes the objects that start an update.
type updateWriter struct {
	Extensions inplace.Caller
	Machines   machines.MachineWriter
}

// objects returns the Machine and its current objects.
func (in updateInput) objects(name string) (inplace.Machine, error) {
	m := in.State.Members.Named(name)
	config := in.Configs[m.Spec.Bootstrap.ConfigRef.Name]
	infra := in.State.Clones.InfrastructureOf(m.Machine).Unstructured
	if config == nil || infra == nil {
		return inplace.Machine{}, fault.New(fault.Gone, "ObjectDoesNotExist", "the objects of Machine %s do not exist any more", name)
	}
	u, err := untyped(config)
	return inplace.Machine{Machine: m.Machine, Infrastructure: infra, Bootstrap: u}, err
}

func untyped(config *bootstrapv1.KubeadmConfig) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidKubeadmConfig", "KubeadmConfig %s cannot be encoded", config.Name).From(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind("KubeadmConfig"))
	return u, nil
}

// applied returns the infrastructure machine and the KubeadmConfig for server-side apply: the fields of a new
// Machine, and the annotation update-in-progress.
func (in updateInput) applied(current inplace.Machine) (infra, config *unstructured.Unstructured, err error) {
	d := in.State.Definition
	infra, err = clone.New(clone.Options{
		Template: in.Template.Object, Name: current.Infrastructure.GetName(), Cluster: d.Cluster, Labels: d.Labels, Annotations: d.Annotations,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cloning %s %s: %w", in.Template.Ref.Kind, in.Template.Ref.Name, err)
	}
	have := in.Configs[current.Bootstrap.GetName()].Spec
	config, err = newConfig(in.ControlPlane, metav1.ObjectMeta{
		Namespace: in.ControlPlane.Namespace, Name: current.Bootstrap.GetName(), Labels: d.Labels, Annotations: d.Annotations,
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

// check returns whether the extension can update a Machine and its objects to the desired state. The desired state is
// the result of a server-side apply dry run, because other field managers own some of the fields. If the API server
// rejects the dry run, an in-place update is not possible.
func (w updateWriter) check(ctx context.Context, in updateInput, name string) (inplace.UpdateCheck, error) {
	current, err := in.objects(name)
	if err != nil {
		return inplace.UpdateCheck{}, err
	}
	desired, err := w.desired(ctx, in, current)
	switch {
	case err == nil:
		return w.Extensions.CanUpdateMachine(ctx, current, desired)
	case apierrors.IsInvalid(err):
		return inplace.UpdateCheck{Uncovered: strings.Join(kube.FailureMessages(err), "; ")}, nil
	case ctx.Err() != nil, fault.KindOf(err) == fault.Conflict, fault.KindOf(err) == fault.Gone:
		return inplace.UpdateCheck{}, err
	}
	return inplace.UpdateCheck{Problem: fault.New(fault.KindOf(err), "DesiredUnknown", "%s", strings.Join(kube.FailureMessages(err), "; ")).From(err)}, nil
}

// desired returns the desired Machine and objects.
func (w updateWriter) desired(ctx context.Context, in updateInput, current inplace.Machine) (inplace.Machine, error) {
	out := inplace.Machine{Machine: current.Machine.DeepCopy()}
	out.Machine.Spec.Version = in.ControlPlane.Spec.Version
	infra, config, err := in.applied(current)
	if err != nil {
		return out, err
	}
	if out.Infrastructure, err = w.dryRun(ctx, current.Infrastructure, infra); err != nil {
		return out, err
	}
	if out.Bootstrap, err = w.dryRun(ctx, current.Bootstrap, config); err != nil {
		return out, err
	}
	out.Bootstrap, err = aligned(in.Configs[current.Bootstrap.GetName()].Spec, out.Bootstrap)
	return out, err
}

// dryRun returns an object with the spec that it would have after the apply.
func (w updateWriter) dryRun(ctx context.Context, live, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer, err := w.Machines.Writer.WithManager(w.Machines.Manager).DryRun(ctx, live, want)
	if err != nil {
		return nil, err
	}
	out := live.DeepCopy()
	out.Object["spec"] = answer.Object["spec"]
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

// trigger starts the update of a Machine. It writes the annotation, then the infrastructure machine, the KubeadmConfig
// and the Machine's spec, and finally the pending hook. Each step is idempotent, and [updateInput.Ongoing] continues an
// interrupted start.
func (w updateWriter) trigger(ctx context.Context, in updateInput, name string) error {
	current, err := in.objects(name)
	if err != nil {
		return err
	}
	infra, config, err := in.applied(current)
	if err != nil {
		return err
	}
	if !inplace.IsMarked(current.Machine) {
		if err := w.Machines.Writer.Patch(ctx, current.Machine, func(o client.Object) { kube.Annotate(o, clusterv1.UpdateInProgressAnnotation, new("")) }); err != nil {
			return err
		}
	}
	for _, o := range []*unstructured.Unstructured{infra, config} {
		if err := w.Machines.Writer.WithManager(w.Machines.Manager).Apply(ctx, nil, o); err != nil {
			return err
		}
	}
	want := in.State.InPlace(current.Machine)
	want.Spec.Version = in.ControlPlane.Spec.Version
	if err := w.Machines.Sync(ctx, current.Machine, want); err != nil {
		return err
	}
	return w.addHook(ctx, current.Machine)
}

// addHook adds the pending hook to the present version of the Machine.
func (w updateWriter) addHook(ctx context.Context, m *clusterv1.Machine) error {
	live := &clusterv1.Machine{}
	if err := w.Machines.Live.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil {
		return fmt.Errorf("reading Machine %s: %w", m.Name, err)
	}
	if live.UID != m.UID || inplace.StateOf(live) != inplace.Triggering {
		return fault.New(fault.Conflict, "StaleObject", "Machine %s was changed while its update in place began", m.Name)
	}
	return w.Machines.Writer.Patch(ctx, live, func(o client.Object) {
		kube.Annotate(o, runtimev1.PendingHooksAnnotation, new(inplace.WithHook(o)))
	})
}
