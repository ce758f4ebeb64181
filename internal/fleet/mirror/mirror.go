package mirror

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/rootcause"
)

const (
	// pageSize is the number of objects of one list request.
	pageSize = 500
	// rediscover is the interval in which new kinds are found, for example of a provider that was installed.
	rediscover = 2 * time.Minute
	// retry is the delay after a failed discovery.
	retry = 5 * time.Second
	// parallel is the number of kinds that are listed at the same time.
	parallel = 8
)

// Mirror copies the objects of one management cluster.
type Mirror struct {
	Store *Store

	namespace string
	api       discovery.DiscoveryInterface
	objects   dynamic.Interface
	crds      metadata.Interface
	live      client.Client
	scheme    *runtime.Scheme

	mu     sync.Mutex
	mapper meta.RESTMapper
	states map[schema.GroupKind]*kindState
	err    error
}

// kindState is the state of the copy of one kind.
type kindState struct {
	kind   Kind
	synced bool
	err    error
}

// Unreadable is a kind that cannot be read, with the reason.
type Unreadable struct {
	Kind   schema.GroupKind
	Reason string
}

// Options select what is copied.
type Options struct {
	// Namespace limits the copy to one namespace; empty: all.
	Namespace string
	// OnChange is called after each change of an object.
	OnChange func(Change)
}

// New returns the mirror of the management cluster of the configuration. It sends no request.
func New(cfg *rest.Config, o Options) (*Mirror, error) {
	cfg = readOnly(cfg)
	m := &Mirror{Store: newStore(o.OnChange), namespace: o.Namespace, scheme: runtime.NewScheme(), states: map[schema.GroupKind]*kindState{}}
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

// Live reads from the API, without the copy.
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

// Status describes how complete a copy is.
type Status struct {
	// Synced is true if every kind has been listed or is unreadable.
	Synced bool
	// Err is the reason why the kinds cannot be discovered.
	Err error
	// Unreadable are the kinds that are not copied, sorted.
	Unreadable []Unreadable
}

// Status returns how complete the copy is.
func (m *Mirror) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := Status{Synced: len(m.states) > 0, Err: m.err}
	for _, s := range m.states {
		if s.err != nil {
			out.Unreadable = append(out.Unreadable, Unreadable{Kind: s.kind.GroupKind(), Reason: readErrorText(s.err)})
		} else if !s.synced {
			out.Synced = false
		}
	}
	slices.SortFunc(out.Unreadable, func(a, b Unreadable) int {
		return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Kind, b.Kind.Kind))
	})
	return out
}

func readErrorText(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "you may not list and watch this kind"
	case apierrors.IsNotFound(err):
		return "the API server does not serve this kind any more"
	}
	return err.Error()
}

// update changes the state of a kind.
func (m *Mirror) update(kind schema.GroupKind, change func(*kindState)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.states[kind]; s != nil {
		change(s)
	}
}

// discover finds the kinds, and returns those that are new.
func (m *Mirror) discover(ctx context.Context) ([]Kind, error) {
	found, err := discover(ctx, m.api, m.crds)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err = err; err != nil {
		return nil, err
	}
	m.mapper = found.mapper
	var added []Kind
	for _, k := range found.kinds {
		if m.states[k.GroupKind()] == nil {
			m.states[k.GroupKind()] = &kindState{kind: k}
			added = append(added, k)
		}
	}
	return added, nil
}

// Load copies all objects once. An error of the kind Cluster is returned; other kinds may be unreadable.
func (m *Mirror) Load(ctx context.Context) error {
	kinds, err := m.discover(ctx)
	if err != nil {
		return err
	}
	limit := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for _, k := range kinds {
		limit <- struct{}{}
		all.Go(func() {
			defer func() { <-limit }()
			err := m.list(ctx, k)
			m.update(k.GroupKind(), func(s *kindState) { s.synced, s.err = err == nil, err })
		})
	}
	all.Wait()
	if s := m.states[clusterKind()]; s.err != nil {
		return fmt.Errorf("listing Clusters: %w", s.err)
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

// Run copies all objects and their changes until the context ends. Failed lists and watches are repeated with a backoff.
func (m *Mirror) Run(ctx context.Context) {
	var watches sync.WaitGroup
	defer watches.Wait()
	for {
		kinds, err := m.discover(ctx)
		for _, k := range kinds {
			watches.Go(func() { m.watch(ctx, k) })
		}
		pause := rediscover
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

// watch lists and watches one kind until the context ends.
func (m *Mirror) watch(ctx context.Context, k Kind) {
	resource := m.resource(k)
	note := func(err error) {
		if ctx.Err() == nil {
			m.update(k.GroupKind(), func(s *kindState) { s.err = err })
		}
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, o)
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := resource.Watch(ctx, o)
			note(err)
			return w, err
		},
	}
	objects := &kindStore{mirror: m, kind: k}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, m.objects), &unstructured.Unstructured{}, objects, cache.ReflectorOptions{
		Name: "slipway-ui", TypeDescription: k.Resource + "." + k.Group,
	}).RunWithContext(ctx)
}

// kindStore passes the objects of one kind to the Store.
type kindStore struct {
	mirror *Mirror
	kind   Kind
}

var _ cache.ReflectorStore = &kindStore{}

// Add implements cache.ReflectorStore.
func (k *kindStore) Add(o any) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		k.mirror.Store.Put(u)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (k *kindStore) Update(o any) error { return k.Add(o) }

// Delete implements cache.ReflectorStore.
func (k *kindStore) Delete(o any) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		k.mirror.Store.Drop(rootcause.RefOf(u))
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (k *kindStore) Replace(objects []any, _ string) error {
	present := map[types.UID]bool{}
	for _, o := range objects {
		if u, ok := o.(*unstructured.Unstructured); ok {
			present[u.GetUID()] = true
			k.mirror.Store.Put(u)
		}
	}
	for _, u := range k.mirror.Store.Objects(k.kind.GroupKind(), "") {
		if !present[u.GetUID()] {
			k.mirror.Store.Drop(rootcause.RefOf(u))
		}
	}
	k.mirror.update(k.kind.GroupKind(), func(s *kindState) { s.synced, s.err = true, nil })
	return nil
}

// Resync implements cache.ReflectorStore.
func (k *kindStore) Resync() error { return nil }
