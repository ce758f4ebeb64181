package secretencryption_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/secretencryption"
	"github.com/slipwayhq/slipway/internal/fault"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func files(t *testing.T) secretencryption.Files {
	t.Helper()
	return secretencryption.Files{Dir: datadir.Dir(filepath.Join(t.TempDir(), "data"))}
}

func prepare(t *testing.T, f secretencryption.Files, plain bool) bool {
	t.Helper()
	used, err := f.Prepare(plain, start)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// providers are those of the file for kube-apiserver: names of keys, or "plain".
func providers(t *testing.T, f secretencryption.Files) string {
	t.Helper()
	text, err := os.ReadFile(f.Config())
	if err != nil {
		t.Fatal(err)
	}
	var c apiserverv1.EncryptionConfiguration
	if err := json.Unmarshal(text, &c); err != nil || len(c.Resources) != 1 || strings.Join(c.Resources[0].Resources, ",") != "secrets" {
		t.Fatalf("%v in %s", err, text)
	}
	var out []string
	for _, p := range c.Resources[0].Providers {
		if p.Identity != nil {
			out = append(out, "plain")
			continue
		}
		for _, k := range p.Secretbox.Keys {
			out = append(out, k.Name)
		}
	}
	return strings.Join(out, " ")
}

func TestPrepare(t *testing.T) {
	f := files(t)
	if prepare(t, f, true) {
		t.Error("Secrets that are plain text and always were need no file")
	}
	if !prepare(t, f, false) || providers(t, f) != "key-20260102-030405 plain" {
		t.Errorf("the first start with encryption: %s", providers(t, f))
	}
	if before, again := providers(t, f), prepare(t, f, false); !again || providers(t, f) != before {
		t.Errorf("the key stays: %s, then %s", before, providers(t, f))
	}
	for i := range 2 { // in the same second
		if name, err := f.Rotate(start); err != nil || name != "key-20260102-030405"+strings.Repeat("x", i+1) {
			t.Errorf("%v: %s", err, name)
		}
	}
	if !prepare(t, f, false) || providers(t, f) != "key-20260102-030405xx key-20260102-030405x key-20260102-030405 plain" {
		t.Errorf("the newest encrypts, all decrypt: %s", providers(t, f))
	}
	if !prepare(t, f, true) || !strings.HasPrefix(providers(t, f), "plain key-20260102-030405xx") {
		t.Errorf("what is encrypted is still read: %s", providers(t, f))
	}
	info, err := os.Stat(f.Config())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("it holds keys: %v, %v", info.Mode(), err)
	}
	if s, err := f.Status(); err != nil || s != (secretencryption.Status{Key: "key-20260102-030405xx", Others: 2}) {
		t.Errorf("%v: %+v", err, s)
	}
}

// What the data needs and is not there lets nothing start: Secrets could not be read, and would be lost with what is written over
// them.
func TestLostKeys(t *testing.T) {
	tests := map[string]struct {
		lose   func(f secretencryption.Files, keys string) error
		reason string
	}{
		"file gone":  {func(_ secretencryption.Files, keys string) error { return os.Remove(keys) }, secretencryption.ReasonKeyMissing},
		"other keys": {func(f secretencryption.Files, keys string) error { _ = os.Remove(keys); return replace(f, keys) }, secretencryption.ReasonKeyMissing},
		"half": {func(_ secretencryption.Files, keys string) error {
			return os.WriteFile(keys, []byte(`{"keys": [{"na`), 0o600)
		}, secretencryption.ReasonKeysInvalid},
		"short key": {func(_ secretencryption.Files, keys string) error {
			return os.WriteFile(keys, []byte(`{"keys": [{"name": "a", "secret": "YQ=="}]}`), 0o600)
		}, secretencryption.ReasonKeysInvalid},
		"no name": {func(_ secretencryption.Files, keys string) error {
			return os.WriteFile(keys, []byte(`{"keys": [{"secret": "YQ=="}]}`), 0o600)
		}, secretencryption.ReasonKeysInvalid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := files(t)
			prepare(t, f, false)
			if err := tc.lose(f, f.Dir.Path("pki", "encryption-keys.json")); err != nil {
				t.Fatal(err)
			}
			for _, plain := range []bool{false, true} {
				_, err := f.Prepare(plain, start)
				if fault.As(err) == nil || fault.As(err).Reason != tc.reason || !strings.Contains(err.Error(), "restore") {
					t.Errorf("plain %v: %v", plain, err)
				}
			}
		})
	}
}

// replace puts the keys of another data directory in place of those of f.
func replace(f secretencryption.Files, keys string) error {
	other := secretencryption.Files{Dir: datadir.Dir(string(f.Dir) + "-other")}
	if _, err := other.Prepare(false, start.Add(time.Hour)); err != nil {
		return err
	}
	return os.Rename(other.Dir.Path("pki", "encryption-keys.json"), keys)
}

func TestRotateWhatIsPlain(t *testing.T) {
	if _, err := files(t).Rotate(start); fault.As(err) == nil || fault.As(err).Reason != secretencryption.ReasonKeyMissing {
		t.Errorf("got %v", err)
	}
}
