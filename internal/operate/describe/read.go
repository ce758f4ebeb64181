package describe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Reader is the client interface that [Read] requires. The commands pass the client of the management cluster.
type Reader interface {
	client.Reader
	RESTMapper() meta.RESTMapper
}

// Read reads the objects of a cluster, with the permissions of the command's user. It returns the API's error if the
// Cluster does not exist. A provider object that does not exist, or whose kind is not installed, is recorded in Missing
// instead. Commands read the input of [Build] with it, once or for each update.
func Read(ctx context.Context, r Reader, key client.ObjectKey, o Options) (Snapshot, error) {
	s, err := read(ctx, r, key, o, func(err error) error { return err })
	if err != nil {
		return Snapshot{}, err
	}
	return s, nil
}

// ReadAvailable reads like [Read], but continues after a failed read. It returns the objects that can be read, with the
// others in Unread, and the errors of all failed reads, without which the Snapshot is complete. If the Cluster itself
// cannot be read, the Cluster of the Snapshot is nil. Package ui calls it.
func ReadAvailable(ctx context.Context, r Reader, key client.ObjectKey, o Options) (Snapshot, error) {
	var failed []error
	s, err := read(ctx, r, key, o, func(err error) error {
		if err != nil {
			failed = append(failed, err)
		}
		return nil
	})
	return s, errors.Join(append(failed, err)...)
}

// onResult receives the error of each read, or nil. The reads end with the error that it returns.
type onResult func(error) error

func read(ctx context.Context, r Reader, key client.ObjectKey, o Options, result onResult) (Snapshot, error) {
	s := Snapshot{Now: time.Now(), Cluster: &clusterv1.Cluster{}}
	if err := r.Get(ctx, key, s.Cluster); err != nil {
		return Snapshot{}, err
	}
	for _, step := range []func(context.Context, client.Reader) error{
		func(ctx context.Context, r client.Reader) error { return s.readCore(ctx, r, result) },
		s.readChecks, s.readResourceSets, s.readHooks,
	} {
		if err := result(step(ctx, r)); err != nil {
			return s, err
		}
	}
	if err := s.readObjects(ctx, r, s.refs(o.ShowTemplates), result); err != nil {
		return s, err
	}
	if err := result(s.readHosts(ctx, r)); err != nil {
		return s, err
	}
	if ref, ok := s.controlPlaneTemplate(); ok && o.ShowTemplates {
		return s, s.readReferenced(ctx, r, ref, result)
	}
	return s, nil
}

func (s *Snapshot) readCore(ctx context.Context, r client.Reader, result onResult) error {
	var (
		deployments clusterv1.MachineDeploymentList
		sets        clusterv1.MachineSetList
		pools       clusterv1.MachinePoolList
		machines    clusterv1.MachineList
	)
	here := client.InNamespace(s.Cluster.Namespace)
	labelled := client.MatchingLabels{clusterv1.ClusterNameLabel: s.Cluster.Name}
	for _, read := range []struct {
		list    client.ObjectList
		options []client.ListOption
	}{
		// Objects created by users have no cluster label before their controller adds it. There are few of them.
		{&deployments, []client.ListOption{here}},
		{&pools, []client.ListOption{here}},
		{&sets, []client.ListOption{here, labelled}},
		{&machines, []client.ListOption{here, labelled}},
	} {
		err := r.List(ctx, read.list, read.options...)
		if err == nil || meta.IsNoMatchError(err) {
			continue
		}
		if err := result(fmt.Errorf("listing %ss: %w", strings.TrimSuffix(reflect.TypeOf(read.list).Elem().Name(), "List"), err)); err != nil {
			return err
		}
	}
	s.Deployments = slices.DeleteFunc(deployments.Items, func(d clusterv1.MachineDeployment) bool { return d.Spec.ClusterName != s.Cluster.Name })
	s.Pools = slices.DeleteFunc(pools.Items, func(p clusterv1.MachinePool) bool { return p.Spec.ClusterName != s.Cluster.Name })
	s.Sets, s.Machines = sets.Items, machines.Items
	byName(s.Deployments, func(o *clusterv1.MachineDeployment) string { return o.Name })
	byName(s.Sets, func(o *clusterv1.MachineSet) string { return o.Name })
	byName(s.Pools, func(o *clusterv1.MachinePool) string { return o.Name })
	byName(s.Machines, func(o *clusterv1.Machine) string { return o.Name })
	return nil
}

// readChecks reads the MachineHealthChecks. Without permission to list them, the tree does not show upcoming
// remediations.
func (s *Snapshot) readChecks(ctx context.Context, r client.Reader) error {
	list := &clusterv1.MachineHealthCheckList{}
	err := r.List(ctx, list, client.InNamespace(s.Cluster.Namespace))
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("listing MachineHealthChecks: %w", err)
	}
	s.Checks = slices.DeleteFunc(list.Items, func(c clusterv1.MachineHealthCheck) bool { return c.Spec.ClusterName != s.Cluster.Name })
	byName(s.Checks, func(o *clusterv1.MachineHealthCheck) string { return o.Name })
	return nil
}

func byName[T any](items []T, name func(*T) string) {
	slices.SortFunc(items, func(a, b T) int {
		x, y := name(&a), name(&b)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}

// readResourceSets finds the ClusterResourceSets that select the cluster or were applied to it.
func (s *Snapshot) readResourceSets(ctx context.Context, r client.Reader) error {
	var binding addonsv1.ClusterResourceSetBinding
	err := r.Get(ctx, client.ObjectKeyFromObject(s.Cluster), &binding)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ClusterResourceSetBinding %s: %w", s.Cluster.Name, err)
	}
	for _, b := range binding.Spec.Bindings {
		s.ResourceSets = append(s.ResourceSets, b.ClusterResourceSetName)
	}
	var sets addonsv1.ClusterResourceSetList
	if err := r.List(ctx, &sets, client.InNamespace(s.Cluster.Namespace)); err != nil {
		return fmt.Errorf("listing ClusterResourceSets: %w", err)
	}
	s.Applied = map[string]bool{}
	for _, set := range sets.Items {
		s.Applied[set.Name] = hasAll(binding, set)
		selector, err := metav1.LabelSelectorAsSelector(&set.Spec.ClusterSelector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(s.Cluster.Labels)) {
			s.ResourceSets = append(s.ResourceSets, set.Name)
		}
	}
	slices.Sort(s.ResourceSets)
	s.ResourceSets = slices.Compact(s.ResourceSets)
	return nil
}

// hasAll reports whether all resources of a set are applied to the cluster of a binding.
func hasAll(binding addonsv1.ClusterResourceSetBinding, set addonsv1.ClusterResourceSet) bool {
	for _, b := range binding.Spec.Bindings {
		if b.ClusterResourceSetName != set.Name {
			continue
		}
		applied := map[addonsv1.ResourceRef]bool{}
		for _, r := range b.Resources {
			applied[r.ResourceRef] = r.Applied != nil && *r.Applied
		}
		return !slices.ContainsFunc(set.Spec.Resources, func(r addonsv1.ResourceRef) bool { return !applied[r] })
	}
	return false
}

// readObjects reads the referenced objects with one list per kind. Objects without the label of the cluster are read by
// name.
func (s *Snapshot) readObjects(ctx context.Context, r Reader, refs []Ref, result onResult) error {
	for _, name := range s.ResourceSets {
		refs = append(refs, Ref{addonsv1.GroupVersion.Group, "ClusterResourceSet", name})
	}
	failed := map[schema.GroupKind]bool{} // has every listed kind
	for _, ref := range refs {
		kind := schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
		if _, listed := failed[kind]; listed {
			continue
		}
		err := s.listObjects(ctx, r, kind)
		failed[kind] = err != nil
		if err := result(err); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		switch {
		case s.Objects[ref] != nil:
		case failed[schema.GroupKind{Group: ref.Group, Kind: ref.Kind}]:
			s.unread(ref)
		default:
			if err := s.readReferenced(ctx, r, ref, result); err != nil {
				return err
			}
		}
	}
	return nil
}

// readReferenced reads a referenced object. If that fails, the object is recorded as not read.
func (s *Snapshot) readReferenced(ctx context.Context, r Reader, ref Ref, result onResult) error {
	err := s.readObject(ctx, r, ref)
	if err != nil {
		s.unread(ref)
	}
	return result(err)
}

func (s *Snapshot) listObjects(ctx context.Context, r Reader, kind schema.GroupKind) error {
	mapping, err := r.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking up %s: %w", kind, err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	err = r.List(ctx, list, client.InNamespace(s.Cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.Cluster.Name})
	if err != nil {
		return fmt.Errorf("listing %s: %w", kind, err)
	}
	for i := range list.Items {
		s.found(Ref{kind.Group, kind.Kind, list.Items[i].GetName()}, &list.Items[i])
	}
	return nil
}

func (s *Snapshot) readObject(ctx context.Context, r Reader, ref Ref) error {
	kind := schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
	mapping, err := r.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		s.missing(ref, cmp.Or(kube.Misspelled(r.RESTMapper(), kind), fmt.Sprintf("the kind %s is not installed in the management cluster: install its provider%s", kind, kube.QuickstartAlternative(kind.Kind, kind.Group))))
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking up %s: %w", kind, err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.Get(ctx, client.ObjectKey{Namespace: s.Cluster.Namespace, Name: ref.Name}, u)
	if apierrors.IsNotFound(err) {
		s.missing(ref, "does not exist"+otherNamespaceHint(ctx, r, mapping, ref.Name))
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	s.found(ref, u)
	return nil
}

// otherNamespaceHint names a namespace that has an object with that name, if the user may list it, because a missing -n
// is a common mistake.
func otherNamespaceHint(ctx context.Context, r client.Reader, mapping *meta.RESTMapping, name string) string {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := r.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: name}); err != nil || len(list.Items) == 0 {
		return ""
	}
	return " here; there is one in namespace " + list.Items[0].Namespace
}

func (s *Snapshot) found(ref Ref, u *unstructured.Unstructured) {
	if s.Objects == nil {
		s.Objects = map[Ref]*unstructured.Unstructured{}
	}
	s.Objects[ref] = u
}

func (s *Snapshot) missing(ref Ref, why string) {
	if s.Missing == nil {
		s.Missing = map[Ref]string{}
	}
	s.Missing[ref] = why
}

func (s *Snapshot) unread(ref Ref) {
	if s.Unread == nil {
		s.Unread = map[Ref]bool{}
	}
	s.Unread[ref] = true
}

// Reasons of the events that the topology controller writes about lifecycle hooks of a Cluster. They must equal the
// reasons in controllers/topology/status.go.
const hookBlocking, hookCompleted = "HookBlocking", "HookCompleted"

// readHooks reads from events which handlers block the topology, and since when. It uses the events since the last
// completed hook whose hook is named in the message of the condition: a hook that is superseded, for example when the
// Cluster is deleted during an upgrade, never completes. Without permission to list events, only the condition's
// message is available.
func (s *Snapshot) readHooks(ctx context.Context, r client.Reader) error {
	topology := meta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	if topology == nil || topology.Status == metav1.ConditionTrue {
		return nil
	}
	list := &eventsv1.EventList{}
	err := r.List(ctx, list, client.InNamespace(s.Cluster.Namespace), client.MatchingFields{"regarding.uid": string(s.Cluster.UID)})
	if meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing Events: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return lastSeen(a).Compare(lastSeen(b)) })
	for _, e := range list.Items {
		switch e.Reason {
		case hookCompleted:
			s.Hooks = nil
		case hookBlocking:
			if hook := hookOf(e.Note); hook != "" && topology.Message != "" && !strings.Contains(topology.Message, hook) {
				continue
			}
			s.Hooks = append(s.Hooks, Condition{
				Type: hookBlocking, Status: metav1.ConditionTrue, Reason: hookBlocking, Message: e.Note, LastTransitionTime: metav1.NewTime(e.EventTime.Time),
			})
		}
	}
	return nil
}

// hookOf returns the name of the hook in the message of an event, "Hook NAME: …", or "" if the message has another
// format. The topology controller writes that format (hookEvents in controllers/topology/status.go).
func hookOf(note string) string {
	rest, ok := strings.CutPrefix(note, "Hook ")
	name, _, found := strings.Cut(rest, ":")
	if !ok || !found {
		return ""
	}
	return name
}

// lastSeen returns the time of the last occurrence of an event.
func lastSeen(e eventsv1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return e.EventTime.Time
}
