package reconciler_test

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/slipwayhq/slipway/internal/reconciler"
)

func TestWatchFilter(t *testing.T) { // PA-02, CT-09
	labelled := machine(func(m *clusterv1.Machine) { m.Labels[clusterv1.WatchLabel] = "x" })
	cases := map[string]struct {
		filter string
		m      *clusterv1.Machine
		want   bool
	}{
		"no filter":                  {"", machine(nil), true},
		"no filter, labelled object": {"", labelled, true},
		"its own":                    {"x", labelled, true},
		"another's":                  {"y", labelled, false},
		"not labelled":               {"x", machine(nil), false},
	}
	for name, tc := range cases {
		if got := (reconciler.Setup{WatchFilter: tc.filter}).Filter().Create(event.CreateEvent{Object: tc.m}); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
