package move

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
)

// forwardTransfer returns the transfer from the source to the target.
func (m *Move) forwardTransfer(j *journal) *transfer.Transfer {
	return &transfer.Transfer{From: m.source, To: m.target, Entries: j.Plan.Entries, Change: m.mutate,
		SourceID: func(e transfer.Entry) graph.ID { return e.ID }, TargetID: transfer.Entry.At}
}

// reverseTransfer returns the transfer from the target to the source.
func (m *Move) reverseTransfer(j *journal) *transfer.Transfer {
	entries := slices.DeleteFunc(slices.Clone(j.Plan.Entries), func(e transfer.Entry) bool { return e.Copy })
	return &transfer.Transfer{From: m.target, To: m.source, Entries: entries, Change: func(*unstructured.Unstructured) error { return nil },
		SourceID: transfer.Entry.At, TargetID: func(e transfer.Entry) graph.ID { return e.ID }}
}
