package managerproc

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Descriptors of the manager's process, besides the usual ones: standard input is what to do, as JSON.
const (
	recordFD = 3
	reportFD = 4
)

// message is a line that the manager's process reports.
type message struct {
	Ready bool `json:"ready,omitempty"`
	// Diagnostics of a manager that is ready.
	Diagnostics string `json:"diagnostics,omitempty"`
	// Of the error that ended it; Message empty: there is none.
	Kind    fault.Kind `json:"kind,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
}

// Aside is an object that is not reconciled for a while.
type Aside struct {
	Subject  Subject   `json:"subject"`
	Until    time.Time `json:"until"`
	Failures int       `json:"failures"`
}

// instructions are what the manager's process reads.
type instructions struct {
	Aside []Aside         `json:"aside,omitempty"`
	Rest  json.RawMessage `json:"rest"`
}

// Manager is the side of the manager's process.
type Manager struct {
	record *Record
	report *os.File
	aside  map[Subject]time.Time
	now    func() time.Time
	once   sync.Once
}

// Started takes the descriptors over that [Run] gave this process, and reads what to do into rest.
func Started(in io.Reader, rest any, now func() time.Time) (*Manager, error) {
	var i instructions
	if err := json.NewDecoder(in).Decode(&i); err != nil {
		return nil, fault.New(fault.Invalid, "NotStartedByUp", "this verb is started by \"slipway up\"; start that").From(err)
	}
	if err := json.Unmarshal(i.Rest, rest); err != nil {
		return nil, fmt.Errorf("read what the manager is to do: %w", err)
	}
	syscall.CloseOnExec(recordFD) // the processes that this one starts outlive it
	syscall.CloseOnExec(reportFD)
	record, err := mapRecord(os.NewFile(recordFD, "reconciling"))
	if err != nil {
		return nil, err
	}
	m := &Manager{record: record, report: os.NewFile(reportFD, "report"), aside: map[Subject]time.Time{}, now: now}
	for _, a := range i.Aside {
		m.aside[a.Subject.anyUID()] = a.Until
	}
	return m, nil
}

// anyUID is the object whatever its UID is: one that is made again under the same name is likely the same again.
func (s Subject) anyUID() Subject {
	s.UID = ""
	return s
}

// Begin is called before every reconciliation. It returns for how long the object is set aside: it is not to be reconciled
// before. Otherwise done is to be called in the end.
func (m *Manager) Begin(s Subject) (done func(), aside time.Duration) {
	now := m.now()
	if left := m.aside[s.anyUID()].Sub(now); left > 0 {
		return nil, left
	}
	return m.record.Begin(s, now).End, 0
}

// Decode records that an answer of the API of a workload cluster is being decoded, until the entry ends.
func (m *Manager) Decode(s Subject) Entry {
	s.Work = Decoding
	return m.record.Begin(s, m.now())
}

// SuspendedUntil returns the time before which a cluster is not connected; zero: it may be.
func (m *Manager) SuspendedUntil(s Subject) time.Time {
	s.Work = Decoding
	return m.aside[s.anyUID()]
}

// Ready reports that the controllers have started, and at which URL diagnostics are served.
func (m *Manager) Ready(diagnostics string) {
	m.once.Do(func() { m.send(message{Ready: true, Diagnostics: diagnostics}) })
}

// Ended reports the error that ends the manager, and returns it.
func (m *Manager) Ended(err error) error {
	if err != nil {
		out := message{Kind: fault.KindOf(err), Message: fault.UserMessage(err)}
		if f := fault.As(err); f != nil {
			out.Reason = f.Reason
		}
		m.send(out)
	}
	return err
}

// send does not fail: without the process that started this one, this one ends.
func (m *Manager) send(out message) { _ = json.NewEncoder(m.report).Encode(out) }
