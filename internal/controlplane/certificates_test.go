package controlplane

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

func managementCerts(t *testing.T, now *time.Time) managementPKI {
	t.Helper()
	m := newManagementPKI(ManagementConfig{Dir: datadir.Dir(t.TempDir()), Now: func() time.Time { return *now }}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6440})
	if err := m.ensure(); err != nil {
		t.Fatal(err)
	}
	return m
}

// The manager serves diagnostics with a certificate that its clients trust already, and that is good for nothing else.
func TestDiagnosticsCertificate(t *testing.T) {
	now := start
	m := managementCerts(t, &now)
	ca, err := m.folder.Authority("ca", pki.Authority{})
	if err != nil {
		t.Fatal(err)
	}
	file, _ := m.dir.DiagnosticsFiles()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	for usage, good := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageServerAuth: true, x509.ExtKeyUsageClientAuth: false} {
		options := x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1", CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := cert.Verify(options); (err == nil) != good {
			t.Errorf("usage %d: %v", usage, err)
		}
	}
}

// The certificates of a management cluster are renewed while it runs, before they expire, and its kubeconfigs with them.
func TestManagementCertificatesAreRenewed(t *testing.T) {
	now := start
	m := managementCerts(t, &now)
	read := func() map[string]string {
		out := map[string]string{}
		for _, path := range []string{m.folder.Cert("apiserver"), m.folder.Cert("manager"), m.folder.Cert(datadir.Diagnostics), m.folder.Cert(datadir.Extensions), m.folder.Cert("controllers"), m.dir.Kubeconfig(), m.folder.Cert("ca")} {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.Base(path)] = string(data)
		}
		return out
	}
	first := read()
	now = start.Add(30 * 24 * time.Hour)
	if err := m.ensure(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("written again after a month: %s", diff)
	}
	now = start.Add(365 * 24 * time.Hour * 3 / 4)
	if err := m.ensure(); err != nil {
		t.Fatal(err)
	}
	for name, content := range read() {
		if (content == first[name]) != (name == "ca.crt") {
			t.Errorf("after nine months %s is changed: %v", name, content != first[name])
		}
	}
}

func TestManagementKubeconfigsArePrivate(t *testing.T) {
	now := start
	m := managementCerts(t, &now)
	for _, path := range []string{m.dir.Kubeconfig(), m.dir.ManagerKubeconfig(), m.controllersKubeconfig()} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, info.Mode().Perm())
		}
	}
}

// A workload cluster's serving certificate names every way to reach the server.
func TestWorkloadServingCertificate(t *testing.T) {
	c := config()
	c.Names = []string{"demo.example.com", "192.0.2.7"}
	folder := pki.Folder{Path: t.TempDir(), Now: func() time.Time { return start }}
	for _, name := range []string{processconfig.CA, processconfig.ProxyCA} {
		if _, err := folder.Authority(name, pki.Authority{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	c.CertificateDays = 30
	w := workloadPKI{config: c, folder: folder, local: "127.9.8.7:6443"}
	if err := w.ensure(); err != nil {
		t.Fatal(err)
	}
	serving, err := w.load("apiserver")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"172.31.0.1", "172.31.112.1", "127.9.8.7", "127.0.0.1", "localhost", "kubernetes.default.svc.cluster.local", "demo.example.com", "192.0.2.7"} {
		if err := serving.Cert.VerifyHostname(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if want := start.Add(30 * 24 * time.Hour); !serving.Cert.NotAfter.Equal(want) {
		t.Errorf("it ends %s, want %s", serving.Cert.NotAfter, want)
	}
}

func TestWorkloadNeedsItsAuthorities(t *testing.T) {
	w := workloadPKI{config: config(), folder: pki.Folder{Path: t.TempDir(), Now: func() time.Time { return start }}}
	if err := w.ensure(); err == nil || !strings.Contains(err.Error(), "authority ca") {
		t.Errorf("without authorities: %v", err)
	}
}
