package watches_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

func labelledWith(value string) map[string]string {
	if value == "" {
		return nil
	}
	return map[string]string{clusterv1.WatchLabel: value}
}

// scope has a cache with the Clusters of the value alone, as the manager's is, and an API server with all of them.
func scope(t *testing.T, value string, clusters ...*clusterv1.Cluster) watches.Scope {
	t.Helper()
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	cached, live := fake.NewClientBuilder().WithScheme(s), fake.NewClientBuilder().WithScheme(s)
	for _, c := range clusters {
		if live = live.WithObjects(c.DeepCopy()); c.Labels[clusterv1.WatchLabel] == value {
			cached = cached.WithObjects(c)
		}
	}
	return watches.Scope{WatchFilter: value, Cached: cached.Build(), Live: live.Build()}
}

func clusterLabelled(name, value string) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labelledWith(value)}}
}

func TestScope(t *testing.T) { // PA-02, CT-09
	clusters := []*clusterv1.Cluster{clusterLabelled("mine", "x"), clusterLabelled("other", "y"), clusterLabelled("none", "")}
	of := func(cluster, value string) client.Object {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Labels: labelledWith(value)}}
		m.Spec.ClusterName = cluster
		return m
	}
	for name, tc := range map[string]struct {
		reason string
		filter string
		o      client.Object
		want   bool
	}{
		"no filter":              {"everything is the manager's", "", of("other", "y"), true},
		"both":                   {"", "x", of("mine", "x"), true},
		"object of another":      {"its Cluster is not enough", "x", of("mine", "y"), false},
		"object without":         {"its Cluster is not enough", "x", of("mine", ""), false},
		"Cluster of another":     {"its own label is not enough", "x", of("other", "x"), false},
		"Cluster without":        {"its own label is not enough", "x", of("none", "x"), false},
		"Cluster does not exist": {"what is left of it may have to be deleted", "x", of("gone", "x"), true},
		"of no Cluster":          {"", "x", of("", "x"), true},
		"a Cluster":              {"", "x", clusterLabelled("mine", "x"), true},
		"a Cluster without":      {"", "x", clusterLabelled("none", ""), false},
		"by owner": {"a provider's object has neither label nor field before it is owned", "x", &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "o", Labels: labelledWith("x"), OwnerReferences: []metav1.OwnerReference{
				{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "other"}}}}, false},
	} {
		if got, err := scope(t, tc.filter, clusters...).Includes(t.Context(), tc.o); err != nil || got != tc.want {
			t.Errorf("%s: %t %v; %s", name, got, err, tc.reason)
		}
	}
}

// An API server that does not say whose a Cluster is leaves no doubt: nothing is done.
func TestScopeUnknown(t *testing.T) { // PA-02
	s := scope(t, "x")
	s.Live = interceptor.NewClient(s.Live.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no answer")
		}})
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Labels: labelledWith("x")}}
	m.Spec.ClusterName = "c"
	if has, err := s.Includes(t.Context(), m); err == nil || has {
		t.Errorf("%t %v", has, err)
	}
}

func TestHidden(t *testing.T) { // PA-02
	s := scope(t, "x")
	for name, labels := range map[string]map[string]string{
		"mine": labelledWith("x"), "other": labelledWith("y"), "none": {}, "elsewhere": {clusterv1.ClusterNameLabel: "another"},
	} {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
		for key, value := range labels {
			m.Labels[key] = value
		}
		if err := s.Live.(client.Client).Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	kind, key := clusterv1.GroupVersion.WithKind("Machine"), client.ObjectKey{Namespace: "ns", Name: "c"}
	all := func(client.Object) bool { return true }
	got, err := s.Hidden(t.Context(), kind, key, all)
	if want := []string{"Machine none", "Machine other"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	if got, err := s.Hidden(t.Context(), kind, key, func(o client.Object) bool { return o.GetName() == "none" }); err != nil || len(got) != 1 {
		t.Errorf("only what matters: %v %v", got, err)
	}
	if got, err := (watches.Scope{}).Hidden(t.Context(), kind, key, all); err != nil || got != nil {
		t.Errorf("without a filter nothing is read: %v %v", got, err)
	}
}
