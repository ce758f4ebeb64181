package extensionconfig

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Name of the controller.
const Name = "extensionconfig"

// Settings of the controller. The zero value is the default.
type Settings struct {
	// ReadOnly takes over what the status says and writes nothing (RT-20): for a manager besides the one that discovers.
	ReadOnly bool
}

// Extensions is what the controller needs of package hook.
type Extensions interface {
	Discover(ctx context.Context, c *runtimev1.ExtensionConfig) (hook.State, error)
	Restore(c *runtimev1.ExtensionConfig) error
	Forget(name string)
	State(name string) hook.State
}

// Controller reconciles ExtensionConfigs.
type Controller struct {
	client     client.Client
	extensions Extensions
	catalog    *hooks.Catalog
	secrets    follower
	writer     *kube.Writer
	settings   Settings
	now        func() time.Time
	driver     reconcile.Reconciler
}

// Add adds the controller to the manager, and what makes the extensions known to others when the manager starts (RT-19).
func Add(s loop.Setup, extensions *hook.Extensions, settings Settings) error {
	live, err := metadata.NewForConfig(s.Manager.GetConfig())
	if err != nil {
		return fmt.Errorf("preparing the watch of Secrets: %w", err)
	}
	events := &wakes{}
	watched := newSecrets(live, events.wake)
	c := &Controller{
		client: s.Manager.GetClient(), extensions: extensions, catalog: extensions.Catalog(), secrets: watched,
		settings: settings, now: time.Now,
	}
	r := loop.NewReconciler(s, c.definition())
	c.writer, c.driver = r.Writer, r
	extensions.OnChange(events.wake)
	for _, runnable := range []manager.Runnable{watched, prime{s, extensions}} {
		if err := s.Manager.Add(runnable); err != nil {
			return err
		}
	}
	return s.Builder(Name, &runtimev1.ExtensionConfig{}).WatchesRawSource(source.Func(events.start)).Complete(c)
}

func (c *Controller) definition() loop.Controller[*runtimev1.ExtensionConfig, Snapshot] {
	return loop.Controller[*runtimev1.ExtensionConfig, Snapshot]{
		Name: Name, New: func() *runtimev1.ExtensionConfig { return &runtimev1.ExtensionConfig{} },
		Observe: c.observe, Decide: Decide, Answer: c.answer, Act: c.act, Report: Report,
	}
}

// Reconcile forgets what is gone, paused or not (RT-21), takes over what others discovered, and leaves the rest to the
// driver.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &runtimev1.ExtensionConfig{}
	err := c.client.Get(ctx, req.NamespacedName, o)
	switch {
	case apierrors.IsNotFound(err), err == nil && !o.DeletionTimestamp.IsZero():
		c.extensions.Forget(req.Name)
		c.secrets.follow(req.Name, client.ObjectKey{})
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading ExtensionConfig %s: %w", req.Name, err)
	case c.settings.ReadOnly:
		return ctrl.Result{}, c.takeOver(ctx, o)
	}
	if _, paused := o.Annotations[clusterv1.PausedAnnotation]; paused && !c.extensions.State(o.Name).Discovered {
		if err := c.takeOver(ctx, o); err != nil {
			return ctrl.Result{}, err
		}
	}
	return c.driver.Reconcile(ctx, req)
}

// takeOver makes an extension known by its status. What is missing there comes with a change of it, which wakes us.
func (c *Controller) takeOver(ctx context.Context, o *runtimev1.ExtensionConfig) error {
	_, inject := o.Annotations[runtimev1.InjectCAFromSecretAnnotation]
	problem := ""
	switch {
	case inject && len(o.Spec.ClientConfig.CABundle) == 0:
		problem = "its caBundle was not injected yet"
	case len(o.Status.Handlers) == 0 && !condition.Set(o.Status.Conditions).IsTrue(runtimev1.ExtensionConfigDiscoveredCondition):
		problem = "its handlers were not discovered yet"
	default:
		if err := c.extensions.Restore(o); err != nil {
			problem = err.Error()
		}
	}
	if problem != "" {
		ctrl.LoggerFrom(ctx).Info("an extension cannot be called", "extension", o.Name, "problem", problem)
	}
	return nil
}

// prime lists the extensions once, when the manager starts to work.
type prime struct {
	setup      loop.Setup
	extensions *hook.Extensions
}

// Start implements manager.Runnable.
func (p prime) Start(ctx context.Context) error {
	list := &runtimev1.ExtensionConfigList{}
	if err := p.setup.Manager.GetClient().List(ctx, list); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("listing ExtensionConfigs: %w", err)
	}
	known := list.Items[:0]
	for _, c := range list.Items {
		if c.DeletionTimestamp.IsZero() && (p.setup.WatchFilter == "" || c.Labels[clusterv1.WatchLabel] == p.setup.WatchFilter) {
			known = append(known, c)
		}
	}
	p.extensions.Prime(known)
	return nil
}

// wakes brings what happens outside the API server into the queue.
type wakes struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (w *wakes) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

// wake asks for a pass over an extension. Before the controller starts nobody needs to: it looks at everything then.
func (w *wakes) wake(extension string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: extension}})
	}
}
