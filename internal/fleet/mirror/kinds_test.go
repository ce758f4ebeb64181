package mirror

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPlanWatches(t *testing.T) {
	kind := func(group, name, version string) Kind {
		return Kind{Group: group, Kind: name, Version: version, Resource: name + "s", Namespaced: true}
	}
	const infra, foreign = "infrastructure.cluster.x-k8s.io", "infra.example.com"
	a, b := kind(infra, "A", "v1"), kind(infra, "B", "v1")
	f := kind(foreign, "F", "v1")
	for name, tc := range map[string]struct {
		reason  string
		current []Kind
		found   discovered
		want    watchPlan
	}{
		"first":          {"no kind is watched", nil, discovered{kinds: []Kind{a, b}}, watchPlan{start: []Kind{a, b}}},
		"same":           {"nothing has changed", []Kind{a, b}, discovered{kinds: []Kind{a, b}}, watchPlan{}},
		"added":          {"a provider was installed", []Kind{a}, discovered{kinds: []Kind{a, b}}, watchPlan{start: []Kind{b}}},
		"gone":           {"a provider was removed", []Kind{a, b}, discovered{kinds: []Kind{a}}, watchPlan{stop: []schema.GroupKind{b.GroupKind()}}},
		"version":        {"the previous version may not be served any more", []Kind{a}, discovered{kinds: []Kind{kind(infra, "A", "v2")}}, watchPlan{start: []Kind{kind(infra, "A", "v2")}}},
		"failed group":   {"a group that cannot be read is not gone", []Kind{a, b}, discovered{kinds: []Kind{kind(infra, "A", "v0")}, failed: map[string]bool{infra: true}}, watchPlan{}},
		"new and failed": {"a kind that was found is watched", nil, discovered{kinds: []Kind{a}, failed: map[string]bool{infra: true}}, watchPlan{start: []Kind{a}}},
		"without labels": {"the kind was selected by a label that cannot be read now", []Kind{a, f}, discovered{kinds: []Kind{a}, withoutLabels: true}, watchPlan{}},
	} {
		current := map[schema.GroupKind]Kind{}
		for _, k := range tc.current {
			current[k.GroupKind()] = k
		}
		if diff := cmp.Diff(tc.want, planWatches(current, tc.found), cmp.AllowUnexported(watchPlan{})); diff != "" {
			t.Errorf("%s: %s:\n%s", name, tc.reason, diff)
		}
	}
}

// Kinds beyond the limit are not copied, and reported as unreadable.
func TestTooManyKinds(t *testing.T) {
	var found discovered
	for i := range maxKinds + 1 {
		found.kinds = append(found.kinds, Kind{Group: "infra.example.com", Kind: fmt.Sprintf("K%d", i)})
	}
	found.limit()
	if len(found.kinds) != maxKinds {
		t.Errorf("%d kinds are copied", len(found.kinds))
	}
	last := schema.GroupKind{Group: "infra.example.com", Kind: "K256"}
	m := &Mirror{left: found.left}
	if diff := cmp.Diff([]Unreadable{{Kind: last, Reason: "only 256 kinds are read"}}, m.Status().Unreadable); diff != "" {
		t.Error(diff)
	}
	if got := m.CopyOf(last).Reason; got != "only 256 kinds are read" {
		t.Errorf("the reason is %q", got)
	}
}
