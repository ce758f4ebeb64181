package bootstrap

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
)

// Name of the controller. Its field manager is slipway-kubeadmconfig, by which [isTokenSetByUser] recognizes tokens of
// this controller, so it must not change.
const Name = "kubeadmconfig"

// workloadClusters provides access to the workload clusters.
type workloadClusters interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
	Health(cluster client.ObjectKey) workload.Health
}

// controller reconciles KubeadmConfigs. Its methods observe, read and act are called by the driver of package
// reconciler.
type controller struct {
	client client.Client
	// cache contains the labelled Secrets of clusters.
	cache client.Reader
	// live reads from the API server.
	live      client.Reader
	refs      *kube.References
	workloads workloadClusters
	writer    *kube.Writer
	now       func() time.Time
	ttl       time.Duration
	ignition  bool
	policy    policy.Configuration
	tokens    tokens
	released  releases
}

// Settings of the controller.
type Settings struct {
	// TokenTTL is the lifetime of bootstrap tokens. It defaults to [defaultTTL].
	TokenTTL time.Duration
	// Ignition enables the format ignition.
	Ignition bool
	// Policy is the operator's configuration.
	Policy policy.Configuration
}

// Add adds the controller to the manager. The manager calls it at its start if the kubeadm bootstrap provider is
// enabled.
func Add(s reconciler.Setup, clusters workload.Workloads, settings Settings) error {
	if settings.TokenTTL == 0 {
		settings.TokenTTL = defaultTTL
	}
	reader := s.Manager.GetClient()
	c := &controller{
		client: reader, cache: s.Manager.GetCache(), live: s.Manager.GetAPIReader(), refs: kube.NewReferences(reader, nil),
		workloads: clusters, now: time.Now, ttl: settings.TokenTTL, ignition: settings.Ignition, policy: settings.Policy,
	}
	if err := watches.IndexByCluster(s.Manager.GetFieldIndexer(), Name, &bootstrapv1.KubeadmConfig{}); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	_, err := s.Builder(Name, &bootstrapv1.KubeadmConfig{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(configOf), builder.WithPredicates(ownerMatters())).
		Watches(&clusterv1.MachinePool{}, handler.EnqueueRequestsFromMapFunc(configOf), builder.WithPredicates(ownerMatters())).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(configOfData), builder.WithPredicates(predicate.Or(watches.OrphanedSecrets(), deleted()))).
		Watches(&clusterv1.Cluster{}, watches.EnqueueMembers(reader, Name, newList), builder.WithPredicates(watches.ClusterChanged())).
		WatchesRawSource(clusters.Changed(Name, c.configsOf)).
		Build(r)
	return err
}

func (c *controller) definition() reconciler.Controller[*bootstrapv1.KubeadmConfig, snapshot] {
	return reconciler.Controller[*bootstrapv1.KubeadmConfig, snapshot]{
		Name:    Name,
		New:     func() *bootstrapv1.KubeadmConfig { return &bootstrapv1.KubeadmConfig{} },
		Observe: c.observe, Decide: decide, Read: c.read, Act: c.act, Report: report,
	}
}

// deleted passes delete events of Secrets, because their bootstrap data may have to be recreated.
func deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// configOfData returns a request for the KubeadmConfig of a data Secret, which has the same name.
func configOfData(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}

func newList() client.ObjectList { return &bootstrapv1.KubeadmConfigList{} }

// configOf returns a request for the KubeadmConfig that a Machine or MachinePool references.
func configOf(_ context.Context, o client.Object) []reconcile.Request {
	ref := bootstrapOf(o).ConfigRef
	if ref.Kind != kindKubeadmConfig || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}}}
}

func bootstrapOf(o client.Object) clusterv1.Bootstrap {
	switch o := o.(type) {
	case *clusterv1.Machine:
		return o.Spec.Bootstrap
	case *clusterv1.MachinePool:
		return o.Spec.Template.Spec.Bootstrap
	}
	return clusterv1.Bootstrap{}
}

// ownerMatters passes updates that change the fields of [configOwner].
func ownerMatters() predicate.Predicate {
	facts := func(o client.Object) configOwner {
		switch o := o.(type) {
		case *clusterv1.Machine:
			return *machineOwner(o)
		case *clusterv1.MachinePool:
			return *poolOwner(o)
		}
		return configOwner{}
	}
	return predicate.Funcs{
		UpdateFunc:  func(e event.UpdateEvent) bool { return facts(e.ObjectOld) != facts(e.ObjectNew) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// configsOf returns requests for all KubeadmConfigs of a Cluster whose connection to the workload cluster has changed.
func (c *controller) configsOf(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	list := &bootstrapv1.KubeadmConfigList{}
	err := c.client.List(ctx, list, watches.InCluster(Name, cluster)...)
	if err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// groupOf returns the API group of an apiVersion. observe compares owner references with it.
func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}

// upper capitalizes the first letter of a message. [canRender] calls it for the message of a wait.
func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
