package up

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// ran is one run of the management cluster in a test.
type ran struct {
	says  []reportLine
	lasts time.Duration
	end   outcome
}

// supervised runs a supervisor over these runs, and returns what it recorded before each start but the first, and its pauses.
func supervised(t *testing.T, dir datadir.Dir, full func(now time.Time) bool, runs ...ran) (records []datadir.Supervision, pauses []time.Duration, err error) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := 0
	s := &clusterSupervisor{
		dir: dir, env: term.Env{Now: func() time.Time { return now }}, report: &report{}, log: t.Logf, restarts: newRestarts(),
		space: func(datadir.Dir) (datadir.Space, error) {
			if full != nil && full(now) {
				return datadir.Space{Total: 260 << 20}, nil
			}
			return datadir.Space{Free: 1 << 30, Total: 1 << 30}, nil
		},
		sleep: func(_ context.Context, d time.Duration) error {
			pauses = append(pauses, d)
			if state, err := datadir.Inspect(dir); err == nil && state.Supervision != nil {
				records = append(records, *state.Supervision)
			}
			now = now.Add(d)
			return nil
		},
		launch: func(_ context.Context, heard func(reportLine)) (outcome, error) {
			r := runs[n]
			n++
			for _, m := range r.says {
				heard(m)
				r.end.last = m
			}
			now = now.Add(r.lasts)
			return r.end, nil
		},
	}
	err = s.run(t.Context())
	if n != len(runs) {
		t.Errorf("%d of %d runs", n, len(runs))
	}
	return records, pauses, err
}

var (
	isReady  = reportLine{Ready: true}
	killed   = outcome{exitText: "signal: killed"}
	stopped  = outcome{exitText: "exit status 0", stopped: true}
	unstable = ran{says: []reportLine{isReady}, lasts: time.Second, end: killed}
)

func TestSupervisor(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		runs   []ran
		full   func(time.Time) bool
		last   string // that was recorded
		pauses []time.Duration
		err    string
	}{
		"stopped": {
			reason: "what is stopped is not started again", runs: []ran{{says: []reportLine{isReady}, end: stopped}},
		},
		"never ready": {
			reason: "somebody waits for the start, and reads the error", runs: []ran{{end: killed}}, err: "signal: killed",
		},
		"out of memory": {
			reason: "the kernel's reason is recorded",
			runs:   []ran{{says: []reportLine{isReady}, end: outcome{exitText: "signal: killed", outOfMemory: true}}, {says: []reportLine{isReady}, end: stopped}},
			last:   "the kernel killed it because this host is out of memory", pauses: []time.Duration{time.Second},
		},
		"an error": {
			reason: "the error of the process is recorded",
			runs:   []ran{{says: []reportLine{isReady, {Message: "etcd: raft failed"}}, end: outcome{exitText: "exit status 1"}}, {end: stopped}},
			last:   "it failed with an error: etcd: raft failed", pauses: []time.Duration{time.Second},
		},
		"keeps ending": {
			reason: "pauses grow, and start over after a long run",
			runs:   []ran{unstable, unstable, {lasts: 10 * time.Minute, end: killed, says: []reportLine{isReady}}, {end: stopped}},
			last:   "signal: killed", pauses: []time.Duration{time.Second, 2 * time.Second, time.Second},
		},
		"another holds the directory": {
			reason: "a management cluster that somebody started meanwhile is not disturbed",
			runs:   []ran{unstable, {says: []reportLine{{Message: "held", Reason: datadir.ReasonHeld}}, end: outcome{exitText: "exit status 2"}}},
			last:   "signal: killed", pauses: []time.Duration{time.Second},
		},
		"full disk": {
			reason: "it is started again when there is space, and not before",
			runs:   []ran{{says: []reportLine{isReady}, end: outcome{exitText: "exit status 1"}}, {end: stopped}},
			full:   func(now time.Time) bool { return now.Second() < 15 }, // 10 seconds
			last:   "the disk of DIR was full", pauses: []time.Duration{time.Second, diskCheckInterval, diskCheckInterval},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := datadir.Dir(t.TempDir())
			records, pauses, err := supervised(t, dir, test.full, test.runs...)
			if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
				t.Errorf("error %v, want %q: %s", err, test.err, test.reason)
			}
			if diff := cmp.Diff(test.pauses, pauses, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: pauses (-want +got):\n%s", test.reason, diff)
			}
			last := ""
			if len(records) > 0 {
				last = records[len(records)-1].LastExit
			}
			if want := string(bytes.ReplaceAll([]byte(test.last), []byte("DIR"), []byte(dir))); last != want {
				t.Errorf("recorded %q, want %q: %s", last, want, test.reason)
			}
			if state, err := datadir.Inspect(dir); err != nil || state.Supervision != nil {
				t.Errorf("afterwards there is a supervisor: %+v, %v", state.Supervision, err)
			}
		})
	}
}

// What waits for space says so.
func TestSupervisorRecordsItsWait(t *testing.T) {
	dir := datadir.Dir(t.TempDir())
	records, _, err := supervised(t, dir, func(now time.Time) bool { return now.Second() < 15 },
		ran{says: []reportLine{isReady}, end: outcome{exitText: "exit status 1"}}, ran{end: stopped})
	if err != nil || len(records) != 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	first, waits := records[0], records[1]
	if first.Restarts != 1 || first.NextStart.IsZero() || first.PID != os.Getpid() {
		t.Errorf("before its pause: %+v", first)
	}
	if want := fmt.Sprintf("the disk of %s is full (0 of 260 MiB free): free some space, then it is started again", dir); waits.Waiting != want || !waits.NextStart.IsZero() {
		t.Errorf("on the full disk: %+v, want %q", waits, want)
	}
}

// A start on a full disk is refused, and one on a disk that is nearly full is warned of.
func TestCheckSpace(t *testing.T) {
	var out bytes.Buffer
	err := checkSpace(&out, "/data", datadir.Space{Total: 260 << 20})
	if fault.KindOf(err) != fault.Invalid || fault.UserMessage(err) != "the disk of /data is full (0 of 260 MiB free): free some space, then slipway up -d --data-dir /data" {
		t.Errorf("full: %v", err)
	}
	if err := checkSpace(&out, "/data", datadir.Space{Free: 100 << 20, Total: 260 << 20}); err != nil || !bytes.Contains(out.Bytes(), []byte("nearly full (100 of 260 MiB free)")) {
		t.Errorf("nearly full: %v, %s", err, out.String())
	}
	out.Reset()
	if err := checkSpace(&out, "/data", datadir.Space{Free: 1 << 30, Total: 1 << 30}); err != nil || out.Len() > 0 {
		t.Errorf("with space: %v, %s", err, out.String())
	}
}

var _ error = endedWithout("")

// The end of a process that gave no reason is that of the management cluster, and not of its supervisor.
func TestEndWithoutAReason(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := &report{file: writer}
	r.send(reportLine{Ended: "signal: killed"})
	r.close()
	var how endedWithout
	if ready, err := readReport(term.Env{Err: &bytes.Buffer{}}, bufio.NewScanner(reader)); ready || !errors.As(err, &how) || how != "signal: killed" {
		t.Errorf("ready %t, %v", ready, err)
	}
}
