package remote_test

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// What fails on a host is reported as a fault of the host, with what the operator can do.
func TestFailuresOfTheHost(t *testing.T) {
	fails := func(script string, r sshtest.Result) func(*sshtest.Server) {
		return func(s *sshtest.Server) { s.Handle(script, func(sshtest.Call) sshtest.Result { return r }) }
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*sshtest.Server)
		fault  string
		kind   fault.Kind
		text   string
	}{
		"cloud image": {"another user has to be used", fails("privileges", sshtest.Result{Code: 142, Output: "Please login as the user \"debian\" rather than the user \"root\".\n\nmore\n"}), "NotRoot", fault.Invalid, `rather than the user \"root\"."; use another user (--user`},
		"nologin":     {"the shell runs nothing", fails("privileges", sshtest.Result{Code: 1, Output: "This account is currently not available.\n"}), "NotRoot", fault.Invalid, "cannot run commands: \"This account is currently not available.\""},
		"no shell":    {"the shell does not exist", fails("privileges", sshtest.Result{Code: 1}), "NotRoot", fault.Invalid, "exit status 1"},
		"bad disk":    {"programs cannot be read", fails("facts", sshtest.Result{Code: 126, Errors: "cat: /etc/os-release: Input/output error\n"}), remote.ReasonScriptFailed, fault.Transient, "script facts failed on host 127.0.0.1: cat: /etc/os-release: Input/output error"},
		"no message":  {"the exit status is all there is", fails("facts", sshtest.Result{Code: 3}), remote.ReasonScriptFailed, fault.Transient, "exit status 3"},
	} {
		s := sshtest.Start(t)
		tc.change(s)
		h, err := newPool(t, remote.Limits{}).Connect(t.Context(), s.Target())
		if err == nil {
			_, err = h.Facts(t.Context())
		}
		if f := fault.As(err); f == nil || f.Reason != tc.fault || f.Kind != tc.kind || !strings.Contains(f.Message, tc.text) || strings.Contains(f.Message, "more") {
			t.Errorf("%s: %+v, want %s with %q (%s)", name, f, tc.fault, tc.text, tc.reason)
		}
	}
}
