package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/template"
)

// upgrade is that of all Clusters at the same time.
type upgrade struct {
	Seconds    float64 `json:"seconds"` // until all Machines have the version
	Replaced   int     `json:"machines_replaced"`
	Writes     float64 `json:"api_writes_per_cluster"` // leases apart
	ManagerCPU float64 `json:"manager_cpu_seconds_per_cluster"`
	Stolen     float64 `json:"stolen_percent"`
	// States are how many different states of etcd clusters KubeadmControlPlanes reported meanwhile, and BelowQuorum which of them had
	// fewer healthy members than a quorum.
	States      int      `json:"etcd_states"`
	BelowQuorum []string `json:"etcd_states_below_quorum"`
}

// upgradeAll sets the version of all Clusters, and waits until all Machines that there were are replaced by ones of that version.
func (s *stage) upgradeAll(ctx context.Context) error {
	if s.version == "" {
		return nil
	}
	if !s.template.OfClass {
		return errors.New("-upgrade needs clusters of a class")
	}
	if err := s.host.Quiet(ctx, moment); err != nil {
		return err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	before := map[types.UID]bool{}
	err := s.of("machines").Until(ctx, func(all []*unstructured.Unstructured) bool {
		for _, m := range all {
			before[m.GetUID()] = true
		}
		return true
	})
	if err != nil {
		return err
	}
	seen := &quorums{states: map[string]bool{}}
	stop, err := s.watchQuorums(ctx, seen)
	if err != nil {
		return err
	}
	defer stop()
	from, err := s.begin(ctx)
	if err != nil {
		return err
	}
	s.say("upgrading all to %s …", s.version)
	if err := errors.Join(s.setVersions(ctx), s.replaced(ctx, before)); err != nil {
		return err
	}
	u := &upgrade{Seconds: time.Since(from.at).Seconds(), Replaced: len(before)}
	if _, err := s.settle(ctx); err != nil {
		return err
	}
	to, err := s.mark(ctx)
	if err != nil {
		return err
	}
	stop()
	u.Writes, u.ManagerCPU, u.Stolen = s.cost(from, to)
	u.States, u.BelowQuorum = len(seen.states), seen.below
	s.found.Upgrade = u
	return nil
}

func (s *stage) setVersions(ctx context.Context) error {
	patch, err := json.Marshal([]operation{{"replace", "/spec/topology/version", s.version}})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n := range s.size {
		group.Go(func() error {
			return s.client.Patch(ctx, s.template.Object(follow.Kind("Cluster"), template.Cluster(n)), client.RawPatch(types.JSONPatchType, patch))
		})
	}
	return group.Wait()
}

// replaced waits until as many Machines as before run with the version, and no others are there.
func (s *stage) replaced(ctx context.Context, before map[types.UID]bool) error {
	return s.of("machines").Until(ctx, func(all []*unstructured.Unstructured) bool {
		done := 0
		for _, m := range all {
			phase, _, _ := unstructured.NestedString(m.Object, "status", "phase")
			version, _, _ := unstructured.NestedString(m.Object, "spec", "version")
			if phase == "Running" && version == s.version && !before[m.GetUID()] {
				done++
			}
		}
		return done == len(before) && len(all) == len(before)
	})
}

// quorums are the states of etcd clusters that were seen.
type quorums struct {
	mu     sync.Mutex
	states map[string]bool
	below  []string
}

// members is how a KubeadmControlPlane tells the health of etcd where not all of it is healthy.
var members = regexp.MustCompile(`(\d+) of (\d+) etcd members healthy, (\d+) needed`)

// lost begins what it tells of one that has no quorum any more.
const lost = "lost its quorum"

// see notes the state of the etcd cluster of a control plane.
func (q *quorums) see(o *unstructured.Unstructured) {
	q.mu.Lock()
	defer q.mu.Unlock()
	text := follow.Message(o, "EtcdClusterHealthy")
	state := o.GetName() + ": " + text
	if q.states[state] {
		return
	}
	q.states[state] = true
	found := members.FindStringSubmatch(text)
	if strings.Contains(text, lost) || found != nil && number(found[1]) < number(found[3]) {
		q.below = append(q.below, state)
	}
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the expression lets nothing else through
	return n
}

// watchQuorums notes every state of etcd that a KubeadmControlPlane reports, until stopped.
func (s *stage) watchQuorums(ctx context.Context, q *quorums) (stop func(), err error) {
	c, err := dynamic.NewForConfig(s.pair.Config)
	if err != nil {
		return nil, err
	}
	planes := schema.GroupVersionResource{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Resource: "kubeadmcontrolplanes"}
	informer := dynamicinformer.NewFilteredDynamicInformer(c, planes, s.template.Namespace, 0, cache.Indexers{}, nil).Informer()
	see := func(o any) { q.see(o.(*unstructured.Unstructured)) }
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); informer.Run(ctx.Done()) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		stop()
		return nil, fmt.Errorf("list KubeadmControlPlanes: %w", ctx.Err())
	}
	return stop, nil
}
