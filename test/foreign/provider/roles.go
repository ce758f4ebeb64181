package provider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// provision does what an object is for.
func (p *Provider) provision(ctx context.Context, o object) error {
	if _, never := o.GetAnnotations()[Never]; never {
		return patch(ctx, p.client, o.Unstructured, func() { SetCondition(o.Unstructured, "Ready", metav1.ConditionFalse, "It never becomes ready") })
	}
	switch o.kind.Role {
	case InfraCluster:
		return p.infraCluster(ctx, o)
	case ControlPlane:
		return p.controlPlane(ctx, o)
	case BootstrapConfig:
		return p.bootstrapConfig(ctx, o)
	case InfraMachine:
		return p.infraMachine(ctx, o)
	case InfraMachinePool:
		return p.infraMachinePool(ctx, o)
	case Template:
	}
	return nil
}

// done reports that something is reached, in the fields of the object's contract.
func (o object) done(newer, older string) {
	if o.kind.Old {
		Set(o.Unstructured, true, "status", older)
	} else {
		Set(o.Unstructured, true, "status", "initialization", newer)
	}
	if existing, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions"); len(existing) == 0 || !hasCondition(existing, "Ready") {
		SetCondition(o.Unstructured, "Ready", metav1.ConditionTrue, "")
	}
}

// hasCondition reports whether a test or the provider has said something already: it is left as it is.
func hasCondition(list []any, conditionType string) bool {
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && m["type"] == conditionType {
			return true
		}
	}
	return false
}

func (p *Provider) infraCluster(ctx context.Context, o object) error {
	return patch(ctx, p.client, o.Unstructured, func() {
		if _, given, _ := unstructured.NestedMap(o.Object, "spec", "controlPlaneEndpoint"); !given && o.cluster.Spec.ControlPlaneEndpoint.Host == "" {
			Set(o.Unstructured, map[string]any{"host": o.GetName() + ".example", "port": int64(6443)}, "spec", "controlPlaneEndpoint")
		}
		if domains, ok, _ := unstructured.NestedFieldCopy(o.Object, "spec", "failureDomains"); ok {
			Set(o.Unstructured, domains, "status", "failureDomains")
		}
		o.done("provisioned", "ready")
	})
}

func (p *Provider) bootstrapConfig(ctx context.Context, o object) error {
	if !isTrue(o.cluster.Status.Initialization.InfrastructureProvisioned) {
		return nil
	}
	if err := p.secret(ctx, o, o.GetName(), map[string][]byte{"value": []byte("#cloud-config\n"), "format": []byte("cloud-config")}); err != nil {
		return err
	}
	return patch(ctx, p.client, o.Unstructured, func() {
		Set(o.Unstructured, o.GetName(), "status", "dataSecretName")
		o.done("dataSecretCreated", "ready")
	})
}

func (p *Provider) infraMachine(ctx context.Context, o object) error {
	_, name := ownerOf(o.Unstructured, "Machine")
	machine := &clusterv1.Machine{}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: name}, machine); err != nil {
		return client.IgnoreNotFound(err)
	}
	if machine.Spec.Bootstrap.DataSecretName == nil || !isTrue(o.cluster.Status.Initialization.InfrastructureProvisioned) {
		return nil
	}
	id := ID(o.GetNamespace(), o.GetName())
	if _, none := o.GetAnnotations()[NoNode]; !none {
		if err := p.node(ctx, id, machine.Spec.Version); err != nil {
			return err
		}
	}
	return patch(ctx, p.client, o.Unstructured, func() {
		Set(o.Unstructured, id, "spec", "providerID")
		Set(o.Unstructured, []any{map[string]any{"type": "InternalIP", "address": "10.9.8.7"}}, "status", "addresses")
		if zone, ok := o.GetAnnotations()["foreign.example/zone"]; ok && !o.kind.Old {
			Set(o.Unstructured, zone, "status", "failureDomain")
		}
		o.done("provisioned", "ready")
	})
}

func (p *Provider) infraMachinePool(ctx context.Context, o object) error {
	_, name := ownerOf(o.Unstructured, "MachinePool")
	pool := &clusterv1.MachinePool{}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: name}, pool); err != nil {
		return client.IgnoreNotFound(err)
	}
	spec := pool.Spec.Template.Spec
	if spec.Bootstrap.DataSecretName == nil || pool.Spec.Replicas == nil || !isTrue(o.cluster.Status.Initialization.InfrastructureProvisioned) {
		return nil
	}
	var ids []any
	for i := range int(*pool.Spec.Replicas) {
		id := fmt.Sprintf("foreign://%s/%s/%d", o.GetNamespace(), o.GetName(), i)
		if err := p.node(ctx, id, spec.Version); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	return patch(ctx, p.client, o.Unstructured, func() {
		Set(o.Unstructured, ids, "spec", "providerIDList")
		Set(o.Unstructured, int64(*pool.Spec.Replicas), "status", "replicas")
		o.done("provisioned", "ready")
	})
}

// node makes the Node of a machine, which is ready at once.
func (p *Provider) node(ctx context.Context, id, version string) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: NodeName(id)}, Spec: corev1.NodeSpec{ProviderID: id, Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint}}}
	if err := p.client.Create(ctx, n); err != nil {
		return ignoreExists(err)
	}
	before := n.DeepCopy()
	n.Status.NodeInfo.KubeletVersion = version
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse})
	}
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
	return p.client.Status().Patch(ctx, n, client.MergeFrom(before))
}

func (p *Provider) secret(ctx context.Context, o object, name string, data map[string][]byte) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: o.cluster.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o.Unstructured, o.kind.GroupVersionKind)},
	}, Type: clusterv1.ClusterSecretType, Data: data}
	return ignoreExists(p.client.Create(ctx, s))
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func isTrue(b *bool) bool { return b != nil && *b }
