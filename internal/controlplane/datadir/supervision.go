package datadir

import (
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"time"
)

// Supervision is the state that the supervisor of a management cluster in the background (`slipway up -d`) publishes
// for other commands. These can be of another version, so the JSON names must stay.
type Supervision struct {
	// PID of the supervisor.
	PID        int       `json:"pid"`
	Restarts   int       `json:"restarts"`
	LastExit   string    `json:"lastExit,omitempty"`
	LastExitAt time.Time `json:"lastExitAt,omitzero"`
	// NextStart is the time of the next restart. If zero, the management cluster runs, or Waiting is the
	// reason why it does not start yet.
	NextStart time.Time `json:"nextStart,omitzero"`
	Waiting   string    `json:"waiting,omitempty"`
}

// SupervisorLock is the lock file that the supervisor holds once the management cluster was ready.
func (d Dir) SupervisorLock() string { return d.Path("supervisor.lock") }

func (d Dir) supervision() string { return d.Path("supervision.json") }

// WriteSupervision publishes s for other processes. On a full disk it overwrites the previous state in place, because a
// new file has no space. The supervisor of `slipway up` calls it after each change.
func WriteSupervision(dir Dir, s Supervision) error {
	err := WriteJSON(dir.supervision(), s)
	if errors.Is(err, syscall.ENOSPC) {
		return overwriteJSON(dir.supervision(), s)
	}
	return err
}

// overwriteJSON replaces the content of a file, which must exist.
func overwriteJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Truncate(int64(len(data)))
	}
	return errors.Join(err, f.Close())
}

// readSupervision returns the state of the running supervisor, or nil if there is none. [Inspect] calls it.
func readSupervision(dir Dir) (*Supervision, error) {
	holder, held, err := Probe(dir.SupervisorLock())
	if err != nil {
		return nil, unusable(dir, err)
	}
	if !held {
		return nil, nil
	}
	s := Supervision{}
	if _, err := ReadJSON(dir.supervision(), &s); err != nil {
		return nil, unusable(dir, err)
	}
	if s.PID != holder.PID { // the state of a previous supervisor
		s = Supervision{PID: holder.PID}
	}
	return &s, nil
}
