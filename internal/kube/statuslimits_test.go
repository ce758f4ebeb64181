package kube_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
)

// TestLimits: what providers say and the schemas of the API do not accept, with those schemas.
func TestLimits(t *testing.T) { // CL-08, MA-05, CT-07
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	limits, long := kube.NewStatusLimits(all), strings.Repeat("x", 300)
	for name, tc := range map[string]struct {
		kind, status, want string
		refused            []string
	}{
		"all is well": {"Cluster", `{phase: Provisioned, failureDomains: [{name: a}, {name: b, controlPlane: true}], observedGeneration: 7}`,
			`{phase: Provisioned, failureDomains: [{name: a}, {name: b, controlPlane: true}], observedGeneration: 7}`, nil},
		"a domain twice":        {"Cluster", `{phase: Provisioned, failureDomains: [{name: a}, {name: b}, {name: a}]}`, `{phase: Provisioned, failureDomains: [{name: a}, {name: b}]}`, []string{`status.failureDomains[2] "a" is there twice`}},
		"a domain without name": {"Cluster", `{phase: Provisioned, failureDomains: [{controlPlane: true}]}`, `{phase: Provisioned}`, []string{`status.failureDomains[0].name "" is missing`}},
		"a domain with none":    {"Cluster", `{phase: Provisioned, failureDomains: [{name: ""}]}`, `{phase: Provisioned}`, []string{`status.failureDomains[0].name "" has less than 1 characters`}},
		"negative replicas":     {"Cluster", `{phase: Provisioned, controlPlane: {replicas: 3, availableReplicas: 1}, workers: {replicas: 1}}`, `{phase: Provisioned, controlPlane: {replicas: 3, availableReplicas: 1}, workers: {replicas: 1}}`, nil},
		"an unknown address":    {"Machine", `{phase: Running, addresses: [{type: Weird, address: 10.0.0.1}, {type: InternalIP, address: 10.0.0.2}]}`, `{phase: Running, addresses: [{type: InternalIP, address: 10.0.0.2}]}`, []string{`status.addresses[0].type "Weird" is none of the values that there are`}},
		"an empty address":      {"Machine", `{phase: Running, addresses: [{type: InternalIP}]}`, `{phase: Running}`, []string{`status.addresses[0].address "" is missing`}},
		"a domain too long":     {"Machine", `{phase: Running, failureDomain: ` + long + `}`, `{phase: Running}`, []string{`status.failureDomain "` + strings.Repeat("x", 39) + `…" has more than 256 characters`}},
		"a bad condition":       {"Machine", `{phase: Running, conditions: [{type: Ready, status: Maybe, reason: R, lastTransitionTime: "2026-01-01T00:00:00Z", message: ""}]}`, `{phase: Running}`, []string{`status.conditions[0].status "Maybe" is none of the values that there are`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, refused := limits.Prune(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: tc.kind}, parse(t, tc.status))
			if diff := cmp.Diff(parse(t, tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.refused, refused); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
	if whole := parse(t, `{phase: Running, addresses: [{type: InternalIP, address: 10.0.0.1}]}`); !accepts(limits, whole) {
		t.Error("a status with nothing to leave out is not copied")
	}
	unknown := map[string]any{"a": int64(-1)}
	if got, refused := limits.Prune(schema.GroupVersionKind{Kind: "Unknown"}, unknown); refused != nil || got["a"] != int64(-1) {
		t.Errorf("of a kind of which nothing is known: %v %v", got, refused)
	}
}

func accepts(limits kube.StatusLimits, status map[string]any) bool {
	got, refused := limits.Prune(machine, status)
	got["same"] = true
	_, same := status["same"]
	delete(status, "same")
	return same && refused == nil
}

var machine = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"}

// BenchmarkBound checks the status of a Machine with nine conditions: every write of a status pays for it.
func BenchmarkBound(b *testing.B) {
	all, err := crds.All()
	if err != nil {
		b.Fatal(err)
	}
	limits, conditions := kube.NewStatusLimits(all), []any{}
	for i := range 9 {
		conditions = append(conditions, map[string]any{"type": "Condition" + string(rune('A'+i)), "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": int64(1)})
	}
	status := map[string]any{"phase": "Running", "conditions": conditions, "nodeRef": map[string]any{"name": "n"}, "observedGeneration": int64(1)}
	b.ReportAllocs()
	for b.Loop() {
		if _, refused := limits.Prune(machine, status); refused != nil {
			b.Fatal(refused)
		}
	}
}

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
