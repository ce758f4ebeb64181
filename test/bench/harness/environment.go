package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
)

// Environment is an API server and a manager in two processes, so that each can be measured and killed separately. Stop
// ends both and removes their data. The manager must not be started or killed concurrently with other methods.
type Environment struct {
	Config *rest.Config // administrator, without a rate limit

	folder, binary string
	flags          []string
	server         *apiserver.Server
	ports          struct{ health, diagnostics, webhooks string }
	manager        *exec.Cmd     // nil while it does not run
	exited         chan struct{} // closed when the manager has exited
}

// StartEnvironment starts an API server and a manager with further flags.
func StartEnvironment(ctx context.Context, binary string, flags ...string) (*Environment, error) {
	folder, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return nil, err
	}
	e := &Environment{folder: folder, binary: binary, flags: flags}
	if e.server, err = apiserver.Run(binary); err != nil {
		return nil, errors.Join(fmt.Errorf("start the API server: %w", err), os.RemoveAll(folder))
	}
	e.Config = rest.CopyConfig(e.server.Config)
	e.Config.QPS = -1
	for _, port := range []*string{&e.ports.health, &e.ports.diagnostics, &e.ports.webhooks} {
		if *port, err = freePort(ctx); err != nil {
			return nil, errors.Join(err, e.Stop())
		}
	}
	if err := e.StartManager(ctx); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// StartManager starts the manager and waits until it is ready. Like `slipway up` it sets no rate limit.
func (e *Environment) StartManager(ctx context.Context) error {
	log, err := os.OpenFile(e.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(e.binary, append([]string{"manager", "--kubeconfig", e.server.Kubeconfig, "--data-dir", filepath.Join(e.folder, "data"),
		"--kube-api-qps=-1", "--health-addr", "127.0.0.1:" + e.ports.health,
		"--diagnostics-address", "127.0.0.1:" + e.ports.diagnostics, "--insecure-diagnostics",
		"--webhook-host", "127.0.0.1", "--webhook-port", e.ports.webhooks}, e.flags...)...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	exited := make(chan struct{})
	go func() { defer close(exited); _ = cmd.Wait() }()
	e.manager, e.exited = cmd, exited
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		if _, err = httpGet(ctx, "http://127.0.0.1:"+e.ports.health+"/readyz"); err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-exited:
			return e.WithLog(errors.New("the manager has exited"))
		case <-ctx.Done():
			return fmt.Errorf("wait for the manager to become ready: %w", err)
		}
	}
}

// KillManager kills the manager with SIGKILL.
func (e *Environment) KillManager() error {
	if e.manager == nil {
		return nil
	}
	err := e.manager.Process.Kill()
	<-e.exited
	e.manager = nil
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the manager: %w", err)
	}
	return nil
}

// Stop ends both processes and removes their data.
func (e *Environment) Stop() error {
	return errors.Join(e.KillManager(), e.server.Stop(), os.RemoveAll(e.folder))
}

func (e *Environment) Kubeconfig() string { return e.server.Kubeconfig }

type Usage struct {
	At              time.Time
	Server, Manager Load
}

// Usage reads the resource use of both processes, which must be running.
func (e *Environment) Usage() (u Usage, err error) {
	if e.manager == nil {
		return u, errors.New("the manager is not running")
	}
	u.At = time.Now()
	if u.Server, err = ReadLoad(e.server.PID()); err != nil {
		return u, fmt.Errorf("read the usage of the API server: %w", err)
	}
	if u.Manager, err = ReadLoad(e.manager.Process.Pid); err != nil {
		return u, fmt.Errorf("read the usage of the manager: %w", err)
	}
	return u, nil
}

func (e *Environment) Reconciliations(ctx context.Context) (Reconciliations, error) {
	text, err := e.diagnostics(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	return ParseReconciliations(text)
}

func (e *Environment) Goroutines(ctx context.Context) (n int, err error) {
	text, err := e.diagnostics(ctx, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(string(text), "goroutine profile: total %d", &n); err != nil {
		return 0, fmt.Errorf("parse the goroutine profile: %w", err)
	}
	return n, nil
}

// WriteProfiles writes pprof profiles of both processes, for example profile?seconds=30 or heap. file has the verb %s for the
// process.
func (e *Environment) WriteProfiles(ctx context.Context, profile, file string) error {
	c, err := discovery.NewDiscoveryClientForConfig(e.Config)
	if err != nil {
		return err
	}
	get := map[string]func(context.Context) ([]byte, error){
		"manager": func(ctx context.Context) ([]byte, error) { return e.diagnostics(ctx, "/debug/pprof/"+profile) },
		"apiserver": func(ctx context.Context) ([]byte, error) {
			return c.RESTClient().Get().RequestURI("/debug/pprof/" + profile).DoRaw(ctx)
		},
	}
	group, ctx := errgroup.WithContext(ctx)
	for process, get := range get {
		group.Go(func() error {
			text, err := get(ctx)
			if err != nil {
				return fmt.Errorf("get the profile %s of the %s: %w", profile, process, err)
			}
			return os.WriteFile(fmt.Sprintf(file, process), text, 0o600)
		})
	}
	return group.Wait()
}

// WithLog adds the end of the manager's log to an error.
func (e *Environment) WithLog(err error) error {
	text, readErr := os.ReadFile(e.logFile())
	if err == nil || readErr != nil {
		return errors.Join(err, readErr)
	}
	return fmt.Errorf("%w\nend of the manager's log:\n%s", err, lastLines(string(text), 30))
}

func (e *Environment) logFile() string { return filepath.Join(e.folder, "manager.log") }

func (e *Environment) diagnostics(ctx context.Context, path string) ([]byte, error) {
	return httpGet(ctx, "http://127.0.0.1:"+e.ports.diagnostics+path)
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

func httpGet(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

func freePort(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}
