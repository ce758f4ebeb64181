package controlplane

import (
	"context"
	"net/http"
	"sync"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

// requestLimits limits the concurrent requests of one tenant of the management cluster. API Priority and Fairness
// limits all tenants together and shares fairly between waiting requests, but does not limit the seats of one tenant. A
// client that reads slowly holds a whole list in the server's memory, and its seats, until the request times out.
type requestLimits struct {
	// Of returns the tenant of a user: the name of the user, or the namespace of a ServiceAccount. Empty means that the
	// user is not limited.
	Of func(user.Info) string
	// Lists limits concurrent requests that read whole collections, and Waiting limits further requests that
	// wait.
	Lists, Waiting int
	// Watches limits open watches, each of which buffers events that its client has not read.
	Watches int
}

// limitedFlow is the FlowSchema and priority level in the metrics of rejected requests.
const limitedFlow = "slipway-tenant-limit"

// tune returns a function that adds the limits to the configuration of the management cluster's API server, before it
// is built. [StartManagement] calls it.
func (l requestLimits) tune() func(*genericapiserver.Config) {
	var once sync.Once
	var limited *limiter
	return func(c *genericapiserver.Config) {
		if c.FlowControl == nil {
			return
		}
		// The three servers of a kube-apiserver share one implementation of priority and fairness.
		once.Do(func() {
			limited = &limiter{Interface: c.FlowControl, limits: l, lists: map[string]*listSlots{}, watches: map[string]int{}}
		})
		c.FlowControl = limited
	}
}

// limiter adds limits for each tenant to priority and fairness.
type limiter struct {
	flowcontrol.Interface
	limits requestLimits

	mu      sync.Mutex
	lists   map[string]*listSlots
	watches map[string]int
}

// listSlots counts the lists of one tenant.
type listSlots struct {
	running chan struct{} // contains one value for each running list
	all     int           // running and waiting
}

// Handle implements flowcontrol.Interface. If it does not call execute, the server returns 429 with a
// Retry-After header.
func (t *limiter) Handle(
	ctx context.Context, request flowcontrol.RequestDigest,
	classified func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	estimate func() flowcontrolrequest.WorkEstimate, queued fairqueuing.QueueNoteFn, execute func(),
) {
	leave, admitted := t.enter(ctx, request)
	if !admitted {
		name := metav1.ObjectMeta{Name: limitedFlow}
		classified(&flowcontrolv1.FlowSchema{ObjectMeta: name}, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: name}, "")
		return
	}
	defer leave()
	t.Interface.Handle(ctx, request, classified, estimate, queued, execute)
}

// enter waits until a list is within the limits of its tenant, or ctx ends. It rejects a watch that exceeds the limit.
// RegisterWatch counts a watch after its admission, so concurrent requests can exceed the limit.
func (t *limiter) enter(ctx context.Context, request flowcontrol.RequestDigest) (leave func(), admitted bool) {
	tenant := t.limits.Of(request.User)
	if tenant == "" {
		return func() {}, true
	}
	switch request.RequestInfo.Verb {
	case "list", "deletecollection":
		return t.enterList(ctx, tenant)
	case "watch":
		t.mu.Lock()
		defer t.mu.Unlock()
		return func() {}, t.watches[tenant] < t.limits.Watches
	}
	return func() {}, true
}

func (t *limiter) enterList(ctx context.Context, tenant string) (leave func(), admitted bool) {
	t.mu.Lock()
	slots := t.lists[tenant]
	if slots == nil {
		slots = &listSlots{running: make(chan struct{}, t.limits.Lists)}
		t.lists[tenant] = slots
	}
	if slots.all >= t.limits.Lists+t.limits.Waiting {
		t.mu.Unlock()
		return nil, false
	}
	slots.all++
	t.mu.Unlock()
	select {
	case slots.running <- struct{}{}:
		return func() {
			<-slots.running
			t.leaveList(tenant, slots)
		}, true
	case <-ctx.Done():
		t.leaveList(tenant, slots)
		return nil, false
	}
}

func (t *limiter) leaveList(tenant string, slots *listSlots) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slots.all--; slots.all == 0 {
		delete(t.lists, tenant)
	}
}

// RegisterWatch implements flowcontrol.WatchTracker. The returned function is called when the watch ends.
func (t *limiter) RegisterWatch(r *http.Request) flowcontrol.ForgetWatchFunc {
	forget := t.Interface.RegisterWatch(r)
	who, _ := apirequest.UserFrom(r.Context())
	if who == nil {
		return forget
	}
	tenant := t.limits.Of(who)
	if tenant == "" {
		return forget
	}
	t.countWatch(tenant, 1)
	return func() {
		t.countWatch(tenant, -1)
		if forget != nil {
			forget()
		}
	}
}

func (t *limiter) countWatch(tenant string, change int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watches[tenant] += change; t.watches[tenant] <= 0 {
		delete(t.watches, tenant)
	}
}
