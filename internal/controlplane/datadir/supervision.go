package datadir

import "time"

// Supervision is the state that the supervisor of a management cluster in the background (`slipway up -d`) publishes
// for other commands.
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

// WriteSupervision publishes s for other processes.
func WriteSupervision(dir Dir, s Supervision) error {
	return WriteJSON(dir.supervision(), s)
}

// ReadSupervision returns the state of the running supervisor, or nil if there is none.
func ReadSupervision(dir Dir) (*Supervision, error) {
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
