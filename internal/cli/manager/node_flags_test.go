package manager

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

func newFlagSet(n *nodeFlags) *pflag.FlagSet {
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	n.bind(f)
	return f
}

func TestNodeFlags(t *testing.T) { // MA-11, MA-12, MA-20, CL-23
	cases := map[string]struct {
		reason string
		args   []string
		valid  bool
	}{
		"defaults":            {"5m and 50s", nil, true},
		"least":               {"2m are enough", []string{"--remote-conditions-grace-period=2m"}, true},
		"too short":           {"a restart of an API server must not show", []string{"--remote-conditions-grace-period=119s"}, false},
		"shorter than probes": {"the connection is given up first", []string{"--remote-conditions-grace-period=5m", "--remote-connection-grace-period=5m"}, false},
		"labels":              {"expressions", []string{"--additional-sync-machine-labels=^a/,^b/"}, true},
		"bad label":           {"not an expression", []string{"--additional-sync-machine-labels=("}, false},
		"bad annotation":      {"not an expression", []string{"--additional-sync-machine-annotations=("}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var n nodeFlags
			if err := newFlagSet(&n).Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			var cfg manager.Config
			err := n.complete(&cfg)
			if (err == nil) != tc.valid || err != nil && fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	var n nodeFlags
	if err := newFlagSet(&n).Parse([]string{"--additional-sync-machine-labels=^a/,^b/", "--additional-sync-machine-annotations=^c/"}); err != nil {
		t.Fatal(err)
	}
	var cfg manager.Config
	if err := n.complete(&cfg); err != nil {
		t.Fatal(err)
	}
	m := cfg.Machines
	if len(m.SyncLabels) != 2 || !m.SyncAnnotations[0].MatchString("c/x") || m.ConditionsGrace != 5*time.Minute || cfg.ConnectionGrace != 50*time.Second {
		t.Errorf("%+v", cfg)
	}
}
