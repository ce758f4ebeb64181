package manager

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// RT-17
func TestClientCertificateFlags(t *testing.T) {
	cert, key := hooktest.NewAuthority(t).IssuePEM(hooktest.Certificate{Name: "slipway", Client: true})
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, data := range map[string][]byte{certFile: cert, keyFile: key} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		cfg           Extensions
		some, invalid bool
	}{
		"none":       {},
		"both":       {cfg: Extensions{CertFile: certFile, KeyFile: keyFile}, some: true},
		"no key":     {cfg: Extensions{CertFile: certFile}, invalid: true},
		"no cert":    {cfg: Extensions{KeyFile: keyFile}, invalid: true},
		"not a pair": {cfg: Extensions{CertFile: keyFile, KeyFile: certFile}, invalid: true},
	}
	for name, tt := range tests {
		got, err := tt.cfg.certificates()
		if (fault.KindOf(err) == fault.Invalid && err != nil) != tt.invalid || (got != nil) != tt.some {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
