package machines_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/machines"
)

func TestPick(t *testing.T) { // MA-11, MA-12
	cases := map[string]struct {
		reason             string
		label, annotation  bool
		labelExp, annotExp bool // with the expression ^extra\.example/
	}{
		"node-role.kubernetes.io/worker":    {"the prefix of roles", true, false, true, false},
		"x.node-role.kubernetes.io/worker":  {"is a prefix, not a domain", false, false, false, false},
		"node-role.kubernetes.io":           {"a role without a name still has the prefix", true, false, true, false},
		"node-restriction.kubernetes.io/a":  {"kubelets may not set it themselves", true, false, true, false},
		"a.node-restriction.kubernetes.io/": {"a subdomain", true, false, true, false},
		"node.cluster.x-k8s.io/a":           {"the domain for this", true, true, true, true},
		"gpu.node.cluster.x-k8s.io/a":       {"a subdomain", true, true, true, true},
		"notnode.cluster.x-k8s.io/a":        {"ends the same, and is another domain", false, false, false, false},
		"cluster.x-k8s.io/cluster-name":     {"is about the Machine", false, false, false, false},
		"extra.example/a":                   {"only by expression", false, false, true, true},
		"plain":                             {"no domain", false, false, false, false},
	}
	extra := regexp.MustCompile(`^extra\.example/`)
	for key, tc := range cases {
		t.Run(key, func(t *testing.T) {
			in := map[string]string{key: "v"}
			got := []bool{
				len(machines.NodeLabels(in)) == 1, len(machines.NodeAnnotations(in)) == 1,
				len(machines.NodeLabels(in, extra)) == 1, len(machines.NodeAnnotations(in, extra)) == 1,
			}
			if diff := cmp.Diff([]bool{tc.label, tc.annotation, tc.labelExp, tc.annotExp}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if diff := cmp.Diff(map[string]string{"node.cluster.x-k8s.io/a": "1"}, machines.NodeLabels(map[string]string{"node.cluster.x-k8s.io/a": "1", "b": "2"})); diff != "" {
		t.Errorf("values stay (-want +got):\n%s", diff)
	}
}
