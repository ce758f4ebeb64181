// Package encryption checks whether the encryption keys in a Secret can decrypt the data of a control plane.
// It creates no keys and reads no objects. Start at [EncryptionKeys].
package hosted

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons for unusable keys.
const (
	reasonMissing = "EncryptionKeysMissing"
	reasonInvalid = "EncryptionKeysInvalid"
	reasonChanged = processconfig.ReasonEncryptionKeys
)

// EncryptionKeys returns the keys of the Secret with this name, which may be nil, or a fault if they cannot be used
// with the data.
func EncryptionKeys(name string, secret *corev1.Secret, data processconfig.Data) (componentconfig.KeySet, error) {
	var none componentconfig.KeySet
	used := data.EncryptionKeys
	switch {
	case secret == nil && used == "":
		return none, fault.New(fault.Invalid, reasonMissing, "Secret %s is being created", name)
	case secret == nil:
		return none, fault.New(fault.Invalid, reasonMissing,
			"Secret %s is gone; restore it from a backup: data of the workload cluster is encrypted with its keys, and new ones cannot read it", name)
	}
	keys, err := componentconfig.ParseKeys(secret.Data)
	switch {
	case err != nil && used == "":
		return none, fault.New(fault.Invalid, reasonInvalid, "Secret %s cannot be used: %s; correct it, or delete it to have new keys created", name, err)
	case err != nil:
		return none, fault.New(fault.Invalid, reasonInvalid, "Secret %s cannot be used: %s; restore it from a backup: data of the workload cluster is encrypted with its keys", name, err)
	case used != "" && !componentconfig.OpenedBy(used, keys.Fingerprint(), data.Rewritten(keys.Rewritten)):
		return none, fault.New(fault.Invalid, reasonChanged, "Secret %s has other keys than those that data of the workload cluster is encrypted with; restore it from a backup", name)
	}
	return keys, nil
}
