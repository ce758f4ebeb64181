package bootstrap

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// The keys of a data Secret. The bootstrap contract of Cluster API defines value; infrastructure providers read format
// to distinguish cloud-config from Ignition.
const (
	valueKey  = "value"
	formatKey = "format"
)

// act executes one action of the plan of [decide]. The driver of package reconciler calls it for each action in order,
// and calls decide again in the next reconciliation, so an action must be safe to repeat after a crash.
func (c *controller) act(ctx context.Context, s snapshot, a reconciler.Action) error {
	switch a := a.(type) {
	case chooseToken:
		return c.chooseToken(ctx, s)
	case createToken:
		return c.createToken(ctx, s)
	case extendToken:
		return c.extendToken(ctx, s)
	case deleteToken:
		return c.deleteToken(ctx, s, a.Name)
	case writeData:
		return c.writeData(ctx, s)
	case ownData:
		return c.ownData(ctx, s)
	case takeLock:
		return c.takeLock(ctx, s)
	case releaseLock:
		return c.releaseLock(ctx, s)
	case createAuthority:
		return c.createAuthority(ctx, s, a.Purpose)
	}
	return fault.New(fault.Bug, "UnknownAction", "unknown action %T", a)
}

// chooseToken records a new token in spec before it is used anywhere else, so that it survives a crash at any later
// step. The token is the only spec field that this controller writes.
func (c *controller) chooseToken(ctx context.Context, s snapshot) error {
	token, err := bootstraputil.GenerateBootstrapToken()
	if err != nil {
		return fmt.Errorf("generating a token: %w", err)
	}
	want := &unstructured.Unstructured{Object: map[string]any{}}
	want.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind(kindKubeadmConfig))
	want.SetNamespace(s.Config.Namespace)
	want.SetName(s.Config.Name)
	err = unstructured.SetNestedField(want.Object, token, "spec", "joinConfiguration", "discovery", "bootstrapToken", "token")
	if err != nil {
		return fault.New(fault.Bug, "InvalidObject", "the token cannot be written into a KubeadmConfig").From(err)
	}
	if err := c.writer.Apply(ctx, s.Config, want); err != nil {
		return err
	}
	// No other client knows the token yet.
	c.tokens.set(tokenKey{client.ObjectKeyFromObject(s.Cluster), tokenID(token)}, tokenState{}, s.Now)
	return nil
}

func (c *controller) createToken(ctx context.Context, s snapshot) error {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return err
	}
	life := TokenLifetime{From: s.Now, TTL: s.TTL}
	if err := c.writer.WithClient(workload).Create(ctx, TokenSecret(s.token(), s.tokenOwner(), life)); err != nil {
		return err
	}
	c.tokens.set(s.tokenKey(), life.state(), s.Now)
	return nil
}

func (c *controller) extendToken(ctx context.Context, s snapshot) error {
	secret, workload, err := c.tokenSecret(ctx, s)
	if err != nil {
		return err
	}
	if secret == nil {
		return fault.New(fault.Gone, "TokenGone", "bootstrap token %s was deleted in the meantime", tokenID(s.token()))
	}
	life := TokenLifetime{From: s.Now, TTL: s.TTL}
	err = c.writer.WithClient(workload).Patch(ctx, secret, func(o client.Object) {
		o.(*corev1.Secret).Data[bootstrapapi.BootstrapTokenExpirationKey] = []byte(life.Expiration())
	})
	if err == nil {
		c.tokens.set(s.tokenKey(), life.state(), s.Now)
	}
	return err
}

// createAuthority creates one of the Secrets that all machines of the control plane share.
func (c *controller) createAuthority(ctx context.Context, s snapshot, purpose secrets.Purpose) error {
	data, err := secrets.Generate(purpose, secrets.KeyOptionsOf(s.Config.Spec.ClusterConfiguration), s.Now)
	if err != nil {
		return err
	}
	return c.writer.Create(ctx, secrets.NewSecret(client.ObjectKeyFromObject(s.Cluster), purpose, s.authorityOwner(), data))
}

func (c *controller) deleteToken(ctx context.Context, s snapshot, name string) error {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return err
	}
	for i := range *s.Leftovers {
		if secret := &(*s.Leftovers)[i]; secret.Name == name {
			return c.writer.WithClient(workload).Delete(ctx, secret)
		}
	}
	return nil
}

// writeData creates or updates the data Secret with server-side apply.
func (c *controller) writeData(ctx context.Context, s snapshot) error {
	data, err := s.data()
	if err != nil {
		return err
	}
	want := dataSecret(s, data)
	live := s.RenderInput.Data
	if live == nil {
		return c.writer.Apply(ctx, nil, want)
	}
	if err := c.adopt(ctx, s); err != nil {
		return err
	}
	return c.writer.Apply(ctx, live, want)
}

// ownData restores the owner reference of an existing data Secret, without changing its data.
func (c *controller) ownData(ctx context.Context, s snapshot) error {
	return c.writer.Patch(ctx, s.Written, func(o client.Object) {
		others := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(ref metav1.OwnerReference) bool { return isOwnReference(ref, s) })
		o.SetOwnerReferences(append(others, *metav1.NewControllerRef(s.Config, bootstrapv1.GroupVersion.WithKind(kindKubeadmConfig))))
	})
}

// adopt removes owner references to previous KubeadmConfigs with the same name. Otherwise the Secret could not have
// the present KubeadmConfig as its controller, and would be garbage-collected.
func (c *controller) adopt(ctx context.Context, s snapshot) error {
	stale := func(ref metav1.OwnerReference) bool { return isOwnReference(ref, s) && ref.UID != s.Config.UID }
	if !slices.ContainsFunc(s.RenderInput.Data.OwnerReferences, stale) {
		return nil
	}
	return c.writer.Patch(ctx, s.RenderInput.Data, func(o client.Object) {
		o.SetOwnerReferences(slices.DeleteFunc(o.GetOwnerReferences(), stale))
	})
}

// dataSecret returns the fields of the data Secret that this controller manages.
func dataSecret(s snapshot, data bootstrapData) *unstructured.Unstructured {
	encode := base64.StdEncoding.EncodeToString
	u := &unstructured.Unstructured{Object: map[string]any{
		"type": string(clusterv1.ClusterSecretType),
		"data": map[string]any{valueKey: encode(data.Value), formatKey: encode([]byte(data.Format))},
	}}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	u.SetNamespace(s.Config.Namespace)
	u.SetName(s.Config.Name)
	u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: s.Cluster.Name})
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(s.Config, bootstrapv1.GroupVersion.WithKind(kindKubeadmConfig))})
	return u
}
