package managementnode

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/test/testhost"
)

// hostWithImage is a host that has the node image.
type hostWithImage struct{ *testhost.Host }

func (hostWithImage) HasImage(context.Context, string) (bool, error) { return true, nil }

// The network leads out of the host only as long as the operator says so: with another setting it is created again, in its
// range, and the container that was in it with it.
func TestReserveFollowsTheSetting(t *testing.T) {
	host := hostWithImage{testhost.New()}
	allowed := policy.Default()
	for _, step := range []struct {
		reason   string
		internet bool
		log      []string
	}{
		{"internal by default", false, []string{"EnsureNetwork"}},
		{"nothing changed", false, []string{"EnsureNetwork"}},
		{"a way out", true, []string{"Delete", "DeleteNetwork", "EnsureNetwork"}},
		{"nothing changed again", true, []string{"EnsureNetwork"}},
		{"taken back", false, []string{"Delete", "DeleteNetwork", "EnsureNetwork"}},
	} {
		before := len(host.Log())
		allowed.Management.NodeInternet = step.internet
		place, err := Reserve(t.Context(), host, testhost.Instance, allowed)
		if err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		n, found, err := host.FindNetwork(t.Context(), place.network)
		if err != nil || !found || n.Internet != step.internet || n.Subnet.String() != "172.16.0.0/18" || place.Endpoint.String() != "172.16.0.1:6443" {
			t.Errorf("%s: got %+v, %+v, %v", step.reason, n, place, err)
		}
		var log []string
		for _, line := range host.Log()[before:] {
			log = append(log, verb(line))
		}
		if diff := cmp.Diff(step.log, log); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.reason, diff)
		}
	}
}

// verb is the first word of a line of the host's log.
func verb(line string) string {
	first, _, _ := strings.Cut(line, " ")
	return first
}
