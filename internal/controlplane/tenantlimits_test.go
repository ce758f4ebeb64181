package controlplane

import (
	"context"
	"net/http"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

// open is priority and fairness that lets everything through.
type open struct{ flowcontrol.Interface }

func (open) Handle(_ context.Context, _ flowcontrol.RequestDigest, classified func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	_ func() flowcontrolrequest.WorkEstimate, _ fairqueuing.QueueNoteFn, execute func()) {
	classified(&flowcontrolv1.FlowSchema{}, &flowcontrolv1.PriorityLevelConfiguration{}, "")
	execute()
}

func (open) RegisterWatch(*http.Request) flowcontrol.ForgetWatchFunc { return nil }

func limited(t *testing.T) flowcontrol.Interface {
	t.Helper()
	limits := requestLimits{Lists: 2, Waiting: 1, Watches: 3, Of: func(u user.Info) string {
		if u.GetName() == "admin" {
			return ""
		}
		return u.GetName()
	}}
	c := &genericapiserver.Config{FlowControl: open{}}
	tune := limits.tune()
	tune(c)
	second := &genericapiserver.Config{FlowControl: open{}}
	if tune(second); second.FlowControl != c.FlowControl {
		t.Error("the servers of one process count apart")
	}
	return c.FlowControl
}

// request sends one request, and reports whether it was served, and under a flow schema or a limit that has a name.
func request(ctx context.Context, f flowcontrol.Interface, name, verb string, execute func()) (served bool) {
	classified := false
	f.Handle(ctx, flowcontrol.RequestDigest{User: &user.DefaultInfo{Name: name}, RequestInfo: &apirequest.RequestInfo{Verb: verb}},
		func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string) { classified = true }, nil, nil,
		func() {
			served = true
			if execute != nil {
				execute()
			}
		})
	if !classified {
		panic("kube-apiserver reads the class of every request that is refused")
	}
	return served
}

// One tenant who reads slowly has two lists at most, and nobody else waits for them.
func TestListsOfOneTenant(t *testing.T) {
	f := limited(t)
	slow, began, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	for _, verb := range []string{"list", "deletecollection"} {
		go func() {
			request(t.Context(), f, "alice", verb, func() { began <- struct{}{}; <-slow })
			ended <- struct{}{}
		}()
		<-began
	}
	past, cancel := context.WithCancel(t.Context())
	cancel()
	if request(past, f, "alice", "list", nil) {
		t.Error("a third list of alice runs beside two")
	}
	waits := make(chan bool)
	go func() { waits <- request(t.Context(), f, "alice", "list", nil) }()
	for _, name := range []string{"bob", "admin"} {
		if !request(t.Context(), f, name, "list", nil) {
			t.Errorf("%s waits for alice", name)
		}
	}
	for _, verb := range []string{"get", "create", "watch"} {
		if !request(past, f, "alice", verb, nil) {
			t.Errorf("a request to %s waits for lists", verb)
		}
	}
	close(slow)
	<-ended
	<-ended
	if !<-waits {
		t.Error("a list that waits is refused after another has ended")
	}
	if l := f.(*limiter); len(l.lists) != 0 {
		t.Errorf("tenants without requests are remembered: %v", l.lists)
	}
}

func TestTooManyWait(t *testing.T) {
	f := limited(t).(*limiter)
	f.lists["alice"] = &listSlots{running: make(chan struct{}, 2), all: 3}
	if request(t.Context(), f, "alice", "list", nil) {
		t.Error("as many wait as send")
	}
}

func TestWatchesOfOneTenant(t *testing.T) {
	f := limited(t)
	begin := func(name string) flowcontrol.ForgetWatchFunc {
		if !request(t.Context(), f, name, "watch", nil) {
			return nil
		}
		ctx := apirequest.WithUser(t.Context(), &user.DefaultInfo{Name: name})
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		forget := f.RegisterWatch(r)
		if forget == nil {
			return func() {}
		}
		return forget
	}
	var last flowcontrol.ForgetWatchFunc
	for range 3 {
		if last = begin("alice"); last == nil {
			t.Fatal("a watch within the limit is refused")
		}
	}
	if begin("alice") != nil || begin("bob") == nil || begin("admin") == nil {
		t.Error("the fourth watch is alice's alone to be refused")
	}
	last()
	if begin("alice") == nil {
		t.Error("a watch that has ended counts")
	}
}
