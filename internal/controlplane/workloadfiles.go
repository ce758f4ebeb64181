package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Limits of the audit log, in addition to the limit of one event.
const (
	auditFiles   = 5  // the current file and older ones
	auditFileMiB = 20 // of each file
)

// workloadFiles writes the configuration files that the kube-apiserver of a workload cluster reads, and returns the
// flags that refer to them. [RunWorkload] calls it at each start. Package componentconfig encodes the files from
// validated values; text of a tenant must not reach a file in another way.
func workloadFiles(cfg WorkloadConfig) ([]string, error) {
	s := cfg.Security
	auth := filepath.Join(cfg.Folder.PKI(), "authentication.json")
	if err := writeAuthentication(auth, s.Authentication, append([]string{clusterInfoPath}, healthPaths[:]...)...); err != nil {
		return nil, err
	}
	flags := []string{"--authentication-config=" + auth}
	add := func(flag, name string, content []byte, err error) error {
		path := filepath.Join(cfg.Folder.PKI(), name)
		if err == nil {
			_, err = datadir.WriteFile(path, content, 0o600)
		}
		flags = append(flags, "--"+flag+"="+path)
		return err
	}
	var errs []error
	if s.Audit != nil {
		content, err := componentconfig.AuditPolicy(*s.Audit)
		errs = append(errs, add("audit-policy-file", "audit-policy.json", content, err))
		flags = append(flags, auditFlags(cfg.Folder.AuditLog())...)
	}
	if content, err := componentconfig.Admission(s); content != nil || err != nil {
		errs = append(errs, add("admission-control-config-file", "admission.json", content, err))
	}
	if cfg.EncryptionKeys != "" {
		content, err := encryption(cfg)
		errs = append(errs, add("encryption-provider-config", "encryption.json", content, err))
	}
	return flags, errors.Join(errs...)
}

// encryption returns the encryption configuration with the keys of the control plane, after checking their
// fingerprint.
func encryption(cfg WorkloadConfig) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(cfg.Folder.PKI(), processconfig.EncryptionKeys))
	if err != nil {
		return nil, fmt.Errorf("encryption keys: %w", err)
	}
	var data map[string][]byte
	if err := json.Unmarshal(text, &data); err != nil {
		return nil, fmt.Errorf("read %s: %w", processconfig.EncryptionKeys, err)
	}
	keys, err := componentconfig.ParseKeys(data)
	if err != nil {
		return nil, fmt.Errorf("encryption keys: %w", err)
	}
	if keys.Fingerprint() != cfg.EncryptionKeys {
		return nil, fault.New(fault.Invalid, processconfig.ReasonEncryptionKeys, "the encryption keys in the folder of the control plane are not those of its configuration")
	}
	return componentconfig.Encryption(cfg.Security.Encryption, keys)
}

// auditFlags configures an audit log of limited size, for management and workload clusters.
func auditFlags(path string) []string {
	return []string{
		"--audit-log-path=" + path, "--audit-log-maxsize=" + strconv.Itoa(auditFileMiB),
		"--audit-log-maxbackup=" + strconv.Itoa(auditFiles-1), "--audit-log-truncate-enabled=true",
	}
}
