package store

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

type contextKey struct{}

// WithKeyspace returns a context for requests to the keyspace. Package simulated calls it for each request.
func WithKeyspace(ctx context.Context, k *Keyspace) context.Context {
	return context.WithValue(ctx, contextKey{}, k)
}

// keyspaceFrom returns the keyspace of a context, or nil.
func keyspaceFrom(ctx context.Context) *Keyspace {
	k, _ := ctx.Value(contextKey{}).(*Keyspace)
	return k
}

// errNoKeyspace indicates a bug: the context of a request has no keyspace.
var errNoKeyspace = errors.New("the request names no cluster")

// NewClient returns an etcd client for the storage layer of k8s.io/apiserver, which is called for every request to a
// simulated cluster. The context of each request selects the keyspace. Only the calls that this storage layer makes are
// implemented; others panic.
func NewClient(ctx context.Context) *kubernetes.Client {
	client := clientv3.NewCtxClient(ctx)
	client.KV, client.Watcher, client.Lease = kv{}, watcher{}, leases{}
	return &kubernetes.Client{Client: client, Kubernetes: kubernetesKV{}}
}

// kubernetesKV implements the etcd operations of the Kubernetes storage.
type kubernetesKV struct{}

func (kubernetesKV) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	k := keyspaceFrom(ctx)
	if k == nil {
		return kubernetes.GetResponse{}, errNoKeyspace
	}
	kvs, _, rev, err := k.read(key, "", 0, opts.Revision)
	r := kubernetes.GetResponse{Revision: rev}
	if len(kvs) == 1 {
		r.KV = kvs[0]
	}
	return r, err
}

func (kubernetesKV) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	k := keyspaceFrom(ctx)
	if k == nil {
		return kubernetes.ListResponse{}, errNoKeyspace
	}
	start := prefix
	if opts.Continue != "" {
		start = opts.Continue
	}
	kvs, count, rev, err := k.read(start, clientv3.GetPrefixRangeEnd(prefix), opts.Limit, opts.Revision)
	return kubernetes.ListResponse{Kvs: kvs, Count: count, Revision: rev}, err
}

func (kubernetesKV) Count(ctx context.Context, prefix string, _ kubernetes.CountOptions) (int64, error) {
	k := keyspaceFrom(ctx)
	if k == nil {
		return 0, errNoKeyspace
	}
	return int64(len(k.Keys(prefix))), nil
}

func (kubernetesKV) OptimisticPut(
	ctx context.Context, key string, value []byte, expected int64, opts kubernetes.PutOptions,
) (kubernetes.PutResponse, error) {
	k := keyspaceFrom(ctx)
	if k == nil {
		return kubernetes.PutResponse{}, errNoKeyspace
	}
	ok, current, rev, err := k.put(key, value, expected, int64(opts.LeaseID))
	r := kubernetes.PutResponse{Succeeded: ok, Revision: rev}
	if ok || opts.GetOnFailure {
		r.KV = current
	}
	return r, err
}

func (kubernetesKV) OptimisticDelete(
	ctx context.Context, key string, expected int64, opts kubernetes.DeleteOptions,
) (kubernetes.DeleteResponse, error) {
	k := keyspaceFrom(ctx)
	if k == nil {
		return kubernetes.DeleteResponse{}, errNoKeyspace
	}
	ok, current, rev, err := k.remove(key, expected)
	r := kubernetes.DeleteResponse{Succeeded: ok, Revision: rev}
	if ok || opts.GetOnFailure {
		r.KV = current
	}
	return r, err
}

// kv implements the list call at the start of a watch.
type kv struct{ clientv3.KV }

// Get implements clientv3.KV.
func (kv) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	k := keyspaceFrom(ctx)
	if k == nil {
		return nil, errNoKeyspace
	}
	op := clientv3.OpGet(key, opts...)
	kvs, count, rev, err := k.read(key, string(op.RangeBytes()), op.Limit(), op.Rev())
	if err != nil {
		return nil, err
	}
	return &clientv3.GetResponse{
		Header: &etcdserverpb.ResponseHeader{Revision: rev}, Kvs: kvs, Count: count, More: int64(len(kvs)) < count,
	}, nil
}

// watcher implements watches.
type watcher struct{ clientv3.Watcher }

// Watch implements clientv3.Watcher.
func (watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	k := keyspaceFrom(ctx)
	if k == nil {
		out := make(chan clientv3.WatchResponse)
		close(out)
		return out
	}
	op := clientv3.OpGet(key, opts...)
	return k.watch(ctx, key, string(op.RangeBytes()), op.Rev())
}

// RequestProgress implements clientv3.Watcher. No cache needs it.
func (watcher) RequestProgress(context.Context) error { return nil }

// leases grants leases whose ID is the second at which they expire.
type leases struct{ clientv3.Lease }

// Grant implements clientv3.Lease.
func (leases) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	k := keyspaceFrom(ctx)
	if k == nil {
		return nil, errNoKeyspace
	}
	return &clientv3.LeaseGrantResponse{ID: clientv3.LeaseID(k.now().Unix() + ttl), TTL: ttl}, nil
}
