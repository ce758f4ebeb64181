package machines_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// A quota on Machines that lasts must not create and delete the objects of each Machine at each attempt, and what is said is the
// quota's refusal, whatever becomes of the clean-up.
func TestRefusedCreation(t *testing.T) { // MS-04
	quota := apierrors.NewForbidden(schema.GroupResource{Group: "cluster.x-k8s.io", Resource: "machines"}, "a", errors.New("exceeded quota"))
	unsupported := apierrors.NewBadRequest("the webhook does not support dry runs")
	for name, tc := range map[string]struct {
		reason  string
		dryRun  error
		refuses []error
		want    []string
	}{
		"quota": {"only rehearsed after the first refusal", quota, []error{quota, quota, quota}, []string{
			"create FooMachine", "create Machine: refused", "delete FooMachine",
			"rehearse FooMachine", "rehearse Machine: refused",
			"rehearse FooMachine", "rehearse Machine: refused"}},
		"quota raised": {"and not rehearsed any more once it succeeded", nil, []error{quota, nil, nil}, []string{
			"create FooMachine", "create Machine: refused", "delete FooMachine",
			"rehearse FooMachine", "rehearse Machine", "create FooMachine", "create Machine",
			"create FooMachine", "create Machine"}},
		"no dry runs": {"a rehearsal that is not possible holds up nothing", unsupported, []error{quota, nil}, []string{
			"create FooMachine", "create Machine: refused", "delete FooMachine",
			"rehearse FooMachine", "rehearse Machine: refused", "create FooMachine", "create Machine"}},
		"no refusal": {"another error may pass by itself", nil, []error{errors.New("no answer"), nil}, []string{
			"create FooMachine", "create Machine: refused", "delete FooMachine", "create FooMachine", "create Machine"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log []string
			var refusal error
			c := world(t, interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, opts ...client.PatchOption) error {
					verb, err, kind := "create ", refusal, o.GetObjectKind().GroupVersionKind().Kind
					if len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) > 0 {
						verb, err = "rehearse ", tc.dryRun
					}
					if kind != "Machine" {
						err = nil
					}
					if log = append(log, verb+kind); err != nil {
						log[len(log)-1] += ": refused"
					}
					return err
				},
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					log = append(log, "delete "+o.GetObjectKind().GroupVersionKind().Kind)
					return errors.New("StorageError: invalid object")
				},
			})
			k := machines.MachineWriter{Live: c, Writer: kube.NewWriter(c, "test"), Manager: manager, MetadataManager: manager + "-metadata", Pending: &machines.Pending{}}
			s := machines.OwnerState{Now: now, Definition: controlPlane(), Manager: manager}
			for i := range tc.refuses {
				refusal = tc.refuses[i]
				err := k.Act(t.Context(), s, machines.CreateMachines{Names: []string{"a"}, Why: "scale up"})
				if (err == nil) != (refusal == nil) || err != nil && strings.Contains(err.Error(), "StorageError") {
					t.Errorf("attempt %d: %v", i, err)
				}
			}
			if diff := cmp.Diff(tc.want, log); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// world is a management cluster with one namespace.
func world(t *testing.T, funcs interceptor.Funcs) client.WithWatch {
	t.Helper()
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "i", Version: "v1", Kind: "FooMachine"}, &unstructured.Unstructured{})
	metav1.AddToGroupVersion(s, schema.GroupVersion{Group: "i", Version: "v1"})
	return fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&clusterv1.Machine{}).WithReturnManagedFields().WithInterceptorFuncs(funcs).Build()
}

// TestKeeper: what was created of a Machine that cannot be created is deleted again, or found as an orphan.
func TestKeeper(t *testing.T) { // MS-04
	ctx, refused := context.Background(), true
	c := world(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if o.GetObjectKind().GroupVersionKind().Kind == "Machine" && refused {
				return errors.New("no")
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	pending := &machines.Pending{}
	k := machines.MachineWriter{Live: c, Writer: kube.NewWriter(c, "test"), Manager: manager, MetadataManager: manager + "-metadata", Pending: pending}
	s := machines.OwnerState{Now: now, Definition: controlPlane(), Manager: manager}
	clones := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "i/v1", "kind": "FooMachineList"}}
	count := func() int {
		t.Helper()
		if err := c.List(ctx, clones); err != nil {
			t.Fatal(err)
		}
		return len(clones.Items)
	}
	create := machines.CreateMachines{Names: []string{"a"}, Why: "scale up"}
	if err := k.Act(ctx, s, create); err == nil || count() != 0 {
		t.Errorf("%v, %d clones left", err, count())
	}
	refused = false
	if err := k.Act(ctx, s, create); err != nil || count() != 1 {
		t.Fatalf("%v, %d clones", err, count())
	}
	created, err := pending.Settle(ctx, c, &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", UID: "p"}}, nil, now)
	if err != nil || !cmp.Equal(created, []string{"a"}) {
		t.Errorf("the cache does not show it yet: %v, %v", created, err)
	}
	m := &clusterv1.Machine{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "a"}, m); err != nil {
		t.Fatal(err)
	}
	s.Members = machines.OwnedMachines{{Machine: m}}
	s.Clones = &clone.Clones{Orphans: []contract.Object{{Unstructured: clones.Items[0].DeepCopy()}}}
	orphan := machines.DeleteOrphan{Kind: "FooMachine", Name: "a"}
	if err := k.Act(ctx, s, orphan); err != nil || count() != 1 {
		t.Errorf("a clone whose Machine the cache does not show is no orphan: %v, %d left", err, count())
	}
	if err := k.Act(ctx, s, machines.SetConditions{Machine: "a", UpToDate: condition.True("UpToDate")}); err != nil {
		t.Error(err)
	}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "a"}, m); err != nil {
		t.Fatal(err)
	}
	if err := k.Act(ctx, s, machines.DeleteMachines{Names: []string{"a", "unknown"}, Why: "scale down"}); err != nil {
		t.Error(err)
	}
	s.Members[0].Deleted = false
	if _, err := pending.Settle(ctx, c, &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{UID: "p"}}, s.Members, now); err != nil || !s.Members[0].Deleted {
		t.Errorf("the cache does not show the deletion yet: %v", err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil || m.DeletionTimestamp.IsZero() || m.Status.Conditions[0].Type != "UpToDate" {
		t.Fatalf("%v, %+v", err, m)
	}
	m.Finalizers = nil
	if err := c.Update(ctx, m); err != nil {
		t.Fatal(err)
	}
	if err := k.Act(ctx, s, orphan); err != nil || count() != 0 {
		t.Errorf("an orphan stays: %v, %d left", err, count())
	}
	if err := k.Act(ctx, s, foreign{}); err == nil {
		t.Error("an action that is unknown is carried out")
	}
}

type foreign struct{}

func (foreign) String() string { return "paint the Machine" }

func TestParts(t *testing.T) {
	type compound interface {
		reconciler.Action
		Parts() []reconciler.Action
	}
	for _, whole := range []compound{machines.CreateMachines{Names: []string{"a", "b"}, Why: "w"}, machines.DeleteMachines{Names: []string{"a", "b"}, Why: "w"}} {
		got := fmt.Sprint(whole, whole.Parts())
		verb := strings.Fields(whole.String())[0]
		if want := fmt.Sprintf("%[1]s Machines a, b: w [%[1]s Machine a: w %[1]s Machine b: w]", verb); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
