package move

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/sides"
)

// forth returns the transfer from the source to the target.
func (m *Move) forth(j *journal) *sides.Transfer {
	return &sides.Transfer{From: m.source, To: m.target, Entries: j.Plan.Entries, Change: m.mutate,
		Here: func(e sides.Entry) graph.ID { return e.ID }, There: sides.Entry.At}
}

// back returns the transfer from the target to the source.
func (m *Move) back(j *journal) *sides.Transfer {
	entries := slices.DeleteFunc(slices.Clone(j.Plan.Entries), func(e sides.Entry) bool { return e.Copy })
	return &sides.Transfer{From: m.target, To: m.source, Entries: entries, Change: func(*unstructured.Unstructured) error { return nil },
		Here: sides.Entry.At, There: func(e sides.Entry) graph.ID { return e.ID }}
}
