package contract

// InfraMachinePoolView is an infrastructure machine pool as the contract sees it (rows IP2-*).
type InfraMachinePoolView struct {
	Object
	// Provisioned is true once the pool's infrastructure is there. Whatever the contract version, either of
	// status.initialization.provisioned and status.ready will do (IP2-06, MP-03).
	Provisioned Field[bool]
	// ProviderIDList holds the provider ID of every instance (IP2-05).
	ProviderIDList Field[[]string]
	// Replicas is the number of instances (IP2-08).
	Replicas Field[int32]
	// MachineKind is the kind of the infrastructure machines that the pool creates for its instances, in the
	// pool's own API group; missing where the pool has none (IP2-03).
	MachineKind Field[string]
}

// InfraMachinePool returns the view of an infrastructure machine pool.
func InfraMachinePool(o Object) InfraMachinePoolView {
	return InfraMachinePoolView{
		Object: o,
		Provisioned: anyTrue(
			read[bool](o.Object, "status.initialization.provisioned"), read[bool](o.Object, "status.ready")),
		ProviderIDList: read[[]string](o.Object, "spec.providerIDList"),
		Replicas:       read[int32](o.Object, "status.replicas"),
		MachineKind:    read[string](o.Object, "status.infrastructureMachineKind"),
	}
}

// anyTrue returns the first of the flags that is true, else the first with something to say.
func anyTrue(flags ...Field[bool]) Field[bool] {
	for _, f := range flags {
		if f.Or(false) {
			return f
		}
	}
	return either(flags...)
}
