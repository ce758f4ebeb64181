package up

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// given are the verb's flags as a person types them.
func given(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	set := Command(term.Env{}, nil).Flags()
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return set
}

func opened(t *testing.T) *datadir.Handle {
	t.Helper()
	h, err := datadir.Open(datadir.Dir(filepath.Join(t.TempDir(), "data")), datadir.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func TestFlagsAreRemembered(t *testing.T) {
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason string
		last   map[string]string
		args   []string
		want   map[string]string // is kept for the next start
		says   string
	}{
		"first":     {"nothing was there, and nothing is given", nil, nil, map[string]string{}, ""},
		"given":     {"what is given is kept, a file by its absolute path", nil, []string{"--listen=127.0.0.1:1", "--without=a,b", "--config=x.yaml"}, map[string]string{"listen": "127.0.0.1:1", "without": "a,b", "config": filepath.Join(folder, "x.yaml")}, ""},
		"recalled":  {"what is not given is as it was, and said", map[string]string{"listen": "127.0.0.1:1", "without": "a,b"}, nil, map[string]string{"listen": "127.0.0.1:1", "without": "a,b"}, "As at the last start: --listen=127.0.0.1:1 --without=a,b\n"},
		"replaced":  {"what is given wins", map[string]string{"listen": "127.0.0.1:1"}, []string{"--listen=127.0.0.1:2"}, map[string]string{"listen": "127.0.0.1:2"}, ""},
		"defaults":  {"given defaults end it", map[string]string{"listen": "127.0.0.1:1", "without": "a", "config": "/x"}, []string{"--listen=127.0.0.1:6440", "--without=", "--config="}, map[string]string{}, ""},
		"not these": {"-d and the data directory are of this start", nil, []string{"-d", "--data-dir=/x", "--node"}, map[string]string{}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := opened(t)
			if tc.last != nil {
				if err := h.WriteFlags(tc.last); err != nil {
					t.Fatal(err)
				}
			}
			var said bytes.Buffer
			got, err := restoreFlags(&said, h.Dir, given(t, tc.args...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || said.String() != tc.says {
				t.Errorf("%s: %s said %q", tc.reason, diff, said.String())
			}
		})
	}
}

func TestRememberedFlagsThatCannotBeUsed(t *testing.T) {
	h := opened(t)
	if _, err := datadir.WriteFile(h.Path("flags.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := restoreFlags(&bytes.Buffer{}, h.Dir, given(t)); err == nil || !strings.Contains(err.Error(), "flags.json: unexpected end of JSON input): move the file away") {
		t.Errorf("got %v", err)
	}
}

// -d where it runs is no error, unless it runs otherwise.
func TestRunsAlready(t *testing.T) {
	tests := map[string]struct {
		run  *datadir.Run
		args []string
		done bool
		want string // of the error, or what is said
	}{
		"nothing runs":  {nil, nil, false, ""},
		"it starts":     {&datadir.Run{PID: os.Getpid()}, nil, false, ""},
		"it runs":       {&datadir.Run{PID: os.Getpid(), Ready: true, Server: "https://127.0.0.1:1"}, nil, true, "https://127.0.0.1:1"},
		"the same flag": {&datadir.Run{PID: os.Getpid(), Ready: true}, []string{"--listen=127.0.0.1:1", "--without="}, true, "Runs already"},
		"the same file": {&datadir.Run{PID: os.Getpid(), Ready: true}, []string{"--config=/x.yaml"}, true, `It read its configuration file when it started`},
		"other flags":   {&datadir.Run{PID: os.Getpid(), Ready: true}, []string{"--listen=127.0.0.1:2", "--node"}, false, `with another --listen and --node: run "slipway down" first`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := opened(t)
			if err := h.WriteFlags(map[string]string{"listen": "127.0.0.1:1", "config": "/x.yaml"}); err != nil {
				t.Fatal(err)
			}
			if tc.run != nil {
				if err := h.WriteRun(*tc.run); err != nil {
					t.Fatal(err)
				}
			}
			var said bytes.Buffer
			done, err := isRunning(term.Env{Err: &said}, h.Dir, given(t, tc.args...))
			if err != nil {
				said.WriteString(fault.UserMessage(err))
			}
			if done != tc.done || !strings.Contains(said.String(), tc.want) || (said.Len() > 0) != (tc.want != "") {
				t.Errorf("done %v, it says %q", done, said.String())
			}
		})
	}
}

// Two commands that start it at once end in the same: it runs.
func TestAwaitOther(t *testing.T) {
	held := fault.New(fault.Invalid, datadir.ReasonHeld, "held")
	t.Run("it becomes ready", func(t *testing.T) {
		h := opened(t)
		var said bytes.Buffer
		waits := writer(func(p []byte) (int, error) { // once it is said that it waits, the other is ready
			if !strings.Contains(said.String(), "Another command") {
				if err := h.WriteRun(datadir.Run{PID: os.Getpid(), Ready: true, Server: "https://127.0.0.1:1"}); err != nil {
					t.Error(err)
				}
			}
			return said.Write(p)
		})
		if err := waitForOtherStart(t.Context(), term.Env{Err: waits}, h.Dir, given(t), held); err != nil {
			t.Fatal(err)
		}
		if want := "waiting until it is ready"; !strings.Contains(said.String(), want) || !strings.Contains(said.String(), "Runs already (process") {
			t.Errorf("it says %q", said.String())
		}
	})
	t.Run("flags of the last start", func(t *testing.T) {
		h, set := opened(t), given(t)
		if err := h.WriteFlags(map[string]string{"feature-gates": "RuntimeSDK=false"}); err != nil {
			t.Fatal(err)
		}
		if _, err := restoreFlags(&bytes.Buffer{}, h.Dir, set); err != nil {
			t.Fatal(err)
		}
		if err := h.WriteFlags(map[string]string{"feature-gates": "RuntimeSDK=true"}); err != nil { // by the other command
			t.Fatal(err)
		}
		if err := h.WriteRun(datadir.Run{PID: os.Getpid(), Ready: true, Server: "https://127.0.0.1:1"}); err != nil {
			t.Fatal(err)
		}
		if err := waitForOtherStart(t.Context(), term.Env{Err: &bytes.Buffer{}}, h.Dir, set, held); err != nil {
			t.Error(err)
		}
	})
	t.Run("it ends", func(t *testing.T) {
		h := opened(t)
		ends := writer(func(p []byte) (int, error) { return len(p), h.Close() })
		if err := waitForOtherStart(t.Context(), term.Env{Err: ends}, h.Dir, given(t), held); !errors.Is(err, held) {
			t.Errorf("%v", err)
		}
	})
	t.Run("another directory's manager", func(t *testing.T) {
		h, err := datadir.Open(datadir.Dir(t.TempDir()), datadir.Holder{PID: os.Getpid(), ManagerOf: "https://192.0.2.1"})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close() //nolint:errcheck // the test ends
		if err := waitForOtherStart(t.Context(), term.Env{Err: &bytes.Buffer{}}, h.Dir, given(t), held); !errors.Is(err, held) {
			t.Errorf("%v", err)
		}
	})
}

// The directory of a manager does not become a management cluster; one that was a management cluster before stays one.
func TestRefuseManagers(t *testing.T) {
	h, err := datadir.Open(datadir.Dir(t.TempDir()), datadir.Holder{PID: os.Getpid(), ManagerOf: "https://192.0.2.1:6443", Command: "slipway manager --kubeconfig=k"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := checkNotManagerDir(h.Dir); fault.KindOf(err) != fault.Invalid || !strings.HasSuffix(err.Error(), "belongs to a manager of https://192.0.2.1:6443; choose another --data-dir, start that manager (slipway manager --kubeconfig=k), or delete its resources on this host: slipway down --delete --data-dir "+string(h.Dir)) {
		t.Errorf("%v", err)
	}
	if err := os.MkdirAll(h.Etcd(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := checkNotManagerDir(h.Dir); err != nil {
		t.Error(err)
	}
	if err := checkNotManagerDir(datadir.Dir(filepath.Join(t.TempDir(), "new"))); err != nil {
		t.Error(err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// What was kept is what the background process is given: a start with -d twice over leaves the same.
func TestUpWithoutConfigurationOfTheLastStart(t *testing.T) {
	h := opened(t)
	if err := h.WriteFlags(map[string]string{"config": "/gone.yaml"}); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	e := term.Env{Err: &said, Out: &said}
	cmd := Command(e, nil)
	cmd.SetArgs([]string{"--data-dir", string(h.Dir)})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), "/gone.yaml") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(said.String(), "As at the last start: --config=/gone.yaml") {
		t.Errorf("it does not say where the flag comes from: %q", said.String())
	}
}

// What is refused leaves no data directory behind, which "slipway status" would take for a management cluster.
func TestRefusedAddress(t *testing.T) {
	for _, args := range [][]string{{"--listen", "0.0.0.0:6440"}, {"--listen", "0.0.0.0:6440", "--detach"}} {
		dir := filepath.Join(t.TempDir(), "data")
		var out bytes.Buffer
		cmd := Command(term.Env{Out: &out, Err: &out, Now: time.Now, Getenv: func(string) string { return "" }}, nil)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append(args, "--data-dir", dir))
		if err := cmd.ExecuteContext(t.Context()); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "loopback address only") {
			t.Errorf("%v: %v", args, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%v: a directory was left: %v", args, err)
		}
	}
}
