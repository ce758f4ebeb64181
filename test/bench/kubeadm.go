package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipwayhq/slipway/test/bench/result"
)

// many is how many control plane nodes the larger cluster of kubeadm has.
const many = 3

// measureKubeadm makes clusters whose control plane runs on Machines, with one of them and with three, in turns on one management cluster.
func (b *bench) measureKubeadm(ctx context.Context) error {
	large, remove, err := withControlPlanes(b.kubeadm, many)
	if err != nil {
		return err
	}
	defer remove()
	return b.with(ctx, func(in *installation) error {
		s, err := b.newStage(ctx, in)
		if err != nil {
			return err
		}
		var one, three []float64
		for n := range b.runs {
			for _, run := range []struct {
				manifest string
				nodes    int
				took     *[]float64
			}{{b.kubeadm, 1, &one}, {large, many, &three}} {
				b.say("a cluster with a control plane of %d on Machines, %d of %d …", run.nodes, n+1, b.runs)
				seconds, j, err := s.once(ctx, run.manifest)
				if err != nil {
					return fmt.Errorf("a control plane of %d: %w", run.nodes, err)
				}
				for _, step := range j.inOrder() {
					b.say("  %6.1f s  %s", step.After.Seconds(), step.Name)
				}
				*run.took = append(*run.took, seconds)
			}
		}
		b.found(
			result.Figure{Name: "kubeadm.ready", Title: "a control plane node and a worker of kubeadm, from apply until both are Ready", Unit: result.Seconds}.Median(one).AtMost(35),
			result.Figure{Name: "kubeadm.three", Title: "three control plane nodes and a worker, likewise", Unit: result.Seconds}.Median(three).AtMost(80),
		)
		return nil
	})
}

// withControlPlanes writes a manifest that has another number of control plane Machines, and returns its file.
func withControlPlanes(manifest string, replicas int) (file string, remove func(), err error) {
	data, err := os.ReadFile(manifest)
	if err != nil {
		return "", nil, err
	}
	text, err := scaled(string(data), replicas)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", manifest, err)
	}
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return "", nil, err
	}
	file = filepath.Join(dir, "kubeadm.yaml")
	return file, func() { _ = os.RemoveAll(dir) }, os.WriteFile(file, []byte(text), 0o600)
}

// scaled is a manifest with another number of control plane Machines.
func scaled(text string, replicas int) (string, error) {
	documents := strings.Split(text, "\n---\n")
	for i, d := range documents {
		const one = "\n  replicas: 1\n"
		if strings.Contains(d, "\nkind: KubeadmControlPlane\n") && strings.Count(d, one) == 1 {
			documents[i] = strings.Replace(d, one, fmt.Sprintf("\n  replicas: %d\n", replicas), 1)
			return strings.Join(documents, "\n---\n"), nil
		}
	}
	return "", errors.New("it has no KubeadmControlPlane with one replica")
}
