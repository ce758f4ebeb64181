package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipwayhq/slipway/internal/plane/custody"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
)

// What was killed between the folders of two load balancers continues with the second one.
func TestEveryBalancerIsTransferred(t *testing.T) {
	p := &Pair{From: Place{Dir: datadir.Dir(t.TempDir())}, To: Place{Dir: datadir.Dir(t.TempDir())}}
	there, here := filepath.Join(p.To.Dir.Balancers(), "ns.a"), filepath.Join(p.From.Dir.Balancers(), "ns.b")
	for _, folder := range []string{there, here} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.transfer(t.Context(), custody.Record{Balancers: []string{"ns.a", "ns.b"}}, p.From, p.To); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.To.Dir.Balancers(), "ns.b")); err != nil {
		t.Error(err)
	}
}
