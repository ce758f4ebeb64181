package workload

import (
	"reflect"
	"runtime"
	"sync"
	"time"
	"weak"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonMemory is the reason of the fault for a response that exceeds the remaining memory of the cluster or its
// namespace.
const reasonMemory = "AnswersTakeTooMuchMemory"

const (
	// defaultMemory is the memory of the process if its limit is not known.
	defaultMemory = 1 << 30
	// leastShare is the minimum memory for a cluster, whatever the limit of the process. It is sufficient for the
	// responses of ordinary clusters.
	leastShare = 64 << 20
	// collectEvery is the minimum time between garbage collections that nearly full accounts trigger.
	collectEvery = 10 * time.Second
)

// memoryAccounts tracks the memory that responses of each workload cluster use, in bytes. [Clusters] has one for all
// clusters; the [limitingTransport] of each connection charges responses to it. One cluster may use an eighth of the
// memory of the process, and all clusters in a namespace a quarter. When all clusters together use half of the memory,
// a namespace may use no more than an equal share of that half.
type memoryAccounts struct {
	cluster, namespace, maxTotal int64

	mu         sync.Mutex
	clusters   map[client.ObjectKey]int64
	namespaces map[string]int64
	total      int64
	// retained holds the cached objects that are charged until they are garbage collected.
	retained  map[weak.Pointer[byte]]struct{}
	collected time.Time
}

// newAccounts returns the accounts of a process with this much memory; zero means 1 GiB.
func newAccounts(memory int64) *memoryAccounts {
	if memory <= 0 {
		memory = defaultMemory
	}
	share := max(memory/8, leastShare)
	return &memoryAccounts{
		cluster: share, namespace: 2 * share, maxTotal: 4 * share,
		clusters: map[client.ObjectKey]int64{}, namespaces: map[string]int64{}, retained: map[weak.Pointer[byte]]struct{}{},
	}
}

// ForCluster returns the account of a cluster.
func (a *memoryAccounts) ForCluster(cluster client.ObjectKey) *memoryAccount {
	return &memoryAccount{accounts: a, key: cluster}
}

// memoryAccount is the account of one cluster, for all of its connections. [limitingTransport] charges the responses,
// and the transform of the caches the cached objects.
type memoryAccount struct {
	accounts *memoryAccounts
	key      client.ObjectKey
}

// used returns how much memory the responses of the cluster use.
func (a *memoryAccount) used() int64 {
	a.accounts.mu.Lock()
	defer a.accounts.mu.Unlock()
	return a.accounts.clusters[a.key]
}

// charge charges memory to the account, or returns a fault that states the exceeded limit. A response body calls it
// while it is read.
func (a *memoryAccount) charge(bytes int64) error {
	all := a.accounts
	all.mu.Lock()
	defer all.mu.Unlock()
	namespace := all.namespaces[a.key.Namespace] + bytes
	switch {
	case all.clusters[a.key]+bytes > all.cluster:
		return fault.New(fault.Unreachable, reasonMemory,
			"the API server of the workload cluster sends more than the %d MiB of memory that the manager has for one cluster", all.cluster>>20)
	case namespace > all.namespace:
		return fault.New(fault.Unreachable, reasonMemory,
			"the API servers of the workload clusters of namespace %s send more than the %d MiB of memory that the manager has for the clusters of one namespace",
			a.key.Namespace, all.namespace>>20)
	case all.total+bytes > all.maxTotal && namespace > all.maxTotal/int64(max(len(all.namespaces), 1)):
		return fault.New(fault.Unreachable, reasonMemory,
			"the API servers of all workload clusters send more than the %d MiB of memory that the manager has for them, and those of namespace %s more than an equal share of it",
			all.maxTotal>>20, a.key.Namespace)
	}
	all.change(a.key, bytes)
	return nil
}

func (a *memoryAccount) release(bytes int64) {
	a.accounts.mu.Lock()
	defer a.accounts.mu.Unlock()
	a.accounts.change(a.key, -bytes)
}

// change adds bytes to the totals. The mutex must be held.
func (a *memoryAccounts) change(key client.ObjectKey, bytes int64) {
	a.total += bytes
	if a.clusters[key] += bytes; a.clusters[key] == 0 {
		delete(a.clusters, key)
	}
	if a.namespaces[key.Namespace] += bytes; a.namespaces[key.Namespace] == 0 {
		delete(a.namespaces, key.Namespace)
	}
}

// Retain charges a cached object until it is garbage collected. It never fails; if a limit is exceeded, the next
// response is rejected instead. The transform of the caches calls it.
func (a *memoryAccount) Retain(o client.Object) {
	v := reflect.ValueOf(o)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return
	}
	size := sizeOf(v)
	p := (*byte)(v.UnsafePointer())
	id := weak.Make(p)
	all := a.accounts
	all.mu.Lock()
	defer all.mu.Unlock()
	if _, known := all.retained[id]; known {
		return
	}
	all.retained[id] = struct{}{}
	all.change(a.key, size)
	runtime.AddCleanup(p, func(size int64) { all.forget(a.key, id, size) }, size)
	now := time.Now()
	if all.clusters[a.key] > all.cluster/4*3 && now.Sub(all.collected) >= collectEvery {
		all.collected = now
		go runtime.GC() // updated objects may have left much garbage
	}
}

func (a *memoryAccounts) forget(key client.ObjectKey, id weak.Pointer[byte], size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.retained, id)
	a.change(key, -size)
}

// sizeOf returns the memory that a value references, in bytes, without the value itself.
func sizeOf(v reflect.Value) (size int64) {
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return int64(v.Elem().Type().Size()) + sizeOf(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() { // the location is shared
			return 0
		}
		for _, field := range v.Fields() {
			size += sizeOf(field)
		}
	case reflect.Slice:
		element := v.Type().Elem()
		size = int64(v.Cap()) * int64(element.Size())
		if isPlain(element.Kind()) {
			return size
		}
		for i := range v.Len() {
			size += sizeOf(v.Index(i))
		}
	case reflect.Map:
		size = 48 + 2*int64(v.Len())*int64(v.Type().Key().Size()+v.Type().Elem().Size())
		for each := v.MapRange(); each.Next(); {
			size += sizeOf(each.Key()) + sizeOf(each.Value())
		}
	}
	return size
}

// isPlain reports whether values of a kind contain no references.
func isPlain(k reflect.Kind) bool { return k >= reflect.Bool && k <= reflect.Complex128 }
