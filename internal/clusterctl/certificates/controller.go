package certificates

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
)

const (
	// renewEvery is the interval at which certificates are checked when nothing changes: a fraction of the shortest
	// lifetime.
	renewEvery = minDuration / 12
	// retryAfter is the delay before a failed reconciliation is retried.
	retryAfter = 30 * time.Second
	// settle is the time to wait for further changes, because components are installed as dozens of objects.
	settle = 500 * time.Millisecond
)

// Controller reconciles the Certificates of a management cluster. `slipway up` runs one in its process, and no
// controller-runtime manager is involved.
type Controller struct {
	client client.WithWatch
	now    func() time.Time
	// report is called when the result of a reconciliation differs from the previous one; nil means that it succeeded.
	report func(error)
}

// NewController returns a Controller that connects with the given configuration. `slipway up` calls it.
func NewController(config *rest.Config, now func() time.Time, report func(error)) (*Controller, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.NewWithWatch(rest.CopyConfig(config), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster to issue certificates: %w", err)
	}
	return &Controller{client: c, now: now, report: report}, nil
}

// Run reconciles until ctx ends: at once, when a Certificate, an issuer or an object with an injected CA changes, and
// before a certificate must be renewed. If the cert-manager CRDs in the cluster are not Slipway's, Run waits until they
// are. `slipway up` runs it in the background.
func (k *Controller) Run(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		err := k.reconcileOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != said {
			k.report(err)
			said = text
		}
	}
}

// InstallCRDs installs Slipway's CRDs if the cluster has none, and returns when they are served, so that tools which
// check for cert-manager before they install providers find its API. `slipway up` calls it once, while the Controller
// already runs.
func (k *Controller) InstallCRDs(ctx context.Context) error {
	who, err := getProvisioner(ctx, k.client)
	if err != nil || who == certManager || who == otherCertManager {
		return err
	}
	return install.Runner{Client: k.client}.Run(ctx, install.Plan{Steps: builtinSteps()})
}

// reconcileOnce reconciles once, and returns when the next reconciliation is due. It starts the watches before it
// reads, so that it misses no change.
func (k *Controller) reconcileOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	who, err := getProvisioner(ctx, k.client)
	if err == nil {
		err = k.watch(ctx, who, changed)
	}
	if err == nil {
		err = Reconcile(ctx, k.client, k.now())
	}
	after := renewEvery
	if err != nil {
		after = retryAfter
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return err
	case <-timer.C:
		return err
	case <-changed:
	}
	settled := time.NewTimer(settle)
	defer settled.Stop()
	select {
	case <-ctx.Done():
	case <-settled.C:
	}
	return err
}

// watch sends to changed when a relevant object changes.
func (k *Controller) watch(ctx context.Context, who Provisioner, changed chan<- struct{}) error {
	crds := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	kinds := []schema.GroupVersionKind{crds}
	if who == Slipway {
		kinds = []schema.GroupVersionKind{kindOf("Certificate"), kindOf("Issuer"), kindOf("ClusterIssuer"), secretKind()}
		for _, t := range targets() {
			kinds = append(kinds, t.kind)
		}
	}
	for _, kind := range kinds {
		if err := k.watchKind(ctx, kind, changed); err != nil {
			return err
		}
	}
	return nil
}

// watchKind watches the objects of a kind from now on. The end of a watch counts as a change.
func (k *Controller) watchKind(ctx context.Context, kind schema.GroupVersionKind, changed chan<- struct{}) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := k.client.List(ctx, list, client.Limit(1)); err != nil {
		return fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	events, err := k.client.Watch(ctx, list, from)
	if err != nil {
		return fmt.Errorf("watching %ss: %w", kind.Kind, err)
	}
	go func() {
		defer events.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case e, open := <-events.ResultChan():
				if open && !isRelevant(kind, e.Object) {
					continue
				}
				select {
				case changed <- struct{}{}:
				default:
				}
				if !open {
					return
				}
			}
		}
	}()
	return nil
}

// isRelevant reports whether a change of the object can require a reconciliation.
func isRelevant(kind schema.GroupVersionKind, o runtime.Object) bool {
	m, err := meta.Accessor(o)
	if err != nil {
		return true // the watch reported an error
	}
	switch {
	case kind.Group == group, m.GetName() == certificatesCRD:
		return true
	case kind == secretKind():
		return m.GetAnnotations()[certificateName] != ""
	}
	return m.GetAnnotations()[injectFrom] != ""
}

func secretKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Secret") }
