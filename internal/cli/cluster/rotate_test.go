package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
)

// What is given as the new authority is checked before a management cluster is looked for.
func TestGivenAuthority(t *testing.T) {
	now := time.Now()
	ca, err := pki.NewAuthority(pki.Authority{Name: "own"}, now)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Issue(pki.Leaf{User: "x", Client: true}, now)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	crt, key := write("ca.crt", ca.CertPEM), write("ca.key", ca.KeyPEM)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"certificate alone": {[]string{"--certificate", crt}, "must be set together"},
		"key alone":         {[]string{"--key", key}, "must be set together"},
		"no such file":      {[]string{"--certificate", filepath.Join(dir, "none"), "--key", key}, "no such file"},
		"a leaf":            {[]string{"--certificate", write("leaf.crt", leaf.CertPEM), "--key", write("leaf.key", leaf.KeyPEM)}, "is not a CA certificate"},
		"exchanged":         {[]string{"--certificate", key, "--key", crt}, "the certificate of the new authority cannot be read"},
		"an authority":      {[]string{"--certificate", crt, "--key", key}, "kubeconfig"}, // it is the management cluster that is missing
	} {
		var out bytes.Buffer
		e := term.Env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }, Now: time.Now}
		cmd := RotateCommand(e)
		cmd.SetArgs(append([]string{"authority", "demo", "--kubeconfig", filepath.Join(dir, "kubeconfig")}, tc.args...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error()+out.String(), "PRIVATE KEY") {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if name != "an authority" && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v is not about what was typed", name, err)
		}
	}
}
