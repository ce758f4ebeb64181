package pair

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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
	"github.com/slipwayhq/slipway/test/bench/procfs"
)

// readyWithin only ends a start that hangs.
const readyWithin = 3 * time.Minute

// Pair is a management cluster with one manager.
type Pair struct {
	// Config reaches the management cluster as its administrator, without a limit of requests.
	Config *rest.Config
	// Folder holds the data of the manager and the logs.
	Folder string

	binary string
	flags  []string
	server *apiserver.Server
	ports  ports

	mu      sync.Mutex
	manager *exec.Cmd     // nil while none was started
	ended   chan struct{} // closed when the manager's process has ended
}

// ports of the manager on the loopback interface.
type ports struct{ health, diagnostics, webhooks string }

// Start starts the management cluster and the manager, which gets more flags.
func Start(ctx context.Context, binary string, flags ...string) (*Pair, error) {
	folder, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return nil, err
	}
	p := &Pair{Folder: folder, binary: binary, flags: flags}
	if p.server, err = apiserver.Run(binary); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	p.Config = rest.CopyConfig(p.server.Config)
	p.Config.QPS = -1
	for _, port := range []*string{&p.ports.health, &p.ports.diagnostics, &p.ports.webhooks} {
		if *port, err = freePort(ctx); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
	}
	if err := p.StartManager(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// StartManager starts the manager and returns when it is ready. Its limit of requests is what `slipway up` has: none.
func (p *Pair) StartManager(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(p.Folder, "manager.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.binary, "manager", "--kubeconfig", p.server.Kubeconfig, "--data-dir", filepath.Join(p.Folder, "data"),
		"--kube-api-qps=-1", "--health-addr", "127.0.0.1:"+p.ports.health,
		"--diagnostics-address", "127.0.0.1:"+p.ports.diagnostics, "--insecure-diagnostics",
		"--webhook-host", "127.0.0.1", "--webhook-port", p.ports.webhooks)
	cmd.Args = append(cmd.Args, p.flags...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	p.mu.Lock()
	p.manager, p.ended = cmd, ended
	p.mu.Unlock()
	return p.ready(ctx, ended)
}

func (p *Pair) ready(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		_, err := get(ctx, "http://127.0.0.1:"+p.ports.health+"/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ended:
			return fmt.Errorf("the manager has ended: %s", p.Log(20))
		case <-ctx.Done():
			return fmt.Errorf("the manager is not ready: %w", err)
		}
	}
}

// KillManager ends the manager as kill -9 does.
func (p *Pair) KillManager() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.manager == nil {
		return nil
	}
	err := p.manager.Process.Kill()
	<-p.ended
	p.manager = nil
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop ends both and removes what they wrote.
func (p *Pair) Stop() error {
	return errors.Join(p.KillManager(), p.server.Stop(), os.RemoveAll(p.Folder))
}

// Load is what a process uses.
type Load struct {
	Memory int64         // resident, bytes
	CPU    time.Duration // since it began
	Files  int           // open file descriptors
}

// Kubeconfig is the path of the administrator's.
func (p *Pair) Kubeconfig() string { return p.server.Kubeconfig }

// Usage is what the two use at one moment.
type Usage struct {
	At              time.Time
	Server, Manager Load
}

// Usage fails when one of the two is gone.
func (p *Pair) Usage() (Usage, error) {
	proc := os.DirFS("/proc")
	all, err := procfs.Read(proc)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{At: time.Now()}
	if u.Server, err = load(all, p.server.PID()); err != nil {
		return u, fmt.Errorf("the management cluster: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.manager == nil {
		return u, errors.New("the manager does not run")
	}
	if u.Manager, err = load(all, p.manager.Process.Pid); err != nil {
		return u, fmt.Errorf("the manager: %w", err)
	}
	return u, nil
}

func load(all procfs.Processes, pid int) (Load, error) {
	one, ok := all[pid]
	if !ok {
		return Load{}, fmt.Errorf("process %d has ended", pid)
	}
	files, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	if err != nil {
		return Load{}, err
	}
	return Load{Memory: one.Pages * int64(os.Getpagesize()), CPU: one.CPU, Files: len(files)}, nil
}

// Metrics are the manager's, in the Prometheus text format.
func (p *Pair) Metrics(ctx context.Context) (string, error) {
	return get(ctx, "http://127.0.0.1:"+p.ports.diagnostics+"/metrics")
}

// Goroutines is how many the manager has.
func (p *Pair) Goroutines(ctx context.Context) (int, error) {
	text, err := get(ctx, "http://127.0.0.1:"+p.ports.diagnostics+"/debug/pprof/goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(text, "\n")
	var n int
	if _, err := fmt.Sscanf(first, "goroutine profile: total %d", &n); err != nil {
		return 0, fmt.Errorf("read the manager's profile of goroutines: %q: %w", first, err)
	}
	return n, nil
}

// Profile writes one of the manager's profiles (pprof), for example profile?seconds=30 or heap, to a file.
func (p *Pair) Profile(ctx context.Context, name, file string) error {
	text, err := get(ctx, "http://127.0.0.1:"+p.ports.diagnostics+"/debug/pprof/"+name)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

// ServerProfile is Profile for the management cluster.
func (p *Pair) ServerProfile(ctx context.Context, name, file string) error {
	c, err := discovery.NewDiscoveryClientForConfig(p.Config)
	if err != nil {
		return err
	}
	text, err := c.RESTClient().Get().RequestURI("/debug/pprof/" + name).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("ask the API server for a profile: %w", err)
	}
	return os.WriteFile(file, text, 0o600)
}

// Log is the end of the manager's log.
func (p *Pair) Log(lines int) string {
	text, err := os.ReadFile(filepath.Join(p.Folder, "manager.log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, response.Status)
	}
	return string(body), nil
}

func freePort(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}
