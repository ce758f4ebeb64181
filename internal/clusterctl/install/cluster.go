package install

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// embeddedBinding is a ClusterRoleBinding that exists only in management clusters of `slipway up`; package controlplane
// creates it.
const embeddedBinding = "slipway:admins"

// coreCRD is the CRD whose storage version is the contract of the core provider.
const coreCRD = "clusters.cluster.x-k8s.io"

// ManagementCluster is the state of a management cluster that the plans of the provider commands depend on.
// [ReadCluster] fills it in.
type ManagementCluster struct {
	ClusterState
	// Builtin are the providers that run in the process of the management cluster, or in a manager that was not
	// installed with these commands.
	Builtin []providerset.Name
	// Embedded means that `slipway up` runs the cluster and issues certificates.
	Embedded bool
}

// ReadCluster reads the providers of a management cluster. The commands init, upgrade and delete call it first.
func ReadCluster(ctx context.Context, c client.Reader) (ManagementCluster, error) {
	var out ManagementCluster
	var err error
	if out.Installed, err = provider.ReadInventory(ctx, c); err != nil {
		return out, err
	}
	if out.Builtin, err = readBuiltinProviders(ctx, c, out.Installed); err != nil {
		return out, err
	}
	binding := &metav1.PartialObjectMetadata{}
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"))
	err = c.Get(ctx, client.ObjectKey{Name: embeddedBinding}, binding)
	if client.IgnoreNotFound(err) != nil {
		return out, fmt.Errorf("reading the ClusterRoleBinding of an embedded management cluster: %w", err)
	}
	out.Embedded = err == nil
	if slices.Contains(out.Builtin, providerset.Core) {
		out.Contract = repository.Contract
		return out, nil
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err = c.Get(ctx, client.ObjectKey{Name: coreCRD}, crd)
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("reading the CRD of Clusters: %w", err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			out.Contract = v.Name
		}
	}
	return out, nil
}

// readBuiltinProviders returns the built-in providers whose webhooks exist without an inventory object. The names of
// built-in providers equal the labels of clusterctl's providers, so that both can be compared.
func readBuiltinProviders(ctx context.Context, c client.Reader, installed []provider.Installed) ([]providerset.Name, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfigurationList"))
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the built-in providers: %w", err)
	}
	var out []providerset.Name
	for _, set := range providerset.All() {
		there := slices.ContainsFunc(list.Items, func(o metav1.PartialObjectMetadata) bool { return o.Name == set.ValidatingWebhookName() })
		recorded := slices.ContainsFunc(installed, func(p provider.Installed) bool { return p.Label() == string(set.Name) })
		if there && !recorded {
			out = append(out, set.Name)
		}
	}
	return out, nil
}
