package describe_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/test/testkit"
)

func now() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// CX-09
func TestDescribe(t *testing.T) {
	unicode := describe.Style{Now: now(), Unicode: true}
	ascii := describe.Style{Now: now()}
	cases := map[string]struct {
		reason  string
		options describe.Options
		style   describe.Style
	}{
		"unicode":    {"what a terminal shows by default", describe.Options{Grouping: true}, unicode},
		"plain":      {"what a pipe gets by default", describe.Options{Grouping: true}, ascii},
		"color":      {"status is painted by meaning, not by word", describe.Options{Grouping: true}, describe.Style{Now: now(), Unicode: true, Color: true}},
		"narrow":     {"messages wrap below their column", describe.Options{Grouping: true}, describe.Style{Now: now(), Unicode: true, Width: 165}},
		"below":      {"messages stand below their row where no column is left for them", describe.Options{Grouping: true}, describe.Style{Now: now(), Unicode: true, Width: 130}},
		"all":        {"every object and every condition", describe.Options{Echo: true, ShowConditions: []string{"all"}, ShowMachineSets: true, ShowResourceSets: true, ShowTemplates: true}, unicode},
		"conditions": {"conditions of a kind and of one object", describe.Options{Grouping: true, ShowConditions: []string{"cluster", "machine/pool-b"}}, unicode},
		"echo":       {"objects of machines also where they only echo them", describe.Options{Echo: true, Grouping: true}, unicode},
		"ungrouped":  {"one row per machine", describe.Options{}, unicode},
		"sets":       {"MachineSets stand between deployments and machines", describe.Options{Grouping: true, ShowMachineSets: true}, unicode},
		"templates":  {"templates of deployments", describe.Options{Grouping: true, ShowTemplates: true}, unicode},
		"addons":     {"ClusterResourceSets", describe.Options{Grouping: true, ShowResourceSets: true}, unicode},
		"v1beta1":    {"the deprecated conditions have columns of their own", describe.Options{Grouping: true, Deprecated: true}, describe.Style{Now: now(), Unicode: true, Deprecated: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := describe.Render(describe.Build(world(), tc.options), tc.style)
			testkit.CompareGolden(t, "testdata/"+name+".txt", got)
			if tc.style.Unicode == strings.Contains(got, "|-") {
				t.Errorf("%s: ASCII branches in a Unicode tree, or the other way round", tc.reason)
			}
		})
	}
}

// CX-09: the same tree as data.
func TestDescribeAsData(t *testing.T) {
	out, err := yaml.Marshal(describe.Build(world(), describe.Options{Grouping: true}))
	if err != nil {
		t.Fatal(err)
	}
	testkit.CompareGolden(t, "testdata/tree.yaml", string(out))
}

func TestHeadline(t *testing.T) {
	at := metav1.NewTime(now())
	available := describe.Condition{Type: "Available", Status: "True"}
	ready := describe.Condition{Type: "Ready", Status: "False"}
	deleting := describe.Condition{Type: "Deleting", Status: "True", Reason: "Draining"}
	cases := map[string]struct {
		reason string
		object describe.Object
		want   string
	}{
		"both":           {"an object that can serve is summed up by that", describe.Object{Kind: "MachinePool", Conditions: []describe.Condition{available, ready}}, "Available"},
		"machine":        {"a machine becomes ready before it counts as available", describe.Object{Kind: "Machine", Conditions: []describe.Condition{available, ready}}, "Ready"},
		"only ready":     {"provider objects have Ready alone", describe.Object{Kind: "LocalCluster", Conditions: []describe.Condition{ready}}, "Ready"},
		"deleted":        {"deletion is what matters then", describe.Object{Kind: "Machine", DeletedAt: &at, Conditions: []describe.Condition{ready, deleting}}, "Deleting"},
		"deleted silent": {"an object without a Deleting condition is still shown as going", describe.Object{Kind: "Machine", DeletedAt: &at, Conditions: []describe.Condition{ready}}, "Deleting"},
		"none":           {"no condition, no headline", describe.Object{Kind: "Machine"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if c := tc.object.Headline(); c != nil {
				got = c.Type
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// What an object says is no order to the terminal, colours or not.
func TestTextOfOthers(t *testing.T) {
	root := &describe.Object{Kind: "Cluster", Name: "c", Missing: "gone\x1b[2J\x1b[Hall is well"}
	for _, color := range []bool{false, true} {
		if out := describe.Render(root, describe.Style{Now: now(), Color: color}); !strings.Contains(out, `gone\x1b[2J\x1b[Hall is well`) {
			t.Errorf("colour %t: %q", color, out)
		}
	}
}

// A Cluster that no manager has looked at is not an empty row.
func TestUnreported(t *testing.T) {
	const text = "No controller has reported on it yet"
	s := world()
	if out := describe.Render(describe.Build(s, describe.Options{}), describe.Style{Now: now()}); strings.Contains(out, text) {
		t.Errorf("objects with conditions:\n%s", out)
	}
	s.Cluster.Status = clusterv1.ClusterStatus{}
	for _, deprecated := range []bool{false, true} {
		o := describe.Options{Deprecated: deprecated}
		if out := describe.Render(describe.Build(s, o), describe.Style{Now: now(), Deprecated: deprecated}); strings.Count(out, text) != 1 {
			t.Errorf("deprecated %v: want %q once:\n%s", deprecated, text, out)
		}
	}
}

// What --show-conditions names and the tree does not have is told apart from what has nothing to show.
func TestUnmatched(t *testing.T) {
	root := describe.Build(world(), describe.Options{Grouping: true})
	o := describe.Options{ShowConditions: []string{"all", "CLUSTER", "machine/pool-b", "Machine/md-1-a", "machnes", "Machine/nowhere", "MachineDeployment/pool-b"}}
	if diff := cmp.Diff([]string{"machnes", "Machine/nowhere", "MachineDeployment/pool-b"}, o.Unmatched(root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if kinds := root.Kinds(); !slices.Contains(kinds, "MachineDeployment") || !slices.IsSorted(kinds) {
		t.Errorf("kinds of the tree: %v", kinds)
	}
}
