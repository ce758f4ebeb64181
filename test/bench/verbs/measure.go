package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/release"
	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/result"
	"github.com/slipwayhq/slipway/test/bench/template"
)

const (
	// describes is how often describe is measured.
	describes = 5
	// machinesEach is what each Cluster has, and waitEach how long one may take to become Available.
	machinesEach = 5
	waitEach     = 3 * time.Second
	waitFirst    = 3 * time.Minute
)

type bench struct {
	options
	say func(format string, args ...any)
}

func (b bench) measure(ctx context.Context) ([]result.Figure, error) {
	still, err := b.still(ctx)
	if err != nil {
		return nil, err
	}
	moved, err := b.move(ctx)
	return append(still, moved...), err
}

// still measures in a management cluster without controllers.
func (b bench) still(ctx context.Context) (out []result.Figure, err error) {
	b.say("writing a release …")
	dist, err := os.MkdirTemp("", "slipway-verbs-release-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dist)) }()
	config, err := b.release(ctx, dist)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, set := range release.Providers() {
		all = append(all, string(set.Name))
	}
	m, err := start(ctx, b.binary, "--without", strings.Join(all, ","))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.end(ctx)) }()
	b.say("installing four providers …")
	c, err := m.run(ctx, b.binary, "init", "--config", config, "--core", "cluster-api", "--bootstrap", "kubeadm", "--control-plane", "hosted",
		"--infrastructure", "local", "--kubeconfig", m.kubeconfig())
	if err != nil {
		return nil, err
	}
	out = append(out, result.Figure{Name: "verbs.init", Title: "init of four local repositories", Value: c.seconds, Unit: result.Seconds}.AtMost(10))
	// Their webhooks run nowhere.
	if _, err := m.run(ctx, b.binary, "kubectl", "--kubeconfig", m.kubeconfig(), "delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all"); err != nil {
		return nil, err
	}
	described, err := b.describe(ctx, m)
	if err != nil {
		return nil, err
	}
	saved, err := b.backup(ctx, m)
	return append(append(out, described...), saved...), err
}

// release writes one, and returns the configuration file that names its repositories.
func (b bench) release(ctx context.Context, dist string) (string, error) {
	const version = "v0.1.0"
	err := release.Write(ctx, release.Config{
		Dir: dist, Version: version, Image: "slipway.example/manager", Binary: b.binary, Sources: os.DirFS("."), Time: time.Unix(0, 0).UTC(),
	})
	if err != nil {
		return "", err
	}
	text := "providers:\n"
	for _, p := range [][4]string{
		{string(providerset.Core), "cluster-api", "CoreProvider", "core"}, {string(providerset.BootstrapKubeadm), "kubeadm", "BootstrapProvider", "bootstrap"},
		{string(providerset.ControlPlaneHosted), "hosted", "ControlPlaneProvider", "control-plane"},
		{string(providerset.InfrastructureLocal), "local", "InfrastructureProvider", "infrastructure"},
	} {
		text += fmt.Sprintf("- {name: %s, type: %s, url: %q}\n", p[1], p[2], filepath.Join(dist, p[0], version, p[3]+"-components.yaml"))
	}
	config := filepath.Join(dist, "clusterctl.yaml")
	return config, os.WriteFile(config, []byte(text), 0o600)
}

func (b bench) describe(ctx context.Context, m *management) ([]result.Figure, error) {
	b.say("creating a Cluster with %d Machines …", b.machines)
	w := writer{m.client, "large"}
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	if err := w.cluster(ctx, "large", b.machines); err != nil {
		return nil, err
	}
	var times []float64
	for range describes {
		c, err := m.run(ctx, b.binary, "describe", "cluster", "large", "-n", w.namespace, "--kubeconfig", m.kubeconfig())
		if err != nil {
			return nil, err
		}
		times = append(times, c.seconds)
	}
	kubeconfig, count, stop, err := m.counted()
	if err != nil {
		return nil, err
	}
	_, err = m.run(ctx, b.binary, "describe", "cluster", "large", "-n", w.namespace, "--kubeconfig", kubeconfig)
	if err = errors.Join(err, stop()); err != nil {
		return nil, err
	}
	return []result.Figure{
		result.Figure{Name: "verbs.describe", Title: fmt.Sprintf("describe of a Cluster with %d Machines", b.machines), Unit: result.Seconds}.Median(times).AtMost(1),
		result.Figure{Name: "verbs.describe.requests", Title: "requests of that", Value: float64(count.Load())}.AtMost(30),
	}, nil
}

func (b bench) backup(ctx context.Context, m *management) ([]result.Figure, error) {
	b.say("creating %d Clusters to save …", b.saved)
	w := writer{m.client, "saved"}
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	if err := w.clusters(ctx, b.saved, machinesEach); err != nil {
		return nil, err
	}
	b.say("saving them …")
	file := filepath.Join(m.folder, "backup.tar.gz")
	c, err := m.run(ctx, b.binary, "backup", file, "-n", w.namespace, "--kubeconfig", m.kubeconfig())
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	return []result.Figure{
		result.Figure{Name: "verbs.backup", Title: fmt.Sprintf("backup of %d Clusters with %d Machines each", b.saved, machinesEach), Value: c.seconds, Unit: result.Seconds}.AtMost(60),
		{Name: "verbs.backup.memory", Title: "memory of that", Value: c.megabytes, Unit: result.Megabytes},
		{Name: "verbs.backup.size", Title: "size of the file", Value: float64(info.Size()) / 1e6, Unit: result.Megabytes},
	}, nil
}

// move measures between two management clusters, whose controllers run.
func (b bench) move(ctx context.Context) (out []result.Figure, err error) {
	var both [2]*management
	for n := range both {
		if both[n], err = start(ctx, b.binary); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, both[n].end(ctx)) }()
	}
	if err := b.fleet(ctx, both[0]); err != nil {
		return nil, err
	}
	b.say("moving them …")
	title := fmt.Sprintf("move of %d Clusters with %d Machines each", b.clusters, machinesEach)
	c, err := both[0].run(ctx, b.binary, "move", "--kubeconfig", both[0].kubeconfig(), "--to-kubeconfig", both[1].kubeconfig())
	if err != nil {
		return nil, err
	}
	out = []result.Figure{
		result.Figure{Name: "verbs.move", Title: title, Value: c.seconds, Unit: result.Seconds}.AtMost(60),
		result.Figure{Name: "verbs.move.memory", Title: "memory of that", Value: c.megabytes, Unit: result.Megabytes}.AtMost(200),
	}
	if b.reference == "" {
		return out, nil
	}
	if err := b.available(ctx, both[1]); err != nil {
		return out, err
	}
	b.say("moving them back with the reference …")
	c, err = both[1].run(ctx, b.reference, "move", "--kubeconfig", both[1].kubeconfig(), "--to-kubeconfig", both[0].kubeconfig())
	if err != nil {
		return out, err
	}
	return append(out,
		result.Figure{Name: "verbs.move.reference", Title: "the same, back, with the reference's clusterctl", Value: c.seconds, Unit: result.Seconds},
		result.Figure{Name: "verbs.move.reference.memory", Title: "memory of that", Value: c.megabytes, Unit: result.Megabytes}), nil
}

// fleet creates the Clusters and waits until they are there.
func (b bench) fleet(ctx context.Context, m *management) error {
	b.say("creating %d Clusters with %d Machines each …", b.clusters, machinesEach)
	manifest, err := template.Read(filepath.Join("examples", "fleet.yaml"))
	if err != nil {
		return err
	}
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n := range b.clusters {
		group.Go(func() error {
			objects, err := manifest.Render(n)
			if err != nil {
				return err
			}
			for _, o := range objects {
				if o.GetKind() == "MachineDeployment" {
					if err := unstructured.SetNestedField(o.Object, int64(machinesEach), "spec", "replicas"); err != nil {
						return err
					}
				}
			}
			return template.Create(creating, m.client, objects)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return b.available(ctx, m)
}

// available waits until every Cluster can be moved: it is Available, and so are all of its Machines.
func (b bench) available(ctx context.Context, m *management) error {
	ctx, cancel := context.WithTimeout(ctx, waitFirst+time.Duration(b.clusters)*waitEach)
	defer cancel()
	for plural, want := range map[string]int{"clusters": b.clusters, "machines": b.clusters * machinesEach} {
		count := 0
		objects := follow.Objects{Config: m.config, Resource: follow.Core(plural), Namespace: "default"}
		err := objects.Until(ctx, func(all []*unstructured.Unstructured) bool {
			count = 0
			for _, o := range all {
				if follow.Holds(o, "Available") {
					count++
				}
			}
			return count == want
		})
		if err != nil {
			return fmt.Errorf("%d of %d %s became Available: %w", count, want, plural, err)
		}
	}
	return nil
}
