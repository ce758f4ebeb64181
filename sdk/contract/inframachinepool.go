package contract

import (
	"cmp"
	"fmt"
	"regexp"
)

// Limits of the corresponding MachinePool fields.
const (
	maxProviderIDs = 10000
	maxProviderID  = 512
	maxKind        = 63
)

// InfraMachinePoolView is an infrastructure machine pool with the fields of the contract.
type InfraMachinePoolView struct {
	Object
	// Provisioned is true once the pool's infrastructure is provisioned. In both contract versions, either
	// status.initialization.provisioned or status.ready suffices.
	Provisioned Field[bool]
	// ProviderIDList has the provider ID of every instance.
	ProviderIDList Field[[]string]
	// Replicas is the number of instances.
	Replicas Field[int32]
	// MachineKind is the kind of the infrastructure machines that the pool creates for its instances, in the pool's own
	// API group; missing if it creates none.
	MachineKind Field[string]
}

// InfraMachinePool returns the view of an infrastructure machine pool.
func InfraMachinePool(o Object) InfraMachinePoolView {
	return InfraMachinePoolView{
		Object: o,
		Provisioned: anyTrue(
			read[bool](o, "status.initialization.provisioned"), read[bool](o, "status.ready")),
		ProviderIDList: read[[]string](o, "spec.providerIDList").checked(providerIDs),
		Replicas:       read[int32](o, "status.replicas").checked(replicas),
		MachineKind:    read[string](o, "status.infrastructureMachineKind").checked(kind),
	}
}

// Err implements [View].
func (v InfraMachinePoolView) Err() error {
	return cmp.Or(v.Provisioned.Err(), v.ProviderIDList.Err(), v.Replicas.Err(), v.MachineKind.Err())
}

// Completion implements [View].
func (v InfraMachinePoolView) Completion() Completion { return Completion{Flag: v.Provisioned} }

func providerIDs(list []string) error {
	if len(list) > maxProviderIDs {
		return fmt.Errorf("there are %d items, %d at most are possible", len(list), maxProviderIDs)
	}
	for i, id := range list {
		switch {
		case id == "":
			return fmt.Errorf("item %d is empty", i)
		case len(id) > maxProviderID:
			return fmt.Errorf("item %d has %d characters, %d at most are possible", i, len(id), maxProviderID)
		}
	}
	return nil
}

func replicas(n int32) error {
	if n < 0 {
		return fmt.Errorf("want 0 or more, have %d", n)
	}
	return nil
}

func kind(name string) error {
	if len(name) > maxKind {
		return fmt.Errorf("%d characters are not the name of a kind", len(name))
	}
	if !regexp.MustCompile(`^[a-zA-Z0-9]*$`).MatchString(name) {
		return fmt.Errorf("%q is not the name of a kind", name)
	}
	return nil
}

// anyTrue returns the first flag that is true, or else the first that is found or unreadable.
func anyTrue(flags ...Field[bool]) Field[bool] {
	for _, f := range flags {
		if f.Or(false) {
			return f
		}
	}
	return either(flags...)
}
