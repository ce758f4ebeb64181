package extensiontools

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
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/servingcert"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

const (
	// retryInterval is the delay between two attempts to reach the extension.
	retryInterval = 50 * time.Millisecond
	// attemptTimeout is the timeout of one attempt.
	attemptTimeout = 2 * time.Second
	// terminationGracePeriod is the termination grace period of the extension.
	terminationGracePeriod = 10 * time.Second
	// loopback is the listen address of the extension.
	loopback = "127.0.0.1"
)

// LocalOptions are the options of an extension process. The commands under `slipway extension` fill them in.
type LocalOptions struct {
	// Command is the command with its arguments.
	Command []string
	// Environment is the environment of the process, as in os.Environ. Variables that refer to management clusters are
	// removed from it.
	Environment []string
	// Out receives the output of the extension.
	Out io.Writer
	// Within is the startup timeout, including compilation by `go run`.
	Within time.Duration
}

// LocalExtension is a running extension process on the developer's machine. [RunSession] forwards calls to it, and
// `slipway extension replay` repeats calls with it.
type LocalExtension struct {
	// URL is its address, and Client trusts its certificate.
	URL    *url.URL
	Client *http.Client

	process *childproc.Process
	dir     string
	stop    sync.Once
}

// StartLocal starts the command of an extension's author and returns when it responds to the Discovery hook.
// [RunSession] and `slipway extension replay` call it. The environment variables are an interface for extensions in any
// language. The fault is Invalid if the command cannot be started or exits, and Unreachable if it does not respond in
// time.
func StartLocal(ctx context.Context, o LocalOptions) (*LocalExtension, error) {
	if len(o.Command) == 0 {
		return nil, fault.New(fault.Invalid, "Usage", "no command was given; put it after \"--\", as in: -- go run .")
	}
	x, err := prepare()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Env = append(withoutClusterAccess(o.Environment),
		extension.EnvAddress+"="+x.URL.Host, "EXTENSION_PORT="+x.URL.Port(),
		extension.EnvQuiet+"=true", // calls are displayed by the caller
		extension.EnvCertFile+"="+filepath.Join(x.dir, "tls.crt"), extension.EnvKeyFile+"="+filepath.Join(x.dir, "tls.key"))
	cmd.Stdout, cmd.Stderr = o.Out, o.Out
	cmd.WaitDelay = time.Second // do not wait for output inherited by grandchildren
	if x.process, err = childproc.Start(cmd, childproc.Bound); err != nil {
		_ = os.RemoveAll(x.dir)
		return nil, fault.New(fault.Invalid, "Command", "%s cannot be started: %v", o.Command[0], err)
	}
	if err := x.await(ctx, o); err != nil {
		x.Stop()
		return nil, err
	}
	return x, nil
}

// prepare selects a port and creates the certificate.
func prepare() (*LocalExtension, error) {
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
	return &LocalExtension{
		URL: &url.URL{Scheme: "https", Host: address}, dir: dir,
		Client: &http.Client{
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, ForceAttemptHTTP2: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// withoutClusterAccess removes variables that refer to management clusters from an environment, because an extension
// needs no credentials.
func withoutClusterAccess(environment []string) []string {
	var out []string
	for _, e := range environment {
		name, _, _ := strings.Cut(e, "=")
		if name != "KUBECONFIG" && !strings.HasPrefix(name, "KUBERNETES_") && !strings.HasPrefix(name, "SLIPWAY_") {
			out = append(out, e)
		}
	}
	return out
}

// await returns when the extension responds.
func (x *LocalExtension) await(ctx context.Context, o LocalOptions) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Within, errors.New("too late"))
	defer cancel()
	tick := time.NewTicker(retryInterval)
	defer tick.Stop()
	var last error
	for {
		if last = x.discover(ctx); last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-x.Done():
			return fault.New(fault.Invalid, "ExtensionEnded", "the extension exited before it responded: %s", x.ExitStatus())
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

func (x *LocalExtension) discover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
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

// Done returns a channel that is closed when the process has exited.
func (x *LocalExtension) Done() <-chan struct{} { return x.process.Done() }

// ExitStatus returns the exit status. Call it after Done.
func (x *LocalExtension) ExitStatus() string { return x.process.State().String() }

// Stop terminates the process group, first with SIGTERM and then with SIGKILL, and removes the certificate.
func (x *LocalExtension) Stop() {
	x.stop.Do(func() {
		_ = x.process.StopGroup(context.Background(), terminationGracePeriod)
		x.Client.CloseIdleConnections()
		_ = os.RemoveAll(x.dir)
	})
}
