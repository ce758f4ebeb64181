package describe_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// The SSHHost of a machine is shown if it has something to say that the machine has not.
func TestHosts(t *testing.T) {
	const group = "infrastructure.slipway.dev"
	at := describe.Ref{Group: group, Kind: "SSHMachine", Name: "m"}
	host := func(conditions ...map[string]any) *unstructured.Unstructured {
		list := []any{}
		for _, c := range conditions {
			list = append(list, c)
		}
		u := provider(describe.Ref{Group: group, Kind: "SSHHost", Name: "rack-1"}, nil, map[string]any{"conditions": list})
		u.SetNamespace("hosts")
		return u
	}
	inUse := raw("Available", "False", "InUse", "SSHMachine default/m uses the host")
	for name, tc := range map[string]struct {
		reason  string
		host    *unstructured.Unstructured
		options describe.Options
		shown   bool
	}{
		"in use":      {"it is as it should be", host(inUse, raw("Reachable", "True", "Connected", "")), describe.Options{}, false},
		"echo":        {"it was requested", host(inUse), describe.Options{Echo: true}, true},
		"unreachable": {"the machine has the message already", host(inUse, raw("Reachable", "False", "HostUnreachable", "Host rack-1 does not respond")), describe.Options{}, false},
		"quarantined": {"the reason is news", host(raw("Available", "False", "RecordLost", "The host no longer has the record")), describe.Options{}, true},
		"unreadable":  {"it is the operator's", nil, describe.Options{Echo: true}, false},
	} {
		m := machine(meta("m", nil), "SSHMachine", cond("Ready", "False", "NotReady", "* InfrastructureReady: Host rack-1 does not respond", time.Minute))
		m.Spec.InfrastructureRef = ref(group, "SSHMachine", "m")
		s := describe.Snapshot{
			Now: now(), Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}}, Machines: []clusterv1.Machine{m},
			Objects: map[describe.Ref]*unstructured.Unstructured{at: provider(at, nil, map[string]any{"conditions": []any{raw("Ready", "False", "NotReady", "Host rack-1 does not respond")}})},
		}
		if tc.host != nil {
			s.Hosts = map[describe.Ref]*unstructured.Unstructured{at: tc.host}
		}
		text := describe.Render(describe.Build(s, tc.options), describe.Style{Now: now(), Unicode: true})
		if found := strings.Contains(text, "SSHHost/rack-1"); found != tc.shown {
			t.Errorf("%s (%s): shown %t\n%s", name, tc.reason, found, text)
		}
		if strings.Contains(text, "uses the host") {
			t.Errorf("%s: its use is no issue\n%s", name, text)
		}
	}
}
