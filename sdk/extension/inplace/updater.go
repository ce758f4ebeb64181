package inplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension/patch"
)

// Updater handles the CanUpdate hooks. Its methods are handlers for extension.OnErr.
type Updater struct {
	// Rules for the same object are applied in order, each to the result of the previous one.
	Rules []Rule
	// Format is the format of the patches; default JSONPatch.
	Format hooksv1.PatchType
}

// CanUpdateMachine responds with a patch for each object of the Machine with changes that are covered by rules.
func (u Updater) CanUpdateMachine(ctx context.Context, in *hooksv1.CanUpdateMachineRequest, out *hooksv1.CanUpdateMachineResponse) error {
	machine, err := typedPart(part{kind: "Machine", root: machineRoot}, in.Current.Machine, in.Desired.Machine)
	if err != nil {
		return err
	}
	return u.fill(ctx, map[*hooksv1.Patch]part{
		&out.MachinePatch:               machine,
		&out.InfrastructureMachinePatch: rawPart(machineRoot, in.Current.InfrastructureMachine, in.Desired.InfrastructureMachine),
		&out.BootstrapConfigPatch:       rawPart(machineRoot, in.Current.BootstrapConfig, in.Desired.BootstrapConfig),
	})
}

// CanUpdateMachineSet is [Updater.CanUpdateMachine] for a MachineSet and its templates.
func (u Updater) CanUpdateMachineSet(ctx context.Context, in *hooksv1.CanUpdateMachineSetRequest, out *hooksv1.CanUpdateMachineSetResponse) error {
	set, err := typedPart(part{kind: "MachineSet", root: templateRoot}, in.Current.MachineSet, in.Desired.MachineSet)
	if err != nil {
		return err
	}
	return u.fill(ctx, map[*hooksv1.Patch]part{
		&out.MachineSetPatch:                    set,
		&out.InfrastructureMachineTemplatePatch: rawPart(templateRoot, in.Current.InfrastructureMachineTemplate, in.Desired.InfrastructureMachineTemplate),
		&out.BootstrapConfigTemplatePatch:       rawPart(templateRoot, in.Current.BootstrapConfigTemplate, in.Desired.BootstrapConfigTemplate),
	})
}

// fill sets all patches, or none if there is an error.
func (u Updater) fill(ctx context.Context, parts map[*hooksv1.Patch]part) error {
	format := u.Format
	if format == "" {
		format = hooksv1.JSONPatchType
	}
	made := map[*hooksv1.Patch][]byte{}
	var problems []error
	for into, p := range parts {
		difference, err := u.patch(ctx, p, format)
		if err != nil {
			problems = append(problems, err)
		} else if difference != nil {
			made[into] = difference
		}
	}
	if len(problems) > 0 {
		return joinSorted(problems)
	}
	for into, difference := range made {
		*into = hooksv1.Patch{PatchType: format, Patch: difference}
	}
	return nil
}

// patch returns the patch with the changes of one object that are covered by rules; nil if there are none.
func (u Updater) patch(ctx context.Context, p part, format hooksv1.PatchType) ([]byte, error) {
	if len(p.current) == 0 {
		return nil, nil
	}
	if err := p.identify(); err != nil {
		return nil, err
	}
	object := p.current
	for _, r := range u.Rules {
		if !r.isFor(p) {
			continue
		}
		changed, err := r.apply(ctx, p, object)
		if err == nil {
			object, err = within(p.root, object, changed)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.kind, err)
		}
	}
	return patch.Diff(format, p.current, object)
}

// Decode decodes an object of a request, for example in.Desired.InfrastructureMachine.
func Decode[T any](object runtime.RawExtension) (*T, error) {
	out := new(T)
	if len(object.Raw) == 0 {
		return nil, errors.New("the request does not hold the object")
	}
	if err := json.Unmarshal(object.Raw, out); err != nil {
		return nil, fmt.Errorf("reading the object as %T: %w", *out, err)
	}
	return out, nil
}

// typedPart returns the part for an object of a core Cluster API kind.
func typedPart(p part, current, desired any) (part, error) {
	var err, err2 error
	p.group = clusterv1.GroupVersion.Group
	p.current, err = json.Marshal(current)
	p.desired, err2 = json.Marshal(desired)
	return p, errors.Join(err, err2)
}

func rawPart(root []string, current, desired runtime.RawExtension) part {
	return part{root: root, current: current.Raw, desired: desired.Raw}
}
