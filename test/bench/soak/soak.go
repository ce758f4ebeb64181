package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/pair"
	"github.com/slipwayhq/slipway/test/bench/settle"
	"github.com/slipwayhq/slipway/test/bench/template"
)

const (
	// between two actions.
	between = time.Second
	// healWithin ends a soak that does not come to rest.
	healWithin = 10 * time.Minute
	// undisturbed is the share of the time, at the end, in which the manager is not killed: what it holds then is compared
	// with a fresh one.
	undisturbed = 0.2
	// calm lets timers and connections of a settled manager come to rest.
	calm = 30 * time.Second
	// mostWorkers of a cluster.
	mostWorkers = 5
)

// soak is one run.
type soak struct {
	options
	pair   *pair.Pair
	client client.Client
	// other is another management cluster, to which clusters move.
	other    *pair.Pair
	liar     *liar
	template template.Template
	dice     *rand.Rand
	report   report
	began    time.Time
}

func newSoak(ctx context.Context, o options) (*soak, error) {
	t, err := template.Read(o.manifest)
	if err != nil {
		return nil, err
	}
	s := &soak{options: o, template: t, dice: rand.New(rand.NewPCG(o.seed, 0)), began: time.Now()}
	s.report.Seed, s.report.Clusters, s.report.Actions = o.seed, o.clusters, map[string]int{}
	if s.liar, err = newLiar(o.seed); err != nil {
		return nil, err
	}
	var flags []string
	if t.OfClass {
		flags = append(flags, "--feature-gates=ClusterTopology=true,RuntimeSDK=true")
	}
	if s.pair, err = pair.Start(ctx, o.binary, flags...); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	if s.other, err = pair.Start(ctx, o.binary, flags...); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	scheme := runtime.NewScheme()
	if err := runtimev1.AddToScheme(scheme); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	if s.client, err = client.New(s.pair.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// stop ends what was started.
func (s *soak) stop() error {
	var errs []error
	for _, p := range []*pair.Pair{s.pair, s.other} {
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}
	return errors.Join(append(errs, s.liar.Close())...)
}

func (s *soak) say(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, "%6s %s\n", time.Since(s.began).Round(time.Second), fmt.Sprintf(format, args...))
}

// live is the whole life of the soak.
func (s *soak) live(ctx context.Context) error {
	s.say("seed %d: making %d clusters …", s.seed, s.clusters)
	shared, err := s.template.Shared()
	if err != nil {
		return err
	}
	if err := template.Create(ctx, s.client, shared); err != nil {
		return err
	}
	if s.template.OfClass {
		if err := s.liar.register(ctx, s.client); err != nil {
			return err
		}
	}
	for n := range s.clusters {
		if err := s.create(ctx, n); err != nil {
			return err
		}
	}
	if err := s.whole(ctx); err != nil {
		return err
	}
	s.liar.lie(true)
	if err := s.disturb(ctx); err != nil {
		return err
	}
	s.say("taking back every fault …")
	if err := s.heal(ctx); err != nil {
		return err
	}
	if err := s.whole(ctx); err != nil {
		return err
	}
	s.report.Lies = s.liar.lied()
	s.say("every cluster is whole; looking for what is left over …")
	if err := s.leftovers(ctx); err != nil {
		return err
	}
	return s.compare(ctx)
}

// disturb does things until the time is over.
func (s *soak) disturb(ctx context.Context) error {
	s.say("disturbing them for %v …", s.length)
	began := time.Now()
	killed, quietFrom := began, time.Duration(float64(s.length)*(1-undisturbed))
	for time.Since(began) < s.length {
		if s.kill > 0 && time.Since(began) < quietFrom && time.Since(killed) >= s.kill {
			if err := s.killManager(ctx); err != nil {
				return err
			}
			killed = time.Now()
		}
		name, act := s.choose()
		if err := act(ctx, s.dice.IntN(s.clusters)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.report.Actions[name]++
		if err := s.sample(); err != nil {
			return err
		}
		if err := settle.Pause(ctx, between); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) killManager(ctx context.Context) error {
	if err := s.pair.KillManager(); err != nil {
		return err
	}
	began := time.Now()
	if err := s.pair.StartManager(ctx); err != nil {
		return fmt.Errorf("after a kill: %w", err)
	}
	s.report.Kills++
	s.report.SlowestStart = max(s.report.SlowestStart, time.Since(began).Seconds())
	s.say("killed the manager; it was ready again after %.1f s; so far %v", time.Since(began).Seconds(), s.report.Actions)
	return nil
}

func (s *soak) sample() error {
	u, err := s.pair.Usage()
	if err != nil {
		return err
	}
	s.report.Samples = append(s.report.Samples, sample{
		After: time.Since(s.began).Seconds(), ManagerMB: float64(u.Manager.Memory) / 1e6, ServerMB: float64(u.Server.Memory) / 1e6,
	})
	return nil
}

// whole waits until every Cluster is Available and every MachineDeployment has what was asked for.
func (s *soak) whole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healWithin)
	defer cancel()
	var missing string
	err := s.of("clusters").Until(ctx, func(all []*unstructured.Unstructured) bool {
		missing = fmt.Sprintf("%d of %d Clusters exist", len(all), s.clusters)
		for _, c := range all {
			if !follow.Holds(c, "Available") {
				missing = c.GetName() + " is not Available"
				return false
			}
		}
		return len(all) == s.clusters
	})
	if err != nil {
		return fmt.Errorf("%s: %w", missing, err)
	}
	err = s.of("machinedeployments").Until(ctx, func(all []*unstructured.Unstructured) bool {
		missing = fmt.Sprintf("%d of %d MachineDeployments exist", len(all), s.clusters)
		for _, d := range all {
			if problem := lacking(d); problem != "" {
				missing = problem
				return false
			}
		}
		return len(all) == s.clusters
	})
	if err != nil {
		return fmt.Errorf("%s: %w", missing, err)
	}
	if s.template.OnMachines {
		planes := s.of("")
		planes.Resource = schema.GroupVersionResource{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Resource: "kubeadmcontrolplanes"}
		err := planes.Until(ctx, func(all []*unstructured.Unstructured) bool {
			missing = fmt.Sprintf("%d of %d KubeadmControlPlanes exist", len(all), s.clusters)
			for _, p := range all {
				if problem := lacking(p); problem != "" {
					missing = problem
					return false
				}
			}
			return len(all) == s.clusters
		})
		if err != nil {
			return fmt.Errorf("%s: %w", missing, err)
		}
	}
	_, _, err = settle.Wait(ctx, s.pair.Config, settle.Quiet, healWithin)
	return err
}

// lacking says what a MachineDeployment still has to reach.
func lacking(d *unstructured.Unstructured) string {
	want := follow.Integer(d, "spec", "replicas")
	if seen := follow.Integer(d, "status", "observedGeneration"); int64(seen) != d.GetGeneration() {
		return fmt.Sprintf("%s: generation %d was not seen yet", d.GetName(), d.GetGeneration())
	}
	for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
		if n := follow.Integer(d, "status", field); n != want {
			return fmt.Sprintf("%s: %d %s of %d", d.GetName(), n, field, want)
		}
	}
	return ""
}

func (s *soak) of(plural string) follow.Objects {
	return follow.Objects{Config: s.pair.Config, Resource: follow.Core(plural), Namespace: s.template.Namespace}
}

// compare compares what a manager holds that has worked for a while with what a fresh one holds for the same objects.
func (s *soak) compare(ctx context.Context) error {
	old, err := s.held(ctx)
	if err != nil {
		return err
	}
	if err := s.killManager(ctx); err != nil {
		return err
	}
	if _, _, err := settle.Wait(ctx, s.pair.Config, settle.Quiet, healWithin); err != nil {
		return err
	}
	fresh, err := s.held(ctx)
	if err != nil {
		return err
	}
	s.report.Old, s.report.Fresh = old, fresh
	return s.report.judge()
}

func (s *soak) held(ctx context.Context) (held, error) {
	if err := settle.Pause(ctx, calm); err != nil {
		return held{}, err
	}
	u, err := s.pair.Usage()
	if err != nil {
		return held{}, err
	}
	n, err := s.pair.Goroutines(ctx)
	return held{Goroutines: n, Files: u.Manager.Files, MB: float64(u.Manager.Memory) / 1e6}, err
}
