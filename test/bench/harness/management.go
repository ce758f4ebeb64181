package harness

import (
	"bytes"
	"context"
	"encoding/json"
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

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// Installation is a management cluster of `slipway up` in a temporary data directory.
type Installation struct {
	Folder string
	binary string
	env    []string
}

// WithInstallation calls do with an installation that has not been started, and removes the installation afterwards, also
// after an interrupt. The environment variables apply to all its commands.
func WithInstallation(ctx context.Context, binary string, do func(*Installation), env ...string) {
	in := &Installation{Folder: Must(os.MkdirTemp("", "slipway-bench-")), binary: binary, env: env}
	defer Close(func() error { return in.remove(ctx) })
	do(in)
}

func (in *Installation) DataDir() string { return filepath.Join(in.Folder, "data") }

func (in *Installation) Kubeconfig() string { return filepath.Join(in.DataDir(), "kubeconfig") }

// Output is the output and the cost of a command.
type Output struct {
	Text       string // standard output
	Seconds    float64
	MemoryPeak float64 // MB
}

func (in *Installation) Run(ctx context.Context, args ...string) Output {
	return in.RunProgram(ctx, in.binary, args...)
}

// RunProgram runs a program. The error contains the end of its error output.
func (in *Installation) RunProgram(ctx context.Context, name string, args ...string) (out Output) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(append(os.Environ(), "NO_COLOR=1", "CLUSTERCTL_DISABLE_VERSIONCHECK=true"), in.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	Checkf(cmd.Start(), "start %s", name)
	var err error
	// The kernel's peak of a process that has exited would cover the benchmark, from which it was forked.
	Sampling(context.WithoutCancel(ctx), 20*time.Millisecond, func() {
		_ = Try(func() { out.MemoryPeak = max(out.MemoryPeak, ReadLoad(cmd.Process.Pid).Megabytes()) }) // fails while the process exits
	}, func() {
		err = cmd.Wait()
		out.Seconds = time.Since(start).Seconds()
	})
	out.Text = stdout.String()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		Failf("%s %s: %w: %s", filepath.Base(name), args[0], err, lastLines(stderr.String(), 10))
	}
	return out
}

// Start starts the management cluster and returns the time in seconds.
func (in *Installation) Start(ctx context.Context, flags ...string) float64 {
	return in.Run(ctx, append([]string{"up", "-d", "--data-dir", in.DataDir(), "--listen", "127.0.0.1:0"}, flags...)...).Seconds
}

// Up starts the management cluster and returns an administrator's client configuration without a rate limit.
func (in *Installation) Up(ctx context.Context, flags ...string) *rest.Config {
	in.Start(ctx, flags...)
	config := Must(clientcmd.BuildConfigFromFlags("", in.Kubeconfig()))
	config.QPS = -1
	return config
}

// Down stops the management cluster.
func (in *Installation) Down(ctx context.Context) { in.Run(ctx, "down", "--data-dir", in.DataDir()) }

func (in *Installation) Kubectl(ctx context.Context, args ...string) {
	in.Run(ctx, append([]string{"kubectl", "--kubeconfig", in.Kubeconfig()}, args...)...)
}

// DeleteCluster deletes a Cluster and waits until it is gone.
func (in *Installation) DeleteCluster(ctx context.Context, namespace, name string) {
	in.Run(ctx, "delete", "cluster", name, "-n", namespace, "--data-dir", in.DataDir())
}

func (in *Installation) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	if err := Try(func() { in.Run(ctx, "down", "--delete", "--data-dir", in.DataDir()) }); err != nil {
		return fmt.Errorf("%w (%s was not removed)", err, in.Folder)
	}
	return os.RemoveAll(in.Folder)
}

// PID returns the process ID of the management cluster.
func (in *Installation) PID(ctx context.Context) int {
	return parsePID(in.Run(ctx, "status", "-o", "json", "--data-dir", in.DataDir()).Text)
}

// parsePID reads the output of `slipway status -o json`.
func parsePID(text string) int {
	var s struct {
		State      string
		Management struct{ PID int }
	}
	Checkf(json.Unmarshal([]byte(text), &s), "parse the output of slipway status")
	if s.Management.PID == 0 {
		Failf("the management cluster is not running: its state is %s", s.State)
	}
	return s.Management.PID
}

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
func StartEnvironment(ctx context.Context, binary string, flags ...string) *Environment {
	e := &Environment{binary: binary, flags: flags, server: Must(apiserver.Run(binary))}
	e.Config = rest.CopyConfig(e.server.Config)
	e.Config.QPS = -1
	err := Try(func() {
		e.folder = Must(os.MkdirTemp("", "slipway-bench-"))
		for _, port := range []*string{&e.ports.health, &e.ports.diagnostics, &e.ports.webhooks} {
			*port = freePort(ctx)
		}
		e.StartManager(ctx)
	})
	if err != nil {
		Check(errors.Join(err, e.Stop()))
	}
	return e
}

// StartManager starts the manager and waits until it is ready. Like `slipway up` it sets no rate limit.
func (e *Environment) StartManager(ctx context.Context) {
	log := Must(os.OpenFile(e.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))
	defer Close(log.Close)
	cmd := exec.Command(e.binary, append([]string{"manager", "--kubeconfig", e.server.Kubeconfig, "--data-dir", filepath.Join(e.folder, "data"),
		"--kube-api-qps=-1", "--health-addr", "127.0.0.1:" + e.ports.health,
		"--diagnostics-address", "127.0.0.1:" + e.ports.diagnostics, "--insecure-diagnostics",
		"--webhook-host", "127.0.0.1", "--webhook-port", e.ports.webhooks}, e.flags...)...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	Checkf(cmd.Start(), "start the manager")
	exited := make(chan struct{})
	go func() { defer close(exited); _ = cmd.Wait() }()
	e.manager, e.exited = cmd, exited
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		_, err := httpGet(ctx, "http://127.0.0.1:"+e.ports.health+"/readyz")
		if err == nil {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-exited:
			Check(e.withLog(errors.New("the manager has exited")))
		case <-ctx.Done():
			Checkf(err, "wait for the manager to become ready")
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
func (e *Environment) Usage() Usage {
	if e.manager == nil {
		Failf("the manager is not running")
	}
	return Usage{At: time.Now(), Server: ReadLoad(e.server.PID()), Manager: ReadLoad(e.manager.Process.Pid)}
}

func (e *Environment) Reconciliations(ctx context.Context) Reconciliations {
	return ParseReconciliations(e.metrics(ctx))
}

func (e *Environment) Goroutines(ctx context.Context) int {
	family := parseMetrics(e.metrics(ctx), "go_goroutines")
	return int(family.GetMetric()[0].GetGauge().GetValue())
}

func (e *Environment) metrics(ctx context.Context) []byte {
	return Must(e.diagnostics(ctx, "/metrics"))
}

// WriteProfiles writes pprof profiles of both processes, for example profile?seconds=30 or heap. file has the verb %s for the
// process.
func (e *Environment) WriteProfiles(ctx context.Context, profile, file string) {
	path := "/debug/pprof/" + profile
	server := Must(discovery.NewDiscoveryClientForConfig(e.Config)).RESTClient()
	write := func(process string, text []byte, err error) {
		Checkf(err, "get the profile %s of the %s", profile, process)
		Check(os.WriteFile(fmt.Sprintf(file, process), text, 0o600))
	}
	Together(ctx, func(ctx context.Context) {
		text, err := e.diagnostics(ctx, path)
		write("manager", text, err)
	}, func(ctx context.Context) {
		text, err := server.Get().RequestURI(path).DoRaw(ctx)
		write("apiserver", text, err)
	})
}

// WithLog calls do and adds the end of the manager's log to its error.
func (e *Environment) WithLog(do func()) { Check(e.withLog(Try(do))) }

func (e *Environment) withLog(err error) error {
	if err == nil {
		return nil
	}
	text, readErr := os.ReadFile(e.logFile())
	return errors.Join(fmt.Errorf("%w\nend of the manager's log:\n%s", err, lastLines(string(text), 30)), readErr)
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

func freePort(ctx context.Context) string {
	listener := Must((&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"))
	defer Close(listener.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	Check(err)
	return port
}
