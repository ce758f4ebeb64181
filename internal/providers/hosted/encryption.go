package hosted

import (
	"encoding/json"
	"fmt"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/componentfile"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// Reasons why the keys of encryption cannot be used.
const (
	reasonKeysMissing = "EncryptionKeysMissing"
	reasonKeysInvalid = "EncryptionKeysInvalid"
	reasonKeysChanged = workload.ReasonEncryptionKeys
)

// encrypts reports whether objects of the workload cluster are encrypted in etcd, or may be from before.
func (s Snapshot) encrypts() bool {
	return s.Terms.Components && (s.Plane.Spec.Encryption != nil || s.Process.Data.EncryptionKeys != "")
}

// security are the settings of it that concern the control plane.
func (s Snapshot) security() hostedv1.Security {
	if !s.Terms.Components {
		return hostedv1.Security{}
	}
	return s.Plane.Spec.Security
}

// encryptionKeys returns the keys of the cluster's Secret; a fault says why they cannot be used.
func encryptionKeys(s Snapshot) (componentfile.Keys, error) {
	name, used := PurposeEncryption.SecretName(s.Cluster.Name), s.Process.Data.EncryptionKeys
	secret := s.Secrets[PurposeEncryption]
	switch {
	case secret == nil && used == "":
		return nil, fault.New(fault.Invalid, reasonKeysMissing, "Secret %s is being created", name)
	case secret == nil:
		return nil, fault.New(fault.Invalid, reasonKeysMissing,
			"Secret %s is gone; restore it from a backup: data of the workload cluster is encrypted with its keys, and new ones cannot read it", name)
	}
	keys, err := componentfile.ParseKeys(secret.Data)
	switch {
	case err != nil && used == "":
		return nil, fault.New(fault.Invalid, reasonKeysInvalid, "Secret %s cannot be used: %s; correct it, or delete it to have new keys created", name, err)
	case err != nil:
		return nil, fault.New(fault.Invalid, reasonKeysInvalid, "Secret %s cannot be used: %s; restore it from a backup: data of the workload cluster is encrypted with its keys", name, err)
	case used != "" && used != keys.Fingerprint():
		return nil, fault.New(fault.Invalid, reasonKeysChanged, "Secret %s has other keys than those that data of the workload cluster is encrypted with; restore it from a backup", name)
	}
	return keys, nil
}

// decideKeys reports whether the keys are there and usable. New ones are created only where nothing was encrypted yet.
func decideKeys(s Snapshot, p *loop.Plan) bool {
	if !s.encrypts() {
		return true
	}
	_, err := encryptionKeys(s)
	switch {
	case err == nil:
		return true
	case s.Secrets[PurposeEncryption] == nil && s.Process.Data.EncryptionKeys == "":
		p.Do(CreateKeys{Cluster: s.Cluster.Name})
		p.RecheckIn(soon) // Secrets are not watched by name before they exist
	default:
		p.WaitFor(fault.As(err).Reason, "%s", fault.UserMessage(err)).For("Secret", PurposeEncryption.SecretName(s.Cluster.Name)).ForPerson()
	}
	return false
}

// keyFingerprint stands for the keys that the process is given; empty: none.
func keyFingerprint(s Snapshot) string {
	if !s.encrypts() {
		return ""
	}
	keys, err := encryptionKeys(s)
	if err != nil { // decideKeys waits
		return ""
	}
	return keys.Fingerprint()
}

// keyFile is the file with the keys, of the three keys alone: a user may have written the Secret.
func keyFile(s Snapshot) ([]byte, error) {
	keys, err := encryptionKeys(s)
	if err != nil {
		return nil, err
	}
	return json.Marshal(keys)
}

// deniedIssuer returns why the operator does not allow what the API server would connect to, empty if all is allowed.
func deniedIssuer(s Snapshot) string {
	for _, url := range componentfile.Issuers(s.security()) {
		if why := s.Policy.DeniedIssuer(url); why != "" {
			return fmt.Sprintf("spec.authentication.jwt: %s", why)
		}
	}
	return ""
}
