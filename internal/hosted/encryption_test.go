package hosted

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/process"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// encrypted is a control plane that runs with encryption.
func encrypted(s *snapshot) {
	s.Plane.Spec.Encryption = &hostedv1.Encryption{}
	keys := componentconfig.NewKeys()
	s.Secrets[purposeEncryption] = newSecret(*s, purposeEncryption, keys)
	s.Process.Data = processconfig.Data{Exists: true, Version: version, EncryptionKeys: componentconfig.KeySet{Current: keys}.Fingerprint()}
	s.Process.Config = configOf(*s).Hash()
}

// rotated puts new keys before those of the Secret; inEffect has the process run with what the Secret says.
func rotated(s *snapshot) {
	secret := s.Secrets[purposeEncryption]
	keys, _ := componentconfig.ParseKeys(secret.Data)
	secret.Data = keys.Rotated().Data()
}

func inEffect(s *snapshot) {
	s.Process.Data.EncryptionKeys, _ = keyFingerprint(*s)
	s.Process.Config = configOf(*s).Hash()
}

// settled leaves the new keys alone in the Secret, with or without the mark that everything is encrypted with them.
func settled(rewritten bool) func(*snapshot) {
	return func(s *snapshot) {
		secret := s.Secrets[purposeEncryption]
		keys, _ := componentconfig.ParseKeys(secret.Data)
		secret.Data = keys.WithoutFormer().Data()
		if !rewritten {
			delete(secret.Data, "rewritten")
		}
	}
}

// Which keys are in effect is said when the process runs with them, and not before.
func TestKeysInEffect(t *testing.T) {
	status := func(s snapshot) string {
		return report(s, decide(s), reconciler.Outcome{}).Status.(hostedv1.HostedControlPlaneStatus).EncryptionKeys
	}
	first := status(running(t, encrypted))
	after := running(t, encrypted, func(s *snapshot) { s.Plane.Status.EncryptionKeys = "before" }, rotated)
	if got := status(after); got != "before" {
		t.Errorf("before the restart: %q", got)
	}
	inEffect(&after)
	if got := status(after); len(first) != 24 || len(got) != 49 || !strings.Contains(got, ",") {
		t.Errorf("%q, then %q", first, got)
	}
	if got := status(running(t)); got != "" {
		t.Errorf("without encryption: %q", got)
	}
}

func trusts(url string) func(*snapshot) {
	return func(s *snapshot) {
		prefix := ""
		s.Plane.Spec.Authentication = &hostedv1.Authentication{JWT: []hostedv1.JWTAuthenticator{{
			Issuer:        hostedv1.JWTIssuer{URL: url, Audiences: []string{"demo"}},
			ClaimMappings: hostedv1.ClaimMappings{Username: hostedv1.PrefixedClaimOrExpression{Claim: "sub", Prefix: &prefix}},
		}}}
	}
}

func TestDecideSecurity(t *testing.T) { // H8, CP-04
	const restart = "do: start the control plane at v1.36.3: its configuration changed"
	const starting = "wait: The API server is starting"
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"settled": {"", running(t, encrypted), nil},
		"asked for": {"the keys come first", running(t, func(s *snapshot) { s.Plane.Spec.Encryption = &hostedv1.Encryption{} }),
			[]string{"do: create Secret c-encryption: encryption at rest is enabled and there are no keys yet"}},
		"keys are there":   {"in place, as flags", running(t, encrypted, func(s *snapshot) { s.Process.Config, s.Process.Data.EncryptionKeys = "other", "" }), []string{restart, starting}},
		"off":              {"what is encrypted stays readable", running(t, encrypted, func(s *snapshot) { s.Plane.Spec.Encryption = nil }), []string{restart, starting}},
		"another provider": {"", running(t, encrypted, func(s *snapshot) { s.Plane.Spec.Encryption.Provider = "aescbc" }), []string{restart, starting}},
		"keys lost": {"never silently new ones", running(t, encrypted, func(s *snapshot) { delete(s.Secrets, purposeEncryption) }),
			[]string{"wait: Secret c-encryption is missing; restore it from a backup, because data of the workload cluster is encrypted with its keys"}},
		"keys lost after it was switched off": {"there may be data that is encrypted", running(t, encrypted, func(s *snapshot) { s.Plane.Spec.Encryption = nil; delete(s.Secrets, purposeEncryption) }),
			[]string{"wait: Secret c-encryption is missing; restore it from a backup, because data of the workload cluster is encrypted with its keys"}},
		"other keys": {"a tenant wrote the Secret", running(t, encrypted, func(s *snapshot) { s.Secrets[purposeEncryption].Data = componentconfig.NewKeys() }),
			[]string{"wait: Secret c-encryption does not contain the keys that encrypt the data of the workload cluster; restore it from a backup"}},
		"keys rotated": {"what the former ones encrypted is read", running(t, encrypted, rotated), []string{restart, starting}},
		"keys forgotten before all is rewritten": {"what runs goes on", running(t, encrypted, rotated, inEffect, settled(false)),
			[]string{"wait: Secret c-encryption does not contain the keys that encrypt the data of the workload cluster; restore it from a backup"}},
		"keys forgotten": {"nothing needs them", running(t, encrypted, rotated, inEffect, settled(true)), []string{restart, starting}},
		"keys forgotten that were never former ones": {"the mark alone proves nothing", running(t, encrypted, rotated, settled(true)),
			[]string{"wait: Secret c-encryption does not contain the keys that encrypt the data of the workload cluster; restore it from a backup"}},
		"no keys in it": {"", running(t, encrypted, func(s *snapshot) { delete(s.Secrets[purposeEncryption].Data, "aescbc") }),
			[]string{"wait: Secret c-encryption cannot be used: it must have the keys secretbox, aesgcm and aescbc with 32 bytes each, and aescbc has 0; restore it from a backup: data of the workload cluster is encrypted with its keys"}},
		"no keys in a new one": {"", running(t, encrypted, func(s *snapshot) {
			s.Process.Data.EncryptionKeys = ""
			delete(s.Secrets[purposeEncryption].Data, "aescbc")
		}),
			[]string{"wait: Secret c-encryption cannot be used: it must have the keys secretbox, aesgcm and aescbc with 32 bytes each, and aescbc has 0; correct it, or delete it so that new keys are created"}},
		"owner lost": {"OR-01", running(t, encrypted, func(s *snapshot) { s.Secrets[purposeEncryption].OwnerReferences = nil }),
			[]string{"do: own Secret c-encryption: it has no owner that deletes it"}},
		"audit":          {"", running(t, func(s *snapshot) { s.Plane.Spec.Audit = &hostedv1.Audit{} }), []string{restart, starting}},
		"allowed issuer": {"", running(t, trusts("https://issuer.example"), func(s *snapshot) { s.Policy.ControlPlanes.Issuers = []string{"https://issuer.example"} }), []string{restart, starting}},
		"issuer": {"the API server would connect from the host", running(t, trusts("https://other.example"), func(s *snapshot) { s.Policy.ControlPlanes.Issuers = []string{"https://issuer.example"} }),
			[]string{"wait: spec.authentication.jwt: Issuer https://other.example may not be used, because the API server would connect to it from this host: choose another one, or ask the operator to allow it in controlPlanes.issuers in the configuration file (--config of slipway up or slipway manager)"}},
		"not an issuer": {"an object from before the rules of admission", running(t, trusts("http://169.254.169.254")),
			[]string{`wait: spec.authentication.jwt[0].issuer.url: Invalid value: "http://169.254.169.254": URL scheme must be https`}},
		"simulated": {"nothing is behind it", running(t, encrypted, trusts("https://other.example"), func(s *snapshot) {
			s.Plane.Spec.Backend.Simulated = &hostedv1.SimulatedBackend{}
			s.Process.Data, s.Secrets[purposeEncryption] = processconfig.Data{}, nil
			s.Capabilities = termsOf(*s)
			s.Process.Config = configOf(*s).Hash()
		}), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(decide(tc.s))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A control plane that runs says what keeps it from what is asked for.
func TestSecurityIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		s               snapshot
		condition, want string
	}{
		"not needed": {running(t), "EncryptionKeysAvailable", "True NotNeeded"},
		"there":      {running(t, encrypted), "EncryptionKeysAvailable", "True Available"},
		"lost":       {running(t, encrypted, func(s *snapshot) { delete(s.Secrets, purposeEncryption) }), "EncryptionKeysAvailable", "False EncryptionKeysMissing"},
		"available":  {running(t, encrypted, func(s *snapshot) { delete(s.Secrets, purposeEncryption) }), "Available", "False NotAvailable"},
		"issuer":     {running(t, trusts("https://other.example")), "RollingOut", "True DeniedByPolicy"},
		"not valid":  {running(t, trusts("http://other.example")), "RollingOut", "True ControlPlaneConfigInvalid"},
	} {
		status := report(tc.s, decide(tc.s), reconciler.Outcome{}).Status.(hostedv1.HostedControlPlaneStatus)
		c := condition.Set(status.Conditions).Get(tc.condition)
		if got := string(c.Status) + " " + c.Reason; got != tc.want || c.Status != metav1.ConditionTrue && c.Message == "" {
			t.Errorf("%s: %s: %s", name, got, c.Message)
		}
	}
}

// The Secret is one of the cluster's, and what the process reads is its three keys alone.
func TestKeysOfASecret(t *testing.T) { // SE-02
	s := running(t, encrypted)
	secret := s.Secrets[purposeEncryption]
	if secret.Name != "c-encryption" || secret.Type != clusterv1.ClusterSecretType || secret.Labels[clusterv1.ClusterNameLabel] != "c" || !ownerOf(s.Plane).Manages(secret) {
		t.Errorf("%+v", secret.ObjectMeta)
	}
	secret.Data["planted"] = []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\n")
	content, err := files(s)
	if err != nil || len(content) != 9 {
		t.Fatalf("%d files, %v", len(content), err)
	}
	var keys map[string][]byte
	if err := json.Unmarshal(content[processconfig.EncryptionKeys], &keys); err != nil || len(keys) != 3 {
		t.Errorf("%v: %d keys", err, len(keys))
	}
	delete(secret.Data, "planted")
	if diff := cmp.Diff(secret.Data, keys); diff != "" {
		t.Error(diff)
	}
}

// Keys that data is encrypted with are not replaced in the folder, whatever the Secret says by now.
func TestKeysInTheFolderStay(t *testing.T) {
	s := running(t, encrypted)
	supervisor := supervisor.New(t.Context(), supervisor.Config{Root: t.TempDir(), Versions: func() []string { return []string{version} }, Now: time.Now})
	defer supervisor.Close()
	folder := supervisor.Folder("ns.p")
	if err := folder.WriteRun(processconfig.Run{PID: 1, Version: version, EncryptionKeys: "those in use"}); err != nil {
		t.Fatal(err)
	}
	cfg := configOf(s)
	err := process.New(supervisor, false).ControlPlanes.Start(t.Context(), "ns.p", cfg, map[string][]byte{processconfig.EncryptionKeys: []byte("x")})
	if f := fault.As(err); f == nil || f.Reason != processconfig.ReasonEncryptionKeys || !strings.Contains(f.Message, "restore") {
		t.Errorf("started: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder.PKI(), processconfig.EncryptionKeys)); !os.IsNotExist(err) {
		t.Errorf("the file was written: %v", err)
	}
}
