package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/result"
)

// added is by how many nodes the pool grows.
const added = 3

// measureScale makes the pool larger, then as large as it was, then deletes the cluster.
func (s *stage) measureScale(ctx context.Context) error {
	config, err := follow.Workload(ctx, s.config, s.subject.key())
	if err != nil {
		return err
	}
	small, large := s.subject.Replicas, s.subject.Replicas+added
	s.say("scaling the pool from %d to %d and back …", small, large)
	grown, err := s.scale(ctx, config, large)
	if err != nil {
		return err
	}
	shrunk, err := s.scale(ctx, config, small)
	if err != nil {
		return err
	}
	s.say("deleting the cluster …")
	began := time.Now()
	if _, err := s.in.run(ctx, "delete", "cluster", s.subject.Cluster, "-n", s.subject.Namespace, "--data-dir", s.in.dataDir()); err != nil {
		return err
	}
	gone := time.Since(began)
	s.found(
		result.Figure{
			Name: "scale.up", Title: fmt.Sprintf("pool from %d to %d Nodes that are Ready", small, large), Unit: result.Seconds, Value: grown.Seconds(),
		}.AtMost(20),
		result.Figure{Name: "scale.down", Title: fmt.Sprintf("pool from %d to %d Nodes", large, small), Unit: result.Seconds, Value: shrunk.Seconds()},
		result.Figure{Name: "scale.delete", Title: "delete cluster, until nothing of it is left", Unit: result.Seconds, Value: gone.Seconds()},
	)
	return nil
}

// scale returns when the cluster has just the wanted Nodes, all Ready.
func (s *stage) scale(ctx context.Context, config *rest.Config, replicas int) (time.Duration, error) {
	bounded, cancel := context.WithTimeout(ctx, comeUpWithin)
	defer cancel()
	began := time.Now()
	err := s.in.kubectl(bounded, "scale", "machinepool", s.subject.Pool, "-n", s.subject.Namespace, "--replicas", strconv.Itoa(replicas))
	if err != nil {
		return 0, err
	}
	err = follow.Objects{Config: config, Resource: follow.Nodes()}.Until(bounded, func(all []*unstructured.Unstructured) bool {
		return len(all) == replicas && readyNodes(all) == replicas
	})
	if err != nil {
		return 0, fmt.Errorf("%w; %s", err, s.picture(ctx))
	}
	return time.Since(began), nil
}
