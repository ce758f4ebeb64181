package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	// pageSize is the number of objects of one list request.
	pageSize = 500
	// rediscover is the interval in which kinds are read again, for example those of a provider that was installed.
	rediscover = 2 * time.Minute
	// retry is the delay after a failed discovery.
	retry = 5 * time.Second
	// parallel is the number of kinds that are listed at the same time.
	parallel = 8
)

// Mirror copies the objects of one management cluster. Each run of `slipway get` has one, and `slipway ui` has one for
// each management cluster.
type Mirror struct {
	Store *Store

	namespace string
	api       discovery.DiscoveryInterface
	objects   dynamic.Interface
	crds      metadata.Interface
	live      client.Client
	scheme    *runtime.Scheme
	onStatus  func()
	now       func() time.Time
	// userAgent is also the name of the watches in logs.
	userAgent string
	// selected are the kinds that are copied; empty: all. required is the kind without which the copy is useless.
	selected []schema.GroupKind
	required schema.GroupKind
	// rediscover is the interval in which kinds are read again.
	rediscover time.Duration

	mu     sync.Mutex
	mapper meta.RESTMapper
	states map[schema.GroupKind]*kindState
	// left are kinds that are not copied, because there are too many.
	left []schema.GroupKind
	err  error
}

// kindState is the state of the copy of one kind.
type kindState struct {
	kind   Kind
	synced bool
	err    error
	// failedAt is the time since which the reads have failed; zero without an error.
	failedAt time.Time
}

// Unreadable is a kind that cannot be read, with the reason. The page lists them.
type Unreadable struct {
	Kind   schema.GroupKind
	Reason string
	// Outage is true if the API server does not respond.
	Outage bool
}

func newUnreadable(kind schema.GroupKind, err error) Unreadable {
	reason := readErrorText(err)
	return Unreadable{Kind: kind, Reason: reason, Outage: reason == noResponse}
}

// Options select what is copied. `slipway get` and package ui fill them in.
type Options struct {
	// UserAgent names the command in requests.
	UserAgent string
	// Kinds limits the copy to some kinds; empty: all kinds of Cluster API and its providers.
	Kinds []schema.GroupKind
	// Required is the kind whose objects must be readable; empty: Cluster.
	Required schema.GroupKind
	// Namespace limits the copy to one namespace; empty: all.
	Namespace string
	// OnChange is called after each change of an object.
	OnChange func(Change)
	// OnStatus is called after a kind has been read, has become unreadable or is readable again.
	OnStatus func()
	// Now returns the time; nil: the time of the host.
	Now func() time.Time
}

// New returns the mirror of the management cluster of the configuration. It sends no request.
func New(cfg *rest.Config, o Options) (*Mirror, error) {
	cfg = readOnly(cfg, o.UserAgent)
	m := &Mirror{
		Store: newStore(o.OnChange), namespace: o.Namespace, scheme: runtime.NewScheme(), states: map[schema.GroupKind]*kindState{},
		onStatus: o.OnStatus, now: o.Now, userAgent: o.UserAgent, selected: o.Kinds, required: o.Required, rediscover: rediscover,
	}
	m.Store.isComplete = func(kind schema.GroupKind) bool { return m.CopyOf(kind).IsComplete() }
	if m.required.Empty() {
		m.required = clusterKind()
	}
	if m.onStatus == nil {
		m.onStatus = func() {}
	}
	if m.now == nil {
		m.now = time.Now
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &observedTransport{next: next, report: m.connectionFailed}
	})
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, addonsv1.AddToScheme, runtimev1.AddToScheme, eventsv1.AddToScheme} {
		if err := add(m.scheme); err != nil {
			return nil, err
		}
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	if m.api, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, httpClient); err != nil {
		return nil, err
	}
	if m.objects, err = dynamic.NewForConfigAndClient(cfg, httpClient); err != nil {
		return nil, err
	}
	if m.crds, err = metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), httpClient); err != nil {
		return nil, err
	}
	m.live, err = client.New(cfg, client.Options{Scheme: m.scheme, HTTPClient: httpClient})
	return m, err
}

// Live reads from the API, without the copy. The page of an object reads it.
func (m *Mirror) Live() client.Reader { return m.live }

// Reader reads from the copy, and kinds that are not copied from the API.
func (m *Mirror) Reader() *Reader {
	return &Reader{store: m.Store, scheme: m.scheme, live: m.live, mapper: m.RESTMapper, copied: m.isCopied}
}

// RESTMapper returns the kinds of the API server, as of the last discovery.
func (m *Mirror) RESTMapper() meta.RESTMapper {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mapper == nil {
		return meta.NewDefaultRESTMapper(nil)
	}
	return m.mapper
}

func (m *Mirror) isCopied(kind schema.GroupKind) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.states[kind]
	return s != nil && s.synced
}

// Kinds returns the copied kinds, sorted.
func (m *Mirror) Kinds() []Kind {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Kind
	for _, s := range m.states {
		out = append(out, s.kind)
	}
	slices.SortFunc(out, func(a, b Kind) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

// Status describes how complete a copy is. The page and `slipway get` report the missing kinds.
type Status struct {
	// Synced is true if every kind has been listed or is unreadable.
	Synced bool
	// Err is the reason why the kinds cannot be discovered.
	Err error
	// Clusters describes the copy of the Clusters.
	Clusters Copy
	// Unreadable are the kinds that are not copied, or whose copy is not updated, sorted.
	Unreadable []Unreadable
}

// Copy describes the copy of one kind. The page of an object explains with it why there is no cause.
type Copy struct {
	// Listed is true if the objects have been listed once.
	Listed bool
	// Reason describes why the objects cannot be read now. It is empty if changes are received, and before the first list
	// has ended.
	Reason string
	// Since is the time since which the objects cannot be read; zero without a reason. The copy is not older.
	Since time.Time
}

// IsComplete reports whether the copy has all objects and receives changes.
func (c Copy) IsComplete() bool { return c.Listed && c.Reason == "" }

// Status returns how complete the copy is.
func (m *Mirror) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := Status{Synced: len(m.states) > 0, Err: m.err, Clusters: m.copyOf(clusterKind())}
	for _, s := range m.states {
		if s.err != nil {
			out.Unreadable = append(out.Unreadable, newUnreadable(s.kind.GroupKind(), s.err))
		} else if !s.synced {
			out.Synced = false
		}
	}
	for _, kind := range m.left {
		out.Unreadable = append(out.Unreadable, Unreadable{Kind: kind, Reason: tooManyKinds()})
	}
	slices.SortFunc(out.Unreadable, func(a, b Unreadable) int {
		return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Kind, b.Kind.Kind))
	})
	return out
}

// CopyOf describes the copy of a kind.
func (m *Mirror) CopyOf(kind schema.GroupKind) Copy {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.copyOf(kind)
}

// ErrorOf returns the error of the last read of a kind, or nil.
func (m *Mirror) ErrorOf(kind schema.GroupKind) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.states[kind]; s != nil {
		return s.err
	}
	return nil
}

func (m *Mirror) copyOf(kind schema.GroupKind) Copy {
	s := m.states[kind]
	switch {
	case s != nil && s.err != nil:
		return Copy{Listed: s.synced, Reason: readErrorText(s.err), Since: s.failedAt}
	case s != nil:
		return Copy{Listed: s.synced}
	case m.err != nil:
		return Copy{Reason: readErrorText(m.err)}
	case slices.Contains(m.left, kind):
		return Copy{Reason: tooManyKinds()}
	case len(m.states) > 0:
		return Copy{Reason: "the API server does not serve this kind"}
	}
	return Copy{}
}

// noResponse is the reason of an outage.
const noResponse = "the API server does not respond"

// tooManyKinds is the reason of kinds beyond the limit.
func tooManyKinds() string { return fmt.Sprintf("only %d kinds are read", maxKinds) }

// readErrorText returns the reason of a failed read. It is the same for all attempts during an outage.
func readErrorText(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "you may not list and watch this kind"
	case apierrors.IsNotFound(err):
		return "the API server does not serve this kind any more"
	case fault.KindOf(err) == fault.Unreachable, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return noResponse
	}
	return err.Error()
}

// connectionFailed records a failed connection for a list or watch of the required kind. The client repeats such requests for a
// while before it returns the error.
func (m *Mirror) connectionFailed(path string, err error) {
	m.mu.Lock()
	s := m.states[m.required]
	isRequired := s != nil && strings.Contains(path, "/apis/"+s.kind.Group+"/") && strings.HasSuffix(path, "/"+s.kind.Resource)
	m.mu.Unlock()
	if isRequired {
		m.update(m.required, func(s *kindState) { s.err = err })
	}
}

// update changes the state of a kind.
func (m *Mirror) update(kind schema.GroupKind, change func(*kindState)) {
	m.mu.Lock()
	s := m.states[kind]
	if s == nil {
		m.mu.Unlock()
		return
	}
	before := *s
	change(s)
	switch {
	case s.err == nil:
		s.failedAt = time.Time{}
	case before.err == nil:
		s.failedAt = m.now()
	}
	differs := before.synced != s.synced || (before.err == nil) != (s.err == nil)
	m.mu.Unlock()
	if differs {
		m.onStatus()
	}
}

// discover reads the kinds and returns the watches that have to be started and stopped. The states are updated.
func (m *Mirror) discover(ctx context.Context) (watchPlan, error) {
	found, err := discover(ctx, m.api, m.crds)
	m.mu.Lock()
	differs := (m.err == nil) != (err == nil)
	m.err = err
	var plan watchPlan
	if err == nil {
		found.keep(m.selected)
		m.mapper, m.left = found.mapper, found.left
		plan = m.applyKinds(found)
	}
	m.mu.Unlock()
	if differs {
		m.onStatus()
	}
	return plan, err
}

// applyKinds updates the states of the kinds. The caller holds the lock.
func (m *Mirror) applyKinds(found discovered) watchPlan {
	current := map[schema.GroupKind]Kind{}
	for of, s := range m.states {
		current[of] = s.kind
	}
	plan := planWatches(current, found)
	for _, k := range plan.start {
		if s := m.states[k.GroupKind()]; s != nil {
			s.kind, s.err, s.failedAt = k, nil, time.Time{} // the objects of the previous version remain until the kind has been listed
		} else {
			m.states[k.GroupKind()] = &kindState{kind: k}
		}
	}
	for _, of := range plan.stop {
		delete(m.states, of)
	}
	return plan
}

// Load copies all objects once, for lists without --watch. An error of the required kind is returned; other kinds may
// be unreadable.
func (m *Mirror) Load(ctx context.Context) error {
	plan, err := m.discover(ctx)
	if err != nil {
		return err
	}
	limit := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for _, k := range plan.start {
		limit <- struct{}{}
		all.Go(func() {
			defer func() { <-limit }()
			err := m.list(ctx, k)
			m.update(k.GroupKind(), func(s *kindState) { s.synced, s.err = err == nil, err })
		})
	}
	all.Wait()
	s := m.states[m.required]
	switch {
	case s == nil:
		return &meta.NoKindMatchError{GroupKind: m.required}
	case s.err != nil:
		return fmt.Errorf("listing %s: %w", s.kind.Resource, s.err)
	}
	return ctx.Err()
}

func (m *Mirror) list(ctx context.Context, k Kind) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := m.resource(k).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			m.Store.Put(&page.Items[i])
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func (m *Mirror) resource(k Kind) dynamic.ResourceInterface {
	if m.namespace != "" && k.Namespaced {
		return m.objects.Resource(k.resource()).Namespace(m.namespace)
	}
	return m.objects.Resource(k.resource())
}

// Run copies all objects and their changes until the context ends, for lists with --watch and for package ui. Failed
// lists and watches are repeated with a backoff. Kinds are discovered again in an interval: a kind in a new version is
// watched in that version, and the objects of a kind that is not served any more are removed.
func (m *Mirror) Run(ctx context.Context) {
	running := map[schema.GroupKind]*runningWatch{}
	defer func() {
		for _, w := range running {
			w.stop()
		}
	}()
	for {
		plan, err := m.discover(ctx)
		m.applyPlan(ctx, plan, running)
		pause := m.rediscover
		if err != nil {
			pause = retry
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
