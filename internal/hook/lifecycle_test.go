package hook

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// extensions is a registry that knows an extension with one handler for each of some hooks.
func extensions(t *testing.T, serve http.HandlerFunc, served ...lifecycle.Hook) (LifecycleCaller, *hooktest.Extension) {
	t.Helper()
	e, err := New(Config{
		NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil },
		Random:          func() float64 { return 0.5 },
	})
	if err != nil {
		t.Fatal(err)
	}
	x := hooktest.Start(t, hooktest.Options{})
	for _, name := range served {
		x.Handle(hooktest.Handler(strings.ToLower(string(name)), string(name)), serve)
	}
	if state, err := e.Discover(t.Context(), x.ExtensionConfig("ext")); err != nil || state.Problem != nil {
		t.Fatal(err, state.Problem)
	}
	e.Prime()
	return LifecycleCaller{e}, x
}

// raw answers with literal bytes, as a server written in any language does.
func raw(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func path(name lifecycle.Hook) string {
	return hooks.ID{Name: hooks.Name{Group: hooks.Group, Hook: string(name)}, Version: "v1alpha1"}.Path(strings.ToLower(string(name)))
}

func callerCluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "c", UID: "u",
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
	}}
	c.Spec.Topology.Version = "v1.33.0"
	c.Spec.Topology.ClassRef.Name = "class"
	c.Status.Phase = "Provisioned"
	return c
}

func TestRequests(t *testing.T) { // LH-01 to LH-09, UP-01, RT-27
	const head = `{"kind":"%Request","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","cluster":{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2",` +
		`"metadata":{"name":"c","namespace":"ns","uid":"u","annotations":{"a":"b"}},"spec":{"topology":{"classRef":{"name":"class"},"version":"v1.33.0"}}}`
	rest := lifecycle.UpgradePlan{ControlPlane: []string{"v1.32.0", "v1.33.0"}, Workers: []string{"v1.33.0"}}
	const lists = `,"controlPlaneUpgrades":[{"version":"v1.32.0"},{"version":"v1.33.0"}],"workersUpgrades":[{"version":"v1.33.0"}]}`
	const fromTo = `,"fromKubernetesVersion":"v1.31.0","toKubernetesVersion":"v1.32.0"`
	const at = `,"kubernetesVersion":"v1.32.0"`
	for name, tc := range map[lifecycle.Hook]struct {
		question lifecycle.HookCall
		want     string // after the Cluster
	}{
		lifecycle.BeforeClusterCreate:          {lifecycle.HookCall{}, "}"},
		lifecycle.AfterControlPlaneInitialized: {lifecycle.HookCall{}, "}"},
		lifecycle.BeforeClusterUpgrade:         {lifecycle.HookCall{From: "v1.31.0", To: "v1.32.0", Rest: rest}, fromTo + lists},
		lifecycle.BeforeControlPlaneUpgrade:    {lifecycle.HookCall{From: "v1.31.0", To: "v1.32.0", Rest: rest}, fromTo + lists},
		lifecycle.AfterControlPlaneUpgrade:     {lifecycle.HookCall{To: "v1.32.0", Rest: rest}, at + lists},
		lifecycle.BeforeWorkersUpgrade:         {lifecycle.HookCall{From: "v1.31.0", To: "v1.32.0", Rest: rest}, fromTo + lists},
		lifecycle.AfterWorkersUpgrade:          {lifecycle.HookCall{To: "v1.32.0"}, at + "}"}, // empty lists are left out
		lifecycle.AfterClusterUpgrade:          {lifecycle.HookCall{To: "v1.32.0"}, at + "}"},
		lifecycle.BeforeClusterDelete:          {lifecycle.HookCall{}, "}"},
		lifecycle.GenerateUpgradePlan: {
			lifecycle.HookCall{Handler: "generateupgradeplan.ext", From: "v1.31.0", FromWorkers: "v1.30.0", To: "v1.33.0"},
			`,"fromControlPlaneKubernetesVersion":"v1.31.0","fromWorkersKubernetesVersion":"v1.30.0","toKubernetesVersion":"v1.33.0"}`,
		},
	} {
		t.Run(string(name), func(t *testing.T) {
			c, x := extensions(t, raw(`{"status":"Success","controlPlaneUpgrades":[{"version":"v1.32.0"},{"version":"v1.33.0"}]}`), name)
			tc.question.Hook = name
			answer, err := c.Call(t.Context(), callerCluster(), tc.question)
			if err != nil {
				t.Fatal(err)
			}
			want := lifecycle.HookResult{Handlers: []string{strings.ToLower(string(name)) + ".ext"}}
			if name == lifecycle.GenerateUpgradePlan {
				want.Plan.ControlPlane = rest.ControlPlane
			}
			if diff := cmp.Diff(want, answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			bodies := x.Bodies(path(name))
			if len(bodies) != 1 {
				t.Fatalf("%d calls", len(bodies))
			}
			expected := strings.Replace(head, "%", string(name), 1) + tc.want
			if diff := cmp.Diff(object(t, expected), object(t, string(bodies[0]))); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err, text)
	}
	return out
}

func TestAnswers(t *testing.T) { // LH-14, LH-17
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	for name, tc := range map[string]struct {
		reason string
		serve  http.HandlerFunc
		hooks  []lifecycle.Hook
		want   lifecycle.HookResult
		fails  string
	}{
		"lets go":    {"", raw(`{"status":"Success"}`), []lifecycle.Hook{lifecycle.BeforeClusterUpgrade}, lifecycle.HookResult{Handlers: []string{"beforeclusterupgrade.ext"}}, ""},
		"no handler": {"", raw(`{}`), []lifecycle.Hook{lifecycle.BeforeClusterDelete}, lifecycle.HookResult{}, ""},
		"blocks": {"", raw(`{"status":"Success","message":"no window","retryAfterSeconds":30}`), []lifecycle.Hook{lifecycle.BeforeClusterUpgrade}, lifecycle.HookResult{
			Handlers: []string{"beforeclusterupgrade.ext"}, Blocking: []lifecycle.Blocker{{Handler: "beforeclusterupgrade.ext", Message: "no window", RetryAfter: 30 * time.Second}},
		}, ""},
		"fails": {"", raw(`{"status":"Failure","message":"no"}`), []lifecycle.Hook{lifecycle.BeforeClusterUpgrade}, lifecycle.HookResult{}, "handler beforeclusterupgrade.ext: responded with status Failure: no"},
		"down":  {"", down, []lifecycle.Hook{lifecycle.BeforeClusterUpgrade}, lifecycle.HookResult{}, "HTTP 500"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := extensions(t, tc.serve, tc.hooks...)
			got, err := c.Call(t.Context(), callerCluster(), lifecycle.HookCall{Hook: lifecycle.BeforeClusterUpgrade, From: "v1.32.0", To: "v1.33.0"})
			if err != nil {
				t.Fatal(err)
			}
			problem := ""
			if got.Problem != nil {
				problem, got.Problem = fault.UserMessage(got.Problem), nil
			}
			if !strings.Contains(problem, tc.fails) || (problem == "") != (tc.fails == "") {
				t.Errorf("problem %q, want %q", problem, tc.fails)
			}
			for i := range got.Blocking {
				if got.Blocking[i].Since.IsZero() {
					t.Error("since when is not known")
				}
				got.Blocking[i].Since = time.Time{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStable: while an extension is down the problem keeps its words, also when it is not called any more; what is not known yet is
// asked again.
func TestStable(t *testing.T) { // LH-17
	c, x := extensions(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, lifecycle.BeforeClusterUpgrade)
	texts := map[string]bool{}
	for range 8 {
		answer, err := c.Call(t.Context(), callerCluster(), lifecycle.HookCall{Hook: lifecycle.BeforeClusterUpgrade})
		if err != nil || answer.Problem == nil {
			t.Fatal(err, answer)
		}
		texts[fault.UserMessage(answer.Problem)] = true
	}
	if calls := len(x.Bodies(path(lifecycle.BeforeClusterUpgrade))); len(texts) != 1 || calls != 5 {
		t.Errorf("%d calls, texts %v", calls, texts)
	}
	fresh, err := New(Config{NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := LifecycleCaller{fresh}.Call(t.Context(), callerCluster(), lifecycle.HookCall{Hook: lifecycle.BeforeClusterUpgrade})
	if diff := cmp.Diff(lifecycle.HookResult{RetryAfter: retryDelay}, answer); diff != "" || err != nil {
		t.Errorf("before extensions are known: %v (-want +got):\n%s", err, diff)
	}
}

// TestLetGoOnce: what a hook let go is not asked again for the same step, until the Cluster changes.
func TestLetGoOnce(t *testing.T) { // LH-11
	c, x := extensions(t, raw(`{"status":"Success"}`), lifecycle.BeforeClusterUpgrade)
	o := callerCluster()
	ask := func(to string) {
		t.Helper()
		if answer, err := c.Call(t.Context(), o, lifecycle.HookCall{Hook: lifecycle.BeforeClusterUpgrade, To: to}); err != nil || len(answer.Handlers) != 1 {
			t.Fatal(err, answer)
		}
	}
	ask("v1.33.0")
	o.ResourceVersion, o.Status.Phase = "2", "Provisioning"
	ask("v1.33.0")
	if calls := len(x.Bodies(path(lifecycle.BeforeClusterUpgrade))); calls != 1 {
		t.Errorf("%d calls for one step", calls)
	}
	ask("v1.34.0")
	o.Labels = map[string]string{"approved": "true"}
	ask("v1.34.0")
	if calls := len(x.Bodies(path(lifecycle.BeforeClusterUpgrade))); calls != 3 {
		t.Errorf("%d calls after another step and another label", calls)
	}
}
