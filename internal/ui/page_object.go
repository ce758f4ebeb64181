package ui

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// Limits of the object page.
const (
	readTimeout     = 5 * time.Second
	maxYAML         = 256 << 10
	maxObjectEvents = 100
	maxRelated      = 200
)

// objectContent is the input of templates/object.html, which reads its fields by name.
type objectContent struct {
	rootcause.Ref
	APIVersion string
	Age        age
	Deleting   age
	Cluster    link
	Chain      *chainView
	Conditions []conditionRow
	Plans      []planView
	PlanText   string
	Events     []timelineRow
	EventsCut  cut
	EventText  string
	Owners     []link
	OwnersCut  cut
	Owned      []link
	OwnedCut   cut
	// YAML is the object without managed fields, the last applied configuration and credentials.
	YAML      string
	YAMLShort bool
	// Managers are the managers of fields, and ManagedYAML the managed fields.
	Managers    []managerRow
	ManagedYAML string
	Commands    []string
	// Stored is false for an object whose kind is not copied, so that the page is not updated.
	Stored bool
	// ReadProblem is the reason why the object cannot be read now, and CopyAt the time of the copy that is shown instead.
	ReadProblem string
	CopyAt      time.Time
	// NoChain is shown if there is no root cause chain.
	NoChain string
}

type conditionRow struct {
	Type, Status, Reason, Message string
	Since                         age
	Good                          bool
}

type planView struct {
	Plan
	Age age
}

type managerRow struct {
	Name, Operation, Subresource string
	Age                          age
}

// objectPage shows one object. If the API server does not respond, the copy of the object is shown. [Server.Handler]
// routes to it.
func (s *Server) objectPage(q request) (any, error) {
	of := rootcause.Ref{
		Group: dashToEmpty(q.PathValue("group")), Kind: q.PathValue("kind"), Namespace: dashToEmpty(q.PathValue("namespace")), Name: q.PathValue("name"),
	}
	if of.Group == "" {
		return nil, fault.New(fault.Invalid, "NotShown", "objects of the core group, such as Secrets, are not shown on this page: use \"slipway kubectl\"")
	}
	live, err := q.source.readObject(q.Context(), of)
	stored, isStored := q.source.store.Get(of)
	kind := q.source.mirror.CopyOf(of.GroupKind())
	out := objectContent{Ref: of, Stored: isStored}
	switch {
	case fault.KindOf(err) == fault.Unreachable && isStored:
		live, out.ReadProblem, out.CopyAt = stored.DeepCopy(), fault.UserMessage(err), firstTime(kind.Since, q.now)
	case err != nil:
		return nil, err
	}
	out.addMetadata(q, live)
	out.NoChain = noChainText(of.Kind, isStored, kind)
	out.addConditions(live, q.now)
	out.addYAML(live, q.now)
	out.addRelated(q.source, live)
	out.addPlans(q)
	if chain, found := q.source.explain(q.Context(), of, q.now); found {
		out.Chain = q.source.chain(chain, q.now)
	}
	out.addEvents(q)
	return out, nil
}

func (c *objectContent) addMetadata(q request, u *unstructured.Unstructured) {
	c.APIVersion, c.Age = u.GetAPIVersion(), newAge(u.GetCreationTimestamp().Time, q.now)
	c.Commands = []string{fmt.Sprintf("slipway kubectl get %s.%s %s%s -o yaml%s", lowerKind(c.Kind), c.Group, c.Name, namespaceFlag(c.Ref), q.source.Flags)}
	if at := u.GetDeletionTimestamp(); at != nil {
		c.Deleting = newAge(at.Time, q.now)
	}
}

// noChainText is the text for an object without a root cause chain:
//
//	object is copied, but its kind cannot be read now    not known, with the reason
//	object or its kind is not copied, or not yet         not computed
//	otherwise                                            everything is as it should be
func noChainText(kind string, stored bool, c mirror.Copy) string {
	switch {
	case c.Reason != "" && stored:
		return "The cause is not known, because objects of the kind " + kind + " cannot be read: " + c.Reason + "."
	case !stored || !c.IsComplete():
		return "The cause is not computed for this kind."
	}
	return "Everything is as it should be."
}

func namespaceFlag(of rootcause.Ref) string {
	if of.Namespace == "" {
		return ""
	}
	return " -n " + of.Namespace
}

// lowerKind returns the kind in lower case, which kubectl accepts.
func lowerKind(kind string) string { return string(bytes.ToLower([]byte(kind))) }

// readObject reads the object from the API server: in the copied version, or in the preferred version of the kind.
func (s *Source) readObject(ctx context.Context, of rootcause.Ref) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	mapping, err := s.mirror.RESTMapper().RESTMapping(of.GroupKind(), s.versionOf(of.GroupKind())...)
	if meta.IsNoMatchError(err) {
		return nil, fault.New(fault.Gone, "UnknownKind", "the management cluster has no kind %s of group %s: install the provider that has it", of.Kind, of.Group).From(err)
	}
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", of.Kind, err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(mapping.GroupVersionKind)
	err = s.mirror.Live().Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, u)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fault.New(fault.Gone, "ObjectNotFound", "%s does not exist", of.Qualified()).From(err)
	case apierrors.IsForbidden(err):
		return nil, fault.New(fault.Invalid, "NotAllowed", "you may not get %s: that needs a Role or ClusterRole with the verb get for its kind", of.Qualified()).From(err)
	case err != nil:
		return nil, fault.New(fault.Unreachable, "NotRead", "%s cannot be read: %v", of.Qualified(), err).From(err)
	}
	return u, nil
}

// versionOf returns the version of a copied kind.
func (s *Source) versionOf(kind schema.GroupKind) []string {
	for _, k := range s.mirror.Kinds() {
		if k.GroupKind() == kind {
			return []string{k.Version}
		}
	}
	return nil
}

// conditionRows returns the conditions of an object.
func conditionRows(u *unstructured.Unstructured, now time.Time) (out []conditionRow) {
	for _, c := range describe.ConditionsOf(u) {
		out = append(out, conditionRow{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: newAge(c.LastTransitionTime.Time, now), Good: describe.HasExpectedStatus(c, nil),
		})
	}
	return out
}

func (c *objectContent) addConditions(u *unstructured.Unstructured, now time.Time) {
	c.Conditions = conditionRows(u, now)
	slices.SortStableFunc(c.Conditions, func(a, b conditionRow) int { return boolOrder(a.Good, b.Good) })
}

// addYAML adds the object and, folded, its managed fields.
func (c *objectContent) addYAML(u *unstructured.Unstructured, now time.Time) {
	for _, e := range u.GetManagedFields() {
		row := managerRow{Name: e.Manager, Operation: string(e.Operation), Subresource: e.Subresource}
		if e.Time != nil {
			row.Age = newAge(e.Time.Time, now)
		}
		c.Managers = append(c.Managers, row)
	}
	if fields, found, _ := unstructured.NestedSlice(u.Object, "metadata", "managedFields"); found {
		c.ManagedYAML, _ = toYAML(fields)
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	c.YAML, c.YAMLShort = toYAML(maskCredentials(u.Object))
}

// toYAML returns the YAML of a value with visible control characters, and whether it is shortened.
func toYAML(v any) (string, bool) {
	data, err := yaml.Marshal(v)
	if err != nil {
		return "# " + err.Error(), false
	}
	return redact.Escape(redact.Clip(string(data), maxYAML)), len(data) > maxYAML
}

// addRelated adds the owners, the owned objects and the cluster.
func (c *objectContent) addRelated(s *Source, u *unstructured.Unstructured) {
	var owners []metav1.OwnerReference
	owners, c.OwnersCut = limit(u.GetOwnerReferences(), maxRelated)
	for _, r := range owners {
		group := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).Group
		c.Owners = append(c.Owners, s.link(rootcause.Ref{Group: group, Kind: r.Kind, Namespace: c.Namespace, Name: r.Name}))
	}
	var owned []rootcause.Ref
	owned, c.OwnedCut = limit(s.store.Owned(c.Ref), maxRelated)
	for _, of := range owned {
		c.Owned = append(c.Owned, s.link(of))
	}
	if clusters := s.store.ClustersOf(u); len(clusters) == 1 {
		c.Cluster = link{Kind: "Cluster", Name: clusters[0].Name, URL: s.clusterURL(clusters[0].Namespace, clusters[0].Name)}
	}
}

func (c *objectContent) addPlans(q request) {
	plans, problem := q.source.readPlans(q.Context(), c.Ref)
	c.PlanText = problem
	for _, p := range plans {
		c.Plans = append(c.Plans, planView{Plan: p, Age: newAge(p.Time, q.now)})
	}
}

func (c *objectContent) addEvents(q request) {
	namespace := cmp.Or(c.Namespace, "default") // the namespace of Events about objects without one
	all, problem := q.source.events.read(q.Context(), eventQuery{Namespace: namespace, Kind: c.Kind, Name: c.Name}, q.now)
	c.EventText = problem
	about := func(of rootcause.Ref) bool { return of.Kind == c.Kind && of.Name == c.Name && of.Group == c.Group }
	var events []event
	events, c.EventsCut = eventsOf(all, about, maxObjectEvents)
	for _, e := range events {
		c.Events = append(c.Events, timelineRow{
			entry: entry{At: e.At, What: "event", Title: e.Reason, Message: e.Note, Warning: e.Type == "Warning", Count: e.Count, Manager: e.Manager}, Age: newAge(e.At, q.now),
		})
	}
}
