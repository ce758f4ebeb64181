package managementnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// How often the node is looked at: while it is not ready, and after that, when only a person or a crash changes it.
const (
	soon   = time.Second
	seldom = 10 * time.Second
	// most is the longest pause after failures that follow each other.
	most = time.Minute
)

// Config is what a Keeper needs.
type Config struct {
	Place Place
	Host  Host
	Root  *rest.Config // may do everything
	CA    []byte       // PEM, of the API server
	Now   func() time.Time
	// Changed is told what there is to say of the node, whenever that is something else.
	Changed func(Status)
}

// Status says how the node fares.
type Status struct {
	Container string `json:"container"`
	Ready     bool   `json:"ready"`
	// Message says what is the case where it is not ready.
	Message string `json:"message,omitempty"`
}

// Keeper keeps the node.
type Keeper struct {
	cfg    Config
	reader client.Client
	writer *kube.Writer
	served bool // what the cluster needs for nodes is there
	health health
	token  *corev1.Secret // of a join that has not ended; nil: there is none

	once  sync.Once
	ready chan struct{}
	last  Status
}

// New returns a Keeper; it connects to nothing yet.
func New(cfg Config) (*Keeper, error) {
	c, err := client.New(cfg.Root, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, err
	}
	return &Keeper{cfg: cfg, reader: c, writer: kube.NewWriter(c, Name), ready: make(chan struct{})}, nil
}

// Ready is closed when the node is Ready for the first time.
func (k *Keeper) Ready() <-chan struct{} { return k.ready }

// Run keeps the node until ctx ends. Nothing that fails ends it: it is reported and retried.
func (k *Keeper) Run(ctx context.Context) {
	pause, failures := soon, 0
	for {
		plan, err := k.step(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			klog.FromContext(ctx).Info("the node of the management cluster is not ready", "reason", fault.UserMessage(err))
			k.report(Status{Message: fault.UserMessage(err)})
			pause = min(2*pause, most)
		case plan.Ready:
			k.once.Do(func() { close(k.ready) })
			k.report(Status{Ready: true})
			pause, failures = seldom, 0
		case plan.fails(): // it may fail for as long as the host is as it is
			k.report(Status{Message: plan.message()})
			failures++
			pause = min(soon<<min(failures, 6), most)
		default:
			k.report(Status{Message: plan.message()})
			pause = soon
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// fails reports whether the container is deleted to begin again.
func (p Plan) fails() bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool { _, ok := a.(DeleteMachine); return ok })
}

func (p Plan) message() string {
	if len(p.Actions) > 0 {
		return p.Actions[len(p.Actions)-1].String()
	}
	return p.Wait
}

func (k *Keeper) report(s Status) {
	s.Container = machine(k.cfg.Place.Instance).Name
	if s != k.last {
		k.last = s
		k.cfg.Changed(s)
	}
}

// step reads, decides and acts once.
func (k *Keeper) step(ctx context.Context) (Plan, error) {
	if !k.served {
		if err := k.serve(ctx); err != nil {
			return Plan{}, fmt.Errorf("prepare the management cluster for nodes: %w", err)
		}
		k.served = true
	}
	s, err := k.observe(ctx)
	if err != nil {
		return Plan{}, err
	}
	s.NotReady, s.Recreated = k.health.observe(s, k.cfg.Now())
	p := Decide(s)
	k.health.decided(p)
	var errs []error
	for _, a := range p.Actions {
		klog.FromContext(ctx).Info("node of the management cluster", "action", a.String())
		if err := k.act(ctx, s, a); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", a, err))
			break
		}
	}
	if p.Ready {
		errs = append(errs, k.endToken(ctx))
	}
	return p, errors.Join(errs...)
}

// endToken deletes the token of a join that has ended: whoever may read Secrets could join a node of theirs with it.
func (k *Keeper) endToken(ctx context.Context) error {
	if k.token == nil {
		return nil
	}
	if err := k.writer.DeleteAnyway(ctx, k.token); err != nil {
		return fmt.Errorf("delete the token that Node %s joined with: %w", Name, err)
	}
	k.token = nil
	return nil
}

// health is for how long the Node that has joined has not been Ready. The times in its conditions are of no use: they go on while the
// management cluster is stopped.
type health struct {
	since     time.Time // zero: it is Ready, or there is none yet
	recreated int
}

func (h *health) observe(s Snapshot, now time.Time) (notReady time.Duration, recreated int) {
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
func (h *health) decided(p Plan) {
	if p.fails() && !h.since.IsZero() {
		h.since, h.recreated = time.Time{}, h.recreated+1
	}
}
