package machinehealthcheck

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit"
)

// fakeWorkloads is one workload cluster behind a fake client.
type fakeWorkloads struct {
	client client.Client
	err    error
	health workload.Health
	asked  *workload.WatchRequest
}

func (w fakeWorkloads) Client(context.Context, client.ObjectKey) (client.Client, error) {
	return w.client, w.err
}

func (w fakeWorkloads) Watch(_ context.Context, _ client.ObjectKey, r workload.WatchRequest) error {
	if w.asked != nil {
		*w.asked = r
	}
	return nil
}

func (w fakeWorkloads) Health(client.ObjectKey) workload.Health { return w.health }

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, corev1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, kind := range []string{"Fix", "FixTemplate"} {
		s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "r", Version: "v1", Kind: kind}, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "r", Version: "v1", Kind: kind + "List"}, &unstructured.UnstructuredList{})
	}
	return s
}

func crd(name string) client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}}}
}

// world is a cluster with two Machines, of which "sick" has a Node that is not ready.
func world(change ...func(*clusterv1.MachineHealthCheck)) *fake.ClientBuilder {
	hc := check(change...)
	hc.Labels, hc.OwnerReferences = nil, nil
	return fake.NewClientBuilder().WithScheme(newScheme()).WithIndex(&clusterv1.Machine{}, ofCluster, indexMachine).
		WithIndex(&clusterv1.MachineHealthCheck{}, ofCluster, indexCheck).
		WithStatusSubresource(&clusterv1.Machine{}, &clusterv1.MachineHealthCheck{}).
		WithObjects(hc, cluster(), machine("sick"), machine("well"), crd("fixes.r"), crd("fixtemplates.r"))
}

func nodes() client.Client {
	return fake.NewClientBuilder().WithObjects(node("sick", "False", time.Hour), node("well", "True", time.Hour)).Build()
}

type harness struct {
	t *testing.T
	client.WithWatch
	workloads fakeWorkloads
	events    *events.FakeRecorder
}

func newHarness(t *testing.T, c client.WithWatch) *harness {
	return &harness{t: t, WithWatch: c, workloads: fakeWorkloads{client: nodes()}, events: events.NewFakeRecorder(100)}
}

func (h *harness) reconcile() error {
	ctl := &controller{client: h.WithWatch, live: h.WithWatch, refs: kube.NewReferences(h.WithWatch, nil), now: func() time.Time { return now }, workloads: h.workloads, events: h.events}
	r := &reconciler.Reconciler[*clusterv1.MachineHealthCheck, snapshot]{Controller: ctl.definition(), Client: h.WithWatch, Writer: kube.NewWriter(h.WithWatch, Name), Now: ctl.now, Events: h.events}
	ctl.writer = r.Writer
	_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "hc"}})
	return err
}

// settle reconciles until a pass neither fails nor writes.
func (h *harness) settle() {
	h.t.Helper()
	for quiet, n := 0, 0; quiet < 2; n++ {
		if n == 40 {
			h.t.Fatal("does not settle")
		}
		before := h.fingerprint()
		err := h.reconcile()
		if err != nil && !errors.Is(err, testkit.ErrInjected) && fault.KindOf(err) != fault.Conflict {
			h.t.Fatal(err)
		}
		if quiet++; err != nil || h.fingerprint() != before {
			quiet = 0
		}
	}
}

func (h *harness) fingerprint() string {
	h.t.Helper()
	checks, machines := &clusterv1.MachineHealthCheckList{}, &clusterv1.MachineList{}
	h.must(errors.Join(h.List(context.Background(), checks), h.List(context.Background(), machines)))
	out := ""
	for _, o := range checks.Items {
		out += o.Name + o.ResourceVersion + " "
	}
	for _, o := range machines.Items {
		out += o.Name + o.ResourceVersion + " "
	}
	for _, name := range []string{"sick", "well"} {
		out += fmt.Sprint(h.fix(name) != nil)
	}
	return out
}

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) machine(name string) *clusterv1.Machine {
	h.t.Helper()
	m := &clusterv1.Machine{}
	h.must(h.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, m))
	return m
}

// state is status and reason of a condition of a Machine.
func (h *harness) state(name, conditionType string) string {
	h.t.Helper()
	c := condition.Set(h.machine(name).Status.Conditions).Get(conditionType)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func (h *harness) fix(name string) *unstructured.Unstructured {
	h.t.Helper()
	u := request(name).Unstructured
	err := h.Get(context.Background(), client.ObjectKeyFromObject(u), u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	h.must(err)
	return u
}

func (h *harness) expect(name, conditionType, want string) {
	h.t.Helper()
	if got := h.state(name, conditionType); got != want {
		h.t.Errorf("condition %s of Machine %s is %q, want %q", conditionType, name, got, want)
	}
}

func TestEveryWriteFailsOnce(t *testing.T) { // HC-06, HC-09, HC-12
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return world() }, func(t *testing.T, c client.WithWatch) {
		h := newHarness(t, c)
		h.settle()
		h.expect("sick", health, "False UnhealthyNode")
		h.expect("sick", owner, "False WaitingForRemediation")
		h.expect("well", health, "True HealthCheckSucceeded")
		h.expect("well", owner, "")
		hc := &clusterv1.MachineHealthCheck{}
		h.must(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "hc"}, hc))
		if len(hc.OwnerReferences) != 1 || hc.Labels[clusterv1.ClusterNameLabel] != "c" || *hc.Status.CurrentHealthy != 1 || *hc.Status.ExpectedMachines != 2 {
			t.Errorf("health check %+v %+v", hc.ObjectMeta, hc.Status)
		}
	})
}

func TestExternalRequestWhileWritesFail(t *testing.T) { // HC-08
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		return world(elsewhere).WithObjects(template().Unstructured.DeepCopy())
	}, func(t *testing.T, c client.WithWatch) {
		h := newHarness(t, c)
		h.settle()
		h.expect("sick", extern, "False WaitingForRemediation")
		h.expect("sick", owner, "")
		if u := h.fix("sick"); u == nil || u.GetOwnerReferences()[0].Name != "sick" {
			t.Fatalf("no request of the Machine's: %v", u)
		}
		h.workloads.client = fake.NewClientBuilder().WithObjects(node("sick", "True", 0), node("well", "True", time.Hour)).Build()
		h.settle()
		h.expect("sick", health, "True HealthCheckSucceeded")
		h.expect("sick", extern, "")
		if h.fix("sick") != nil {
			t.Error("the request outlives the sickness")
		}
	})
}

func TestRequestIsRefused(t *testing.T) { // HC-08
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "r", Resource: "fixes"}, "sick", errors.New("no"))
	refuse := true
	c := world(elsewhere).WithObjects(template().Unstructured.DeepCopy()).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if refuse {
				return denied
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build()
	h := newHarness(t, c)
	for range 3 {
		if err := h.reconcile(); err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
	}
	h.expect("sick", extern, "False RemediationRequestCreationFailed")
	h.expect("sick", health, "False UnhealthyNode")
	h.expect("well", health, "True HealthCheckSucceeded") // others are not held up
	refuse = false
	h.settle()
	h.expect("sick", extern, "False WaitingForRemediation")
}

func TestLostConnectionMarksNothing(t *testing.T) { // HC-11
	for name, w := range map[string]fakeWorkloads{
		"not connected":         {err: workload.ErrNotConnected},
		"connection is dubious": {client: nodes(), health: workload.Health{Connected: true, ConsecutiveFailures: 1}},
		"no answer": {client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return fault.New(fault.Unreachable, "NotConnected", "away")
			}}).Build()},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, world().WithReturnManagedFields().Build())
			h.workloads = w
			h.settle()
			h.expect("sick", health, "")
			h.expect("sick", owner, "")
			h.workloads = fakeWorkloads{client: nodes()}
			h.settle()
			h.expect("sick", owner, "False WaitingForRemediation")
		})
	}
}

func TestEventTellsOnce(t *testing.T) { // HC-06
	h := newHarness(t, world().WithReturnManagedFields().Build())
	h.settle()
	n := 0
	for len(h.events.Events) > 0 {
		if e := <-h.events.Events; e == "Warning MachineMarkedUnhealthy "+notReady {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d events, want one", n)
	}
}

func TestSkippedMachinesAreLeftAlone(t *testing.T) { // HC-07
	h := newHarness(t, world().WithReturnManagedFields().Build())
	m := h.machine("sick")
	annotated(clusterv1.MachineSkipRemediationAnnotation)(m)
	h.must(h.Update(t.Context(), m))
	h.settle()
	h.expect("sick", health, "")
}
