package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/certificates"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/controlplane"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/managerproc"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/managementnode"
)

// eventTimeout is the timeout for storing the Events of a crash.
const eventTimeout = 10 * time.Second

// managerRunner runs the manager next to the management cluster of `slipway up` and reports its status: to the user, to
// other processes in run.json, and in Events of objects that crashed it. service.run creates it when the API server is
// up. Methods for the node are in node.go.
type managerRunner struct {
	service     service
	handle      *datadir.Handle
	root        *rest.Config
	reporter    progressReporter
	clusterNode *node // nil: there is none

	// mu guards state, which the goroutines of the manager, the node and watchLiveness change. state.Manager is
	// replaced and never changed, because watchLiveness reads it without mu.
	mu    sync.Mutex
	state datadir.Run
}

// run runs the manager until ctx is done, then returns nil, or until the management cluster or the first start of the
// manager fails. It calls ready when the management cluster and the manager are ready; the node may still be joining.
// The reporter is called after the wait for the node.
func (k *managerRunner) run(ctx context.Context, e term.Env, m *controlplane.Management, ready func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-m.Done():
			cancel(nil)
		case <-ctx.Done():
		}
	}()
	joined, err := k.startNode(ctx, e)
	if err != nil {
		return err
	}
	kinds, err := k.startCertificates(ctx, e)
	if err != nil {
		return err
	}
	err = k.runManager(ctx, e, func() {
		if err := k.ready(ctx, m, kinds); err != nil {
			cancel(err)
			return
		}
		ready()
		go k.watchLiveness(ctx, e.Now)
		go func() { // runManager restarts the manager meanwhile
			if k.awaitNode(ctx, joined); ctx.Err() == nil {
				k.reporter.ready()
			}
		}()
	})
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	return err
}

// runManager runs the manager until ctx is done. Without enabled providers there is no manager.
func (k *managerRunner) runManager(ctx context.Context, e term.Env, ready func()) error {
	if len(k.service.policy.Sets()) == 0 {
		ready()
		<-ctx.Done()
		return nil
	}
	executable, err := e.Executable()
	if err != nil {
		return err
	}
	limit := k.service.policy.Manager.MemoryMiB << 20
	if limit == 0 {
		if limit, err = heap.DefaultLimit(); err != nil {
			return err
		}
	}
	return managerproc.Run(ctx, managerproc.Config{
		Command: []string{executable, ManagerVerb},
		Instructions: Instructions{
			Dir: k.service.dir, Instance: k.handle.Instance, Executable: executable, FeatureGates: k.service.gates, Policy: k.service.policy,
		},
		MemoryLimit: limit, Log: os.Stderr, Now: e.Now,
		Ready:   ready,
		Changed: k.changed,
		Failed:  func(f managerproc.Failure) { k.failed(ctx, f) },
	})
}

// startCertificates issues Certificates until ctx is done, unless cert-manager does. The channel is closed when the
// kinds of cert-manager are served, or cannot be provided, because the management cluster works without them.
func (k *managerRunner) startCertificates(ctx context.Context, e term.Env) (kinds <-chan struct{}, err error) {
	certificates, err := certificates.NewController(k.root, e.Now, func(err error) {
		if err != nil {
			klog.ErrorS(err, "issuing the certificates of providers failed")
			return
		}
		klog.InfoS("the certificates of providers are issued")
	})
	if err != nil {
		return nil, err
	}
	provided := make(chan struct{})
	go func() {
		defer close(provided)
		if err := certificates.InstallCRDs(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "installing the CRDs of Certificates and Issuers failed; \"slipway init\" installs them when a provider needs them")
		}
		if err := k.recordProviders(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "recording the built-in providers failed; clusterctl may install the same providers again")
		}
	}()
	go certificates.Run(ctx)
	return provided, nil
}

// recordProviders records the built-in providers in the inventory.
func (k *managerRunner) recordProviders(ctx context.Context) error {
	version := buildinfo.Get().ClusterAPI
	if version == "" {
		return nil // a build without version information records nothing
	}
	return install.RecordBuiltin(ctx, k.root, install.RunningBuiltin{Sets: k.service.policy.Sets(), Version: version, Namespace: managementnode.Namespace})
}

// ready waits until the management cluster is ready as well, and serves the kinds that clients need.
func (k *managerRunner) ready(ctx context.Context, m *controlplane.Management, kinds <-chan struct{}) error {
	if err := m.Ready(ctx); err != nil {
		return err
	}
	select {
	case <-kinds:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := k.handle.WriteFlags(k.service.flags); err != nil { // the flags of a failed start are not stored
		return err
	}
	return k.write(func(r *datadir.Run) { r.Ready = true })
}

// changed records the status of the manager for other processes. Errors are only logged. managerproc calls it with
// every change.
func (k *managerRunner) changed(s managerproc.Status) {
	err := k.write(func(r *datadir.Run) {
		unresponsive := time.Time{}
		if r.Manager != nil && r.Manager.PID == s.PID {
			unresponsive = r.Manager.UnresponsiveSince
		}
		r.Manager = &datadir.Manager{
			PID: s.PID, Since: s.Since.UTC(), Restarts: s.Restarts, LastExit: s.LastExit, LastExitAt: s.LastExitAt.UTC(),
			Diagnostics: s.Diagnostics, UnresponsiveSince: unresponsive,
		}
		if !s.NextStart.IsZero() {
			r.Manager.NextStart = s.NextStart.UTC()
		}
		for _, a := range s.Quarantined {
			r.Manager.QuarantinedObjects = append(r.Manager.QuarantinedObjects, datadir.Quarantined{Object: a.Subject.String(), Until: a.Until.UTC(), Crashes: a.Failures})
		}
	})
	if err != nil {
		klog.ErrorS(err, "recording the status of the manager failed")
	}
}

// write changes the state and stores it in run.json. Several goroutines call it.
func (k *managerRunner) write(change func(*datadir.Run)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.state)
	return k.handle.WriteRun(k.state)
}

// failed reports a crash to the log, the user and the affected objects. The API server and its clients continue to run.
// managerproc calls it when the manager exited without a request to stop; it must not block for long.
func (k *managerRunner) failed(ctx context.Context, f managerproc.Failure) {
	klog.ErrorS(nil, f.String(), "restartAfter", f.Pause)
	k.reporter.step(fmt.Sprintf("%s; restarting it in %s (the API server keeps running)", capitalize(f.String()), f.Pause))
	if len(f.Suspects) == 0 {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, eventTimeout)
		defer cancel()
		if err := recordFailure(ctx, k.root, f); err != nil {
			klog.ErrorS(err, "recording the exit of the manager in events failed")
		}
	}()
}
