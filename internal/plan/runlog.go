package plan

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/plan/memory"
	"github.com/slipwayhq/slipway/internal/plan/world"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// id identifies an object. The version of its kind is left out, because a write may use another one.
type id struct {
	kind schema.GroupKind
	key  client.ObjectKey
}

func idOf(u *unstructured.Unstructured) id {
	return id{kind: u.GroupVersionKind().GroupKind(), key: client.ObjectKeyFromObject(u)}
}

// runLog records the decisions of the controllers and the writes of a run, and compiles the [Plan] from them. It
// implements reconciler.PlanStore, with which every controller reports its plans.
type runLog struct {
	now func() time.Time
	// began is the time of the change, zero before it.
	began    time.Time
	before   map[id]*unstructured.Unstructured
	steps    map[id][]Step // by owner of the Machines
	underWay map[id]bool
	// inventory has the hosts of machines; nil: there are none. hostsUnknown means that they could not be read, and
	// assumesHosts that a control plane needs some of them for the change.
	inventory                  world.Inventory
	hostsUnknown, assumesHosts bool

	mu      sync.Mutex
	actions []Action
	last    map[reconciler.PlanKey]Waiting
	earlier map[reconciler.PlanKey]Waiting
}

// newLog returns an empty log.
func newLog() *runLog {
	return &runLog{steps: map[id][]Step{}, underWay: map[id]bool{}, last: map[reconciler.PlanKey]Waiting{}}
}

// begin records the objects before the change. The run calls it when the copy has settled.
func (l *runLog) begin(all []*unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.earlier, l.actions = l.now(), maps.Clone(l.last), nil
	l.before = map[id]*unstructured.Unstructured{}
	for _, u := range all {
		l.before[idOf(u)] = u
	}
}

func (l *runLog) Store(by reconciler.PlanKey, p reconciler.Plan, failed error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range p.Actions {
		l.actions = append(l.actions, Action{After: l.now().Sub(l.began).Round(time.Second).String(), Kind: by.Kind.Kind, Object: by.Key.String(), Action: a.String()})
	}
	w := Waiting{Kind: by.Kind.Kind, Object: by.Key.String(), Waits: p.Waits}
	if failed != nil {
		w.Errors = kube.FailureMessages(failed)
	}
	l.last[by] = w
}

func (l *runLog) Drop(kind schema.GroupKind, key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.last, func(by reconciler.PlanKey, _ Waiting) bool { return by.Kind == kind && by.Key == key })
}

// observe records created and deleted Machines. Before the change, it records which objects were still changing. It is
// called for every write of the run.
func (l *runLog) observe(e memory.Event) {
	if l.began.IsZero() {
		if e.Old == nil || e.New == nil || len(fields(e.Old, e.New)) > 0 {
			l.underWay[id{e.Kind.GroupKind(), e.Key}] = true
		}
		return
	}
	switch {
	case e.Kind.GroupKind() != clusterv1.GroupVersion.WithKind("Machine").GroupKind():
	case e.Old == nil:
		l.step(ownerOfMachine(e.New)).Created++
	case e.New != nil && e.Old.GetDeletionTimestamp() == nil && e.New.GetDeletionTimestamp() != nil,
		e.New == nil && e.Old.GetDeletionTimestamp() == nil:
		s := l.step(ownerOfMachine(e.Old))
		s.Deleted = append(s.Deleted, e.Key.Name)
	}
}

// step returns the step of the current time.
func (l *runLog) step(owner id) *Step {
	list := l.steps[owner]
	if n := len(list); n == 0 || !list[n-1].at.Equal(l.now()) {
		list = append(list, Step{at: l.now()})
		l.steps[owner] = list
	}
	return &list[len(list)-1]
}

// ownerOfMachine returns the owner of a Machine from the user's point of view: the MachineDeployment rather than its
// MachineSet.
func ownerOfMachine(u *unstructured.Unstructured) id {
	key := client.ObjectKey{Namespace: u.GetNamespace()}
	if key.Name = u.GetLabels()[clusterv1.MachineDeploymentNameLabel]; key.Name != "" {
		return id{clusterv1.GroupVersion.WithKind("MachineDeployment").GroupKind(), key}
	}
	if owner := metav1.GetControllerOf(u); owner != nil {
		key.Name = owner.Name
		return id{schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind(), key}
	}
	return idOf(u)
}

// plan compares the objects after the change with the objects before it. The run calls it once, at its end.
func (l *runLog) plan(all []*unstructured.Unstructured) *Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &Plan{Actions: l.actions, UnderWay: len(l.underWay), Objects: Difference(slices.Collect(maps.Values(l.before)), all)}
	after := map[id]*unstructured.Unstructured{}
	clusters, machines := map[string]bool{}, rollouts{}
	for _, u := range all {
		after[idOf(u)] = u
		if isKind(u, clusterv1.ClusterKind) {
			clusters[clusterOf(u)] = false
		}
		machines.add(u, l.before[idOf(u)], true)
	}
	for key, u := range l.before {
		if after[key] != nil && after[key].GetUID() == u.GetUID() {
			continue
		}
		machines.add(u, u, false)
	}
	for _, c := range p.Objects {
		if c.Cluster != "" {
			clusters[c.Cluster] = true
		}
	}
	var waiting []id
	p.Waits, waiting = l.waits()
	for _, key := range waiting {
		if u := after[key]; u != nil && clusterOf(u) != "" {
			clusters[clusterOf(u)] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		if clusters[name] {
			p.Clusters = append(p.Clusters, name)
		} else {
			p.Untouched++
		}
	}
	p.Rollouts = machines.list(l.steps)
	l.hosts(p, after)
	return p
}

// changeOf returns the change of an object that exists at the end. [Difference] and the runLog call it.
func changeOf(before, after *unstructured.Unstructured) (ObjectChange, bool) {
	c := ObjectChange{Object: objectOf(after), Cluster: clusterOf(after), Owner: controllerOf(after), Verb: Update}
	if before == nil || before.GetUID() != after.GetUID() {
		c.Verb, c.Generated = Create, isGenerated(after)
		return c, true
	}
	c.Fields = fields(before, after)
	return c, len(c.Fields) > 0
}

func controllerOf(u *unstructured.Unstructured) string {
	if owner := metav1.GetControllerOf(u); owner != nil {
		return owner.Kind + "/" + owner.Name
	}
	return ""
}

// isGenerated reports whether an object's name ends in a random suffix from a controller.
func isGenerated(u *unstructured.Unstructured) bool {
	suffix := regexp.MustCompile(`-[a-z0-9]{5}$`)
	return metav1.GetControllerOf(u) != nil && suffix.MatchString(u.GetName()) && !isKind(u, "MachineSet")
}

// waits returns the waits that did not exist before the change.
func (l *runLog) waits() (out []Waiting, of []id) {
	for key, w := range l.last {
		was := map[string]bool{}
		for _, one := range l.earlier[key].Waits {
			was[one.Message] = true
		}
		for _, message := range l.earlier[key].Errors {
			was[message] = true
		}
		w.Waits = slices.DeleteFunc(slices.Clone(w.Waits), func(one reconciler.Wait) bool { return was[one.Message] })
		w.Errors = slices.DeleteFunc(slices.Clone(w.Errors), func(message string) bool { return was[message] })
		if len(w.Waits)+len(w.Errors) > 0 {
			out, of = append(out, w), append(of, id{key.Kind, key.Key})
		}
	}
	slices.SortFunc(out, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), strings.Compare(a.Object, b.Object))
	})
	return out, of
}
