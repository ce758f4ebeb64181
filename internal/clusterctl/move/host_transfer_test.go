package move

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
)

// What was killed between the folders of two load balancers continues with the second one.
func TestEveryBalancerIsTransferred(t *testing.T) {
	p := &HostPair{From: HostDataDir{Dir: datadir.Dir(t.TempDir())}, To: HostDataDir{Dir: datadir.Dir(t.TempDir())}}
	there, here := filepath.Join(p.To.Dir.Balancers(), "ns.a"), filepath.Join(p.From.Dir.Balancers(), "ns.b")
	for _, folder := range []string{there, here} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.transfer(t.Context(), hosttransfer.Record{Balancers: []string{"ns.a", "ns.b"}}, p.From, p.To); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.To.Dir.Balancers(), "ns.b")); err != nil {
		t.Error(err)
	}
}
