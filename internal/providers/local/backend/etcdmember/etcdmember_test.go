package etcdmember_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/backend/etcdmember"
	"github.com/slipwayhq/slipway/internal/recovery"
)

const id = "20261125T131500Z"

// shell answers with what a program would print, and remembers what was run.
type shell struct {
	prints string
	err    error
	ran    []string
	input  string
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
	got, err := etcdmember.Members{Shell: s}.Survey(t.Context(), backend.Ref{Name: "m"})
	if want := (recovery.Member{Revision: 12}); err != nil || got != want || s.input != recovery.SurveyProgram() {
		t.Errorf("%+v, %v", got, err)
	}
	s.prints = "silent\n"
	if _, err := (etcdmember.Members{Shell: s}).Survey(t.Context(), backend.Ref{Name: "m"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a member that is silent: %v", err)
	}
	s.err = fault.New(fault.Unreachable, "DockerUnreachable", "it does not answer")
	if _, err := (etcdmember.Members{Shell: s}).Survey(t.Context(), backend.Ref{Name: "m"}); fault.KindOf(err) != fault.Unreachable {
		t.Errorf("a machine that is not reached: %v", err)
	}
}

// The program is in place before it is started, and has the id.
func TestRebuild(t *testing.T) {
	s := &shell{}
	if err := (etcdmember.Members{Shell: s}).Rebuild(t.Context(), backend.Ref{Name: "m"}, id); err != nil {
		t.Fatal(err)
	}
	if len(s.ran) != 2 || s.input != recovery.RebuildProgram(id) || !strings.Contains(s.ran[1], id) {
		t.Errorf("ran %q with %q", s.ran, s.input)
	}
	s = &shell{err: errors.New("no space")}
	if err := (etcdmember.Members{Shell: s}).Rebuild(t.Context(), backend.Ref{Name: "m"}, id); err == nil || len(s.ran) != 1 {
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
		"failed no data\n\x1b[2Jesc\x00apes": {Phase: backend.Failed, Log: "no data\n[2Jescapes"},
	}
	for prints, want := range tests {
		got, err := etcdmember.Members{Shell: &shell{prints: prints}}.Rebuilt(t.Context(), backend.Ref{Name: "m"}, id)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", prints, got, err, want)
		}
	}
}
