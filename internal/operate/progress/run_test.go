package progress_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/test/testkit"
)

// read is one answer of the script.
type read struct {
	s   describe.Snapshot
	err error
}

// script is a source that plays reads, the last one forever, a second of its own clock apart. end ends the wait
// with an error after the last one.
type script struct {
	reads []read
	at    time.Time
	end   error
	next  int
}

func (s *script) now() time.Time { return s.at }

func (s *script) Snapshot(context.Context) (describe.Snapshot, error) {
	r := s.reads[min(s.next, len(s.reads)-1)]
	s.next++
	return r.s, r.err
}

func (s *script) Wait(context.Context) error {
	s.at = s.at.Add(3 * time.Second)
	if s.next >= len(s.reads) {
		return s.end
	}
	return nil
}

func creation(s describe.Snapshot, err error) ([]progress.Step, error) {
	if err != nil {
		return nil, err
	}
	return progress.Creation(s)
}

// story is a cluster as it comes to be.
func story() *script {
	return &script{at: time.Unix(0, 0), reads: []read{
		{s: created(nil)},
		{err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, // the management cluster restarts
		{s: created(provisioned)},
		{s: created(provisioned)},
		{s: created(func(s *describe.Snapshot) {
			provisioned(s)
			provider(s, planeRef, "Available", "False", "the API server does not answer yet")
		})},
		{s: created(joined(1))},
		{s: created(ready)},
	}}
}

func TestRunShowsPlainLines(t *testing.T) {
	var out bytes.Buffer
	src := story()
	if err := progress.Run(context.Background(), src, creation, progress.NewPlain(&out, src.now)); err != nil {
		t.Fatal(err)
	}
	testkit.CompareGolden(t, "testdata/plain.txt", out.String())
}

func TestRunShowsLiveLines(t *testing.T) {
	var out bytes.Buffer
	src := story()
	look := progress.TerminalOptions{Width: 70, Unicode: true, Color: true}
	if err := progress.Run(context.Background(), src, creation, progress.NewLive(&out, look, src.now)); err != nil {
		t.Fatal(err)
	}
	testkit.CompareGolden(t, "testdata/live.txt", strings.ReplaceAll(out.String(), "\x1b", "ESC"))
	for line := range strings.Lines(strings.ReplaceAll(out.String(), "\x1b[2K", "")) {
		if n := len([]rune(line)); n > 70+len("\x1b[4A\r\x1b[33m\x1b[0m\n") {
			t.Errorf("a line of %d columns would wrap, and the drawing with it: %q", n, line)
		}
	}
}

func TestRunEnds(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	forbidden := errors.New("forbidden")
	silent := make([]read, 20)
	for i := range silent {
		silent[i] = read{err: refused}
	}
	cases := map[string]struct {
		reason string
		src    script
		want   error
	}{
		"done":      {"all steps are done", script{reads: []read{{s: created(ready)}}}, nil},
		"hopeless":  {"waiting cannot help", script{reads: []read{{s: created(nil)}, {err: forbidden}}}, forbidden},
		"stays off": {"a management cluster that stays away is not waited for", script{reads: silent}, refused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := progress.Run(context.Background(), &tc.src, creation, progress.NewPlain(&bytes.Buffer{}, tc.src.now))
			if !errors.Is(err, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}

// A wait that takes too long says what it was still waiting for; one that the user ends says nothing.
func TestRunIsEndedFromOutside(t *testing.T) {
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	gone, stop := context.WithCancel(context.Background())
	stop()
	src := &script{reads: []read{{s: created(joined(1))}}, end: context.DeadlineExceeded}
	err := progress.Run(late, src, creation, progress.NewPlain(&bytes.Buffer{}, src.now))
	if fault.As(err) == nil || fault.As(err).Reason != progress.ReasonTimeout {
		t.Errorf("got %v, want a timeout", err)
	}
	if err := progress.Run(gone, src, creation, progress.NewPlain(&bytes.Buffer{}, src.now)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the interruption", err)
	}
	// The deadline passes between two reads: the steps of the last one are named.
	midway, quit := context.WithCancel(context.Background())
	defer quit()
	slow := &deadline{script: *src, ctx: midway}
	err = progress.Run(slow, slow, creation, progress.NewPlain(&bytes.Buffer{}, src.now))
	if err == nil || !strings.Contains(err.Error(), "MachinePool pool: 1 of 2 nodes ready") {
		t.Errorf("got %v, want the steps that were not done", err)
	}
}

// deadline is a context whose deadline passes during the first Wait of the script.
type deadline struct {
	script
	ctx    context.Context
	passed bool
}

func (d *deadline) Wait(context.Context) error { d.passed = true; return context.DeadlineExceeded }

func (d *deadline) Deadline() (time.Time, bool) { return d.ctx.Deadline() }
func (d *deadline) Done() <-chan struct{}       { return d.ctx.Done() }
func (d *deadline) Value(key any) any           { return d.ctx.Value(key) }
func (d *deadline) Err() error {
	if d.passed {
		return context.DeadlineExceeded
	}
	return nil
}

func TestElapsed(t *testing.T) {
	for in, want := range map[time.Duration]string{0: "0s", 1499 * time.Millisecond: "1s", 99 * time.Second: "99s", 100 * time.Second: "1m40s", time.Hour: "60m00s"} {
		if got := progress.Elapsed(in); got != want {
			t.Errorf("%v: got %s, want %s", in, got, want)
		}
	}
}

func TestPlainIsCalm(t *testing.T) {
	var out bytes.Buffer
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := start
	p := progress.NewPlain(&out, func() time.Time { return now })
	details := []string{"1 of 9", "2 of 9", "3 of 9", "3 of 9", "4 of 9", "5 of 9", "6 of 9", "7 of 9", "7 of 9", "7 of 9", "7 of 9"}
	for i, detail := range details { // a look in each second
		now = start.Add(time.Duration(i) * time.Second)
		p.Show([]progress.Step{{Name: "pool", DoneWhen: "9 nodes are Ready", Detail: detail}})
	}
	now = now.Add(time.Second)
	p.Show([]progress.Step{{Name: "pool", DoneWhen: "9 nodes are Ready", Detail: "9 of 9", Done: true}})
	want := `    0s  pool: waits until 9 nodes are Ready (1 of 9)
    5s  pool: 5 of 9
   10s  pool: 7 of 9
   11s  pool: done, 9 of 9
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("what is seen of a step is said every five seconds, its end at once (-want +got):\n%s", diff)
	}
}

// What sums others up says for a moment what was before the last of them was done: that is not printed beside its end.
func TestPlainRestsAfterAnEnd(t *testing.T) {
	var out bytes.Buffer
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := start
	p := progress.NewPlain(&out, func() time.Time { return now })
	show := func(second int, done bool, cluster string) {
		now = start.Add(time.Duration(second) * time.Second)
		p.Show([]progress.Step{{Name: "workers", DoneWhen: "2 nodes are Ready", Done: done}, {Name: "cluster", DoneWhen: "it is Available", Detail: cluster}})
	}
	show(0, false, "0 of 2 nodes")
	show(10, true, "1 of 2 nodes")
	show(11, true, "1 of 2 nodes")
	show(12, true, "a node is not Ready any more")
	want := `    0s  workers: waits until 2 nodes are Ready
    0s  cluster: waits until it is Available (0 of 2 nodes)
   10s  workers: done
   12s  cluster: a node is not Ready any more
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A line of a log holds the beginning of what is seen, which is about the first object that holds others up; the error at the end has all.
func TestPlainIsShort(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := progress.NewPlain(&out, func() time.Time { return now })
	long := "Machine m: " + strings.Repeat("ö", 600)
	p.Show([]progress.Step{{Name: "pool", DoneWhen: "1 node is Ready", Detail: long}})
	want := "    0s  pool: waits until 1 node is Ready (Machine m: " + strings.Repeat("ö", 288) + "…)\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
