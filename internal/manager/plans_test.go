package manager

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

var (
	kind = schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Machine"}
	key  = client.ObjectKey{Namespace: "ns", Name: "m"}
	at   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

type act struct{ what string }

func (a act) String() string { return a.what }

func filled() *PlanStore {
	s := &PlanStore{Now: func() time.Time { return at }}
	p := reconciler.Plan{Actions: []reconciler.Action{act{"cordon Node n"}}}
	p.WaitFor("DrainingNode", "Draining Node n").For("Node", "n").ForTime()
	p.RecheckIn(time.Second)
	s.Store(reconciler.PlanKey{Controller: "machine", Kind: kind, Key: key}, p, fault.New(fault.Invalid, "X", "the Node says no"))
	return s
}

var want = ObjectPlans{Kind: "Machine", Namespace: "ns", Name: "m", Plans: []PlanRecord{{
	Controller: "machine", Time: at, Actions: []string{"cordon Node n"}, Recheck: "1s", Errors: []string{"the Node says no"}, ErrorsSince: at,
	Waits: []reconciler.Wait{{Reason: "DrainingNode", Message: "Draining Node n", On: []reconciler.Subject{{Kind: "Node", Name: "n"}}, Until: reconciler.UntilTime, Since: at}},
}}}

func TestStore(t *testing.T) {
	s := filled()
	got, ok := s.Get(kind, key)
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%t (-want +got):\n%s", ok, diff)
	}
	s.Store(reconciler.PlanKey{Controller: "machine", Kind: kind, Key: key}, reconciler.Plan{}, nil)
	if got, _ := s.Get(kind, key); !cmp.Equal(got.Plans, []PlanRecord{{Controller: "machine", Time: at}}) {
		t.Errorf("only the last plan is kept: %+v", got)
	}
	s.Store(reconciler.PlanKey{Controller: "link", Kind: kind, Key: key}, reconciler.Plan{}, nil)
	s.Store(reconciler.PlanKey{Controller: "machine", Kind: kind, Key: key}, reconciler.Plan{}, nil)
	if got, _ := s.Get(kind, key); !cmp.Equal(got.Plans, []PlanRecord{{Controller: "link", Time: at}, {Controller: "machine", Time: at}}) {
		t.Errorf("each controller has a plan, in the order of their names: %+v", got)
	}
	s.Drop(kind, key)
	if _, ok := s.Get(kind, key); ok || len(s.records) != 0 {
		t.Error("nothing is kept of an object that does not exist any more")
	}
}

// Waits and errors have the time of the first plan that has them, not that of the last one.
func TestStoreSince(t *testing.T) {
	now := at
	s := &PlanStore{Now: func() time.Time { return now }}
	by := reconciler.PlanKey{Controller: "machine", Kind: kind, Key: key}
	for i, message := range []string{"draining, 2 Pods left", "draining, 1 Pod left"} {
		now = at.Add(time.Duration(i) * time.Minute)
		var p reconciler.Plan
		p.WaitFor("Draining", "%s", message).For("Node", "n").ForTime()
		p.WaitFor("Other", "x").For("Node", message).ForTime()
		s.Store(by, p, errors.New("failed"))
	}
	got, _ := s.Get(kind, key)
	r := got.Plans[0]
	if r.Waits[0].Since != at || r.Waits[1].Since != now || r.ErrorsSince != at || r.Time != now {
		t.Errorf("%+v", r)
	}
	s.Store(by, reconciler.Plan{}, nil)
	s.Store(by, reconciler.Plan{}, errors.New("failed"))
	if got, _ := s.Get(kind, key); got.Plans[0].ErrorsSince != now {
		t.Errorf("after a success: %+v", got.Plans[0])
	}
}

// Waits continue after a reconciliation that failed without a plan, and another error begins anew.
func TestStoreSinceAfterFailures(t *testing.T) {
	now := at
	s := &PlanStore{Now: func() time.Time { return now }}
	by := reconciler.PlanKey{Controller: "machine", Kind: kind, Key: key}
	var p reconciler.Plan
	p.WaitFor("Draining", "x").For("Node", "n").ForTime()
	for _, step := range []struct {
		plan   reconciler.Plan
		failed error
	}{{p, nil}, {reconciler.Plan{}, fault.New(fault.Invalid, "X", "timeout after 3s")}, {reconciler.Plan{}, fault.New(fault.Invalid, "X", "timeout after 5s")}, {p, fault.New(fault.Invalid, "X", "exceeded quota")}} {
		s.Store(by, step.plan, step.failed)
		now = now.Add(time.Minute)
	}
	got, _ := s.Get(kind, key)
	if r := got.Plans[0]; r.Waits[0].Since != at || r.ErrorsSince != at.Add(3*time.Minute) {
		t.Errorf("%+v", r)
	}
}

// An error of another object is another error, although only a number differs.
func TestStoreSinceOfOtherErrors(t *testing.T) {
	now := at
	s := &PlanStore{Now: func() time.Time { return now }}
	by := reconciler.PlanKey{Controller: "machineset", Kind: kind, Key: key}
	for _, name := range []string{"m-1", "m-2"} {
		s.Store(by, reconciler.Plan{}, fault.New(fault.Invalid, "X", "creating Machine %s: exceeded quota", name))
		now = now.Add(time.Minute)
	}
	got, _ := s.Get(kind, key)
	if r := got.Plans[0]; r.ErrorsSince != at.Add(time.Minute) {
		t.Errorf("%+v", r)
	}
}

// A tenant decides how much there is to say of an object, and not how much memory that takes.
func TestStoreIsBounded(t *testing.T) {
	var p reconciler.Plan
	for i := range 1000 {
		p.Do(act{strings.Repeat("ä", 4000) + fmt.Sprint(i)})
		p.WaitFor("R", "%s", strings.Repeat("ö", 4000))
	}
	var s PlanStore
	s.Store(reconciler.PlanKey{Controller: "machine", Kind: kind, Key: key}, p, errors.New("x"))
	last, _ := s.Get(kind, key)
	got := last.Plans[0]
	text, err := json.Marshal(got)
	if err != nil || len(text) > 2*(maxItems+1)*(maxText+100) || len(got.Actions) != maxItems+1 || got.Actions[maxItems] != "... (980 more)" {
		t.Errorf("%d bytes, %d actions, %v", len(text), len(got.Actions), err)
	}
	if len(p.Waits[0].Message) != 8000 {
		t.Error("the plan itself was changed")
	}
}

// api knows the tokens "reader" and "stranger"; the first may get Machines of the namespace ns.
func api(asked *authorizationv1.ResourceAttributes) *fake.Clientset {
	c := fake.NewClientset()
	c.PrependReactor("create", "tokenreviews", func(a core.Action) (bool, runtime.Object, error) {
		review := a.(core.CreateAction).GetObject().(*authenticationv1.TokenReview)
		switch review.Spec.Token {
		case "broken":
			return true, nil, errors.New("no answer")
		case "reader", "stranger":
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: review.Spec.Token}}
		}
		return true, review, nil
	})
	c.PrependReactor("create", "subjectaccessreviews", func(a core.Action) (bool, runtime.Object, error) {
		review := a.(core.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		*asked = *review.Spec.ResourceAttributes
		review.Status.Allowed = review.Spec.User == "reader" && asked.Namespace == "ns"
		return true, review, nil
	})
	return c
}

func TestServe(t *testing.T) {
	cases := map[string]struct {
		reason, method, path, token string
		code                        int
	}{
		"allowed":            {"", http.MethodGet, "cluster.x-k8s.io/Machine/ns/m", "reader", http.StatusOK},
		"refused":            {"", http.MethodGet, "cluster.x-k8s.io/Machine/ns/m", "stranger", http.StatusForbidden},
		"refused, unknown":   {"who may not learns nothing", http.MethodGet, "cluster.x-k8s.io/Machine/ns/other", "stranger", http.StatusForbidden},
		"another namespace":  {"", http.MethodGet, "cluster.x-k8s.io/Machine/other/m", "reader", http.StatusForbidden},
		"no plan":            {"of an object that does not exist, or was not reconciled yet", http.MethodGet, "cluster.x-k8s.io/Machine/ns/other", "reader", http.StatusNotFound},
		"unknown kind":       {"", http.MethodGet, "cluster.x-k8s.io/Nothing/ns/m", "reader", http.StatusNotFound},
		"no token":           {"", http.MethodGet, "cluster.x-k8s.io/Machine/ns/m", "", http.StatusUnauthorized},
		"unknown token":      {"", http.MethodGet, "cluster.x-k8s.io/Machine/ns/m", "no.such", http.StatusUnauthorized},
		"no answer":          {"what is not known is not allowed", http.MethodGet, "cluster.x-k8s.io/Machine/ns/m", "broken", http.StatusServiceUnavailable},
		"no object":          {"", http.MethodGet, "cluster.x-k8s.io/Machine", "reader", http.StatusNotFound},
		"of all namespaces":  {"who may get objects of one namespace may get none without", http.MethodGet, "cluster.x-k8s.io/Machine/m", "reader", http.StatusForbidden},
		"no namespace":       {"", http.MethodGet, "cluster.x-k8s.io/Machine//m", "reader", http.StatusNotFound},
		"too much":           {"", http.MethodGet, "cluster.x-k8s.io/Machine/ns/m/log", "reader", http.StatusNotFound},
		"nothing is written": {"", http.MethodPost, "cluster.x-k8s.io/Machine/ns/m", "reader", http.StatusMethodNotAllowed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var asked authorizationv1.ResourceAttributes
			r := httptest.NewRequest(tc.method, "/", nil)
			r.URL.Path = plansPath + tc.path
			if tc.token != "" {
				r.Header.Set("Authorization", "Bearer "+tc.token)
			}
			w := httptest.NewRecorder()
			(&PlanHandler{Store: filled(), API: api(&asked)}).ServeHTTP(w, r)
			if w.Code != tc.code {
				t.Fatalf("%s: %d %s, want %d", tc.reason, w.Code, w.Body, tc.code)
			}
			if tc.code != http.StatusOK {
				if strings.Contains(w.Body.String(), "cordon") {
					t.Errorf("%s", w.Body)
				}
				return
			}
			wanted := authorizationv1.ResourceAttributes{Verb: "get", Group: "cluster.x-k8s.io", Version: "*", Resource: "machines", Namespace: "ns", Name: "m"}
			if asked != wanted {
				t.Errorf("asked for %+v", asked)
			}
			var got ObjectPlans
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, plansPath+"cluster.x-k8s.io/Machine/ns/m", nil)
	r.Header.Set("Authorization", "Bearer reader")
	if (&PlanHandler{Store: filled()}).ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
		t.Errorf("without an API: %d", w.Code)
	}
}

// Metrics, profiles and the log level are served to the user of a verified client certificate whom the API server allows the
// path, as the administrator of "slipway up"; every other request is left to the handler for tokens.
func TestServeToCertificate(t *testing.T) {
	for name, tc := range map[string]struct {
		user string
		code int
	}{
		"allowed":        {"reader", http.StatusOK},
		"refused":        {"stranger", http.StatusForbidden},
		"without a user": {"", http.StatusUnauthorized},
		"no answer":      {"broken", http.StatusServiceUnavailable},
	} {
		c := fake.NewClientset()
		c.PrependReactor("create", "subjectaccessreviews", func(a core.Action) (bool, runtime.Object, error) {
			review := a.(core.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
			if review.Spec.User == "broken" {
				return true, nil, errors.New("no answer")
			}
			wanted := &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
			review.Status.Allowed = review.Spec.User == "reader" && cmp.Equal(review.Spec.NonResourceAttributes, wanted) && slices.Contains(review.Spec.Groups, "admins")
			return true, review, nil
		})
		serve := func(code int) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		}
		h := &certificateHandler{API: c, Protected: serve(http.StatusOK), ByToken: serve(http.StatusTeapot)}
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: "reader", Organization: []string{"admins"}}}}}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusTeapot {
			t.Errorf("%s: a certificate that is not verified: %d", name, w.Code)
		}
		r.TLS.VerifiedChains = [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: tc.user, Organization: []string{"admins"}}}}}
		w = httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != tc.code {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, tc.code)
		}
	}
}
