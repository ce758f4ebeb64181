package inplace

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

type served struct {
	name, hook string
	serve      http.HandlerFunc
	policy     hooksv1.FailurePolicy
}

// extensions is a registry that knows an extension with some handlers. Its clock is passed in.
func extensions(t *testing.T, now func() time.Time, handlers ...served) (Caller, *hooktest.Extension) {
	t.Helper()
	e, err := hook.New(hook.Config{
		NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil },
		Random:          func() float64 { return 0.5 }, Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	x := hooktest.Start(t, hooktest.Options{})
	for _, h := range handlers {
		described := hooktest.Handler(h.name, h.hook)
		if h.policy != "" {
			described.FailurePolicy = &h.policy
		}
		x.Handle(described, h.serve)
	}
	if state, err := e.Discover(t.Context(), x.ExtensionConfig("ext")); err != nil || state.Problem != nil {
		t.Fatal(err, state.Problem)
	}
	e.Prime()
	return Caller{Client: e}, x
}

func infra(kind string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": map[string]any{"ready": true}}}
	u.SetAPIVersion("infrastructure.example.org/v1")
	u.SetKind(kind)
	u.SetNamespace("ns")
	u.SetName("m1-infra")
	u.SetUID("u-infra")
	u.SetResourceVersion("12")
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
	return u
}

func machine(version string) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "m1", UID: "u1", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"},
	}}
	m.Spec.ClusterName, m.Spec.Version = "c", version
	m.Status.Phase = "Running"
	return m
}

func patched(part, kind, patch string) string {
	return `,"` + part + `":{"patchType":"` + kind + `","patch":"` + base64.StdEncoding.EncodeToString([]byte(patch)) + `"}`
}

func TestCanUpdateMachine(t *testing.T) { // IP-01, IU-01, IU-04
	const hookName = "CanUpdateMachine"
	answer := func(parts ...string) http.HandlerFunc {
		return hooktest.Raw(`{"status":"Success"` + strings.Join(parts, "") + `}`)
	}
	versionPatch := patched("machinePatch", "JSONPatch", `[{"op":"replace","path":"/spec/version","value":"v1.34.0"}]`)
	memoryPatch := patched("infrastructureMachinePatch", "JSONMergePatch", `{"spec":{"memory":2,"old":null}}`)
	for name, tc := range map[string]struct {
		handlers []served
		want     UpdateCheck
		problem  string
	}{
		"no extension": {nil, UpdateCheck{}, ""},
		"covers all":   {[]served{{"can", hookName, answer(versionPatch, memoryPatch), ""}}, UpdateCheck{Handler: "can.ext", Covered: true}, ""},
		"covers a part": {[]served{{"can", hookName, answer(versionPatch), ""}}, UpdateCheck{
			Handler: "can.ext", Uncovered: "ExampleMachine spec.memory, ExampleMachine spec.old",
		}, ""},
		"covers nothing": {[]served{{"can", hookName, answer(), ""}}, UpdateCheck{
			Handler: "can.ext", Uncovered: "ExampleMachine spec.memory, ExampleMachine spec.old, Machine spec.version",
		}, ""},
		"other changes than the desired": {[]served{{"can", hookName,
			answer(patched("machinePatch", "JSONMergePatch", `{"spec":{"version":"v1.35.0"}}`), memoryPatch), ""}},
			UpdateCheck{Handler: "can.ext", Uncovered: "Machine spec.version"}, ""},
		"more than the desired": {[]served{{"can", hookName,
			answer(versionPatch, patched("infrastructureMachinePatch", "JSONMergePatch", `{"spec":{"memory":2,"old":null,"disk":1}}`)), ""}},
			UpdateCheck{Handler: "can.ext", Uncovered: "ExampleMachine spec.disk"}, ""},
		"metadata does not count": {[]served{{"can", hookName,
			answer(versionPatch, patched("infrastructureMachinePatch", "JSONMergePatch", `{"metadata":{"labels":{"x":"y"}},"status":{"a":1},"spec":{"memory":2,"old":null}}`)), ""}},
			UpdateCheck{Handler: "can.ext", Covered: true}, ""},
		"a patch that does not apply": {[]served{{"can", hookName,
			answer(patched("machinePatch", "JSONPatch", `[{"op":"replace","path":"/spec/nothing/there","value":1}]`)), ""}},
			UpdateCheck{Handler: "can.ext"}, "handler can.ext: the patch of Machine: "},
		"a patch that leaves no Machine": {[]served{{"can", hookName,
			answer(patched("machinePatch", "JSONMergePatch", `{"spec":{"version":7}}`)), ""}}, UpdateCheck{Handler: "can.ext"}, "the remaining difference cannot be read"},
		"a patch of a type that is unknown": {[]served{{"can", hookName, answer(patched("machinePatch", "Other", `{"spec":{}}`)), ""}},
			UpdateCheck{Handler: "can.ext"}, `patch type "Other" is unknown`},
		"failure": {[]served{{"can", hookName, hooktest.Raw(`{"status":"Failure","message":"no"}`), ""}},
			UpdateCheck{Handler: "can.ext"}, "handler can.ext: responded with status Failure: no"},
		"down": {[]served{{"can", hookName, hooktest.Status(http.StatusBadGateway), ""}}, UpdateCheck{Handler: "can.ext"}, "HTTP 502"},
		"down, and its policy is Ignore": {[]served{{"can", hookName, hooktest.Status(http.StatusBadGateway), hooksv1.FailurePolicyIgnore}},
			UpdateCheck{Handler: "can.ext", Uncovered: "ExampleMachine spec.memory, ExampleMachine spec.old, Machine spec.version"}, ""},
		"two": {[]served{{"one", hookName, answer(), ""}, {"two", hookName, answer(), ""}}, UpdateCheck{},
			"2 handlers have the hook CanUpdateMachine, one at most can have it: one.ext, two.ext"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := extensions(t, nil, tc.handlers...)
			current := Machine{Machine: machine("v1.33.0"), Infrastructure: infra("ExampleMachine", map[string]any{"memory": int64(1), "old": "x", "null": nil})}
			desired := Machine{Machine: machine("v1.34.0"), Infrastructure: infra("ExampleMachine", map[string]any{"memory": int64(2)})}
			got, err := c.CanUpdateMachine(t.Context(), current, desired)
			if err != nil {
				t.Fatal(err)
			}
			check(t, tc.want, got, tc.problem)
		})
	}
}

func check(t *testing.T, want, got UpdateCheck, problem string) {
	t.Helper()
	text := ""
	if got.Problem != nil {
		text = fault.UserMessage(got.Problem)
	}
	if !strings.Contains(text, problem) || (text == "") != (problem == "") {
		t.Errorf("problem %q, want %q", text, problem)
	}
	if got.IsKnown() != (problem == "") {
		t.Errorf("known: %v", got.IsKnown())
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(UpdateCheck{}, "Problem", "Retry")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func template(kind string, spec map[string]any) *unstructured.Unstructured {
	return infra(kind, map[string]any{"template": map[string]any{"spec": spec}})
}

func set(version string) *clusterv1.MachineSet {
	s := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "us"}}
	s.Spec.ClusterName, s.Spec.Template.Spec.Version = "c", version
	return s
}

func TestCanUpdateMachineSet(t *testing.T) { // IP-02, IU-02
	versionPatch := patched("machineSetPatch", "JSONPatch", `[{"op":"replace","path":"/spec/template/spec/version","value":"v1.34.0"}]`)
	infraPatch := patched("infrastructureMachineTemplatePatch", "JSONPatch", `[{"op":"replace","path":"/spec/template/spec/memory","value":2}]`)
	bootPatch := patched("bootstrapConfigTemplatePatch", "JSONMergePatch", `{"spec":{"template":{"spec":{"files":["a"]}}}}`)
	for name, tc := range map[string]struct {
		parts string
		want  UpdateCheck
	}{
		"all":  {versionPatch + infraPatch + bootPatch, UpdateCheck{Handler: "can.ext", Covered: true}},
		"some": {infraPatch, UpdateCheck{Handler: "can.ext", Uncovered: "ExampleConfigTemplate spec.template.spec.files, MachineSet spec.template.spec.version"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, x := extensions(t, nil, served{"can", "CanUpdateMachineSet", hooktest.Raw(`{"status":"Success"` + tc.parts + `}`), ""})
			replicas := int32(3)
			current := MachineSet{set("v1.33.0"), template("ExampleMachineTemplate", map[string]any{"memory": int64(1)}), template("ExampleConfigTemplate", map[string]any{})}
			desired := MachineSet{set("v1.34.0"), template("ExampleMachineTemplate", map[string]any{"memory": int64(2)}),
				template("ExampleConfigTemplate", map[string]any{"files": []any{"a"}})}
			desired.MachineSet.Spec.Replicas = &replicas // outside of what patches are about
			for range 3 {
				got, err := c.CanUpdateMachineSet(t.Context(), current, desired)
				if err != nil {
					t.Fatal(err)
				}
				check(t, tc.want, got, "")
				current.MachineSet.ResourceVersion += "1" // each write to an object must not lead to a call
			}
			id := hooks.ID{Name: hooks.Name{Group: hooksv1.GroupVersion.Group, Hook: "CanUpdateMachineSet"}, Version: "v1alpha1"}
			if calls := len(x.Bodies(id.Path("can"))); calls != 1 {
				t.Errorf("%d calls for one question", calls)
			}
		})
	}
}

// TestSent: requests hold kind, metadata that names an object, and spec. Neither a status, nor what changes with each write.
func TestSent(t *testing.T) { // IP-01, IU-01
	c, x := extensions(t, nil, served{"can", "CanUpdateMachine", hooktest.Raw(`{"status":"Success"}`), ""})
	current := Machine{Machine: machine("v1.33.0"), Infrastructure: infra("ExampleMachine", map[string]any{"memory": int64(1)})}
	if _, err := c.CanUpdateMachine(t.Context(), current, current); err != nil {
		t.Fatal(err)
	}
	id := hooks.ID{Name: hooks.Name{Group: hooksv1.GroupVersion.Group, Hook: "CanUpdateMachine"}, Version: "v1alpha1"}
	bodies := x.Bodies(id.Path("can"))
	if len(bodies) != 1 {
		t.Fatalf("%d calls", len(bodies))
	}
	var got struct{ Current map[string]any }
	if err := json.Unmarshal(bodies[0], &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"machine": map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": map[string]any{"namespace": "ns", "name": "m1", "labels": map[string]any{"a": "b"}},
			"spec": map[string]any{"clusterName": "c", "version": "v1.33.0"},
		},
		"infrastructureMachine": map[string]any{
			"apiVersion": "infrastructure.example.org/v1", "kind": "ExampleMachine", "metadata": map[string]any{"namespace": "ns", "name": "m1-infra"},
			"spec": map[string]any{"memory": float64(1)},
		},
	}
	delete(got.Current, "bootstrapConfig") // null: there is none
	if diff := cmp.Diff(want, got.Current); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUpdateMachine(t *testing.T) { // IP-05, IU-03, IU-04
	for name, tc := range map[string]struct {
		handlers []served
		want     Progress
		problem  string
	}{
		"done":        {[]served{{"do", Hook, hooktest.Raw(`{"status":"Success","message":"ok"}`), ""}}, Progress{Handler: "do.ext", Done: true}, ""},
		"in progress": {[]served{{"do", Hook, hooktest.Raw(`{"status":"Success","message":"growing","retryAfterSeconds":30}`), ""}}, Progress{Handler: "do.ext", Message: "growing", Retry: 30 * time.Second}, ""},
		"failed":      {[]served{{"do", Hook, hooktest.Raw(`{"status":"Failure","message":"disk full"}`), ""}}, Progress{Handler: "do.ext", Retry: retryFailed}, "handler do.ext: responded with status Failure: disk full"},
		"down is not done, whatever the failure policy says": {[]served{{"do", Hook, hooktest.Status(http.StatusBadGateway), hooksv1.FailurePolicyIgnore}},
			Progress{Handler: "do.ext", Retry: retryFailed}, "HTTP 502"},
		"none": {nil, Progress{}, "no extension has the hook UpdateMachine for namespace ns"},
		"two": {[]served{{"one", Hook, hooktest.Raw(`{"status":"Success"}`), ""}, {"two", Hook, hooktest.Raw(`{"status":"Success"}`), ""}}, Progress{},
			"one.ext, two.ext"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := extensions(t, nil, tc.handlers...)
			got, err := c.UpdateMachine(t.Context(), Machine{Machine: machine("v1.34.0"), Infrastructure: infra("ExampleMachine", nil)})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if got.Problem != nil {
				text = fault.UserMessage(got.Problem)
			}
			if !strings.Contains(text, tc.problem) || (text == "") != (tc.problem == "") {
				t.Errorf("problem %q, want %q", text, tc.problem)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Progress{}, "Problem")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRetryIsHonoured: until the time that the extension asked for is over, only another desired spec leads to a call.
func TestRetryIsHonoured(t *testing.T) { // IP-10
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, x := extensions(t, func() time.Time { return now }, served{"do", Hook, hooktest.Raw(`{"status":"Success","retryAfterSeconds":30}`), ""})
	id := hooks.ID{Name: hooks.Name{Group: hooksv1.GroupVersion.Group, Hook: Hook}, Version: "v1alpha1"}
	m := Machine{Machine: machine("v1.34.0"), Infrastructure: infra("ExampleMachine", map[string]any{"memory": int64(1)})}
	step := func(want int, retry time.Duration) {
		t.Helper()
		got, err := c.UpdateMachine(t.Context(), m)
		if err != nil || got.Problem != nil {
			t.Fatal(err, got.Problem)
		}
		if calls := len(x.Bodies(id.Path("do"))); calls != want || got.Retry != retry {
			t.Errorf("%d calls, want %d; retry after %s, want %s", calls, want, got.Retry, retry)
		}
	}
	step(1, 30*time.Second)
	now = now.Add(10 * time.Second)
	m.Machine.Annotations["someone"], m.Machine.Status.Phase, m.Machine.ResourceVersion = "wrote", "Updating", "8"
	m.Infrastructure.SetLabels(map[string]string{"x": "y"})
	step(1, 20*time.Second)
	m.Infrastructure.Object["spec"] = map[string]any{"memory": int64(2)}
	step(2, 30*time.Second)
	now = now.Add(30 * time.Second)
	step(3, 30*time.Second)
}

// TestFailuresAreNotRepeated: after a call that failed the same call is made 30 seconds later, whatever is written meanwhile; another one at
// once.
func TestFailuresAreNotRepeated(t *testing.T) { // IP-05
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	failing := hooktest.Raw(`{"status":"Failure","message":"disk full"}`)
	c, x := extensions(t, clock, served{"do", Hook, failing, ""}, served{"can", "CanUpdateMachine", failing, ""})
	c.Failed, c.Now = &FailedCalls{}, clock
	calls := func(name, handler string) int {
		return len(x.Bodies(hooks.ID{Name: hooks.Name{Group: hooksv1.GroupVersion.Group, Hook: name}, Version: "v1alpha1"}.Path(handler)))
	}
	m := Machine{Machine: machine("v1.34.0"), Infrastructure: infra("ExampleMachine", map[string]any{"memory": int64(1)})}
	step := func(want int, retry time.Duration) {
		t.Helper()
		progress, err := c.UpdateMachine(t.Context(), m)
		answer, err2 := c.CanUpdateMachine(t.Context(), m, m)
		if err != nil || err2 != nil || progress.Done || progress.Retry != retry || answer.Retry != retry || answer.IsKnown() {
			t.Fatal(progress, err, answer, err2)
		}
		if fault.UserMessage(progress.Problem) != "handler do.ext: responded with status Failure: disk full" || fault.UserMessage(answer.Problem) != "handler can.ext: responded with status Failure: disk full" {
			t.Error(progress.Problem, answer.Problem)
		}
		if do, can := calls(Hook, "do"), calls("CanUpdateMachine", "can"); do != want || can != want {
			t.Errorf("%d and %d calls, want %d", do, can, want)
		}
	}
	step(1, 30*time.Second)
	now = now.Add(10 * time.Second)
	m.Machine.ResourceVersion, m.Machine.Status.Phase = "8", "Updating"
	step(1, 20*time.Second)
	m.Machine.Spec.Version = "v1.35.0"
	step(2, 30*time.Second)
	now = now.Add(30 * time.Second)
	step(3, 30*time.Second)
}

func TestFailedIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := &FailedCalls{}
	for i := range mostFailed + 10 {
		f.note(strings.Repeat("x", i), fault.New(fault.Transient, "X", "x"), now)
	}
	if len(f.calls) > mostFailed {
		t.Errorf("%d calls", len(f.calls))
	}
	f = &FailedCalls{}
	for i := range mostFailed + 10 {
		f.note(strings.Repeat("x", i), fault.New(fault.Transient, "X", "x"), now.Add(time.Duration(i)*time.Second))
	}
	if left, _ := f.last(strings.Repeat("x", mostFailed+9), now.Add((mostFailed+9)*time.Second)); len(f.calls) > mostFailed || left != retryFailed {
		t.Errorf("%d calls, the last is good for %s", len(f.calls), left)
	}
}

// TestNotKnownYet: before the extensions are known there is no answer, and none is taken for "no".
func TestNotKnownYet(t *testing.T) {
	fresh, err := hook.New(hook.Config{NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	m := Machine{Machine: machine("v1"), Infrastructure: infra("ExampleMachine", nil)}
	answer, err := Caller{Client: fresh}.CanUpdateMachine(t.Context(), m, m)
	if err != nil || answer.IsKnown() || answer.CallAfter != busyRetryDelay {
		t.Error(answer, err)
	}
	progress, err := Caller{Client: fresh}.UpdateMachine(t.Context(), m)
	if err != nil || progress.Done || progress.CallAfter != busyRetryDelay {
		t.Error(progress, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Caller{Client: fresh}).UpdateMachine(ctx, m); err == nil {
		t.Error("the end of the context is an error")
	}
}

func TestMarks(t *testing.T) { // IP-04, IP-08
	text := func(s string) *string { return &s }
	for name, tc := range map[string]struct {
		annotations map[string]string
		state       State
		with        string
		without     *string
	}{
		"nothing":    {nil, None, Hook, nil},
		"marked":     {map[string]string{clusterv1.UpdateInProgressAnnotation: ""}, Triggering, Hook, nil},
		"moved":      {map[string]string{clusterv1.UpdateInProgressAnnotation: "", clusterv1.PendingAcknowledgeMoveAnnotation: ""}, Moving, Hook, nil},
		"pending":    {map[string]string{clusterv1.UpdateInProgressAnnotation: "", runtimev1.PendingHooksAnnotation: Hook}, Updating, Hook, nil},
		"unmarked":   {map[string]string{runtimev1.PendingHooksAnnotation: Hook}, Ending, Hook, nil},
		"other hook": {map[string]string{runtimev1.PendingHooksAnnotation: "Z, A,,A"}, None, "A,UpdateMachine,Z", text("A,Z")},
		"both":       {map[string]string{runtimev1.PendingHooksAnnotation: "Z,UpdateMachine"}, Ending, "UpdateMachine,Z", text("Z")},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			if got := StateOf(m); got != tc.state || isUpdating(m) != (tc.state != None) {
				t.Errorf("state %q, want %q", got, tc.state)
			}
			if got := WithHook(m); got != tc.with {
				t.Errorf("with the hook %q, want %q", got, tc.with)
			}
			if diff := cmp.Diff(tc.without, WithoutHook(m)); diff != "" {
				t.Errorf("without the hook (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListed(t *testing.T) {
	many := strings.Split("a b c d e f g h i j k l", " ")
	if got := listed(many); got != "a, b, c, d, e, f, g, h, i, j and 2 more" {
		t.Error(got)
	}
}
