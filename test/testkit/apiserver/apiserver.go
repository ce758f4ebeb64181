package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startWithin is the timeout for the start of the server, long enough for a busy machine.
const startWithin = 3 * time.Minute

// Options configures a server and the objects that exist when Start returns.
type Options struct {
	// CRDPaths are files or folders with CustomResourceDefinitions in YAML.
	CRDPaths []string
	// Objects are created, CustomResourceDefinitions first. Existing objects are not changed.
	Objects []client.Object
	// Args are additional arguments of "slipway plane run".
	Args []string
}

// Server is a running API server.
type Server struct {
	// Config is the client configuration of an administrator (group slipway:admins, cluster-admin).
	Config *rest.Config
	// Dir is the data directory.
	Dir string
	// Kubeconfig is the path of a kubeconfig file with the same configuration.
	Kubeconfig string

	cmd   *exec.Cmd
	stdin io.Closer
	log   string
	temp  string
	stop  sync.Once
}

// Start runs a server until the test ends. It is for tests that need a server of their own; [Main] shares one.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := run(o.Args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	if err := s.Install(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return s
}

// Main runs the tests of a package with one server for all of them. It passes the server to ready before the first
// test, and returns the exit code for os.Exit:
//
//	var server *apiserver.Server // set once, by TestMain
//
//	func TestMain(m *testing.M) {
//		os.Exit(apiserver.Main(m, apiserver.Options{}, func(s *apiserver.Server) { server = s }))
//	}
func Main(m *testing.M, o Options, ready func(*Server)) int {
	s, err := run(o.Args...)
	if err == nil {
		err = s.Install(context.Background(), o)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		if s != nil {
			_ = s.Stop()
		}
		return 1
	}
	ready(s)
	code := m.Run()
	if err := s.Stop(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "stop the API server:", err)
		return max(code, 1)
	}
	return code
}

// PID returns the process ID of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop kills the server and removes its folder. No test needs a graceful shutdown; the end-to-end tests of the
// management cluster cover it.
func (s *Server) Stop() error {
	var err error
	s.stop.Do(func() {
		_ = s.stdin.Close()
		err = s.cmd.Process.Kill()
		if errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		_ = s.cmd.Wait() // always reports that the process was killed
		err = errors.Join(err, os.RemoveAll(s.temp))
	})
	return err
}

func run(args ...string) (*Server, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	return Run(binary, args...)
}

// Run runs a server with the given binary until Stop is called, for programs other than tests, such as the benchmarks.
func Run(binary string, args ...string) (*Server, error) {
	temp, err := os.MkdirTemp("", "slipway-test-")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: filepath.Join(temp, "data"), log: filepath.Join(temp, "log"), temp: temp}
	if err := s.start(binary, args...); err != nil {
		_ = os.RemoveAll(temp)
		return nil, err
	}
	return s, nil
}

// start runs the hidden command "plane run" of the binary (package internal/cli/hidden). It gives the child process a
// pipe as standard input. When this process ends, for any reason, the pipe closes and the child stops.
func (s *Server) start(binary string, args ...string) error {
	log, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	s.cmd = exec.Command(binary, append([]string{"plane", "run", "--data-dir", s.Dir, "--listen", "127.0.0.1:0", "--until-stdin-closes"}, args...)...)
	s.cmd.Stderr = log
	// The mutation detector serves the test process; in the API server it only costs time.
	s.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUBE_CACHE_MUTATION_DETECTOR=") })
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C does not reach the server before the tests
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", binary, err)
	}
	s.stdin = stdin
	if err := s.await(stdout); err != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		text, _ := os.ReadFile(s.log)
		return fmt.Errorf("the API server did not start: %w\n%s", err, text[max(0, len(text)-8<<10):])
	}
	return nil
}

// await reads the line that the server prints when it is ready: JSON, written by the same hidden command.
func (s *Server) await(stdout io.Reader) error {
	kill := time.AfterFunc(startWithin, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	var ready struct {
		Kubeconfig string `json:"kubeconfig"`
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read its first line: %w", err)
	}
	if err := json.Unmarshal(line, &ready); err != nil {
		return fmt.Errorf("read %q: %w", line, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", ready.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	config.UserAgent = "slipway-test/" + runtime.Version()
	s.Config, s.Kubeconfig = config, ready.Kubeconfig
	return nil
}
