package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/kube"
	bootstraprender "github.com/slipwayhq/slipway/internal/kubeadm/bootstrap/render"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	kindMachine       = "Machine"
	kindMachinePool   = "MachinePool"
	kindKubeadmConfig = "KubeadmConfig"

	// caKey holds the certificate in the CA Secret of a cluster.
	caKey = corev1.TLSCertKey
)

// observe reads the state that every reconciliation needs. The driver of package reconciler calls it at the start of a
// reconciliation, before [decide]; reads that are too costly for every reconciliation are requested by decide and made
// by read.
func (c *controller) observe(ctx context.Context, config *bootstrapv1.KubeadmConfig) (snapshot, error) {
	s := snapshot{Now: c.now(), TTL: c.ttl, Config: config, Ignition: c.ignition, Policy: c.policy, TokenSetByUser: isTokenSetByUser(config)}
	owner, err := c.ownerOf(ctx, config)
	if err != nil || owner == nil {
		return s, err
	}
	s.Owner = owner
	if owner.ClusterName == "" {
		return s, nil
	}
	key := client.ObjectKey{Namespace: config.Namespace, Name: owner.ClusterName}
	cluster := &clusterv1.Cluster{}
	switch err := c.client.Get(ctx, key, cluster); {
	case apierrors.IsNotFound(err):
		c.released.forget(key)
		return s, nil
	case err != nil:
		return s, fmt.Errorf("reading Cluster %s: %w", key, err)
	}
	s.Cluster = cluster
	switch {
	case !cluster.DeletionTimestamp.IsZero():
		c.released.forget(key)
	case c.released.has(cluster):
		s.Lock = &initLockState{}
	}
	health := c.workloads.Health(key)
	s.Connected, s.Problem = health.Connected, health.Problem
	return s, c.readWritten(ctx, &s)
}

// isTokenSetByUser reports whether another client has set the token in the spec.
func isTokenSetByUser(config *bootstrapv1.KubeadmConfig) bool {
	chosen := func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == kube.ManagerPrefix+Name && e.Operation == metav1.ManagedFieldsOperationApply && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.Raw, []byte(`"f:token"`))
	}
	return config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token != "" && !slices.ContainsFunc(config.ManagedFields, chosen)
}

// readWritten reads the data Secret. The cache is sufficient to check its owner.
func (c *controller) readWritten(ctx context.Context, s *snapshot) error {
	if !s.hasData() {
		return nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.Config.Namespace, Name: s.dataSecretName()}
	err := c.cache.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		live, err := getSecret(ctx, c.client, key) // the cache lacks Secrets without the cluster label, and very recent ones
		s.Deleted = live == nil && err == nil
		return err
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", s.dataSecretName(), err)
	}
	s.Written = secret
	return nil
}

// ownerOf returns the Machine or MachinePool that owns the KubeadmConfig, or nil.
func (c *controller) ownerOf(ctx context.Context, config *bootstrapv1.KubeadmConfig) (*configOwner, error) {
	for _, ref := range config.OwnerReferences {
		if groupOf(ref.APIVersion) != clusterv1.GroupVersion.Group {
			continue
		}
		key := client.ObjectKey{Namespace: config.Namespace, Name: ref.Name}
		switch ref.Kind {
		case kindMachine:
			m := &clusterv1.Machine{}
			err := c.client.Get(ctx, key, m)
			return ownerOrPlaceholder(ref, machineOwner(m), config, err)
		case kindMachinePool:
			pool := &clusterv1.MachinePool{}
			err := c.client.Get(ctx, key, pool)
			return ownerOrPlaceholder(ref, poolOwner(pool), config, err)
		}
	}
	return nil, nil
}

// ownerOrPlaceholder returns the owner, or a placeholder if the owner no longer exists.
func ownerOrPlaceholder(ref metav1.OwnerReference, owner *configOwner, config *bootstrapv1.KubeadmConfig, err error) (*configOwner, error) {
	if apierrors.IsNotFound(err) {
		cluster := config.Labels[clusterv1.ClusterNameLabel]
		return &configOwner{Kind: ref.Kind, Name: ref.Name, ClusterName: cluster, Deleted: true}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", ref.Kind, config.Namespace, ref.Name, err)
	}
	return owner, nil
}

func machineOwner(m *clusterv1.Machine) *configOwner {
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	return &configOwner{
		Kind: kindMachine, Name: m.Name, ClusterName: m.Spec.ClusterName, Version: m.Spec.Version,
		ControlPlane: controlPlane, Joined: m.Status.NodeRef.IsDefined(), Deleted: !m.DeletionTimestamp.IsZero(),
		DataSecretName: ptr.Deref(m.Spec.Bootstrap.DataSecretName, ""),
	}
}

func poolOwner(pool *clusterv1.MachinePool) *configOwner {
	spec := pool.Spec.Template.Spec
	return &configOwner{
		Kind: kindMachinePool, Name: pool.Name, ClusterName: pool.Spec.ClusterName, Version: spec.Version,
		Deleted: !pool.DeletionTimestamp.IsZero(), DataSecretName: ptr.Deref(spec.Bootstrap.DataSecretName, ""),
	}
}

// read makes one read that [decide] requested, because it is too costly for every reconciliation (Secrets and the
// workload cluster), and returns the snapshot with its result.
func (c *controller) read(ctx context.Context, s snapshot, q reconciler.ReadRequest) (snapshot, error) {
	switch q.(type) {
	case readRenderInput:
		m, err := c.material(ctx, s)
		if err != nil {
			return s, err
		}
		s.RenderInput = m
		m.rendered = sync.OnceValues(func() (bootstrapData, error) { return render(s) })
		return s, nil
	case readToken:
		state, err := c.tokenState(ctx, s)
		s.Token = state
		return s, err
	case readLock:
		lock, err := c.readLock(ctx, s)
		s.Lock = lock
		return s, err
	case listLeftoverTokens:
		list, err := c.leftovers(ctx, s)
		s.Leftovers = &list
		return s, err
	}
	return s, reconciler.UnknownRead("kubeadmconfig", q)
}

// material reads the inputs of the bootstrap data. The content of a Secret that the operator's policy denies is not
// copied.
func (c *controller) material(ctx context.Context, s snapshot) (*renderInput, error) {
	m := &renderInput{Secrets: bootstraprender.Secrets{}, Denied: map[string]string{}}
	purposes := []secrets.Purpose{secrets.CA}
	if s.Owner.ControlPlane {
		purposes = secrets.Purposes(s.required())
	}
	var err error
	if m.Authorities, err = secrets.Read(ctx, client.ObjectKeyFromObject(s.Cluster), purposes, c.cache, c.client); err != nil {
		return nil, err
	}
	if ca := m.Authorities[secrets.CA]; ca != nil {
		m.CA = ca.Data[caKey]
	}
	for _, name := range bootstraprender.SecretsOf(s.Config.Spec) {
		secret, err := c.secret(ctx, s, name)
		if err != nil {
			return nil, err
		}
		if secret == nil {
			continue
		}
		if why := s.Policy.DeniedSecret(name, string(secret.Type)); why != "" {
			m.Denied[name] = why
			continue
		}
		m.Secrets[name] = secret.Data
	}
	if m.Data, err = c.secret(ctx, s, s.Config.Name); err != nil {
		return nil, err
	}
	m.ControlPlaneVersion, err = c.controlPlaneVersion(ctx, s)
	return m, err
}

// controlPlaneVersion reads spec.version of the control plane object if a template may use it.
func (c *controller) controlPlaneVersion(ctx context.Context, s snapshot) (string, error) {
	ref := s.Cluster.Spec.ControlPlaneRef
	if !ref.IsDefined() || !hasTemplate(s.Config.Spec) {
		return "", nil
	}
	o, err := c.refs.Get(ctx, ref, s.Config.Namespace)
	if err != nil || o.Unstructured == nil {
		return "", err
	}
	return contract.ControlPlane(o).SpecVersion.Or(""), nil
}

func hasTemplate(spec bootstrapv1.KubeadmConfigSpec) bool {
	return slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool { return f.ContentFormat == bootstrapv1.FileContentFormatTemplate })
}

// secret reads a Secret of the management cluster. It returns nil if the Secret does not exist.
func (c *controller) secret(ctx context.Context, s snapshot, name string) (*corev1.Secret, error) {
	return getSecret(ctx, c.client, client.ObjectKey{Namespace: s.Config.Namespace, Name: name})
}

func getSecret(ctx context.Context, r client.Reader, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := r.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret, nil
}

// tokenSecret reads the Secret of the chosen token. It returns nil if the Secret does not exist.
func (c *controller) tokenSecret(ctx context.Context, s snapshot) (*corev1.Secret, client.Client, error) {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return nil, nil, err
	}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: secretName(s.token())}
	secret, err := getSecret(ctx, workload, key)
	return secret, workload, err
}

// tokenState returns the state of the chosen token, from the cache of recent writes or from the workload cluster.
func (c *controller) tokenState(ctx context.Context, s snapshot) (*tokenState, error) {
	if state, ok := c.tokens.get(s.tokenKey(), s.Now); ok {
		return &state, nil
	}
	secret, _, err := c.tokenSecret(ctx, s)
	if err != nil {
		return nil, err
	}
	state := stateOf(secret)
	return &state, nil
}

func (s snapshot) tokenKey() tokenKey {
	return tokenKey{cluster: client.ObjectKeyFromObject(s.Cluster), id: tokenID(s.token())}
}

// leftovers lists the tokens that were created for this KubeadmConfig.
func (c *controller) leftovers(ctx context.Context, s snapshot) ([]corev1.Secret, error) {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return nil, err
	}
	list := &corev1.SecretList{}
	err = workload.List(ctx, list, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingLabels{ownerLabel: s.tokenOwner().Label()})
	if err != nil {
		return nil, fmt.Errorf("listing bootstrap tokens of Cluster %s: %w", s.Cluster.Name, err)
	}
	return list.Items, nil
}
