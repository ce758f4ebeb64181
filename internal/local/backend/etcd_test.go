package backend_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

const id = "20261125T131500Z"

var (
	rebuild = recovery.EtcdOrder{ID: id, Step: recovery.Rebuild}
	stage   = recovery.EtcdOrder{ID: id, Step: recovery.Stage, Snapshot: recovery.Snapshot{Policy: "p", Name: "c-" + id}}
)

// shell answers with what a program would print, and remembers what was run.
type shell struct {
	prints string
	err    error
	ran    []string
	input  string
	// piped is the input of each Pipe; failing is the one, counted from 1, that ends with code 1.
	piped   [][]byte
	failing int
}

func (s *shell) Pipe(_ context.Context, _ backend.Ref, program string, input io.Reader) (int, string, error) {
	s.ran = append(s.ran, program)
	got, err := io.ReadAll(input)
	s.piped = append(s.piped, got)
	if len(s.piped) == s.failing {
		return 1, "no space", nil
	}
	return 0, "", err
}

func (s *shell) Run(_ context.Context, _ backend.Ref, program string, input []byte) (string, error) {
	s.ran, s.input = append(s.ran, program), string(input)
	return s.prints, s.err
}

func (s *shell) Start(_ context.Context, _ backend.Ref, program string) error {
	s.ran = append(s.ran, program)
	return s.err
}

func TestSurvey(t *testing.T) {
	s := &shell{prints: "etcd_server_has_leader 0\netcd_debugging_mvcc_current_revision 12\n"}
	got, err := backend.EtcdMembers{EtcdShell: s}.Survey(t.Context(), backend.Ref{Name: "m"})
	if want := (recovery.MemberState{Revision: 12}); err != nil || got != want || s.input != recovery.SurveyProgram() {
		t.Errorf("%+v, %v", got, err)
	}
	s.prints = "silent\n"
	if _, err := (backend.EtcdMembers{EtcdShell: s}).Survey(t.Context(), backend.Ref{Name: "m"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a member that is silent: %v", err)
	}
	s.err = fault.New(fault.Unreachable, "DockerUnreachable", "it does not answer")
	if _, err := (backend.EtcdMembers{EtcdShell: s}).Survey(t.Context(), backend.Ref{Name: "m"}); fault.KindOf(err) != fault.Unreachable {
		t.Errorf("a machine that is not reached: %v", err)
	}
}

// The program is in place before it is started, and has the id.
func TestRebuild(t *testing.T) {
	s := &shell{}
	if err := (backend.EtcdMembers{EtcdShell: s}).Rebuild(t.Context(), backend.Ref{Name: "m"}, rebuild); err != nil {
		t.Fatal(err)
	}
	if len(s.ran) != 2 || s.input != recovery.Program(rebuild) || !strings.Contains(s.ran[1], id) {
		t.Errorf("ran %q with %q", s.ran, s.input)
	}
	s = &shell{err: errors.New("no space")}
	if err := (backend.EtcdMembers{EtcdShell: s}).Rebuild(t.Context(), backend.Ref{Name: "m"}, rebuild); err == nil || len(s.ran) != 1 {
		t.Errorf("what could not be written was started: %q, %v", s.ran, err)
	}
}

func TestRebuilt(t *testing.T) {
	tests := map[string]backend.Progress{
		"done\nlog":                          {Phase: backend.Succeeded},
		"running\n":                          {Phase: backend.InProgress},
		"none\n":                             {Phase: backend.NotStarted},
		"":                                   {Phase: backend.NotStarted},
		"failed etcd does not stop\nline\n":  {Phase: backend.Failed, Log: "etcd does not stop\nline"},
		"failed no data\n\x1b[2Jesc\x00apes": {Phase: backend.Failed, Log: "no data\nescapes"},
	}
	for prints, want := range tests {
		got, err := backend.EtcdMembers{EtcdShell: &shell{prints: prints}}.RebuildProgress(t.Context(), backend.Ref{Name: "m"}, rebuild)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", prints, got, err, want)
		}
	}
}

// The snapshot and this program are there as a whole before data is made of them.
func TestStage(t *testing.T) { // KC-19
	s := &shell{}
	content := func(w io.Writer) error {
		_, err := io.WriteString(w, "of a snapshot")
		return err
	}
	if err := (backend.EtcdMembers{EtcdShell: s}).Stage(t.Context(), backend.Ref{Name: "m"}, stage, content); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.piped) != 3 || string(s.piped[0]) != "of a snapshot" || len(s.piped[1]) != len(self) || string(s.piped[2]) != recovery.StageProgram(stage) || len(s.ran) != 5 {
		t.Errorf("ran %q with %d inputs", s.ran, len(s.piped))
	}
	for failing, says := range map[int]string{1: "written there: no space", 2: "written there: no space", 3: "cannot be restored on machine m: no space"} {
		s := &shell{failing: failing}
		err := backend.EtcdMembers{EtcdShell: s}.Stage(t.Context(), backend.Ref{Name: "m"}, stage, content)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), says) || len(s.piped) != failing {
			t.Errorf("%d: %v after %d inputs", failing, err, len(s.piped))
		}
	}
	s = &shell{}
	damaged := func(w io.Writer) error {
		return errors.Join(content(w), fault.New(fault.Invalid, "SnapshotDamaged", "It is damaged"))
	}
	err = backend.EtcdMembers{EtcdShell: s}.Stage(t.Context(), backend.Ref{Name: "m"}, stage, damaged)
	if f := fault.As(err); f == nil || f.Reason != "SnapshotDamaged" || len(s.ran) != 1 {
		t.Errorf("what is damaged is put in its place: %v, %q", err, s.ran)
	}
}

func TestStaged(t *testing.T) {
	for prints, want := range map[string]bool{"staged\n": true, "none\n": false, "": false} {
		got, err := backend.EtcdMembers{EtcdShell: &shell{prints: prints}}.Staged(t.Context(), backend.Ref{Name: "m"}, stage)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v", prints, got, err)
		}
	}
}
