package hosted

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// encrypts reports whether objects of the workload cluster are encrypted in etcd, now or from an earlier configuration.
// This file decides about the keys in Secret <cluster>-encryption: [planKeys] creates them, and `slipway rotate`
// replaces them and waits for [keysInEffect]. The rules must prevent a start with keys that cannot decrypt the data.
func (s snapshot) encrypts() bool {
	return s.Capabilities.Components && (s.security().Encryption != nil || s.Process.Data.EncryptionKeys != "")
}

// security returns the effective security settings of the control plane.
func (s snapshot) security() hostedv1.Security {
	if !s.Capabilities.Components {
		return hostedv1.Security{}
	}
	return s.Plane.Spec.Security.Effective()
}

// encryptionKeys returns the keys in the cluster's Secret, or a fault if they cannot be used.
func encryptionKeys(s snapshot) (componentconfig.KeySet, error) {
	return parseEncryptionKeys(purposeEncryption.SecretName(s.Cluster.Name), s.Secrets[purposeEncryption], s.Process.Data)
}

// planKeys checks the encryption keys. It is a step of [decide]. It creates new keys only if no data is encrypted yet.
func planKeys(s snapshot) (p reconciler.Plan) {
	if !s.encrypts() {
		return p
	}
	if _, err := encryptionKeys(s); err == nil {
		return p
	} else if s.Secrets[purposeEncryption] == nil && s.Process.Data.EncryptionKeys == "" {
		p.Do(createKeys{Cluster: s.Cluster.Name})
		p.RecheckIn(unwatchedRecheck) // Secrets are not watched by name before they exist
	} else {
		p.WaitFor(fault.As(err).Reason, "%s", fault.UserMessage(err)).For("Secret", purposeEncryption.SecretName(s.Cluster.Name)).UntilUserActs()
	}
	return at(stagePrerequisites, p)
}

// keyFingerprint returns the fingerprint of the keys for the process, and the mark that the data only needs
// the current keys. Both are empty without encryption.
func keyFingerprint(s snapshot) (keys, mark string) {
	if !s.encrypts() {
		return "", ""
	}
	set, err := encryptionKeys(s)
	if err != nil { // planKeys waits
		return "", ""
	}
	return set.Fingerprint(), set.Rewritten
}

// keysInEffect returns the fingerprint of the keys that the running process uses. It does not change until
// the process runs with new keys.
func keysInEffect(s snapshot) string {
	if !s.runsAsConfigured() {
		return s.Plane.Status.EncryptionKeys
	}
	keys, _ := keyFingerprint(s)
	return keys
}

// keyFile returns the key file. It contains only the parsed keys, because a user may have written the Secret. act
// passes it to the process when it starts.
func keyFile(s snapshot) ([]byte, error) {
	keys, err := encryptionKeys(s)
	if err != nil {
		return nil, err
	}
	return json.Marshal(keys.Data())
}

// deniedIssuer returns why the operator does not permit a token issuer in the spec, or an empty string. [decide] waits
// for the user while there is a reason.
func deniedIssuer(s snapshot) string {
	for _, url := range componentconfig.Issuers(s.security()) {
		if why := s.Policy.DeniedIssuer(url); why != "" {
			return fmt.Sprintf("spec.authentication.jwt: %s", why)
		}
	}
	return ""
}

// Reasons for unusable keys.
const (
	reasonMissing = "EncryptionKeysMissing"
	reasonInvalid = "EncryptionKeysInvalid"
	reasonChanged = processconfig.ReasonEncryptionKeys
)

// parseEncryptionKeys returns the keys of the Secret with this name, which may be nil, or a fault if they cannot be
// used with the data.
func parseEncryptionKeys(name string, secret *corev1.Secret, data processconfig.Data) (componentconfig.KeySet, error) {
	var none componentconfig.KeySet
	used := data.EncryptionKeys
	switch {
	case secret == nil && used == "":
		return none, fault.New(fault.Invalid, reasonMissing, "Secret %s is being created", name)
	case secret == nil:
		return none, fault.New(fault.Invalid, reasonMissing,
			"Secret %s is missing; restore it from a backup, because data of the workload cluster is encrypted with its keys", name)
	}
	keys, err := componentconfig.ParseKeys(secret.Data)
	switch {
	case err != nil && used == "":
		return none, fault.New(fault.Invalid, reasonInvalid, "Secret %s cannot be used: %s; correct it, or delete it so that new keys are created", name, err)
	case err != nil:
		return none, fault.New(fault.Invalid, reasonInvalid, "Secret %s cannot be used: %s; restore it from a backup: data of the workload cluster is encrypted with its keys", name, err)
	case used != "" && !componentconfig.KeysSuffice(used, keys.Fingerprint(), data.Rewritten(keys.Rewritten)):
		return none, fault.New(fault.Invalid, reasonChanged, "Secret %s does not contain the keys that encrypt the data of the workload cluster; restore it from a backup", name)
	}
	return keys, nil
}
