package simulated

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// faultyKubelets controls the kubelets of a backend's machines. The machines of this package implement it, and
// [WrapFaulty] calls it.
type faultyKubelets interface {
	// SetReady makes the Node of a machine ready or not.
	SetReady(ctx context.Context, ref backend.Ref, ready bool) error
	// SetFaults sets the faults of the control plane on a machine and replaces earlier ones.
	SetFaults(ctx context.Context, ref backend.Ref, faults string) error
}

// WrapFaulty returns the backend with the faults that the annotations of a LocalMachine or LocalCluster request, for
// tests. The provider (package local) wraps the backend of [New] with it. A backend whose machines have no kubelets to
// control is returned unchanged.
func WrapFaulty(inner backend.Backend, now func() time.Time) backend.Backend {
	kubelets, ok := inner.Machines.(faultyKubelets)
	if !ok {
		return inner
	}
	out := inner
	out.Faults = func(annotations map[string]string) backend.Backend {
		b := inner
		after, limited := parseDuration(annotations[infrav1.NotReadyAfterAnnotation])
		problem := checkAnnotations(annotations, limited)
		b.Machines = faultyMachines{
			Machines: inner.Machines, kubelets: kubelets, now: now,
			neverBoots: isRequested(annotations, infrav1.NeverBootsAnnotation), notReady: limited, after: after,
			faults: annotations[infrav1.ControlPlaneFaultsAnnotation], problem: problem,
		}
		if isRequested(annotations, infrav1.NeverProvisionsAnnotation) {
			b.Networks = faultyNetworks{inner.Networks}
		}
		return b
	}
	return out
}

// isRequested reports whether the annotation exists with a value other than "false".
func isRequested(annotations map[string]string, name string) bool {
	value, ok := annotations[name]
	return ok && value != "false"
}

// prefix of all annotations that request faults.
const prefix = "simulated.infrastructure.slipway.dev/"

// reasonUnknown is the reason of faults about invalid annotations.
const reasonUnknown = "FaultUnknown"

// checkAnnotations returns an error for the first invalid annotation of a machine. limited is set if
// NotReadyAfterAnnotation has a valid duration.
func checkAnnotations(annotations map[string]string, limited bool) error {
	if value, ok := annotations[infrav1.NotReadyAfterAnnotation]; ok && !limited {
		return fault.New(fault.Invalid, reasonUnknown, "The annotation %s has %q: use a time such as 30s", infrav1.NotReadyAfterAnnotation, value)
	}
	known := []string{infrav1.NeverBootsAnnotation, infrav1.NotReadyAfterAnnotation, infrav1.ControlPlaneFaultsAnnotation, infrav1.NeverProvisionsAnnotation}
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(name, prefix) && !slices.Contains(known, name) {
			return fault.New(fault.Invalid, reasonUnknown, "The annotation %s is not a known fault: use one of %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// parseDuration parses a duration that may be zero, and returns false if it is invalid.
func parseDuration(value string) (time.Duration, bool) {
	d, err := time.ParseDuration(value)
	return d, err == nil && d >= 0
}

// faultyMachines wraps the machines of one object with its requested faults.
type faultyMachines struct {
	backend.Machines
	kubelets   faultyKubelets
	now        func() time.Time
	neverBoots bool
	// notReady is set if the Node becomes not ready after the machine has run for the duration after.
	notReady bool
	after    time.Duration
	// faults of the control plane on the machine.
	faults string
	// problem describes the invalid annotation. Nil: none.
	problem error
}

func (m faultyMachines) Capabilities(r backend.MachineRequest) backend.Capabilities {
	t := m.Machines.Capabilities(r)
	t.ChangesAfter = m.after
	return t
}

func (m faultyMachines) CheckQuota(ctx context.Context, spec backend.MachineSpec) (backend.Quota, error) {
	room, err := m.Machines.CheckQuota(ctx, spec)
	if m.neverBoots {
		room.Refusal = fault.New(fault.Invalid, "NeverBoots", "The annotation %s prevents the machine from starting", infrav1.NeverBootsAnnotation)
	}
	return room, err
}

// Inspect implements backend.Machines. A machine that must not start is reported as Orphaned until it has started.
func (m faultyMachines) Inspect(ctx context.Context, ref backend.Ref) (backend.Machine, error) {
	out, err := m.Machines.Inspect(ctx, ref)
	switch {
	case m.neverBoots && out.State == backend.Created:
		out.State = backend.Orphaned
	case out.State == backend.Running && m.unready(out) && !out.Degraded:
		out.Pending = "an annotation requests that its Node is not ready"
	case out.State == backend.Running && !m.unready(out) && out.Degraded:
		out.Pending = "no annotation requests any more that its Node is not ready"
	case out.State == backend.Running && m.faults != out.Faults:
		out.Pending = "an annotation requests a fault of its control plane"
	case out.State == backend.Running && m.problem != nil:
		out.Pending = "an annotation is invalid"
	}
	return out, err
}

func (m faultyMachines) Create(ctx context.Context, spec backend.MachineSpec) ([]string, error) {
	notes, err := m.Machines.Create(ctx, spec)
	if err != nil {
		return notes, err
	}
	ref := backend.Ref{Object: spec.Owner.Object, Name: spec.Name, Cluster: spec.Owner.Cluster, ControlPlane: spec.ControlPlane}
	now, err := m.Machines.Inspect(ctx, ref)
	if unready := m.unready(now); err == nil && now.State == backend.Running && unready != now.Degraded {
		err = m.kubelets.SetReady(ctx, ref, !unready)
	}
	if err == nil && spec.ControlPlane && now.State == backend.Running && m.faults != now.Faults {
		err = m.kubelets.SetFaults(ctx, ref, m.faults)
	}
	return notes, cmp.Or(err, m.problem)
}

func (m faultyMachines) unready(now backend.Machine) bool {
	return m.notReady && !m.now().Before(now.Since.Add(m.after))
}

// faultyNetworks wraps the networks of a cluster that is never provisioned.
type faultyNetworks struct{ backend.Networks }

func (faultyNetworks) FindNetwork(context.Context, backend.Ref) (backend.Network, bool, error) {
	return backend.Network{}, false, fault.New(fault.Unreachable, "NeverProvisions",
		"The annotation %s prevents the cluster from being provisioned", infrav1.NeverProvisionsAnnotation)
}
