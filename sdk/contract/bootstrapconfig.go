package contract

import (
	"cmp"
	"fmt"
)

// maxSecretName is the length of the longest name of an object.
const maxSecretName = 253

// BootstrapConfigView is a bootstrap config as the contract sees it (rows BC-*).
type BootstrapConfigView struct {
	Object
	// DataSecretCreated is true once the Secret with the bootstrap data exists.
	DataSecretCreated Field[bool]
	// DataSecretName of that Secret.
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
