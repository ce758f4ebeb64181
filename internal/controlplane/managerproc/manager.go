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

// File descriptors of the manager process after the standard ones. Standard input contains the instructions
// as JSON.
const (
	recordFD = 3
	reportFD = 4
)

// message is a line that the manager process reports. follow (run.go) reads it.
type message struct {
	Ready bool `json:"ready,omitempty"`
	// Diagnostics is the URL of a manager that is ready.
	Diagnostics string `json:"diagnostics,omitempty"`
	// Error that ended the manager. If Message is empty, there was none.
	Kind    fault.Kind `json:"kind,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
}

// Quarantined is a quarantined object, which is not reconciled for a while. [Run] passes it to the manager process and
// reports it in [Status].
type Quarantined struct {
	Subject  Subject   `json:"subject"`
	Until    time.Time `json:"until"`
	Failures int       `json:"failures"`
}

// instructions is the input of the manager process, which has the same version as its parent. [Run] writes it, and
// [Attach] reads it.
type instructions struct {
	Quarantined []Quarantined   `json:"aside,omitempty"`
	Rest        json.RawMessage `json:"rest"`
}

// Manager is the manager's side of the protocol with [Run] in the parent process. The manager of `slipway up` calls it
// before and after each reconciliation and each decoding of a response.
type Manager struct {
	record           *record
	report           *os.File
	quarantinedUntil map[Subject]time.Time
	now              func() time.Time
	once             sync.Once
}

// Attach opens the descriptors that [Run] passed to this process, and decodes the instructions into rest. The manager
// command of `slipway up` calls it at its start.
func Attach(in io.Reader, rest any, now func() time.Time) (*Manager, error) {
	var i instructions
	if err := json.NewDecoder(in).Decode(&i); err != nil {
		return nil, fault.New(fault.Invalid, "NotStartedByUp", "this command is run by \"slipway up\"; run \"slipway up\" instead").From(err)
	}
	if err := json.Unmarshal(i.Rest, rest); err != nil {
		return nil, fmt.Errorf("read the instructions of the manager: %w", err)
	}
	syscall.CloseOnExec(recordFD) // child processes outlive this process
	syscall.CloseOnExec(reportFD)
	record, err := mapRecord(os.NewFile(recordFD, "reconciling"))
	if err != nil {
		return nil, err
	}
	m := &Manager{record: record, report: os.NewFile(reportFD, "report"), quarantinedUntil: map[Subject]time.Time{}, now: now}
	for _, a := range i.Quarantined {
		m.quarantinedUntil[a.Subject.withoutUID()] = a.Until
	}
	return m, nil
}

// withoutUID returns the subject without UID, because an object that is recreated with the same name is likely to
// cause the same failure.
func (s Subject) withoutUID() Subject {
	s.UID = ""
	return s
}

// Begin must be called before every reconciliation. If aside is not zero, the object is quarantined for this
// time and must not be reconciled. Otherwise, done must be called at the end.
func (m *Manager) Begin(s Subject) (done func(), aside time.Duration) {
	now := m.now()
	if left := m.quarantinedUntil[s.withoutUID()].Sub(now); left > 0 {
		return nil, left
	}
	return m.record.Begin(s, now).End, 0
}

// Decode records that a response of a workload cluster's API is being decoded, until the entry ends.
func (m *Manager) Decode(s Subject) Entry {
	s.Work = Decoding
	return m.record.Begin(s, m.now())
}

// SuspendedUntil returns the time before which a cluster must not be connected, or zero. Package workload calls it
// before it connects.
func (m *Manager) SuspendedUntil(s Subject) time.Time {
	s.Work = Decoding
	return m.quarantinedUntil[s.withoutUID()]
}

// Ready reports that the controllers have started, and the URL of the diagnostics endpoint. The manager command calls
// it.
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

// send ignores errors, because this process exits when its parent does.
func (m *Manager) send(out message) { _ = json.NewEncoder(m.report).Encode(out) }
