package contract

import (
	"cmp"
	"fmt"
)

// maxSecretName is the maximum length of an object's name.
const maxSecretName = 253

// BootstrapConfigView is a bootstrap config with the fields of the contract.
type BootstrapConfigView struct {
	Object
	// DataSecretCreated is true once the Secret with the bootstrap data exists.
	DataSecretCreated Field[bool]
	// DataSecretName is the name of this Secret.
	DataSecretName Field[string]
}

// BootstrapConfig returns the view of a bootstrap config.
func BootstrapConfig(o Object) BootstrapConfigView {
	return BootstrapConfigView{
		Object:            o,
		DataSecretCreated: o.flag("status.initialization.dataSecretCreated", "status.ready"),
		DataSecretName:    read[string](o, "status.dataSecretName").checked(secretName),
	}
}

// Err implements [View].
func (v BootstrapConfigView) Err() error {
	return cmp.Or(v.DataSecretCreated.Err(), v.DataSecretName.Err())
}

// Completion implements [View].
func (v BootstrapConfigView) Completion() Completion {
	return Completion{Flag: v.DataSecretCreated, Result: v.DataSecretName}
}

func secretName(name string) error {
	if len(name) > maxSecretName {
		return fmt.Errorf("%d characters are not the name of a Secret", len(name))
	}
	return nil
}
