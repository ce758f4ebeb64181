package cluster

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// What follows a creation never leaves credentials in a file that others can read, and gives people their own where the cluster signs them.
func TestNextSteps(t *testing.T) {
	f := createClusterFlags{connection: &management.Flags{}}
	if got, want := f.nextSteps("demo"), "  slipway get kubeconfig demo --output-file demo.kubeconfig\n"; !strings.HasPrefix(got, want) {
		t.Errorf("of a class without a network:\n%s", got)
	}
	f.prefix = netip.MustParsePrefix("172.18.0.0/16")
	if got, want := f.nextSteps("demo"), "  slipway get kubeconfig demo --user \"$(id -un)\" --output-file demo.kubeconfig\n"; !strings.HasPrefix(got, want) {
		t.Errorf("of nodes in containers:\n%s", got)
	}
}

// A person who does not wait any more is told what becomes of the Cluster.
func TestOnward(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"interrupted": {context.Canceled, `The creation of cluster "demo" continues; "slipway describe cluster demo" shows how far it is.`},
		"time is over": {fault.New(fault.Transient, progress.ReasonTimeout, "still to come"),
			`The creation of cluster "demo" continues; "slipway describe cluster demo" shows how far it is.`},
		"refused": {fault.New(fault.Invalid, progress.ReasonRefused, "the range is not allowed"),
			`Cluster "demo" stays as it was made: correct it, or remove it with "slipway delete cluster demo".`},
		"another": {errors.New("it broke"), ""},
	} {
		var out strings.Builder
		f := &createClusterFlags{connection: &management.Flags{}}
		if got := f.explainContinuation(term.Env{Err: &out}, c.err, "demo"); !errors.Is(got, c.err) || strings.TrimSpace(out.String()) != c.want {
			t.Errorf("%s: %v, %q, want %q", name, got, out.String(), c.want)
		}
	}
}
