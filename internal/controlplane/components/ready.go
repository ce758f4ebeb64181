package components

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// readyEvery is the interval between probes of a starting API server, and probeWithin the timeout of one
	// probe.
	readyEvery  = 50 * time.Millisecond
	probeWithin = 15 * time.Second
	// reportEvery is the interval between reports during a long start.
	reportEvery = 20 * time.Second
)

// ReadyOptions configures how to wait for an API server to be ready. [Components.Run] and package controlplane pass it
// to [AwaitReady].
type ReadyOptions struct {
	// Exclude lists the checks of /readyz to ignore.
	Exclude []string
	// Report is called repeatedly with the reason why the server is not ready. If nil, the reason is logged.
	Report func(reason string)
}

// AwaitReady waits for /readyz of a starting API server until the group ends. Components start after it. It has no
// timeout, because the duration of a start depends on the host. The supervisor of the process decides whether it still
// makes progress.
func AwaitReady(g *Group, c *rest.Config, w ReadyOptions) error {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return err
	}
	if w.Report == nil {
		w.Report = func(reason string) { klog.InfoS("Waiting for kube-apiserver to be ready", "reason", reason) }
	}
	ticker, report := time.NewTicker(readyEvery), time.NewTicker(reportEvery)
	defer ticker.Stop()
	defer report.Stop()
	for reason := ""; ; {
		request := client.Discovery().RESTClient().Get().AbsPath("/readyz")
		for _, check := range w.Exclude {
			request = request.Param("exclude", check)
		}
		ctx, cancel := context.WithTimeout(g.Context(), probeWithin)
		answer, err := request.DoRaw(ctx)
		cancel()
		if err == nil {
			return nil
		}
		reason = unready(answer, err)
		select {
		case <-report.C:
			w.Report(reason)
		default:
		}
		select {
		case <-ticker.C:
		case <-g.Context().Done():
			return g.Context().Err()
		}
	}
}

// unready returns the reason why a server is not ready: the failing checks of /readyz, or the error of the
// request.
func unready(answer []byte, err error) string {
	var failing []string
	for line := range bytes.Lines(answer) {
		if check, ok := strings.CutPrefix(string(line), "[-]"); ok {
			name, _, _ := strings.Cut(check, " ")
			failing = append(failing, name)
		}
	}
	switch {
	case len(failing) > 0:
		return strings.Join(failing, ", ")
	case errors.Is(err, context.DeadlineExceeded):
		return "it does not respond yet"
	}
	return err.Error()
}
