package simulated

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

const (
	// workers is the number of workers for all clusters together.
	workers = 4
	// firstRetry and lastRetry are the initial and maximum delay of a retry.
	firstRetry, lastRetry = 20 * time.Millisecond, 10 * time.Second
)

// Prefixes of the watched keys, followed by namespace and name. kube-apiserver's storage defines them.
const (
	podKeys       = "/registry/pods/"
	nodeKeys      = "/registry/nodes/"
	namespaceKeys = "/registry/namespaces/"
	budgetKeys    = "/registry/poddisruptionbudgets/"
)

// simulator simulates controllers and kubelets in all clusters. The [Server] starts one; the keyspaces report their
// changes to it.
type simulator struct {
	api        *api
	client     kubernetes.Interface
	log        logr.Logger
	queue      workqueue.TypedRateLimitingInterface[item]
	namespaces *namespaceDeleter

	mu      sync.Mutex
	members map[string]*simulatedCluster
}

// simulatedCluster is one cluster in the simulator.
type simulatedCluster struct {
	ctx    context.Context
	tenant *tenant
	// budgets stops the controller of PodDisruptionBudgets. It is nil while the controller is not running.
	budgets context.CancelFunc
}

// item is a key whose object needs processing. The keyspaces add them to the queue (Changed), and process handles them.
type item struct{ member, keys, namespace, name string }

// startSimulator starts the workers, which stop when the context is done.
func startSimulator(ctx context.Context, a *api, log logr.Logger) *simulator {
	l := &simulator{
		api: a, client: a.Client(), log: log, members: map[string]*simulatedCluster{}, namespaces: &namespaceDeleter{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[item](firstRetry, lastRetry)),
	}
	context.AfterFunc(ctx, l.queue.ShutDown)
	for range workers {
		go l.work()
	}
	return l
}

// Changed returns a callback for changes of a cluster's keys. The callback does not block. A deleted Pod or namespace
// needs no work, but a deleted Node or budget does.
func (l *simulator) Changed(name string) func(key string, deleted bool) {
	return func(key string, deleted bool) {
		for _, keys := range [...]string{podKeys, nodeKeys, namespaceKeys, budgetKeys} {
			rest, ok := strings.CutPrefix(key, keys)
			if !ok || deleted && (keys == podKeys || keys == namespaceKeys) {
				continue
			}
			i := item{member: name, keys: keys, name: rest}
			if namespace, name, ok := strings.Cut(rest, "/"); ok {
				i.namespace, i.name = namespace, name
			}
			l.queue.Add(i)
		}
	}
}

// Join starts the simulation of a cluster, or resumes it after a restart, until the context is done. [Server.Start]
// calls it. Nodes are not enqueued, because the work for a Node is to enqueue its Pods.
func (l *simulator) Join(ctx context.Context, name string, t *tenant) error {
	ctx = withTenant(ctx, t)
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		if value, _ := t.Keys.Get(namespaceKeys + namespace); value != nil {
			continue
		}
		o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if _, err := l.client.CoreV1().Namespaces().Create(ctx, o, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating namespace %s: %w", namespace, err)
		}
	}
	m := &simulatedCluster{ctx: ctx, tenant: t}
	l.mu.Lock()
	l.members[name] = m
	l.mu.Unlock()
	context.AfterFunc(ctx, func() { l.leave(name, m) })
	changed := l.Changed(name)
	for _, keys := range []string{podKeys, namespaceKeys, budgetKeys} {
		for _, key := range t.Keys.Keys(keys) {
			changed(key, false)
		}
	}
	return nil
}

func (l *simulator) leave(name string, m *simulatedCluster) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.members[name] == m {
		delete(l.members, name)
	}
	if m.budgets != nil {
		m.budgets()
	}
}

func (l *simulator) work() {
	for {
		i, end := l.queue.Get()
		if end {
			return
		}
		l.mu.Lock()
		m := l.members[i.member]
		l.mu.Unlock()
		again, err := time.Duration(0), error(nil)
		if m != nil {
			again, err = l.process(m, i)
		}
		switch {
		case err != nil && m.ctx.Err() == nil:
			l.log.V(1).Info("reconciling an object of a simulated cluster failed, retrying", "cluster", i.member, "object", i.keys+i.namespace+"/"+i.name, "reason", err.Error())
			l.queue.AddRateLimited(i)
		case again > 0:
			l.queue.Forget(i)
			l.queue.AddAfter(i, again)
		default:
			l.queue.Forget(i)
		}
		l.queue.Done(i)
	}
}

// process processes one object. It returns when to process it again; zero: when it changes.
func (l *simulator) process(m *simulatedCluster, i item) (time.Duration, error) {
	switch i.keys {
	case podKeys:
		return 0, l.pod(m, i)
	case nodeKeys:
		l.node(m, i)
	case namespaceKeys:
		return l.namespaces.namespace(l, m, i.name)
	case budgetKeys:
		return 0, l.budget(m)
	}
	return 0, nil
}
