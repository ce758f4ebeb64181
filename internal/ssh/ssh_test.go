package ssh

import (
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/policy"
)

// A digest that is unknown does not make the store be listed again and again.
func TestBundleVersions(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := &bundleVersions{store: bundle.Store{Dir: t.TempDir()}, now: func() time.Time { return at }}
	if v := b.Version("a"); v != "" || b.listed != at {
		t.Errorf("version %q, listed %s", v, b.listed)
	}
	b.versions["b"] = "v1.36.3"
	at = at.Add(listInterval / 2)
	if v, none := b.Version("b"), b.Version("a"); v != "v1.36.3" || none != "" || len(b.versions) != 1 {
		t.Errorf("versions %q and %q", v, none)
	}
	at = at.Add(listInterval)
	if v := b.Version("a"); v != "" || len(b.versions) != 0 || b.listed != at {
		t.Errorf("version %q of %v", v, b.versions)
	}
}

func TestLimits(t *testing.T) {
	p := policy.Default()
	p.Hosts.AtOnce = 7
	if got := Limits(p); got.Total != 3 || got.Namespace != 2 {
		t.Errorf("%+v", got)
	}
	if got := Limits(policy.Default()); got.Total != 20 || got.Namespace != 15 {
		t.Errorf("%+v", got)
	}
	p.Hosts.AtOnce = 2
	if got := Limits(p); got.Total != 1 || got.Namespace != 1 {
		t.Errorf("%+v", got)
	}
}
