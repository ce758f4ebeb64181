package clusterresourceset

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ref(kind, name string) addonsv1.ResourceRef { return addonsv1.ResourceRef{Kind: kind, Name: name} }

// set applies ConfigMap "cm" to clusters labelled cni=a.
func set(strategy string, change ...func(*addonsv1.ClusterResourceSet)) *addonsv1.ClusterResourceSet {
	s := &addonsv1.ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid", Generation: 2}}
	s.Spec = addonsv1.ClusterResourceSetSpec{
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cni": "a"}},
		Resources:       []addonsv1.ResourceRef{ref("ConfigMap", "cm")}, Strategy: strategy,
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func cluster(name string, change ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), Labels: map[string]string{"cni": "a"}}}
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	for _, f := range change {
		f(c)
	}
	return c
}

func owner1() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: addonsv1.GroupVersion.String(), Kind: "ClusterResourceSet", Name: "set", UID: "set-uid"}}
}

// binding says that the set has applied "cm" with the hash, or tried to.
func binding(cluster, hash string, applied bool) *addonsv1.ClusterResourceSetBinding {
	return &addonsv1.ClusterResourceSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: cluster, OwnerReferences: owner1()},
		Spec: addonsv1.ClusterResourceSetBindingSpec{ClusterName: cluster, Bindings: []addonsv1.ResourceSetBinding{{
			ClusterResourceSetName: "set", Resources: []addonsv1.ResourceBinding{{ResourceRef: ref("ConfigMap", "cm"), Hash: hash, Applied: &applied}}}}},
	}
}

func origin(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: owner1()}}
}

func resource(hash string, content *content) resourceSource {
	return resourceSource{Ref: ref("ConfigMap", "cm"), Source: origin("cm"), Hash: hash, Content: content}
}

func member(c *clusterv1.Cluster, b *addonsv1.ClusterResourceSetBinding) selectedCluster {
	return selectedCluster{Cluster: c, Binding: b, Connected: true}
}

func texts[T interface{ String() string }](items []T) []string {
	var out []string
	for _, i := range items {
		out = append(out, i.String())
	}
	return out
}

func TestDecide(t *testing.T) { // RS-04 to RS-09, OR-01
	held := &content{Hash: "h"}
	question := []string{"the content of ConfigMap cm"}
	apply := []string{"apply resources to clusters c: they are not up to date there"}
	snap := func(strategy string, r resourceSource, members ...selectedCluster) snapshot {
		return snapshot{Now: now, Set: set(strategy), Resources: []resourceSource{r}, Clusters: members}
	}
	uninitialized := func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = nil }
	for name, tc := range map[string]struct {
		reason   string
		s        snapshot
		ask, act []string
		waits    int
	}{
		"new":                    {"the content is asked for first", snap("ApplyOnce", resource("", nil), member(cluster("c"), nil)), question, nil, 0},
		"asked":                  {"then it is applied", snap("ApplyOnce", resource("h", held), member(cluster("c"), nil)), nil, apply, 0},
		"once":                   {"never again, whatever changes, and nothing is read (RS-04)", snap("ApplyOnce", resource("", nil), member(cluster("c"), binding("c", "old", true))), nil, nil, 0},
		"failed before":          {"tried again", snap("ApplyOnce", resource("h", held), member(cluster("c"), binding("c", "h", false))), nil, apply, 0},
		"reconcile, same":        {"nothing has changed (RS-05)", snap("Reconcile", resource("h", nil), member(cluster("c"), binding("c", "h", true))), nil, nil, 0},
		"reconcile, new version": {"whether it has changed is asked", snap("Reconcile", resource("", nil), member(cluster("c"), binding("c", "h", true))), question, nil, 0},
		"reconcile, changed":     {"applied again", snap("Reconcile", resource("h", held), member(cluster("c"), binding("c", "old", true))), nil, apply, 0},
		"several":                {"by one action", snap("ApplyOnce", resource("h", held), member(cluster("a"), nil), member(cluster("b"), binding("b", "h", true)), member(cluster("c"), nil)), nil, []string{"apply resources to clusters a, c: they are not up to date there"}, 0},
		"not initialized":        {"waited for (RS-09)", snap("ApplyOnce", resource("h", held), member(cluster("c", uninitialized), nil)), nil, nil, 1},
		"not connected":          {"waited for (RS-09)", snap("ApplyOnce", resource("h", held), selectedCluster{Cluster: cluster("c")}), nil, nil, 1},
		"paused":                 {"left alone", snap("ApplyOnce", resource("h", held), member(cluster("c", func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) }), nil)), nil, nil, 1},
		"one waits":              {"others do not", snap("ApplyOnce", resource("h", held), member(cluster("b", uninitialized), nil), member(cluster("c"), nil)), nil, apply, 1},
		"missing":                {"nothing to apply", snap("ApplyOnce", resourceSource{Ref: ref("ConfigMap", "cm")}, member(cluster("c"), nil)), nil, nil, 0},
		"wrong type":             {"not applied (RS-07)", snap("ApplyOnce", resourceSource{Ref: ref("Secret", "s"), Source: origin("s"), WrongType: true}, member(cluster("c"), nil)), nil, nil, 0},
		"unreadable":             {"not applied", snap("ApplyOnce", resource("h", &content{Hash: "h", Problem: "no YAML"}), member(cluster("c"), nil)), nil, nil, 0},
		"not owned": {"resources belong to the set (OR-01)", snap("ApplyOnce", func() resourceSource { r := resource("", nil); r.Source.OwnerReferences = nil; return r }()), nil,
			[]string{"own ConfigMap cm: it is a resource of the set"}, 0},
		"binding not owned": {"so do bindings (OR-01)", snap("ApplyOnce", resource("", nil), member(cluster("c"), func() *addonsv1.ClusterResourceSetBinding {
			b := binding("c", "h", true)
			b.OwnerReferences = nil
			return b
		}())), nil, []string{"own the binding of Cluster c"}, 0},
		"cluster is gone": {"what was applied to it is forgotten, for a namesake starts anew (RS-06)", snapshot{Set: set("ApplyOnce"), Former: []*addonsv1.ClusterResourceSetBinding{binding("c", "h", true)}}, nil,
			[]string{"forget the objects that were applied to Cluster c: its Cluster is deleted"}, 0},
		"deleted": {"entries go, objects stay (RS-08)", snapshot{Set: set("ApplyOnce", func(s *addonsv1.ClusterResourceSet) { s.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }),
			Bound: []*addonsv1.ClusterResourceSetBinding{binding("c", "h", true)}}, nil, []string{"forget the objects that were applied to Cluster c: the set is deleted"}, 0},
		"deleted, forgotten": {"the finalizer may go", snapshot{Set: set("ApplyOnce", func(s *addonsv1.ClusterResourceSet) { s.DeletionTimestamp = ptr.To(metav1.NewTime(now)) })}, nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			if diff := cmp.Diff(tc.ask, texts(p.Reads)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.act, texts(p.Actions)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if len(p.Waits) != tc.waits {
				t.Errorf("%s: waits %v", tc.reason, p.Waits)
			}
		})
	}
}

func TestSelects(t *testing.T) { // RS-01
	for name, tc := range map[string]struct {
		selector metav1.LabelSelector
		want     bool
	}{
		"label":       {metav1.LabelSelector{MatchLabels: map[string]string{"cni": "a"}}, true},
		"expression":  {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "cni", Operator: "Exists"}}}, true},
		"other value": {metav1.LabelSelector{MatchLabels: map[string]string{"cni": "b"}}, false},
		"empty":       {metav1.LabelSelector{}, false},
		"broken":      {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "cni", Operator: "What"}}}, false},
	} {
		s := set("ApplyOnce", func(s *addonsv1.ClusterResourceSet) { s.Spec.ClusterSelector = tc.selector })
		if got := selects(s, cluster("c")); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestReport(t *testing.T) { // RS-07, CO-02
	fail := func(cluster string, err error) failure {
		return failure{cluster: cluster, resource: ref("ConfigMap", "cm"), err: err}
	}
	all := []selectedCluster{member(cluster("c"), binding("c", "h", true))}
	broken := errors.New("it broke")
	for name, tc := range map[string]struct {
		reason                          string
		resources                       []resourceSource
		members                         []selectedCluster
		err                             error
		status, condition, message, old string
	}{
		"applied":     {"everywhere", []resourceSource{resource("h", nil)}, all, nil, "True", "Applied", "", ""},
		"no clusters": {"nothing is missing", []resourceSource{resource("h", nil)}, nil, nil, "True", "Applied", "", ""},
		"missing":     {"the others are applied all the same", []resourceSource{{Ref: ref("ConfigMap", "gone")}, resource("h", nil)}, all, nil, "False", "NotApplied", "* ConfigMap gone does not exist", "ApplyFailed"},
		"wrong type": {"with what to do", []resourceSource{{Ref: ref("Secret", "s"), WrongType: true}}, all, nil, "False", "WrongSecretType",
			"* Secret s is not of type addons.cluster.x-k8s.io/resource-set; create it again with that type", "WrongSecretType"},
		"unreadable": {"with what is wrong", []resourceSource{resource("h", &content{Problem: "key a: bad"})}, all, nil, "False", "NotApplied", "* ConfigMap cm cannot be read: key a: bad", "ApplyFailed"},
		"waiting": {"not applied yet is not applied", []resourceSource{resource("h", nil)}, []selectedCluster{{Cluster: cluster("c")}}, nil, "False", "NotApplied",
			"* Some Clusters are paused, not initialized or not connected; resources are applied to them when they are ready", "ApplyFailed"},
		"away, applied before": {"what was applied stays applied", []resourceSource{resource("h", nil)}, []selectedCluster{{Cluster: cluster("c"), Binding: binding("c", "h", true)}}, nil, "True", "Applied", "", ""},
		"failed": {"each failure is told, some at most", []resourceSource{resource("h", nil)}, all,
			applyError{[]failure{fail("a", broken), fail("b", broken), fail("c", broken), fail("d", broken), fail("e", broken)}}, "False", "NotApplied",
			"* Cluster a: ConfigMap cm: it broke\n* Cluster b: ConfigMap cm: it broke\n* Cluster c: ConfigMap cm: it broke\nAnd 2 more problems", "ApplyFailed"},
		"conflict": {"is not for people (RS-09)", []resourceSource{resource("h", nil)}, all, applyError{[]failure{fail("a", fault.New(fault.Conflict, "X", "conflict"))}}, "False", "NotApplied",
			"* Resources are being applied", "ApplyFailed"},
		"other error": {"of the management cluster", []resourceSource{resource("h", nil)}, all, broken, "False", "InternalError", "it broke", "InternalError"},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(snapshot{Now: now, Set: set("ApplyOnce"), Resources: tc.resources, Clusters: tc.members}, reconciler.Plan{}, reconciler.Outcome{Err: tc.err})
			status := r.Status.(addonsv1.ClusterResourceSetStatus)
			c, old := status.Conditions[0], status.Deprecated.V1Beta1.Conditions[0]
			got := []string{string(c.Status), c.Reason, c.Message, old.Reason}
			if diff := cmp.Diff([]string{tc.status, tc.condition, tc.message, tc.old}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if observed := status.ObservedGeneration == 2; observed != (tc.err == nil) {
				t.Errorf("observedGeneration %d after %v", status.ObservedGeneration, tc.err)
			}
		})
	}
}

func TestKindOfFailures(t *testing.T) { // RS-09
	conflict, away, bad := fault.New(fault.Conflict, "X", ""), fault.New(fault.Unreachable, "X", ""), fault.New(fault.Invalid, "X", "")
	for name, tc := range map[string]struct {
		reason string
		errs   []error
		want   fault.Kind
	}{
		"conflict first": {"another set wrote the binding: at once again", []error{away, conflict, errors.New("x")}, fault.Conflict},
		"transient":      {"with backoff", []error{away, errors.New("x")}, fault.Transient},
		"away":           {"the connection will wake us", []error{away, bad}, fault.Unreachable},
		"invalid":        {"a person has to change it", []error{bad}, fault.Invalid},
	} {
		var e applyError
		for _, err := range tc.errs {
			e.failures = append(e.failures, failure{cluster: "c", err: err})
		}
		if got := fault.KindOf(e); got != tc.want {
			t.Errorf("%s: %s: got %s", name, tc.reason, got)
		}
	}
}
