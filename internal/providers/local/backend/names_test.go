package backend_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

func TestMachineName(t *testing.T) {
	o := types.NamespacedName{Namespace: "default", Name: "quickstart-md-0-x7k2p"}
	name := backend.MachineName("a1", o)
	if !strings.HasPrefix(name, "slipway-default-quickstart-md-0-x7k2p-") || len(name) > 63 {
		t.Errorf("a name that a person recognizes, at most 63 characters; got %q", name)
	}
	if name != backend.MachineName("a1", o) {
		t.Error("the name must be the same on every call: a crash between create and status loses nothing")
	}
	if name == backend.MachineName("a2", o) {
		t.Error("two management clusters on one host must not share containers")
	}
	long := types.NamespacedName{Namespace: "default", Name: strings.Repeat("x", 200)}
	longer := types.NamespacedName{Namespace: "default", Name: strings.Repeat("x", 201)}
	if a, b := backend.MachineName("a1", long), backend.MachineName("a1", longer); a == b || len(a) > 63 {
		t.Errorf("long names are cut and stay different: %q, %q", a, b)
	}
}

func TestHostname(t *testing.T) {
	cases := map[string]struct{ reason, want string }{
		"quickstart-md-0":       {"a host name is used as it is", "quickstart-md-0"},
		"a.b":                   {"dots would make it a domain; the hash keeps it apart from a-b", ""},
		strings.Repeat("x", 64): {"longer than a host name may be", strings.Repeat("x", 54) + "-7ce10097"},
	}
	for name, tc := range cases {
		got := backend.Hostname(name)
		if len(got) > 63 || strings.Contains(got, ".") {
			t.Errorf("%s: %q is not a host name", tc.reason, got)
		}
		if !strings.Contains(name, ".") && got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
	if backend.Hostname("a.b") == backend.Hostname("a-b") {
		t.Error("two LocalMachines must not share a Node name")
	}
}

func TestProviderID(t *testing.T) { // IM-02
	id := backend.ProviderID("slipway-default-a-0a1b2c3d")
	if id != "slipway:///slipway-default-a-0a1b2c3d" {
		t.Errorf("got %q", id)
	}
	if name, ok := backend.MachineOf(id); !ok || name != "slipway-default-a-0a1b2c3d" {
		t.Errorf("the container is found from the provider ID; got %q, %v", name, ok)
	}
	for _, foreign := range []string{"", "slipway:///", "aws:///i-1", "kind://docker/a/b"} {
		if name, ok := backend.MachineOf(foreign); ok {
			t.Errorf("%q is not ours, got %q", foreign, name)
		}
	}
}
