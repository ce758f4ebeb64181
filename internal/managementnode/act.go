package managementnode

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/controlplane"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/kubeadm/bootstrap"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// tokenLife is the lifetime of the bootstrap token for a join.
const tokenLife = 15 * time.Minute

// observe reads the state of the container and its Node. [Supervisor.Run] calls it in each step, and then act for the
// actions of [decide].
func (k *Supervisor) observe(ctx context.Context) (snapshot, error) {
	s := snapshot{Version: buildinfo.Kubernetes()}
	var err error
	if s.Machine, err = k.cfg.Host.Inspect(ctx, machine(k.cfg.Reservation.Instance)); err != nil {
		return s, err
	}
	if s.Machine.State == backend.Running {
		if s.Bootstrap, err = k.cfg.Host.Progress(ctx, machine(k.cfg.Reservation.Instance)); err != nil {
			return s, err
		}
	}
	node := &corev1.Node{}
	switch err := k.reader.Get(ctx, client.ObjectKey{Name: Name}, node); {
	case err == nil:
		s.Node = node
	case !apierrors.IsNotFound(err):
		return s, fmt.Errorf("read Node %s: %w", Name, err)
	}
	return s, nil
}

// act executes one action. After an error the step ends, and the next step decides from a new observation.
func (k *Supervisor) act(ctx context.Context, s snapshot, a action) error {
	switch a.(type) {
	case createMachine:
		_, err := k.cfg.Host.Create(ctx, k.spec())
		return err
	case deleteMachine:
		return k.cfg.Host.Delete(ctx, machine(k.cfg.Reservation.Instance))
	case deleteNode:
		return k.writer.DeleteAnyway(ctx, s.Node)
	case join:
		return k.join(ctx, s.Machine)
	}
	return fmt.Errorf("unknown action %T", a)
}

// spec returns the container to create.
func (k *Supervisor) spec() backend.MachineSpec {
	ref := machine(k.cfg.Reservation.Instance)
	return backend.MachineSpec{
		Owner: owner(), Name: ref.Name, Hostname: Name, ProviderID: backend.ProviderID(ref.Name), Version: buildinfo.Kubernetes(),
		Policy:  policy.Configuration{Networks: policy.Networks{Internet: k.cfg.Reservation.Internet}}, // without limits
		Network: k.cfg.Reservation.network, Image: image(), Ranges: []netip.Prefix{controlplane.ManagementServices()},
	}
}

// join creates a bootstrap token and starts kubeadm join in the container. A later step observes its progress.
func (k *Supervisor) join(ctx context.Context, m backend.Machine) error {
	token, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return err
	}
	secret := bootstrap.TokenSecret(token, bootstrap.TokenOwner{Namespace: Namespace, Name: Name}, bootstrap.TokenLifetime{From: k.cfg.Now(), TTL: tokenLife})
	secret.Labels = nil
	secret.Data["description"] = []byte("for the node of the management cluster")
	if err := k.writer.Create(ctx, secret); err != nil {
		return err
	}
	k.token = secret
	program, err := joinScript(joinInput{Endpoint: k.cfg.Reservation.Endpoint, CA: k.cfg.CA, Token: token, PodCIDR: k.cfg.Reservation.PodCIDR, Machine: m, Offline: k.cfg.Reservation.Offline})
	if err != nil {
		return err
	}
	return k.cfg.Host.Bootstrap(ctx, machine(k.cfg.Reservation.Instance), program)
}

// applyAddons creates the objects in the management cluster that its node and Pods need. It runs once per process,
// before the first step.
func (k *Supervisor) applyAddons(ctx context.Context) error {
	if err := k.publish(ctx); err != nil {
		return err
	}
	at := k.cfg.Reservation.Endpoint
	return addons.Apply(ctx, k.cfg.Root, addons.Params{
		ClusterName: "slipway", Version: buildinfo.Kubernetes(), Host: at.Addr().String(), Port: int32(at.Port()), CA: k.cfg.CA,
		ServiceCIDR: controlplane.ManagementServices().String(), PodCIDR: k.cfg.Reservation.PodCIDR.String(), ServiceDomain: processconfig.DefaultServiceDomain,
		ImageRepository: hostedv1.DefaultImageRepository, CoreDNS: true, KubeProxy: true, OwnKubeProxy: true,
	})
}

// publish points the Service "kubernetes" to the API server for Pods. The EndpointSlice is not written by
// kube-apiserver, because the advertised address would have the port of the host's listener, which can change at each
// start.
func (k *Supervisor) publish(ctx context.Context) error {
	at := k.cfg.Reservation.Endpoint
	yes, port, name, protocol := true, int32(at.Port()), "https", corev1.ProtocolTCP
	want := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return err
	}
	live := &discoveryv1.EndpointSlice{}
	if err := k.reader.Get(ctx, client.ObjectKeyFromObject(want), live); apierrors.IsNotFound(err) {
		return k.writer.Apply(ctx, nil, &unstructured.Unstructured{Object: content})
	} else if err != nil {
		return err
	}
	return k.writer.Apply(ctx, live, &unstructured.Unstructured{Object: content})
}
