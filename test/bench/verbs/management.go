package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/procfs"
)

// endWithin is how long removing a management cluster may take.
const endWithin = 5 * time.Minute

// management is a management cluster in a folder of its own.
type management struct {
	binary, folder string
	config         *rest.Config
	client         client.Client
}

// start starts one with these flags.
func start(ctx context.Context, binary string, flags ...string) (m *management, err error) {
	folder, err := os.MkdirTemp("", "slipway-verbs-")
	if err != nil {
		return nil, err
	}
	m = &management{binary: binary, folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.end(ctx))
		}
	}()
	if _, err := m.run(ctx, binary, append([]string{"up", "-d", "--listen", "127.0.0.1:0", "--data-dir", m.data()}, flags...)...); err != nil {
		return m, err
	}
	if m.config, err = clientcmd.BuildConfigFromFlags("", m.kubeconfig()); err != nil {
		return m, err
	}
	m.config.QPS = -1
	m.client, err = client.New(m.config, client.Options{})
	return m, err
}

func (m *management) data() string { return filepath.Join(m.folder, "data") }

func (m *management) kubeconfig() string { return filepath.Join(m.data(), "kubeconfig") }

// end stops it and removes all of it.
func (m *management) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	if _, err := m.run(ctx, m.binary, "down", "--delete", "--data-dir", m.data()); err != nil {
		return fmt.Errorf("%w (%s is left)", err, m.folder)
	}
	return os.RemoveAll(m.folder)
}

// cost of a program that has ended.
type cost struct {
	seconds, megabytes float64
}

// run runs a program, with no configuration but its flags.
func (m *management) run(ctx context.Context, name string, args ...string) (cost, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.folder, "CLUSTERCTL_DISABLE_VERSIONCHECK=true", "NO_COLOR=1"}
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	ended, most := make(chan struct{}), make(chan int64)
	go func() { most <- peak(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	close(ended)
	out := cost{seconds: time.Since(began).Seconds(), megabytes: float64(<-most) / 1e6}
	if err != nil {
		return cost{}, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, last(said.String()))
	}
	return out, nil
}

// peak is the most memory that a process had, read every moment until it has ended. What the kernel says of one that has ended counts that of
// this program, too, from which it was started.
func peak(pid int, ended <-chan struct{}) (bytes int64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if m, err := procfs.ReadMemory(os.DirFS("/proc"), pid); err == nil { // or it is ending
			bytes = max(bytes, m.Resident)
		}
		select {
		case <-ended:
			return bytes
		case <-tick.C:
		}
	}
}

// last are the last lines of what a program said.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// counted serves the API server's API in plain HTTP on loopback, counts requests, and returns a kubeconfig for it.
func (m *management) counted() (kubeconfig string, count *atomic.Int64, stop func() error, err error) {
	transport, err := rest.TransportFor(m.config)
	if err != nil {
		return "", nil, nil, err
	}
	to, err := url.Parse(m.config.Host)
	if err != nil {
		return "", nil, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, nil, err
	}
	count = &atomic.Int64{}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			count.Add(1)
			r.SetURL(to)
		},
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until it is closed
	kubeconfig = filepath.Join(m.folder, "counted.kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: \"http://%s\"}}]\n"+
		"users: [{name: c, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n", listener.Addr())
	return kubeconfig, count, server.Close, os.WriteFile(kubeconfig, []byte(text), 0o600)
}
