package extensionconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// settled is an extension that was discovered and is fine.
func settled() snapshot {
	return snapshot{
		Now: now, Catalog: hooks.Default(),
		Config: &runtimev1.ExtensionConfig{
			ObjectMeta: metav1.ObjectMeta{Name: "ext", Generation: 3},
			Spec:       runtimev1.ExtensionConfigSpec{ClientConfig: runtimev1.ClientConfig{CABundle: []byte("ca")}},
		},
		State: hook.ExtensionState{Generation: 3, Next: now.Add(10 * time.Minute), Discovered: true, Handlers: []hook.Handler{{
			Name: "check", Hook: hooks.ID{Name: hooks.Name{Group: hooks.Group, Hook: "BeforeClusterCreate"}, Version: "v1alpha1"},
			Timeout: 10 * time.Second, Policy: "Fail",
		}}},
	}
}

func problem() *fault.Fault {
	return fault.New(fault.Unreachable, "ConnectionRefused", "nothing listens")
}

func failing(handler, cause string) hook.Failing {
	return hook.Failing{Handler: handler, Circuit: hook.BreakerState{Open: true, Cause: hook.BreakerFailure{Message: cause}}}
}

// requested sets the annotation that requests a discovery, and for which request the last one was made.
func requested(s *snapshot, value, refreshed string) {
	s.Config.Annotations, s.State.Refreshed = map[string]string{hook.RefreshAnnotation: value}, refreshed
}

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*snapshot)
		want   reconciler.Plan
	}{
		"settled": {want: reconciler.Plan{Recheck: 10 * time.Minute}},
		"new": {
			change: func(s *snapshot) { s.State = hook.ExtensionState{} },
			want:   reconciler.Plan{Reads: []reconciler.ReadRequest{discover{Extension: "ext"}}},
		},
		"new spec": {
			reason: "RT-06: another endpoint may have other handlers",
			change: func(s *snapshot) { s.Config.Generation++ },
			want:   reconciler.Plan{Reads: []reconciler.ReadRequest{discover{Extension: "ext"}}},
		},
		"it is time": {
			change: func(s *snapshot) { s.State.Next = now },
			want:   reconciler.Plan{Reads: []reconciler.ReadRequest{discover{Extension: "ext"}}},
		},
		"asked once is enough": {
			reason: "a pass never asks twice, whatever the answer says",
			change: func(s *snapshot) { s.State.Next, s.Asked = now, true },
		},
		"failed": {
			reason: "RT-19: the next try is further away each time; package hook says when",
			change: func(s *snapshot) { s.State.Problem, s.State.Next, s.Asked = problem(), now.Add(4*time.Second), true },
			want: reconciler.Plan{Recheck: 4 * time.Second, Waits: []reconciler.Wait{{
				Reason: "ConnectionRefused", Message: "nothing listens; retrying in up to 1m",
				On: []reconciler.Subject{{Kind: "ExtensionConfig", Name: "ext"}}, Until: reconciler.UntilTime,
			}}},
		},
		"refresh": {
			reason: "RT-06: the annotation requests a discovery, at once",
			change: func(s *snapshot) { requested(s, "1", "") },
			want:   reconciler.Plan{Reads: []reconciler.ReadRequest{discover{Extension: "ext"}}},
		},
		"refresh once more": {
			reason: "another value is another request",
			change: func(s *snapshot) { requested(s, "2", "=1") },
			want:   reconciler.Plan{Reads: []reconciler.ReadRequest{discover{Extension: "ext"}}},
		},
		"refreshed": {
			reason: "the status has to say what was found before the annotation goes; writing it enqueues the object",
			change: func(s *snapshot) { requested(s, "", "=") },
			want:   reconciler.Plan{Recheck: 10 * time.Minute},
		},
		"refreshed and reported": {
			change: func(s *snapshot) {
				requested(s, "1", "=1")
				s.Config.Status = s.status()
			},
			want: reconciler.Plan{Actions: []reconciler.Action{endRefresh{}}, Recheck: 10 * time.Minute},
		},
		"refreshed in vain": {
			reason: "a discovery that failed ends the request too: the condition says why",
			change: func(s *snapshot) {
				requested(s, "1", "=1")
				s.State.Problem, s.State.Next = problem(), now.Add(4*time.Second)
				s.Config.Status = s.status()
			},
			want: reconciler.Plan{Actions: []reconciler.Action{endRefresh{}}, Recheck: 4 * time.Second, Waits: []reconciler.Wait{{
				Reason: "ConnectionRefused", Message: "nothing listens; retrying in up to 1m",
				On: []reconciler.Subject{{Kind: "ExtensionConfig", Name: "ext"}}, Until: reconciler.UntilTime,
			}}},
		},
		"inject": {
			reason: "RT-05",
			change: func(s *snapshot) {
				s.Injection, s.State = &injection{Secret: "ns/ca", Bundle: []byte("new")}, hook.ExtensionState{}
			},
			want: reconciler.Plan{Actions: []reconciler.Action{inject{Secret: "ns/ca"}}},
		},
		"injected": {
			change: func(s *snapshot) { s.Injection = &injection{Secret: "ns/ca", Bundle: []byte("ca")} },
			want:   reconciler.Plan{Recheck: 10 * time.Minute},
		},
		"nothing to inject": {
			reason: "what was injected before stays, and so do the handlers; the Secret wakes us",
			change: func(s *snapshot) { s.Injection = &injection{Secret: "ns/ca", Problem: "Secret ns/ca is gone"} },
			want: reconciler.Plan{Waits: []reconciler.Wait{{
				Reason: "CASecretNotUsable", Message: "Secret ns/ca is gone",
				On: []reconciler.Subject{{Kind: "Secret", Namespace: "ns", Name: "ca"}}, Field: "data", Until: "change",
			}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := settled()
			if tt.change != nil {
				tt.change(&s)
			}
			if diff := cmp.Diff(tt.want, decide(s)); diff != "" {
				t.Errorf("%s\n%s", tt.reason, diff)
			}
		})
	}
}

func TestReport(t *testing.T) {
	deprecated := hooks.ClusterAPI()
	for i := range deprecated {
		if deprecated[i].ID.Hook == "BeforeClusterCreate" {
			deprecated[i].Deprecation = &hooks.Deprecation{Since: hooks.Release{Minor: "v1.14", Date: "2026-08-01"}}
		}
	}
	old, err := hooks.New(deprecated)
	if err != nil {
		t.Fatal(err)
	}
	const advice = "* Handler check serves BeforeClusterCreate of hooks.runtime.cluster.x-k8s.io/v1alpha1: the hook goes without a replacement"
	const until = "; retrying in up to 1m. Until then handlers with failure policy Fail block the operations that call them, and handlers with failure policy Ignore are skipped"
	const reached = "Calls stopped after several failures in a row: nothing listens"
	const handlers = "Calls of a (it responded with HTTP 500), b (it responded with HTTP 404) stopped after several failures in a row"
	const unknown = "handler later serves NotKnownHere of x/v7, which this version of Slipway does not support; operations that would call it are blocked"
	tests := map[string]struct {
		reason     string
		change     func(*snapshot)
		conditions map[string]string
		v1beta1    string
		events     []string
		handlers   int
	}{
		"discovered": {
			reason:     "RT-06",
			conditions: map[string]string{"Discovered": "True/Discovered/", "Answering": "True/Answering/", "UsesDeprecatedHooks": "False/NoDeprecatedHooks/"},
			v1beta1:    "True//", events: []string{"Normal Discovered: 1 handlers"}, handlers: 1,
		},
		"never discovered": {
			reason:     "RT-06, RT-15: the error's text, and no word about calls",
			change:     func(s *snapshot) { s.State = hook.ExtensionState{Generation: 3, Problem: problem()} },
			conditions: map[string]string{"Discovered": "False/NotDiscovered/nothing listens; " + retryText},
			v1beta1:    "False/DiscoveryFailed/nothing listens; " + retryText,
			events:     []string{"Warning NotDiscovered: nothing listens; retrying in up to 1m"},
		},
		"stale": {
			reason: "the handlers stay, and it says so",
			change: func(s *snapshot) {
				s.State.Problem = problem()
				s.Config.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "False"}}
			},
			conditions: map[string]string{
				"Discovered": "False/NotDiscovered/nothing listens; " + retryText + "; the handlers of the last discovery stay in use",
				"Answering":  "True/Answering/", "UsesDeprecatedHooks": "False/NoDeprecatedHooks/",
			},
			v1beta1: "False/DiscoveryFailed/nothing listens; " + retryText + "; the handlers of the last discovery stay in use", handlers: 1,
		},
		"no authority": {
			reason: "RT-05",
			change: func(s *snapshot) {
				s.Injection, s.State = &injection{Problem: "Secret ns/ca is gone"}, hook.ExtensionState{}
			},
			conditions: map[string]string{"Discovered": "False/NotDiscovered/Secret ns/ca is gone"},
			v1beta1:    "False/DiscoveryFailed/Secret ns/ca is gone",
			events:     []string{"Warning NotDiscovered: Secret ns/ca is gone"},
		},
		"not reached": {
			reason: "RT-19",
			change: func(s *snapshot) {
				s.State.Circuit = hook.BreakerState{Open: true, Cause: hook.BreakerFailure{Reason: "ConnectionRefused", Message: "nothing listens"}}
				s.Config.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "True"}, {Type: "Answering", Status: "True"}}
			},
			conditions: map[string]string{
				"Discovered": "True/Discovered/", "Answering": "False/CircuitOpen/" + reached + until, "UsesDeprecatedHooks": "False/NoDeprecatedHooks/",
			},
			v1beta1: "True//", handlers: 1, events: []string{"Warning CircuitOpen: " + reached + "; retrying in up to 1m"},
		},
		"handlers fail": {
			reason: "RT-19: they are named",
			change: func(s *snapshot) {
				s.State.Failing = []hook.Failing{failing("a", "it responded with HTTP 500"), failing("b", "it responded with HTTP 404")}
				s.Config.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "True"}, {Type: "Answering", Status: "True"}}
			},
			conditions: map[string]string{
				"Discovered": "True/Discovered/", "Answering": "False/CircuitOpen/" + handlers + until, "UsesDeprecatedHooks": "False/NoDeprecatedHooks/",
			},
			v1beta1: "True//", handlers: 1, events: []string{"Warning CircuitOpen: " + handlers + "; retrying in up to 1m"},
		},
		"many handlers fail": {
			reason: "a message has an end",
			change: func(s *snapshot) {
				for _, name := range strings.Split("a b c d e f g h", " ") {
					s.State.Failing = append(s.State.Failing, failing(name, "no"))
				}
				s.Config.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "True"}, {Type: "Answering", Status: "False"}}
			},
			conditions: map[string]string{
				"Discovered":          "True/Discovered/",
				"Answering":           "False/CircuitOpen/Calls of a (no), b (no), c (no), d (no), e (no), 3 more stopped after several failures in a row" + until,
				"UsesDeprecatedHooks": "False/NoDeprecatedHooks/",
			},
			v1beta1: "True//", handlers: 1,
		},
		"unknown hook": {
			reason: "RT-31: the handler stays and is named, whatever keeps the extension from being discovered",
			change: func(s *snapshot) {
				s.State.Problem = problem()
				later := hook.Handler{Name: "later", Hook: hooks.ID{Name: hooks.Name{Group: "x", Hook: "NotKnownHere"}, Version: "v7"}}
				s.State.Handlers, s.State.Unknown = append(s.State.Handlers, later), []hook.Handler{later}
				s.Config.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "False"}}
			},
			conditions: map[string]string{
				"Discovered": "False/NotDiscovered/nothing listens; " + retryText + "; the handlers of the last discovery stay in use; " + unknown,
				"Answering":  "True/Answering/", "UsesDeprecatedHooks": "False/NoDeprecatedHooks/",
			},
			v1beta1: "False/DiscoveryFailed/nothing listens; " + retryText + "; the handlers of the last discovery stay in use; " + unknown, handlers: 2,
		},
		"circuit closed again": {
			change: func(s *snapshot) {
				s.Config.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "True"}, {Type: "Answering", Status: "False"}}
			},
			conditions: map[string]string{"Discovered": "True/Discovered/", "Answering": "True/Answering/", "UsesDeprecatedHooks": "False/NoDeprecatedHooks/"},
			v1beta1:    "True//", events: []string{"Normal CircuitClosed: The extension responds again"}, handlers: 1,
		},
		"deprecated": {
			reason: "RT-25",
			change: func(s *snapshot) {
				s.Catalog = old
				s.Config.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "True"}}
			},
			conditions: map[string]string{"Discovered": "True/Discovered/", "Answering": "True/Answering/", "UsesDeprecatedHooks": "True/DeprecatedHooks/" + advice},
			v1beta1:    "True//", events: []string{"Warning DeprecatedHooks: " + advice}, handlers: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := settled()
			if tt.change != nil {
				tt.change(&s)
			}
			report := report(s, decide(s), reconciler.Outcome{})
			status := report.Status.(runtimev1.ExtensionConfigStatus)
			got := map[string]string{}
			for _, c := range status.Conditions {
				got[c.Type] = string(c.Status) + "/" + c.Reason + "/" + c.Message
			}
			if diff := cmp.Diff(tt.conditions, got); diff != "" {
				t.Errorf("%s: conditions:\n%s", tt.reason, diff)
			}
			v1beta1 := status.Deprecated.V1Beta1.Conditions[0]
			if got := string(v1beta1.Status) + "/" + v1beta1.Reason + "/" + v1beta1.Message; got != tt.v1beta1 {
				t.Errorf("v1beta1: %s, want %s", got, tt.v1beta1)
			}
			var events []string
			for _, e := range report.Events {
				events = append(events, e.Type+" "+e.Reason+": "+e.Message)
			}
			if diff := cmp.Diff(tt.events, events); diff != "" {
				t.Errorf("%s: events:\n%s", tt.reason, diff)
			}
			if len(status.Handlers) != tt.handlers {
				t.Errorf("%d handlers, want %d", len(status.Handlers), tt.handlers)
			}
		})
	}
}

func TestNothingIsReportedDuringInjection(t *testing.T) {
	s := settled()
	s.Injection = &injection{Secret: "ns/ca", Bundle: []byte("new")}
	if report := report(s, decide(s), reconciler.Outcome{}); report.Status != nil || report.Events != nil {
		t.Errorf("got %+v", report)
	}
}
