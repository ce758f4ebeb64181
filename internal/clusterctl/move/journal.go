package move

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
)

// journalName is the name of the journal's ConfigMap, which journalNamespace places. An interrupted move of an earlier
// version is found by this name, so it must not change.
const journalName = "slipway-move"

const (
	journalKey  = "journal.json.gz"
	journalNote = "A move of Cluster API objects is under way. Run the same \"slipway move\" again to continue it, or with --rollback to take it back."
	// maxJournalSize is the maximum compressed size, which fits into a ConfigMap; maxJournalText limits the
	// uncompressed size.
	maxJournalSize = 900 << 10
	maxJournalText = 64 << 20
)

// phase is the phase of a move; see the package documentation. Journals contain the values, so they must not change.
type phase string

const (
	pausing   phase = "pausing"
	creating  phase = "creating"
	probing   phase = "probing"
	saving    phase = "saving"
	restoring phase = "restoring"
	deleting  phase = "deleting"
	resuming  phase = "resuming"
	reverting phase = "reverting"
)

// journal is the persisted state of a move. It contains no values of objects. A later version of the program may
// continue the move, so the JSON names of its types must not change. A tenant with write access to ConfigMaps of the
// namespace can modify the journal, so its fields are not trusted: Move.resumeFromJournal calls Move.validateJournal
// before a move is continued. Add a check there for every new field that names objects to write.
type journal struct {
	ID    string      `json:"id"`
	From  types.UID   `json:"from"`
	To    types.UID   `json:"to"`
	What  graph.Scope `json:"what"`
	Phase phase       `json:"phase"`
	Plan  Plan        `json:"plan"`
	// Paused are the objects that the move may have paused.
	Paused []graph.ID `json:"paused"`
	// WithData means that the data of hosted control planes is transferred.
	WithData bool `json:"withData,omitempty"`
}

func (j *journal) encode() ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(j); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if b.Len() > maxJournalSize {
		return nil, fault.New(fault.Invalid, "TooManyObjects", "%d objects are too many for one move: move some at a time, with --cluster", len(j.Plan.Entries))
	}
	return b.Bytes(), nil
}

func decodeJournal(data []byte) (*journal, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	j := &journal{}
	return j, json.NewDecoder(io.LimitReader(z, maxJournalText)).Decode(j)
}

// journalNamespace returns the namespace of the journal: the namespace to move, or the default namespace if the move
// includes all namespaces.
func journalNamespace(w graph.Scope) string {
	if w.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return w.Namespace
}

// readJournal reads the journal; it returns nil if there is none. It does not validate the journal:
// Move.resumeFromJournal does, before a move is continued.
func readJournal(ctx context.Context, s *transfer.Endpoint, namespace string) (*journal, *corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: journalName}, cm)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the journal of the %s: %w", s.Name, err)
	}
	j, err := decodeJournal(cm.BinaryData[journalKey])
	if err != nil {
		return nil, nil, fault.New(fault.Invalid, "UnreadableJournal", "ConfigMap %s/%s of the %s is not a journal of a move (%v): rename or delete it if it is something else of yours",
			namespace, journalName, s.Name, err)
	}
	return j, cm, nil
}

// writeJournal creates or updates the journal. It never overwrites the journal of another move. The start of a move or
// export and Move.saveJournal call it.
func writeJournal(ctx context.Context, s *transfer.Endpoint, j *journal) error {
	data, err := j.encode()
	if err != nil {
		return err
	}
	namespace := journalNamespace(j.What)
	other, live, err := readJournal(ctx, s, namespace)
	if err != nil {
		return err
	}
	if live == nil {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: journalName}}
		cm.Data, cm.BinaryData = map[string]string{"note": journalNote, "phase": string(j.Phase)}, map[string][]byte{journalKey: data}
		return s.Writer.Create(ctx, cm)
	}
	if other.ID != j.ID {
		return otherMove(s, namespace)
	}
	return s.Writer.Patch(ctx, live, func(o client.Object) {
		cm := o.(*corev1.ConfigMap)
		cm.Data, cm.BinaryData = map[string]string{"note": journalNote, "phase": string(j.Phase)}, map[string][]byte{journalKey: data}
	})
}

func otherMove(s *transfer.Endpoint, namespace string) error {
	return fault.New(fault.Invalid, "AnotherMove", "another move of namespace %s is under way at the %s (ConfigMap %s): complete it, or take it back with --rollback, first",
		namespace, s.Name, journalName)
}

// deleteJournal deletes the journal when a move or export ends, unless the journal belongs to another move.
func deleteJournal(ctx context.Context, s *transfer.Endpoint, j *journal) error {
	own, cm, err := readJournal(ctx, s, journalNamespace(j.What))
	if err != nil || own == nil || own.ID != j.ID {
		return err
	}
	return s.Writer.DeleteAnyway(ctx, cm)
}

// forwardTransfer returns the transfer from the source to the target. The phases creating and deleting call it.
func (m *Move) forwardTransfer(j *journal) *transfer.Transfer {
	t := &transfer.Transfer{From: m.source, To: m.target, Entries: j.Plan.Entries, Change: m.mutate,
		SourceID: func(e transfer.Entry) graph.ID { return e.ID }, TargetID: transfer.Entry.At}
	if m.paused != nil {
		t.Source, t.SourceKnown = m.paused.objects(), true
	}
	return t
}

// reverseTransfer returns the transfer from the target to the source. The phase reverting calls it.
func (m *Move) reverseTransfer(j *journal) *transfer.Transfer {
	entries := slices.DeleteFunc(slices.Clone(j.Plan.Entries), func(e transfer.Entry) bool { return e.Copy })
	return &transfer.Transfer{From: m.target, To: m.source, Entries: entries, Change: func(*unstructured.Unstructured) error { return nil },
		SourceID: transfer.Entry.At, TargetID: func(e transfer.Entry) graph.ID { return e.ID }}
}
