package managerproc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	// firstPause is how long a manager that ended is not started again, twice as long after each further end, up to
	// longestPause. One that ran for stableAfter starts over.
	firstPause, longestPause = 250 * time.Millisecond, 30 * time.Second
	stableAfter              = time.Minute
	// failedStarts is how often a manager may end with an error that may pass before it has started for the first time. One whose API server did not
	// answer in time is started again without a limit.
	failedStarts = 3
	// patience is how long a manager may take to stop before it is killed.
	patience = 15 * time.Second
)

// Config says how to run the manager.
type Config struct {
	// Command is the program with its arguments. It calls [Started].
	Command []string
	// Instructions are what [Started] reads, as JSON.
	Instructions any
	// MemoryLimit in bytes: a manager that uses more is killed.
	MemoryLimit int64
	// Log receives what the manager writes to its standard output and error.
	Log io.Writer
	Now func() time.Time
	// Ready is called when the controllers have started for the first time.
	Ready func()
	// Changed is called with every change of the status.
	Changed func(Status)
	// Failed is called when the manager ended without a request to stop. It must not block for long.
	Failed func(Failure)
}

// Status is about the manager's process.
type Status struct {
	PID        int // 0: it does not run
	Since      time.Time
	Restarts   int
	LastExit   string
	LastExitAt time.Time
	NextStart  time.Time // of one that does not run
	Aside      []Aside
	// Diagnostics is the URL at which a manager that is ready serves them.
	Diagnostics string
}

// Failure is an end of the manager that was not requested.
type Failure struct {
	// How it ended, in words that follow "the manager".
	How string
	// Suspects are what may be the cause: either the clusters of which answers were being decoded, or the objects that were
	// being reconciled, the longest work first. Empty where none of them is.
	Suspects []Subject
	// Aside are those of them that are not worked on for a while from now on.
	Aside []Aside
	// Pause is how long it takes until the manager is started again.
	Pause time.Duration
}

// String says all of it.
func (f Failure) String() string {
	text := "the manager ended: " + f.How
	switch {
	case len(f.Suspects) == 0:
	case f.Suspects[0].Work == Decoding:
		text += "; it was reading what " + names(f.Suspects) + " sent"
	default:
		text += "; it was reconciling " + names(f.Suspects)
	}
	return text
}

// supervisor is one Run.
type supervisor struct {
	Config
	suspects suspects
	status   Status
	ready    bool
	inARow   int // ends that came soon
}

// Run keeps the manager running until ctx ends, and stops it then. Before the controllers have started for the first time,
// an error that the manager ends with is the error of Run, unless it may pass: a person is waiting for it. A crash is not, because the API is
// needed to remove the cause.
func Run(ctx context.Context, cfg Config) error {
	s := &supervisor{Config: cfg, suspects: suspects{}}
	for {
		f := Failure{}
		p, err := s.start()
		switch {
		case err != nil && !s.ready:
			return err
		case err != nil: // for want of memory, for example
			f.How = "it could not be started again: " + err.Error()
		default:
			end, err := s.follow(ctx, p)
			if ctx.Err() != nil || err != nil {
				return err
			}
			f = s.judge(end)
		}
		if pause := s.ended(f); !sleep(ctx, pause) {
			return nil
		}
	}
}

func (s *supervisor) start() (*running, error) {
	now := s.Now()
	rest, err := json.Marshal(s.Instructions)
	if err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	aside := s.suspects.forget(now)
	input, err := json.Marshal(instructions{Aside: aside, Rest: rest})
	if err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	p, err := launch(s.Config, input)
	if err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	s.status.PID, s.status.Since, s.status.NextStart, s.status.Aside = p.pid, now, time.Time{}, aside
	s.Changed(s.status)
	return p, nil
}

// follow returns when the process has ended.
func (s *supervisor) follow(ctx context.Context, p *running) (ending, error) {
	defer p.close()
	stopping := context.AfterFunc(ctx, func() { p.stop(patience) })
	defer stopping()
	var failed error
	reported := ""
	for m := range p.messages {
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
	<-p.ended
	end := p.end
	end.reported = reported
	if ctx.Err() != nil {
		return end, nil
	}
	return end, failed
}

// isFinal reports whether another start would meet an error of this kind again: on a busy host requests run out of time.
func (s *supervisor) isFinal(kind fault.Kind) bool {
	switch kind {
	case fault.Unreachable, fault.Conflict:
		return false
	case fault.Transient:
		return s.inARow+1 >= failedStarts
	}
	return true
}

// judge finds out what the end has to do with the objects that were being reconciled.
func (s *supervisor) judge(end ending) (f Failure) {
	var objects bool
	if f.How, objects = end.describe(); objects {
		f.Suspects = end.suspects
		f.Aside = s.suspects.crashed(f.Suspects, s.Now())
	}
	return f
}

// ended notes an end and returns for how long to wait.
func (s *supervisor) ended(f Failure) time.Duration {
	now := s.Now()
	s.inARow++
	if now.Sub(s.status.Since) >= stableAfter {
		s.inARow = 1
	}
	f.Pause = min(firstPause<<min(s.inARow-1, 10), longestPause)
	s.status.PID, s.status.Diagnostics = 0, ""
	s.status.Restarts++
	s.status.LastExit, s.status.LastExitAt, s.status.NextStart = f.String(), now, now.Add(f.Pause)
	s.status.Aside = s.suspects.forget(now)
	s.Changed(s.status)
	s.Failed(f)
	return f.Pause
}

// sleep reports whether ctx is still alive after the pause.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
