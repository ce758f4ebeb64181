package extensionconfig

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Name is the name of the controller. Its field manager is "slipway-extensionconfig", which owns fields of existing
// objects; another name would leave them without an owner.
const Name = "extensionconfig"

// Settings are the settings of the controller. The zero value is the default. Package manager fills them.
type Settings struct {
	// ReadOnly uses the handlers in the status and writes nothing. It is for a second manager beside the one that
	// performs the discovery.
	ReadOnly bool
}

// extensions is the part of package hook that the controller uses.
type extensions interface {
	Discover(ctx context.Context, c *runtimev1.ExtensionConfig) (hook.ExtensionState, error)
	Announce(c *runtimev1.ExtensionConfig)
	Restore(c *runtimev1.ExtensionConfig) error
	Forget(name string)
	State(name string) hook.ExtensionState
}

// controller reconciles ExtensionConfigs.
type controller struct {
	client     client.Client
	extensions extensions
	catalog    *hooks.Catalog
	secrets    follower
	writer     *kube.Writer
	settings   Settings
	now        func() time.Time
	driver     reconcile.Reconciler
}

// Add adds the ExtensionConfig controller to the manager, a watch of the Secrets that ExtensionConfigs reference, and
// an announcer, which registers all extensions when the manager starts. Package manager calls it if an enabled feature
// calls extensions (feature gates RuntimeSDK and InPlaceUpdates).
func Add(s reconciler.Setup, extensions *hook.Extensions, settings Settings) error {
	live, err := metadata.NewForConfig(s.Manager.GetConfig())
	if err != nil {
		return fmt.Errorf("preparing the watch of Secrets: %w", err)
	}
	events := &eventSource{}
	watched := newSecrets(live, events.enqueue)
	c := &controller{
		client: s.Manager.GetClient(), extensions: extensions, catalog: extensions.Catalog(), secrets: watched,
		settings: settings, now: s.Clock(),
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer, c.driver = r.Writer, r
	extensions.OnChange(events.enqueue)
	for _, runnable := range []manager.Runnable{watched, announcer{s, extensions, c}} {
		if err := s.Manager.Add(runnable); err != nil {
			return err
		}
	}
	return s.Builder(Name, &runtimev1.ExtensionConfig{}).WatchesRawSource(source.Func(events.start)).Complete(c)
}

func (c *controller) definition() reconciler.Controller[*runtimev1.ExtensionConfig, snapshot] {
	return reconciler.Controller[*runtimev1.ExtensionConfig, snapshot]{
		Name: Name, New: func() *runtimev1.ExtensionConfig { return &runtimev1.ExtensionConfig{} },
		Observe: c.observe, Decide: decide, Read: c.answer, Act: c.act, Report: report,
	}
}

// Reconcile unregisters a deleted extension, even a paused one. It restores the handlers of an extension from its
// status if another manager discovers them (read-only mode), or if the extension is paused and its handlers are not
// known. Otherwise, and for a paused extension, it calls package reconciler, which observes, decides and acts.
func (c *controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &runtimev1.ExtensionConfig{}
	err := c.client.Get(ctx, req.NamespacedName, o)
	switch {
	case apierrors.IsNotFound(err), err == nil && !o.DeletionTimestamp.IsZero():
		c.extensions.Forget(req.Name)
		c.secrets.follow(req.Name, client.ObjectKey{})
		if err != nil {
			return c.driver.Reconcile(ctx, req) // drops its records of the object
		}
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading ExtensionConfig %s: %w", req.Name, err)
	}
	c.extensions.Announce(o) // until its handlers are known, operations that may call them are blocked
	if c.settings.ReadOnly {
		c.follow(ctx, o)
		return ctrl.Result{}, nil
	}
	if _, paused := o.Annotations[clusterv1.PausedAnnotation]; paused && !c.extensions.State(o.Name).Discovered {
		c.restore(ctx, o)
	}
	return c.driver.Reconcile(ctx, req)
}

// follow restores the handlers that another manager discovered (read-only mode), once the status of the ExtensionConfig
// refers to its current spec, because the server in the spec may not serve the handlers of an earlier generation.
// Previously restored handlers are used until then.
func (c *controller) follow(ctx context.Context, o *runtimev1.ExtensionConfig) {
	_, inject := o.Annotations[runtimev1.InjectCAFromSecretAnnotation]
	discovered := condition.Set(o.Status.Conditions).Get(runtimev1.ExtensionConfigDiscoveredCondition)
	switch {
	case inject && len(o.Spec.ClientConfig.CABundle) == 0:
		waiting(ctx, o, "its caBundle was not injected yet")
	case discovered == nil || discovered.Status != metav1.ConditionTrue || discovered.ObservedGeneration != o.Generation:
		waiting(ctx, o, "its handlers were not discovered for its current spec yet")
	default:
		c.restore(ctx, o)
	}
}

// restore restores an extension from its status. If the status is incomplete, its next change enqueues the object.
func (c *controller) restore(ctx context.Context, o *runtimev1.ExtensionConfig) {
	if err := c.extensions.Restore(o); err != nil {
		waiting(ctx, o, err.Error())
	}
	for _, h := range c.extensions.State(o.Name).Unknown {
		waiting(ctx, o, h.Unknown())
	}
}

// waiting logs why an extension, or one of its handlers, cannot be called yet.
func waiting(ctx context.Context, o *runtimev1.ExtensionConfig, problem string) {
	ctrl.LoggerFrom(ctx).Info("extension or one of its handlers cannot be called", "extension", o.Name, "problem", problem)
}

// announcer registers all extensions and restores their handlers from their status, once when the manager starts.
// Until then the registry rejects all calls of extensions.
type announcer struct {
	setup      reconciler.Setup
	extensions *hook.Extensions
	controller *controller
}

// Start implements manager.Runnable.
func (p announcer) Start(ctx context.Context) error {
	list := &runtimev1.ExtensionConfigList{}
	if err := p.setup.Manager.GetClient().List(ctx, list); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("listing ExtensionConfigs: %w", err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		if !o.DeletionTimestamp.IsZero() || p.setup.WatchFilter != "" && o.Labels[clusterv1.WatchLabel] != p.setup.WatchFilter {
			continue
		}
		p.extensions.Announce(o)
		if p.controller.settings.ReadOnly {
			p.controller.follow(ctx, o)
		} else {
			p.controller.restore(ctx, o)
		}
	}
	p.extensions.Prime()
	return nil
}

// eventSource enqueues extensions for events that no watch of the API reports: changes of Secrets, of circuit breakers,
// and of the time of the next discovery.
type eventSource struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (w *eventSource) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

// enqueue enqueues an extension. It does nothing before the controller starts, because the controller then
// reconciles all extensions.
func (w *eventSource) enqueue(extension string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: extension}})
	}
}
