package managerproc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

const (
	// firstPause is the initial backoff of restarts. It is doubled after each further exit, up to
	// longestPause, and reset when the manager has run for stableAfter.
	firstPause, longestPause = 250 * time.Millisecond, 30 * time.Second
	stableAfter              = time.Minute
	// failedStarts is the number of transient errors with which a manager may exit before its first
	// successful start. Timeouts of the API server are retried without a limit.
	failedStarts = 3
	// patience is how long a manager may take to stop before it is killed.
	patience = 15 * time.Second
)

// Config configures the manager process. `slipway up` fills it.
type Config struct {
	// Command is the program with its arguments. The program must call [Attach].
	Command []string
	// Instructions are encoded as JSON for [Attach].
	Instructions any
	// MemoryLimit in bytes. A manager that exceeds it is killed.
	MemoryLimit int64
	// Log receives standard output and error of the manager.
	Log io.Writer
	Now func() time.Time
	// Ready is called when the controllers have started for the first time.
	Ready func()
	// Changed is called with every change of the status.
	Changed func(Status)
	// Failed is called when the manager exited without a request to stop. It must not block for long.
	Failed func(Failure)
}

// Status is the state of the manager process. `slipway up` publishes it for `slipway status`.
type Status struct {
	PID         int // 0 if it does not run
	Since       time.Time
	Restarts    int
	LastExit    string
	LastExitAt  time.Time
	NextStart   time.Time // of a manager that does not run
	Quarantined []Quarantined
	// Diagnostics is the URL of the diagnostics endpoint of a manager that is ready.
	Diagnostics string
}

// Failure is an exit of the manager that was not requested. `slipway up` reports it to the user and in events.
type Failure struct {
	// How completes "the manager exited:".
	How string
	// Suspects are the possible causes, the oldest first: either clusters whose responses were being decoded,
	// or objects that were being reconciled. It is empty if neither can be the cause.
	Suspects []Subject
	// NewlyQuarantined lists the suspects that are newly quarantined.
	NewlyQuarantined []Quarantined
	// Pause is the delay until the manager is restarted.
	Pause time.Duration
}

// String describes the failure.
func (f Failure) String() string {
	text := "the manager exited: " + f.How
	switch {
	case len(f.Suspects) == 0:
	case f.Suspects[0].Work == Decoding:
		text += "; it was decoding responses from " + names(f.Suspects)
	default:
		text += "; it was reconciling " + names(f.Suspects)
	}
	return text
}

// supervisor is the state of [Run].
type supervisor struct {
	Config
	suspects suspects
	status   Status
	ready    bool
	restarts childproc.Restarts
}

// Run runs the manager, and restarts it, until ctx ends. `slipway up` calls it in the process of the management
// cluster. Before the controllers have started for the first time, Run returns a permanent error of the manager,
// because the user is waiting for the start. It does not return after a crash, because the API is needed to remove the
// cause.
func Run(ctx context.Context, cfg Config) error {
	restarts := childproc.Restarts{First: firstPause, Longest: longestPause, StableAfter: stableAfter}
	s := &supervisor{Config: cfg, suspects: suspects{}, restarts: restarts}
	for {
		f := Failure{}
		p, err := s.start()
		switch {
		case err != nil && !s.ready:
			return err
		case err != nil: // for example because of memory shortage
			f.How = "it could not be restarted: " + err.Error()
		default:
			end, err := s.follow(ctx, p)
			if ctx.Err() != nil || err != nil {
				return err
			}
			f = s.assess(end)
		}
		if pause.Sleep(ctx, s.ended(f)) != nil {
			return nil
		}
	}
}

func (s *supervisor) start() (*managerProcess, error) {
	now := s.Now()
	rest, err := json.Marshal(s.Instructions)
	if err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	aside := s.suspects.forget(now)
	input, err := json.Marshal(instructions{Quarantined: aside, Rest: rest})
	if err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	p, err := launch(s.Config, input)
	if err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	s.status.PID, s.status.Since, s.status.NextStart, s.status.Quarantined = p.PID(), now, time.Time{}, aside
	s.Changed(s.status)
	return p, nil
}

// follow waits until the process has exited.
func (s *supervisor) follow(ctx context.Context, p *managerProcess) (exitState, error) {
	defer p.close()
	stopping := context.AfterFunc(ctx, func() { _ = p.Stop(context.Background(), patience) })
	defer stopping()
	var failed error
	reported := ""
	for m := range childproc.Reports[message](p.report) {
		if m.Ready {
			s.status.Diagnostics = m.Diagnostics
			s.Changed(s.status)
		}
		switch {
		case m.Ready && !s.ready:
			s.ready = true
			s.Ready()
		case m.Message != "" && !s.ready && s.isFinal(m.Kind):
			failed = fault.New(m.Kind, m.Reason, "%s", m.Message)
		}
		if m.Message != "" {
			reported = m.Message
		}
	}
	end := p.exit()
	end.reported = reported
	if ctx.Err() != nil {
		return end, nil
	}
	return end, failed
}

// isFinal reports whether a restart would fail with the same error. Timeouts on a busy host are not final.
func (s *supervisor) isFinal(kind fault.Kind) bool {
	switch kind {
	case fault.Unreachable, fault.Conflict:
		return false
	case fault.Transient:
		return s.restarts.Exits+1 >= failedStarts
	}
	return true
}

// assess determines whether the recorded work can be the cause of the exit.
func (s *supervisor) assess(end exitState) (f Failure) {
	var objects bool
	if f.How, objects = end.describe(); objects {
		f.Suspects = end.suspects
		f.NewlyQuarantined = s.suspects.crashed(f.Suspects, s.Now())
	}
	return f
}

// ended records an exit and returns the delay before the restart.
func (s *supervisor) ended(f Failure) time.Duration {
	now := s.Now()
	ran := now.Sub(s.status.Since)
	if s.status.PID == 0 { // it could not be started
		ran = 0
	}
	f.Pause = s.restarts.Exited(ran)
	s.status.PID, s.status.Diagnostics = 0, ""
	s.status.Restarts++
	s.status.LastExit, s.status.LastExitAt, s.status.NextStart = f.String(), now, now.Add(f.Pause)
	s.status.Quarantined = s.suspects.forget(now)
	s.Changed(s.status)
	s.Failed(f)
	return f.Pause
}
