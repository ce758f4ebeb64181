package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/requests"
	"github.com/slipwayhq/slipway/test/bench/result"
	"github.com/slipwayhq/slipway/test/bench/settle"
)

// The deadlines only end a run that hangs.
const (
	comeUpWithin = 5 * time.Minute
	settleWithin = 2 * time.Minute
)

// Steps of the quickstart that figures are made of.
const (
	stepApplied   = "applied"
	stepNetwork   = "infrastructure provisioned"
	stepPlane     = "control plane initialized"
	stepBootstrap = "bootstrap data made"
	stepAvailable = "Cluster Available"
	stepPoolWhole = "MachinePool counts every node"
	stepSettled   = "settled: last write"
	stepNodeSeen  = "node %d registered"
	stepNodeReady = "node %d Ready"
)

// stage is a management cluster with what is needed to measure it.
type stage struct {
	*bench
	in      *installation
	config  *rest.Config
	probe   *probe
	subject subject
}

// subjectOf reads a manifest.
func subjectOf(manifest string) (subject, error) {
	data, err := os.ReadFile(manifest)
	if err != nil {
		return subject{}, err
	}
	return parseManifest(data)
}

func (b *bench) newStage(ctx context.Context, in *installation) (*stage, error) {
	s, err := subjectOf(b.manifest)
	if err != nil {
		return nil, err
	}
	b.say("starting a management cluster …")
	if _, err := in.up(ctx); err != nil {
		return nil, err
	}
	pid, err := in.pid(ctx)
	if err != nil {
		return nil, err
	}
	config, err := in.client()
	return &stage{bench: b, in: in, config: config, probe: newProbe(pid), subject: s}, err
}

// measureCluster measures one management cluster: empty, while the quickstart comes up, with it, and while its pool grows.
func (b *bench) measureCluster(ctx context.Context) error {
	return b.with(ctx, func(in *installation) error {
		s, err := b.newStage(ctx, in)
		if err != nil {
			return err
		}
		if b.wants(groupMemory, groupIdle) {
			if err := s.measureIdle(ctx, empty()); err != nil {
				return fmt.Errorf("idle: %w", err)
			}
		}
		if err := s.measureQuickstart(ctx); err != nil {
			return fmt.Errorf("quickstart: %w", err)
		}
		if b.wants(groupMemory, groupIdle) {
			if err := s.measureIdle(ctx, populated()); err != nil {
				return fmt.Errorf("idle with a cluster: %w", err)
			}
		}
		if b.wants(groupScale) {
			if err := s.measureScale(ctx); err != nil {
				return fmt.Errorf("scale: %w", err)
			}
		}
		return nil
	})
}

// measureQuickstart applies the manifest and follows what happens.
func (s *stage) measureQuickstart(ctx context.Context) error {
	s.say("applying %s …", s.manifest)
	before, err := settle.Counts(ctx, s.config)
	if err != nil {
		return err
	}
	recording := s.probe.record(ctx)
	j := &journal{began: time.Now()}
	err = s.comeUp(ctx, j)
	after := before
	if err == nil {
		after, err = s.settle(ctx, j)
	}
	samples, broken := recording.end()
	if err := errors.Join(err, broken); err != nil {
		return err
	}
	if !s.wants(groupQuickstart) {
		return nil
	}
	s.began, s.samples, s.report.Steps = j.began, samples, j.inOrder()
	return s.judgeQuickstart(j, after.Since(before))
}

func (s *stage) judgeQuickstart(j *journal, asked requests.Counts) error {
	ready, err := j.after(fmt.Sprintf(stepNodeReady, s.subject.Replicas))
	if err != nil {
		return err
	}
	s.report.Writes = asked.Lines(settle.IsWrite)
	s.found(
		result.Figure{
			Name: "quickstart.ready", Title: fmt.Sprintf("quickstart, from apply until %d Nodes are Ready", s.subject.Replicas),
			Unit: result.Seconds, Value: ready.Seconds(),
		}.AtMost(45),
		result.Figure{
			Name: "quickstart.memory", Title: "most memory of the management cluster meanwhile", Unit: result.Megabytes,
			Value: most(s.samples, func(u usage) load { return u.Management }),
		},
		result.Figure{
			Name: "quickstart.hosted", Title: "most memory of the hosted control plane meanwhile", Unit: result.Megabytes,
			Value: most(s.samples, func(u usage) load { return u.Hosted }),
		},
		result.Figure{Name: "quickstart.writes", Title: "writes to the API until it settled, leases apart", Value: float64(asked.Total(settle.IsWrite))},
		result.Figure{Name: "quickstart.reads", Title: "reads until it settled (lists and watches included)", Value: float64(asked.Total(settle.IsRead))},
	)
	return nil
}

// comeUp returns when all Nodes are Ready and the Cluster is Available.
func (s *stage) comeUp(ctx context.Context, j *journal) error {
	bounded, cancel := context.WithTimeout(ctx, comeUpWithin)
	defer cancel()
	if err := s.in.kubectl(bounded, "apply", "-f", s.manifest); err != nil {
		return err
	}
	j.note(stepApplied)
	initialized := make(chan struct{})
	all, bounded := errgroup.WithContext(bounded)
	all.Go(func() error { return s.followCluster(bounded, j, initialized) })
	all.Go(func() error { return s.followPool(bounded, j) })
	all.Go(func() error {
		select {
		case <-initialized:
			return s.followNodes(bounded, j)
		case <-bounded.Done():
			return bounded.Err()
		}
	})
	if err := all.Wait(); err != nil {
		return fmt.Errorf("%w; %s", err, s.picture(ctx))
	}
	return nil
}

// followCluster also says when there is a control plane to ask.
func (s *stage) followCluster(ctx context.Context, j *journal, initialized chan<- struct{}) error {
	told := false
	return s.objects(follow.Clusters()).Until(ctx, func(all []*unstructured.Unstructured) bool {
		for _, c := range all {
			if c.GetName() != s.subject.Cluster {
				continue
			}
			if follow.Truth(c, "status", "initialization", "infrastructureProvisioned") {
				j.note(stepNetwork)
			}
			if follow.Truth(c, "status", "initialization", "controlPlaneInitialized") {
				j.note(stepPlane)
				if !told {
					told = true
					close(initialized)
				}
			}
			if follow.Holds(c, "Available") {
				j.note(stepAvailable)
				return true
			}
		}
		return false
	})
}

func (s *stage) followPool(ctx context.Context, j *journal) error {
	kind := follow.MachinePools()
	if s.subject.Deployment {
		kind = follow.MachineDeployments()
	}
	return s.objects(kind).Until(ctx, func(all []*unstructured.Unstructured) bool {
		for _, p := range all {
			if p.GetName() != s.subject.Pool {
				continue
			}
			if follow.Truth(p, "status", "initialization", "bootstrapDataSecretCreated") {
				j.note(stepBootstrap)
			}
			if follow.Integer(p, "status", "readyReplicas") == s.subject.Replicas {
				j.note(stepPoolWhole)
				return true
			}
		}
		return false
	})
}

func (s *stage) followNodes(ctx context.Context, j *journal) error {
	config, err := follow.Workload(ctx, s.config, s.subject.key())
	if err != nil {
		return err
	}
	return follow.Objects{Config: config, Resource: follow.Nodes()}.Until(ctx, func(all []*unstructured.Unstructured) bool {
		for n := range all {
			j.note(fmt.Sprintf(stepNodeSeen, n+1))
		}
		ready := readyNodes(all)
		for n := range ready {
			j.note(fmt.Sprintf(stepNodeReady, n+1))
		}
		return ready >= s.subject.nodes()
	})
}

func readyNodes(all []*unstructured.Unstructured) int {
	n := 0
	for _, node := range all {
		if node.GetDeletionTimestamp() == nil && follow.Holds(node, "Ready") {
			n++
		}
	}
	return n
}

// settle waits until nothing is written any more, and returns what was asked of the API by then.
func (s *stage) settle(ctx context.Context, j *journal) (requests.Counts, error) {
	s.say("waiting until it has settled …")
	last, at, err := settle.Wait(ctx, s.config, settle.Often, settleWithin)
	j.noteAt(stepSettled, at)
	return last, err
}

// picture is the tree of the cluster, for messages.
func (s *stage) picture(ctx context.Context) string {
	out, err := s.in.run(ctx, "describe", "cluster", s.subject.Cluster, "-n", s.subject.Namespace,
		"--show-conditions", "all", "--data-dir", s.in.dataDir())
	if err != nil {
		return err.Error()
	}
	return "it is now:\n" + strings.TrimSpace(out)
}

func (s *stage) objects(r schema.GroupVersionResource) follow.Objects {
	return follow.Objects{Config: s.config, Resource: r, Namespace: s.subject.Namespace}
}
