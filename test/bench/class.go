package main

import (
	"context"
	"fmt"
	"time"

	"github.com/slipwayhq/slipway/test/bench/result"
)

// slower is by how much the cluster of a class may take longer.
const slower = 1.1

// measureClass makes the same cluster without and with a class, in turns, on one management cluster.
func (b *bench) measureClass(ctx context.Context) error {
	return b.with(ctx, func(in *installation) error {
		s, err := b.newStage(ctx, in)
		if err != nil {
			return err
		}
		var without, with []float64
		for n := range b.runs {
			b.say("a cluster without and one with a class, %d of %d …", n+1, b.runs)
			for _, one := range []struct {
				manifest string
				took     *[]float64
			}{{b.manifest, &without}, {b.class, &with}} {
				seconds, _, err := s.once(ctx, one.manifest)
				if err != nil {
					return fmt.Errorf("%s: %w", one.manifest, err)
				}
				*one.took = append(*one.took, seconds)
			}
		}
		plain := result.Figure{Name: "class.without", Title: "a cluster without a class, from apply until its Nodes are Ready", Unit: result.Seconds}.Median(without)
		classy := result.Figure{Name: "class.ready", Title: "the same of a class", Unit: result.Seconds}.Median(with)
		b.found(plain, classy.AtMost(slower*plain.Value))
		return nil
	})
}

// once makes the cluster of a manifest, waits for its Nodes and deletes it.
func (s *stage) once(ctx context.Context, manifest string) (seconds float64, j *journal, err error) {
	one, shallow := *s, *s.bench
	one.bench, shallow.manifest = &shallow, manifest
	if one.subject, err = subjectOf(manifest); err != nil {
		return 0, nil, err
	}
	j = &journal{began: time.Now()}
	if err := one.comeUp(ctx, j); err != nil {
		return 0, nil, err
	}
	ready, err := j.after(fmt.Sprintf(stepNodeReady, one.subject.nodes()))
	if err != nil {
		return 0, nil, err
	}
	_, err = s.in.run(ctx, "delete", "cluster", one.subject.Cluster, "-n", one.subject.Namespace, "--data-dir", s.in.dataDir())
	return ready.Seconds(), j, err
}
