package ownership

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestJoin(t *testing.T) { // OR-01
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "new"}}
	other := metav1.OwnerReference{APIVersion: "other.io/v1", Kind: "Cluster", Name: "c", UID: "other"}
	before := map[string]string{"a": "b"}
	o := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: before, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster", Name: "c", UID: "old"}, other,
	}}}
	if IsInCluster(o, cluster) {
		t.Error("owned by a Cluster that does not exist any more, and without the label")
	}
	AddToCluster(o, cluster)
	want := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"a": "b", clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{other, {
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "new",
		}},
	}}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("a Cluster of another group is another Cluster (-want +got):\n%s", diff)
	}
	if len(before) != 1 {
		t.Errorf("the map of the cache was changed: %v", before)
	}
	if !IsInCluster(o, cluster) {
		t.Error("it belongs to the Cluster now")
	}
	AddToCluster(o, cluster)
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("the second time changes nothing (-want +got):\n%s", diff)
	}
}

// A reference in an older version is the Cluster's, and is to be brought up to date.
func TestOutdated(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
	m := &clusterv1.Machine{}
	AddToCluster(m, cluster)
	m.OwnerReferences[0].APIVersion = "cluster.x-k8s.io/v1beta1"
	if !Owns(cluster, m) || IsInCluster(m, cluster) || !Outdated(m, ByCluster(cluster)) {
		t.Errorf("owned %t, joined %t, outdated %t", Owns(cluster, m), IsInCluster(m, cluster), Outdated(m, ByCluster(cluster)))
	}
	AddToCluster(m, cluster)
	if len(m.OwnerReferences) != 1 || !IsInCluster(m, cluster) {
		t.Errorf("owners %v", m.OwnerReferences)
	}
}

func TestMissingWatchLabel(t *testing.T) { // PA-02
	object := func(value string) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		if value != "" {
			m.Labels = map[string]string{clusterv1.WatchLabel: value}
		}
		return m
	}
	for name, tc := range map[string]struct {
		reason   string
		from, to string
		missing  bool
	}{
		"no filter":   {"nothing says that there is a filter", "", "", false},
		"labelled":    {"the provider sees it", "blue", "blue", false},
		"unlabelled":  {"the provider may not see it", "blue", "", true},
		"of another":  {"that is said in another place", "blue", "red", false},
		"it alone is": {"the one that refers to it has no filter", "", "blue", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := MissingWatchLabel(object(tc.from), object(tc.to))
			if want := "it lacks the label cluster.x-k8s.io/watch-filter=blue"; strings.Contains(got, want) != tc.missing || (got != "") != tc.missing {
				t.Errorf("%s: %q", tc.reason, got)
			}
		})
	}
}

// What a process has created begins, for a while; what it does not know may have come back from a backup.
func TestBegun(t *testing.T) { // OR-01
	now := time.Unix(1e9, 0)
	b := &CreatedOwners{}
	b.Add("a", now)
	for name, tc := range map[string]struct {
		of    *CreatedOwners
		owner types.UID
		at    time.Time
		want  bool
	}{
		"created":  {b, "a", now.Add(time.Minute), true},
		"unknown":  {b, "b", now, false},
		"long ago": {b, "a", now.Add(time.Hour), false},
		"of none":  {nil, "a", now, false},
	} {
		if got := tc.of.Has(tc.owner, tc.at); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	b.Add("b", now.Add(time.Hour))
	if len(b.owners) != 1 {
		t.Errorf("%d owners are remembered", len(b.owners))
	}
	(*CreatedOwners)(nil).Add("a", now)
}
