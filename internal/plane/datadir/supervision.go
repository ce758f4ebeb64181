package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Supervision is what the supervisor of a management cluster in the background records about it.
type Supervision struct {
	// PID is that of the supervisor.
	PID        int       `json:"pid"`
	Restarts   int       `json:"restarts"`
	LastExit   string    `json:"lastExit,omitempty"`
	LastExitAt time.Time `json:"lastExitAt,omitzero"`
	// NextStart is when the management cluster is started again; zero: it runs, or Waiting says what its start waits for.
	NextStart time.Time `json:"nextStart,omitzero"`
	Waiting   string    `json:"waiting,omitempty"`
}

// SupervisorLock is the lock file that the supervisor holds once the management cluster was ready.
func (d Dir) SupervisorLock() string { return d.Path("supervisor.lock") }

func (d Dir) supervision() string { return d.Path("supervision.json") }

// WriteSupervision records s for other processes.
func WriteSupervision(dir Dir, s Supervision) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = WriteFile(dir.supervision(), append(data, '\n'), 0o600)
	return err
}

// ReadSupervision returns what the supervisor that lives recorded; nil: there is none.
func ReadSupervision(dir Dir) (*Supervision, error) {
	holder, held, err := Probe(dir.SupervisorLock())
	if err != nil {
		return nil, unusable(dir, err)
	}
	if !held {
		return nil, nil
	}
	s := Supervision{}
	data, err := os.ReadFile(dir.supervision())
	switch {
	case err == nil:
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, fmt.Errorf("read %s: %w", dir.supervision(), err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, unusable(dir, err)
	}
	if s.PID != holder.PID { // of an earlier one
		s = Supervision{PID: holder.PID}
	}
	return &s, nil
}

// parent is the folder that the directory is in.
func (d Dir) parent() Dir { return Dir(filepath.Dir(string(d))) }
