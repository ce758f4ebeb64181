package managementnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/pause"
)

// The intervals between two checks of the node: while it is not ready, and once it is ready and only changes by hand
// or after a crash.
const (
	unreadyInterval = time.Second
	readyInterval   = 10 * time.Second
	// maxBackoff is the longest delay after consecutive failures.
	maxBackoff = time.Minute
)

// Config configures a [Supervisor]. `slipway up --node` fills it in.
type Config struct {
	Reservation Reservation
	Host        Host
	Root        *rest.Config // has cluster-admin permissions
	CA          []byte       // PEM, CA certificate of the API server
	Now         func() time.Time
	// Changed is called with each new status that differs from the previous one. [Supervisor.Run] calls it on its own
	// goroutine.
	Changed func(Status)
}

// Status is the state of the node. `slipway up` records it in the data directory, where other commands read it.
type Status struct {
	Container string `json:"container"`
	Ready     bool   `json:"ready"`
	// Message is the reason why the node is not ready.
	Message string `json:"message,omitempty"`
}

// Supervisor creates and maintains the node. `slipway up --node` runs one ([Supervisor.Run]) while the management
// cluster runs.
type Supervisor struct {
	cfg           Config
	reader        client.Client
	writer        *kube.Writer
	addonsApplied bool // whether the objects that nodes need exist in the cluster
	health        health
	token         *corev1.Secret // bootstrap token of a pending join, or nil

	once  sync.Once
	ready chan struct{}
	last  Status
}

// New returns a Supervisor. It does not connect to the cluster yet. `slipway up --node` calls it.
func New(cfg Config) (*Supervisor, error) {
	c, err := client.New(cfg.Root, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, err
	}
	return &Supervisor{cfg: cfg, reader: c, writer: kube.NewWriter(c, Name), ready: make(chan struct{})}, nil
}

// Ready returns a channel that is closed when the node is Ready for the first time. `slipway up --node` waits for it.
func (k *Supervisor) Ready() <-chan struct{} { return k.ready }

// Run maintains the node until ctx ends. Failures are reported and retried. `slipway up --node` runs it in the
// background.
func (k *Supervisor) Run(ctx context.Context) {
	for errs, deletions := 0, 0; ; {
		delay := unreadyInterval
		plan, err := k.step(ctx)
		_, deletes := plan.deletion()
		if errs++; err == nil {
			errs = 0
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			klog.FromContext(ctx).Info("the node of the management cluster is not ready", "reason", fault.UserMessage(err))
			k.report(Status{Message: fault.UserMessage(err)})
			delay = pause.Backoff(errs+1, unreadyInterval, maxBackoff)
		case plan.Ready:
			k.once.Do(func() { close(k.ready) })
			k.report(Status{Ready: true})
			delay, deletions = readyInterval, 0
		case deletes: // may fail repeatedly until the host changes
			k.report(Status{Message: plan.message()})
			deletions++
			delay = pause.Backoff(deletions+1, unreadyInterval, maxBackoff)
		default:
			k.report(Status{Message: plan.message()})
		}
		if pause.Sleep(ctx, delay) != nil {
			return
		}
	}
}

// deletion returns the action that deletes the container to start over, if any.
func (p plan) deletion() (d deleteMachine, found bool) {
	for _, a := range p.Actions {
		if d, ok := a.(deleteMachine); ok {
			return d, true
		}
	}
	return deleteMachine{}, false
}

// message describes the plan for the status.
func (p plan) message() string {
	if len(p.Actions) > 0 {
		return p.Actions[len(p.Actions)-1].String()
	}
	return p.Wait
}

// report passes a status that differs from the last one to Changed.
func (k *Supervisor) report(s Status) {
	s.Container = machine(k.cfg.Reservation.Instance).Name
	if s != k.last {
		k.last = s
		k.cfg.Changed(s)
	}
}

// step observes, decides and acts once. [Supervisor.Run] calls it after each delay.
func (k *Supervisor) step(ctx context.Context) (plan, error) {
	if !k.addonsApplied {
		if err := k.applyAddons(ctx); err != nil {
			return plan{}, fmt.Errorf("prepare the management cluster for nodes: %w", err)
		}
		k.addonsApplied = true
	}
	s, err := k.observe(ctx)
	if err != nil {
		return plan{}, err
	}
	s.NotReady, s.Recreated = k.health.observe(s, k.cfg.Now())
	p := decide(s)
	k.health.decided(p)
	var errs []error
	for _, a := range p.Actions {
		klog.FromContext(ctx).Info("acting on the node of the management cluster", "action", a.String())
		if err := k.act(ctx, s, a); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", a, err))
			break
		}
	}
	if p.Ready {
		errs = append(errs, k.deleteToken(ctx))
	}
	return p, errors.Join(errs...)
}

// deleteToken deletes the bootstrap token once the join has finished, because any user with read access to Secrets
// could join a node with it.
func (k *Supervisor) deleteToken(ctx context.Context) error {
	if k.token == nil {
		return nil
	}
	if err := k.writer.DeleteAnyway(ctx, k.token); err != nil {
		return fmt.Errorf("delete the token that Node %s joined with: %w", Name, err)
	}
	k.token = nil
	return nil
}

// health measures how long a joined Node has not been Ready. The transition times of its conditions are not used,
// because they include the time while the management cluster was stopped.
type health struct {
	since     time.Time // zero if the Node is Ready or does not exist yet
	recreated int
}

func (h *health) observe(s snapshot, now time.Time) (notReady time.Duration, recreated int) {
	switch {
	case s.Node != nil && isReady(s.Node):
		*h = health{}
	case s.Node == nil || s.Machine.State != backend.Running || s.Bootstrap.Phase != backend.Succeeded:
		h.since = time.Time{}
	case h.since.IsZero():
		h.since = now
	}
	if h.since.IsZero() {
		return 0, h.recreated
	}
	return now.Sub(h.since), h.recreated
}

// decided counts the containers that are deleted because their Node was not Ready.
func (h *health) decided(p plan) {
	if d, _ := p.deletion(); d.NotReady {
		h.since, h.recreated = time.Time{}, h.recreated+1
	}
}
