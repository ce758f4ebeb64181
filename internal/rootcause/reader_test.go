package rootcause

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// api is an API server with some objects, which records the requests.
type api struct {
	objects   []*unstructured.Unstructured
	requests  []string
	forbidden string // a kind
	broken    error
	// failing has errors by kind, and pages is the number of objects in a page; zero: all.
	failing map[string]error
	pages   int
}

func (a *api) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := into.GetObjectKind().GroupVersionKind()
	a.requests = append(a.requests, "get "+kind.Kind+" "+key.Name)
	resource := schema.GroupResource{Group: kind.Group, Resource: kind.Kind}
	switch {
	case a.broken != nil:
		return a.broken
	case a.failing[kind.Kind] != nil:
		return a.failing[kind.Kind]
	case a.forbidden == kind.Kind:
		return apierrors.NewForbidden(resource, key.Name, errors.New("no"))
	}
	for _, o := range a.objects {
		if o.GetKind() != kind.Kind || o.GetName() != key.Name || o.GetNamespace() != key.Namespace {
			continue
		}
		switch into := into.(type) {
		case *unstructured.Unstructured:
			if kind.Kind == "Secret" {
				return errors.New("the data of a Secret is requested")
			}
			into.Object = o.DeepCopy().Object
		case *metav1.PartialObjectMetadata:
			into.Name, into.Namespace, into.Labels = o.GetName(), o.GetNamespace(), o.GetLabels()
		}
		return nil
	}
	return apierrors.NewNotFound(resource, key.Name)
}

func (a *api) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind := strings.TrimSuffix(list.GetObjectKind().GroupVersionKind().Kind, "List")
	a.requests = append(a.requests, "list "+kind)
	switch {
	case a.broken != nil:
		return a.broken
	case a.failing[kind] != nil:
		return a.failing[kind]
	case a.forbidden == kind:
		return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no"))
	}
	into := list.(*unstructured.UnstructuredList)
	for _, o := range a.objects {
		if o.GetKind() == kind {
			into.Items = append(into.Items, *o.DeepCopy())
		}
	}
	if a.pages > 0 {
		chosen := (&client.ListOptions{}).ApplyOptions(options)
		from, _ := strconv.Atoi(chosen.Continue)
		to := min(from+a.pages, len(into.Items))
		if to < len(into.Items) {
			into.SetContinue(strconv.Itoa(to))
		}
		into.Items = into.Items[from:to]
	}
	return nil
}

func mapper() meta.RESTMapper {
	kinds := []string{"Cluster", "ClusterClass", "Machine", "MachineSet", "MachineDeployment", "MachinePool", "MachineHealthCheck"}
	kinds = slices.AppendSeq(kinds, maps.Keys(groups))
	var versions []schema.GroupVersion
	for _, kind := range kinds {
		versions = append(versions, groupVersion(kind))
	}
	m := meta.NewDefaultRESTMapper(versions)
	for _, kind := range kinds {
		var scope meta.RESTScope = meta.RESTScopeNamespace
		if kind == "ExtensionConfig" {
			scope = meta.RESTScopeRoot
		}
		m.Add(groupVersion(kind).WithKind(kind), scope)
	}
	return m
}

func groupVersion(kind string) schema.GroupVersion {
	version, err := schema.ParseGroupVersion(versionOf(kind))
	if err != nil {
		panic(err)
	}
	return version
}

func brokenCluster(machines int) *api {
	a := &api{objects: []*unstructured.Unstructured{
		cluster(bad("WorkersAvailable", "NotAvailable", "* MachineDeployment c-workers: x", 3)), thing("LocalCluster c", owner("Cluster c"), field(true, "status", "initialization", "provisioned")), thing("HostedControlPlane c", owner("Cluster c"), field(true, "status", "initialization", "controlPlaneInitialized")),
		thing("MachineDeployment c-workers", owner("Cluster c"), bad("Available", "NotAvailable", "x", 3)), thing("MachineSet c-w", owner("MachineDeployment c-workers"), bad("MachinesReady", "NotReady", "x", 3)),
		thing("ExtensionConfig e", bad("Discovered", "ConnectionRefused", "nothing listens at x", 5)),
	}}
	for i := range machines {
		name := fmt.Sprintf("m%d", i)
		a.objects = append(a.objects,
			thing("Machine "+name, owner("MachineSet c-w"), infrastructure("LocalMachine "+name), bootstrap("KubeadmConfig "+name), bad("InfrastructureReady", "NotReady", "x", 3)),
			thing("LocalMachine "+name, owner("Machine "+name), bad("MachineProvisioned", "MachineStopped", "The machine "+name+" does not run (exit code 1), see Secret c-ca and Secret none", 4+i)))
	}
	return a
}

// TestReader counts the requests, which do not depend on the number of objects.
func TestReader(t *testing.T) {
	want := []string{
		"get Cluster c", "get MachineDeployment c-workers", "get MachineSet c-w", // named by messages, or explained
		"list MachineDeployment", "list MachineHealthCheck", "list MachinePool", "list MachineSet", "list Machine",
		"get LocalMachine m0", "get Secret c-ca", "get Secret none", "get KubeadmConfig m0", "list LocalMachine", "list KubeadmConfig",
		"get LocalCluster c", "get HostedControlPlane c",
	}
	slices.Sort(want)
	for _, machines := range []int{3, 50} {
		a := brokenCluster(machines)
		c := checkExplained(t, NewReader(t.Context(), ReaderOptions{Client: a, Mapper: mapper(), Namespace: "ns"}), "Cluster c")
		if got, want := path(c), fmt.Sprintf("Cluster c > MachineDeployment c-workers > MachineSet c-w > Machine m%d > LocalMachine m%d", machines-1, machines-1); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		got := slices.Clone(a.requests)
		slices.Sort(got)
		want := slices.DeleteFunc(slices.Clone(want), func(r string) bool { return r == "get MachineSet c-w" }) // it is listed
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d Machines (-want +got):\n%s", machines, diff)
		}
	}
}

func TestReaderRights(t *testing.T) {
	a := brokenCluster(2)
	a.forbidden = "LocalMachine"
	r := NewReader(t.Context(), ReaderOptions{Client: a, Mapper: mapper(), Namespace: "ns"})
	if got := path(checkExplained(t, r, "Machine m1")); got != "Machine m1" || r.Err() != nil {
		t.Errorf("%s, %v", got, r.Err())
	}
	if diff := cmp.Diff([]string{"LocalMachine.infrastructure.slipway.dev (no permission)"}, r.Unreadable()); diff != "" {
		t.Error(diff)
	}
	a.broken = &net.OpError{Op: "dial", Err: errors.New("no connection")}
	r = NewReader(t.Context(), ReaderOptions{Client: a, Mapper: mapper(), Namespace: "ns"})
	a.requests = nil
	if _, found := Explain(r, refTo("Machine m1"), now); found || r.Err() == nil || len(a.requests) != 1 {
		t.Errorf("%v after %v", r.Err(), a.requests)
	}
}

func TestReaderPlans(t *testing.T) {
	a, asked := brokenCluster(2), 0
	source := func(_ context.Context, of Ref) ([]Plan, error) {
		asked++
		if of.Kind == "Machine" {
			return nil, ErrNoPlans
		}
		return []Plan{{Controller: "x", Errors: []string{"exceeded quota: q"}}}, nil
	}
	r := NewReader(t.Context(), ReaderOptions{Client: a, Mapper: mapper(), Plans: source, Namespace: "ns"})
	c := checkExplained(t, r, "MachineSet c-w")
	if !c.Plans || r.PlansErr() != nil {
		t.Errorf("%+v, %v", c, r.PlansErr())
	}
	before := asked
	r.Plans(refTo("MachineSet c-w"))
	if asked != before {
		t.Error("plans are read twice")
	}
	failing := func(context.Context, Ref) ([]Plan, error) { asked++; return nil, errors.New("no manager") }
	asked = 0
	r = NewReader(t.Context(), ReaderOptions{Client: a, Mapper: mapper(), Plans: failing, Namespace: "ns"})
	if c := checkExplained(t, r, "Cluster c"); c.Plans || asked != 1 || r.PlansErr() == nil {
		t.Errorf("%d requests to a manager that is not reachable: %v", asked, r.PlansErr())
	}
}

func TestRoots(t *testing.T) {
	a := brokenCluster(2)
	r := NewReader(t.Context(), ReaderOptions{Client: a, Mapper: mapper()})
	var got []string
	for _, c := range Problems(r, r.Roots(), now) {
		got = append(got, path(c))
	}
	want := []string{
		"Cluster c > MachineDeployment c-workers > MachineSet c-w > Machine m1 > LocalMachine m1",
		"ExtensionConfig e", "Machine m0 > LocalMachine m0",
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
