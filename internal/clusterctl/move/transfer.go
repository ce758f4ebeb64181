package move

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/sides"
)

// forwardTransfer returns the transfer from the source to the target.
func (m *Move) forwardTransfer(j *journal) *sides.Transfer {
	return &sides.Transfer{From: m.source, To: m.target, Entries: j.Plan.Entries, Change: m.mutate,
		SourceID: func(e sides.Entry) graph.ID { return e.ID }, TargetID: sides.Entry.At}
}

// reverseTransfer returns the transfer from the target to the source.
func (m *Move) reverseTransfer(j *journal) *sides.Transfer {
	entries := slices.DeleteFunc(slices.Clone(j.Plan.Entries), func(e sides.Entry) bool { return e.Copy })
	return &sides.Transfer{From: m.target, To: m.source, Entries: entries, Change: func(*unstructured.Unstructured) error { return nil },
		SourceID: sides.Entry.At, TargetID: func(e sides.Entry) graph.ID { return e.ID }}
}
