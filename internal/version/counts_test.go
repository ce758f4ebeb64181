package version_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/version"
)

func TestCounts(t *testing.T) { // CL-25, MS-19, DP-14, MP-11
	type count struct {
		version string
		n       int32
	}
	for name, tc := range map[string]struct {
		reason string
		add    []count
		want   []clusterv1.StatusVersion
	}{
		"nothing":    {reason: "no replicas, no versions"},
		"no version": {reason: "who has none is not counted", add: []count{{"", 1}, {"v1.36.3", 0}}},
		"sums": {
			reason: "equal versions are one", add: []count{{"v1.36.3", 1}, {"v1.36.4", 2}, {"v1.36.3", 3}},
			want: []clusterv1.StatusVersion{{Version: "v1.36.3", Replicas: 4}, {Version: "v1.36.4", Replicas: 2}},
		},
		"order": {
			reason: "by number, not by letter; builds by their text; what is no version last",
			add:    []count{{"main", 1}, {"v1.36.10", 1}, {"v1.36.2+b", 1}, {"latest", 1}, {"v1.36.2+a", 1}, {"v1.9.0", 1}, {"v1.36.10-rc.0", 1}},
			want: []clusterv1.StatusVersion{{Version: "v1.9.0", Replicas: 1}, {Version: "v1.36.2+a", Replicas: 1}, {Version: "v1.36.2+b", Replicas: 1},
				{Version: "v1.36.10-rc.0", Replicas: 1}, {Version: "v1.36.10", Replicas: 1}, {Version: "latest", Replicas: 1}, {Version: "main", Replicas: 1}},
		},
		"too long": {
			reason: "the whole status would be refused for one Node", add: []count{{strings.Repeat("v", 257), 1}, {"v1.36.3", 1}},
			want: []clusterv1.StatusVersion{{Version: "v1.36.3", Replicas: 1}},
		},
	} {
		c := version.Counts{}
		for _, a := range tc.add {
			c.Add(a.version, a.n)
		}
		if diff := cmp.Diff(tc.want, c.Sorted()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func TestOrder(t *testing.T) {
	versions := []string{"v1.10.0", "main", "v1.9.1", "v1.9.1+b", "v1.9.1-rc.0", "1.9.0", ""}
	slices.SortFunc(versions, version.Compare)
	if diff := cmp.Diff([]string{"1.9.0", "v1.9.1-rc.0", "v1.9.1", "v1.9.1+b", "v1.10.0", "", "main"}, versions); diff != "" {
		t.Error(diff)
	}
}

func TestTooManyVersions(t *testing.T) {
	c := version.Counts{}
	for i := range 101 {
		c.Add(fmt.Sprintf("v1.%d.0", i), 1)
	}
	if got := c.Sorted(); len(got) != 100 || got[0].Version != "v1.0.0" {
		t.Errorf("the API takes 100, got %d", len(got))
	}
}
