package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// failureRecord is a controller whose reading fails with an error that a test sets, at a time that it sets.
type failureRecord struct {
	*harness
	err    error
	at     time.Time
	writes int
	events *events.FakeRecorder
}

func newFailing(t *testing.T) *failureRecord {
	f := &failureRecord{harness: newHarness(t, machine(nil)), at: time.Unix(1e9, 0), events: events.NewFakeRecorder(10)}
	counted := interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{SubResourcePatch: func(
		ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
	) error {
		f.writes++
		return c.SubResource(sub).Patch(ctx, o, patch, opts...)
	}})
	f.r.Writer, f.r.Now, f.r.Events = kube.NewWriter(counted, "test"), func() time.Time { return f.at }, f.events
	f.r.Observe = func(_ context.Context, m *clusterv1.Machine) (snapshot, error) { return snapshot{machine: m}, f.err }
	f.r.Report = func(snapshot, reconciler.Plan, reconciler.Outcome) reconciler.Report { return reconciler.Report{} } // every write is the driver's
	return f
}

// after fails, or not, some time later, and returns what the Machine says of it.
func (f *failureRecord) after(t *testing.T, d time.Duration, err error) string {
	t.Helper()
	f.at, f.err = f.at.Add(d), err
	if _, got := f.reconcile(t); err == nil && got != nil {
		t.Fatal(got)
	}
	c := condition.Set(f.get(t).Status.Conditions).Get("Reconciled")
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func TestAnObjectSaysThatItFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New("no rights"))
	const said = `False Forbidden: Observing: secrets "s" is forbidden: no rights; retrying`
	f := newFailing(t)
	for i, step := range []struct {
		reason string
		after  time.Duration
		err    error
		want   string
	}{
		{"all is well", 0, nil, ""},
		{"what passes by itself is not worth a write", time.Hour, forbidden, ""},
		{"it does not pass", time.Second, forbidden, said},
		{"nothing is new", time.Second, forbidden, said},
		{"only the words change", time.Second, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New("attempt 7")), said},
		{"a conflict is none of it", time.Second, fault.New(fault.Conflict, "StaleObject", "read again"), said},
		{"it is over", time.Second, nil, ""},
		{"and over", time.Second, nil, ""},
		{"a person has to change something", time.Second, fault.New(fault.Invalid, "InvalidSelector", "correct spec.selector"), "False InvalidSelector: Correct spec.selector"},
		{"it was changed, too soon to be said", time.Second / 2, fault.New(fault.Invalid, "InvalidSelector", "correct spec.template"), "False InvalidSelector: Correct spec.selector"},
		{"it is looked at again", time.Second / 2, fault.New(fault.Invalid, "InvalidSelector", "correct spec.template"), "False InvalidSelector: Correct spec.template"},
		{"another reason", time.Second, fault.New(fault.Invalid, "NoSuchKind", "did you mean Foo?"), "False NoSuchKind: Did you mean Foo?"},
		{"over", time.Second, nil, ""},
		{"a conflict", time.Second, fault.New(fault.Conflict, "StaleObject", "read again"), ""},
		{"conflicts", time.Hour, fault.New(fault.Conflict, "StaleObject", "read again"), ""},
	} {
		if got := f.after(t, step.after, step.err); got != step.want {
			t.Errorf("step %d, %s: %q, want %q", i, step.reason, got, step.want)
		}
	}
	if f.writes != 2+4 {
		t.Errorf("%d writes; want: said, over, said, said in other words, said otherwise, over", f.writes)
	}
	if n := len(f.events.Events); n != 4 {
		t.Errorf("%d events, want one for each thing that was said", n)
	}
}

// A provider without its rights could not even report that: the process does.
func TestTheProcessReportsMissingRights(t *testing.T) { // CL-02
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "m", errors.New("no rights"))
	f := newFailing(t)
	mayWrite := false
	own := interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{SubResourcePatch: func(
		ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
	) error {
		if !mayWrite {
			return forbidden
		}
		return c.SubResource(sub).Patch(ctx, o, patch, opts...)
	}})
	f.r.Writer = kube.NewWriter(own, "test")
	f.r.ReportBy(kube.NewWriter(f.client, "test"), f.events)
	f.after(t, 0, forbidden)
	const said = "False Forbidden: Observing: machines \"m\" is forbidden: no rights; retrying; its controller lacks permissions: `slipway status` lists them"
	for range 3 {
		if got := f.after(t, 2*time.Minute, forbidden); got != said {
			t.Errorf("%q, want %q", got, said)
		}
	}
	if n := len(f.events.Events); n != 1 {
		t.Errorf("%d events", n)
	}
	mayWrite = true
	if got := f.after(t, time.Minute, nil); got != "" {
		t.Errorf("it has its rights again: %q", got)
	}
}

type makes struct{ names []string }

func (a makes) String() string              { return "create " + strings.Join(a.names, ", ") }
func (a makes) Creates() (string, []string) { return "Machine", a.names }

// A quota refuses each attempt, with other names: one message, and one event.
func TestARefusedCreationIsOneMessage(t *testing.T) { // MS-03
	f := newFailing(t)
	attempt := 0
	f.r.Decide = func(snapshot) reconciler.Plan {
		attempt++
		return reconciler.Plan{Actions: []reconciler.Action{makes{[]string{fmt.Sprintf("m-%d", attempt)}}}}
	}
	f.r.Act = func(_ context.Context, _ snapshot, a reconciler.Action) error {
		return fmt.Errorf("creating Machine: %w", apierrors.NewForbidden(schema.GroupResource{Group: "g", Resource: "machines"}, a.(makes).names[0], errors.New("exceeded quota")))
	}
	for range 4 {
		f.at = f.at.Add(2 * time.Minute)
		if _, err := f.reconcile(t); err == nil {
			t.Fatal("no error")
		}
	}
	c := condition.Set(f.get(t).Status.Conditions).Get("Reconciled")
	if want := "Creating objects of kind Machine: machines.g is forbidden: exceeded quota; retrying"; c == nil || c.Message != want {
		t.Errorf("%+v, want %q", c, want)
	}
	if n := len(f.events.Events); n != 1 {
		t.Errorf("%d events", n)
	}
}

// Errors hold what others wrote: neither their length nor their letters make a condition that the API refuses.
func TestWhatAnObjectSaysIsBounded(t *testing.T) {
	f := newFailing(t)
	got := f.after(t, 0, fault.New(fault.Invalid, "not a reason!", "%s", strings.Repeat("é\xff", 4000)))
	if len(got) < 400 || len(got) > 800 || !strings.HasPrefix(got, "False not_a_reason_: É") {
		t.Errorf("%d bytes: %.60s", len(got), got)
	}
}

func TestAPanicIsSaid(t *testing.T) {
	f := newFailing(t)
	errPanics := errors.New("the controller panics before it could return this")
	f.r.Observe = func(context.Context, *clusterv1.Machine) (snapshot, error) { panic("at the disco") }
	if got := f.after(t, 0, errPanics); got != "" {
		t.Errorf("at once: %s", got)
	}
	if got := f.after(t, time.Second, errPanics); got != "False Panic: The test controller panicked: at the disco; retrying" {
		t.Errorf("%s", got)
	}
}

// limitsOf are the limits of a Machine's status.
func limitsOf(status map[string]apiextensionsv1.JSONSchemaProps) kube.StatusLimits {
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: clusterv1.GroupVersion.Group, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Machine"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: clusterv1.GroupVersion.Version, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"status": {Properties: status}}},
			},
		}},
	}}
	return kube.NewStatusLimits([]*apiextensionsv1.CustomResourceDefinition{crd})
}

// One value that the API refuses does not keep the rest of a status from being written, nor the rest of the plan from its time.
func TestValuesThatTheAPIRefuses(t *testing.T) { // MA-05
	f := newFailing(t)
	f.r.Limits = limitsOf(map[string]apiextensionsv1.JSONSchemaProps{"failureDomain": {MaxLength: new(int64(3))}})
	domain := "much too long"
	f.r.Report = func(snapshot, reconciler.Plan, reconciler.Outcome) reconciler.Report {
		return reconciler.Report{Status: clusterv1.MachineStatus{Phase: "Running", FailureDomain: domain}}
	}
	f.r.Decide = func(snapshot) reconciler.Plan { return reconciler.Plan{Recheck: time.Second} }
	result, err := f.reconcile(t)
	m := f.get(t)
	said := condition.Set(m.Status.Conditions).Get("Reconciled")
	if err != nil || result.RequeueAfter != time.Second || m.Status.Phase != "Running" || m.Status.FailureDomain != "" {
		t.Errorf("%v %v, status %+v", result, err, m.Status)
	}
	if said == nil || said.Message != `The status omits values that the API does not accept: status.failureDomain "much too long" has more than 3 characters` {
		t.Errorf("said: %+v", said)
	}
	domain = "a"
	for range 2 { // the second time the cache has what was written
		if _, err := f.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
	m = f.get(t)
	if said := condition.Set(m.Status.Conditions).Get("Reconciled"); said != nil || m.Status.FailureDomain != "a" {
		t.Errorf("after it was corrected: %+v", m.Status)
	}
}
