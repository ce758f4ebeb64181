// Package soak runs simulated clusters through half an hour of changes, faults and kills of the manager, and checks that
// nothing is left over.
package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

// readyTimeout ends a run in which the clusters do not become ready.
const readyTimeout = 10 * time.Minute

type soak struct {
	harness.Options
	harness.Fleet
	manifest     string
	clusters     int
	length, kill time.Duration
	seed         uint64

	env, other *harness.Environment // clusters move from env to other and back
	extension  *faultyExtension
	random     *rand.Rand
	report     report
	start      time.Time
}

func Command() *cobra.Command { return (&soak{}).command() }

func (s *soak) command() *cobra.Command {
	cmd := s.Command("soak", "disturb simulated clusters, kill the manager, and check that nothing is left over", "soak.json", s.run)
	f := cmd.Flags()
	f.StringVar(&s.manifest, "manifest", filepath.Join("examples", "fleet.yaml"), "simulated cluster with a MachineDeployment of one worker")
	f.IntVar(&s.clusters, "clusters", 20, "number of clusters")
	f.DurationVar(&s.length, "time", 30*time.Minute, "duration of the disturbance")
	f.DurationVar(&s.kill, "kill", time.Minute, "time between two kills of the manager, except in the last fifth of the time; 0: never")
	f.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "determines the order of the actions")
	f.Lookup("seed").DefValue = "the current time"
	harness.AtLeast(f, "clusters", &s.clusters, 1)
	harness.AtLeast(f, "time", &s.length, time.Second)
	harness.AtLeast(f, "kill", &s.kill, 0)
	return cmd
}

func (s *soak) run(ctx context.Context) (err error) {
	s.random, s.start = rand.New(rand.NewPCG(s.seed, 0)), time.Now()
	s.report = report{Seed: s.seed, Clusters: s.clusters, Actions: map[string]int{}}
	manifest, err := harness.ReadTemplate(s.manifest)
	if err != nil {
		return err
	}
	if s.extension, err = startExtension(s.seed); err != nil {
		return err
	}
	defer s.extension.close()
	var flags []string
	if manifest.OfClass {
		flags = append(flags, "--feature-gates=ClusterTopology=true,RuntimeSDK=true")
	}
	for _, env := range []**harness.Environment{&s.env, &s.other} {
		if *env, err = harness.StartEnvironment(ctx, s.Binary, flags...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, (*env).Stop()) }()
	}
	if s.Fleet, err = harness.NewFleet(manifest, s.env.Config); err != nil {
		return err
	}
	if err = s.env.WithLog(harness.InOrder(ctx, s.prepare, s.waitReady, s.disturb, s.revertAll, s.waitReady, s.checkLeftovers, s.compareWithFresh)); err != nil {
		err = fmt.Errorf("seed %d: %w", s.seed, err)
	}
	return errors.Join(err, s.report.write(s.Out, os.Stdout))
}

func (s *soak) logf(format string, args ...any) {
	s.Logf("%6s %s", time.Since(s.start).Round(time.Second), fmt.Sprintf(format, args...))
}

// prepare creates the clusters.
func (s *soak) prepare(ctx context.Context) error {
	s.logf("seed %d: creating %d clusters …", s.seed, s.clusters)
	if err := s.CreateShared(ctx); err != nil {
		return err
	}
	if s.OfClass {
		if err := s.extension.register(ctx, s.Client); err != nil {
			return err
		}
	}
	return harness.InParallel(ctx, s.clusters, 1, func(ctx context.Context, n int) error { return s.Create(ctx, n, waitForNodeDeletion) })
}

func (s *soak) revertAll(ctx context.Context) error {
	s.logf("reverting every fault …")
	s.extension.setFaulty(false)
	return revertFaults(ctx, s.Client, s.Namespace)
}

// disturb performs an action every second. In the last fifth of the time the manager is not killed, because it is compared
// with a fresh manager afterwards.
func (s *soak) disturb(ctx context.Context) error {
	s.logf("disturbing them for %v …", s.length)
	s.extension.setFaulty(true)
	start := time.Now()
	killed, lastKill := start, s.length*4/5
	for time.Since(start) < s.length {
		if s.kill > 0 && time.Since(start) < lastKill && time.Since(killed) >= s.kill {
			if err := s.killManager(ctx); err != nil {
				return err
			}
			killed = time.Now()
		}
		a := s.choose()
		if err := a.act(ctx, s.random.IntN(s.clusters)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		s.report.Actions[a.name]++
		u, err := s.env.Usage()
		if err != nil {
			return err
		}
		s.report.Samples = append(s.report.Samples, sample{
			After: time.Since(s.start).Seconds(), ManagerMB: u.Manager.Megabytes(), ServerMB: u.Server.Megabytes(),
		})
		if err := harness.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) killManager(ctx context.Context) error {
	if err := s.env.KillManager(); err != nil {
		return err
	}
	start := time.Now()
	if err := s.env.StartManager(ctx); err != nil {
		return fmt.Errorf("restart the manager after a kill: %w", err)
	}
	took := time.Since(start).Seconds()
	s.report.Kills++
	s.report.SlowestStart = max(s.report.SlowestStart, took)
	s.logf("killed the manager; it was ready again after %.1f s; so far %v", took, s.report.Actions)
	return nil
}

// waitReady waits until every Cluster is Available, every MachineDeployment and kubeadm control plane has its desired
// replicas, and nothing is written.
func (s *soak) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.Objects("clusters").UntilEach(ctx, s.clusters, harness.IsAvailable); err != nil {
		return err
	}
	if err := s.Objects("machinedeployments").UntilEach(ctx, s.clusters, missingReplicas); err != nil {
		return err
	}
	if s.OnMachines {
		planes := harness.Objects{Config: s.Config, Resource: harness.KubeadmControlPlanes(), Namespace: s.Namespace}
		if err := planes.UntilEach(ctx, s.clusters, missingReplicas); err != nil {
			return err
		}
	}
	_, _, err := harness.WaitSettled(ctx, s.Config, harness.QuietPeriod, readyTimeout)
	return err
}

// missingReplicas describes the difference of the status from the desired replicas.
func missingReplicas(o *unstructured.Unstructured) string {
	if int64(harness.Integer(o, "status", "observedGeneration")) != o.GetGeneration() {
		return fmt.Sprintf("generation %d is not observed yet", o.GetGeneration())
	}
	desired := harness.Integer(o, "spec", "replicas")
	for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
		if n := harness.Integer(o, "status", field); n != desired {
			return fmt.Sprintf("%d %s of %d", n, field, desired)
		}
	}
	return ""
}

// compareWithFresh compares the resources of the manager with a fresh manager for the same objects.
func (s *soak) compareWithFresh(ctx context.Context) (err error) {
	if s.report.Old, err = s.heldByManager(ctx); err != nil {
		return err
	}
	if err := s.killManager(ctx); err != nil {
		return err
	}
	if _, _, err := harness.WaitSettled(ctx, s.Config, harness.QuietPeriod, readyTimeout); err != nil {
		return err
	}
	if s.report.Fresh, err = s.heldByManager(ctx); err != nil {
		return err
	}
	return s.report.checkLeaks()
}

// heldByManager first waits until timers and idle connections have ended.
func (s *soak) heldByManager(ctx context.Context) (held, error) {
	if err := harness.Sleep(ctx, 30*time.Second); err != nil {
		return held{}, err
	}
	u, err := s.env.Usage()
	if err != nil {
		return held{}, err
	}
	n, err := s.env.Goroutines(ctx)
	return held{Goroutines: n, Files: u.Manager.Files, MB: u.Manager.Megabytes()}, err
}
