package slipway

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// floors returns the minimum version of each module, and the vulnerabilities of older versions.
func floors() map[string][2]string {
	return map[string][2]string{
		"toolchain":                    {"v1.26.8", "a server can keep an HTTP/2 client busy (CVE-2026-33814), and vulnerabilities in crypto/x509, crypto/tls, net/url and asn1 of 1.26.0"},
		"go.etcd.io/etcd/server/v3":    {"v3.6.11", "the advisories rfx7-8w68-q57q, q8m4-xhhv-38mg and x35m-3gp4-4fh5 about the authentication of etcd"},
		"go.opentelemetry.io/otel/sdk": {"v1.43.0", "runs a program that it finds in PATH"},
	}
}

// TestVersionFloors checks that the toolchain and modules with known vulnerabilities are not older than the version that
// fixed them. `make vulncheck`, which needs the internet, reports newer vulnerabilities.
func TestVersionFloors(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, r := range mod.Require {
		have[r.Mod.Path] = r.Mod.Version
	}
	if mod.Toolchain != nil {
		have["toolchain"] = "v" + strings.TrimPrefix(mod.Toolchain.Name, "go")
	}
	for path, floor := range floors() {
		if semver.Compare(have[path], floor[0]) < 0 {
			t.Errorf("%s is %q, want at least %s: %s", path, have[path], floor[0], floor[1])
		}
	}
	script, err := os.ReadFile("hack/prerequisites.sh")
	if want := "go_version=" + strings.TrimPrefix(have["toolchain"], "v") + " "; err != nil || !strings.Contains(string(script), want) {
		t.Errorf("hack/prerequisites.sh does not contain %q: %v", want, err)
	}
}
