package contract

// BootstrapConfigView is a bootstrap config as the contract sees it (rows BC-*).
type BootstrapConfigView struct {
	Object
	// DataSecretCreated is true once the Secret with the bootstrap data exists (BC-03).
	DataSecretCreated Field[bool]
	// DataSecretName of that Secret (BC-02).
	DataSecretName Field[string]
}

// BootstrapConfig returns the view of a bootstrap config.
func BootstrapConfig(o Object) BootstrapConfigView {
	return BootstrapConfigView{
		Object:            o,
		DataSecretCreated: o.flag("status.initialization.dataSecretCreated", "status.ready"),
		DataSecretName:    read[string](o.Object, "status.dataSecretName"),
	}
}
