package backend_test

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/local/backend"
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
	own := types.NamespacedName{Namespace: "default", Name: "a"}
	if name, ok := backend.ParseProviderID(id, own); !ok || name != "slipway-default-a-0a1b2c3d" {
		t.Errorf("the container is found from the provider ID; got %q, %v", name, ok)
	}
	for _, foreign := range []string{"", "slipway:///", "aws:///i-1", "kind://docker/a/b", "slipway:///ci-postgres",
		"slipway:///../networks/x", "slipway:///slipway-default-a-../../xx", "slipway:///slipway-default-a-0A1B2C3D",
		"slipway:///slipway-default-b-0a1b2c3d", "slipway:///slipway-other-a-0a1b2c3d", "slipway:///slipway-default-a-0a1b2c3d4"} {
		if name, ok := backend.ParseProviderID(foreign, own); ok {
			t.Errorf("%q is not the object's, got %q", foreign, name)
		}
	}
}

func TestRefNames(t *testing.T) {
	o := types.NamespacedName{Namespace: "ns", Name: "m"}
	labels := func(instance, object string) map[string]string {
		return map[string]string{backend.LabelInstance: instance, backend.LabelObject: object, backend.LabelUID: "another"}
	}
	own, moved := backend.MachineName("here", o), backend.MachineName("there", o)
	cases := map[string]struct {
		reason  string
		ref     string
		name    string
		labels  map[string]string
		matches bool
	}{
		"own":               {"made here for the object", own, own, labels("here", "ns/m"), true},
		"own, other ref":    {"what the ref expects does not matter", "x", own, labels("here", "ns/m"), true},
		"moved":             {"made by another instance for an object of this name: whose it is, records say", own, moved, labels("there", "ns/m"), true},
		"restored":          {"made here for an object of a backup, whose provider ID is from there", moved, moved, labels("here", "ns/m"), true},
		"another's stem":    {"the name is that of another object", own, backend.MachineName("here", types.NamespacedName{Namespace: "ns", Name: "n"}), labels("here", "ns/m"), false},
		"another object":    {"a neighbour's container under a name that the ref knows", moved, moved, labels("there", "ns/n"), false},
		"another namespace": {"a neighbour's container", own, own, labels("here", "other/m"), false},
		"no labels":         {"a database of others", own, own, nil, false},
		"no instance":       {"labels of others", own, own, labels("", "ns/m"), false},
		"renamed":           {"the name does not follow from the labels", "db", "db", labels("here", "ns/m"), false},
	}
	for name, tc := range cases {
		if got := (backend.Ref{Object: o, Name: tc.ref}).Matches(tc.name, tc.labels); got != tc.matches {
			t.Errorf("%s: got %v (%s)", name, got, tc.reason)
		}
	}
}

// FuzzMachineOf: whatever a provider ID says, what is asked of the engine is the name of a container of this object, which
// cannot leave its place in a URL.
func FuzzMachineOf(f *testing.F) {
	for _, id := range []string{"slipway:///slipway-default-a-0a1b2c3d", "slipway:///../networks/x", "slipway:///0a1b2c3d4e5f", "",
		"slipway:///slipway-default-a-%2e%2e%2fxx", "slipway:///slipway-default-a-0a1b2c3d/", "slipway:///slipway-default-a\x00-0a1b2c3d"} {
		f.Add(id, "default", "a")
	}
	f.Add("slipway:///slipway-team-a-b-0a1b2c3d", "team", "a-b")
	f.Add("slipway:///slipway-team-a-b-0a1b2c3d", "team-a", "b")
	safe := regexp.MustCompile(`^slipway-[a-z0-9.-]+-[0-9a-f]{8}$`)
	f.Fuzz(func(t *testing.T, id, namespace, object string) {
		o := types.NamespacedName{Namespace: namespace, Name: object}
		name, ok := backend.ParseProviderID(id, o)
		if !ok {
			return
		}
		if backend.ProviderID(name) != id {
			t.Errorf("%q stands for %q", id, name)
		}
		if kubernetesName.MatchString(namespace) && kubernetesName.MatchString(object) && (!safe.MatchString(name) || len(name) > 63) {
			t.Errorf("%q of %s became the name %q", id, o, name)
		}
		if (backend.Ref{Object: o, Name: name}).Matches(name, map[string]string{backend.LabelInstance: "i", backend.LabelObject: "other/" + object}) &&
			namespace != "other" {
			t.Errorf("%q belongs to %s by another object's label", name, o)
		}
	})
}

// kubernetesName is what the API server lets through as the name of an object.
var kubernetesName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
