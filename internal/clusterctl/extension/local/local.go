// Package local runs an extension as a process of this machine.
//
// Does: starts a command with a port, a certificate and a key in its environment, waits until it answers the Discovery
// hook, and stops it with all it started.
//
// Owns: the folder with certificate and key, and the process group.
//
// Never: gives the extension credentials of a management cluster: KUBECONFIG is taken out of its environment.
//
// Read first: [Start].
package local

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/servingcert"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

const (
	// again is how long to wait between two attempts to reach the extension.
	again = 50 * time.Millisecond
	// attempt is how long one of them may take.
	attempt = 2 * time.Second
	// patience is how long the extension may take to stop before it is killed.
	patience = 10 * time.Second
	// loopback is where the extension is to listen.
	loopback = "127.0.0.1"
)

// Options say what to start.
type Options struct {
	// Command with its arguments.
	Command []string
	// Environment that the extension gets, besides what this package sets, as in os.Environ.
	Environment []string
	// Out receives what the extension prints.
	Out io.Writer
	// Within is how long it may take to answer, compilation by `go run` included.
	Within time.Duration
}

// Extension is a process that answers.
type Extension struct {
	// URL it serves at, and Client that trusts its certificate.
	URL    *url.URL
	Client *http.Client

	cmd   *exec.Cmd
	dir   string
	ended chan struct{}
	err   error
}

// Start starts the command and returns once it answers the Discovery hook. The faults say what to do: of kind Invalid
// when the command cannot be started or ends, Unreachable when it does not answer in time.
func Start(ctx context.Context, o Options) (*Extension, error) {
	if len(o.Command) == 0 {
		return nil, fault.New(fault.Invalid, "Usage", "no command was given; put it after \"--\", as in: -- go run .")
	}
	x, err := prepare()
	if err != nil {
		return nil, err
	}
	x.cmd = exec.Command(o.Command[0], o.Command[1:]...)
	x.cmd.Env = append(Clean(o.Environment),
		extension.EnvAddress+"="+x.URL.Host, "EXTENSION_PORT="+x.URL.Port(),
		extension.EnvQuiet+"=true", // each call is shown by who runs it
		extension.EnvCertFile+"="+filepath.Join(x.dir, "tls.crt"), extension.EnvKeyFile+"="+filepath.Join(x.dir, "tls.key"))
	x.cmd.Stdout, x.cmd.Stderr = o.Out, o.Out
	x.cmd.WaitDelay = time.Second // what a grandchild left open must not hold us
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := x.cmd.Start(); err != nil {
		_ = os.RemoveAll(x.dir)
		return nil, fault.New(fault.Invalid, "Command", "%s cannot be started: %v", o.Command[0], err)
	}
	go func() {
		x.err = x.cmd.Wait()
		close(x.ended)
	}()
	if err := x.await(ctx, o); err != nil {
		x.Stop()
		return nil, err
	}
	return x, nil
}

// prepare chooses a port and makes the certificate.
func prepare() (*Extension, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return nil, fmt.Errorf("choosing a port: %w", err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, fmt.Errorf("choosing a port: %w", err)
	}
	made, err := servingcert.New(loopback, "localhost")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "slipway-extension-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the certificate: %w", err)
	}
	for name, data := range map[string][]byte{"tls.crt": made.Certificate, "tls.key": made.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("writing the certificate: %w", err), os.RemoveAll(dir))
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(made.CA)
	return &Extension{
		URL: &url.URL{Scheme: "https", Host: address}, dir: dir, ended: make(chan struct{}),
		Client: &http.Client{
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, ForceAttemptHTTP2: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Clean takes out of an environment what leads to management clusters.
func Clean(environment []string) []string {
	var out []string
	for _, e := range environment {
		name, _, _ := strings.Cut(e, "=")
		if name != "KUBECONFIG" && !strings.HasPrefix(name, "KUBERNETES_") && !strings.HasPrefix(name, "SLIPWAY_") {
			out = append(out, e)
		}
	}
	return out
}

// await returns when the extension answers.
func (x *Extension) await(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Within, errors.New("too late"))
	defer cancel()
	tick := time.NewTicker(again)
	defer tick.Stop()
	var last error
	for {
		if last = x.discover(ctx); last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-x.ended:
			return fault.New(fault.Invalid, "ExtensionEnded", "the extension ended before it answered: %s", x.Ending())
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return fault.New(fault.Unreachable, "ExtensionSilent",
				"the extension did not answer the Discovery hook at %s within %s; it must listen at the address in %s with the certificate in %s and the key in %s; the last try: %v",
				x.URL, o.Within, extension.EnvAddress, extension.EnvCertFile, extension.EnvKeyFile, last)
		}
	}
}

func (x *Extension) discover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q}`, hooks.Discovery.APIVersion(), hooks.Discovery.RequestKind())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, x.URL.String()+hooks.Discovery.Path(""), bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := x.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 512))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers with %s: %s", response.Status, bytes.TrimSpace(text))
	}
	return nil
}

// Done is closed when the process has ended.
func (x *Extension) Done() <-chan struct{} { return x.ended }

// Ending says how it ended. Call it after Done.
func (x *Extension) Ending() string {
	if x.err == nil {
		return "exit status 0"
	}
	return x.err.Error()
}

// Stop ends the process and what it started, politely at first, and removes its certificate.
func (x *Extension) Stop() {
	x.signal(syscall.SIGTERM)
	select {
	case <-x.ended:
	case <-time.After(patience):
	}
	x.signal(syscall.SIGKILL)
	<-x.ended
	x.Client.CloseIdleConnections()
	_ = os.RemoveAll(x.dir)
}

// signal reaches the process group, which outlives its first process when that leaves something behind.
func (x *Extension) signal(s syscall.Signal) { _ = syscall.Kill(-x.cmd.Process.Pid, s) }
