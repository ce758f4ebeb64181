package controlplane

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// decideSecrets plans the certificate Secrets of the cluster. [decide] calls it in each reconciliation. Missing ones
// are only created before the first Machine, because later the cluster depends on the original ones.
func (s snapshot) decideSecrets(p *reconciler.Plan) {
	owner := s.secretsOwner()
	for _, purpose := range s.Certificates.Create {
		p.Do(createSecret{Purpose: purpose, Cluster: s.Cluster.Name})
	}
	for _, problem := range s.Certificates.Problems {
		p.WaitFor("CertificatesNotAvailable", "%s", problem.Text).For("Secret", problem.Secret).UntilUserActs()
	}
	for _, r := range s.required() {
		if secret := s.Secrets[r.Purpose]; secret != nil && owner.NeedsOwner(secret) {
			p.Do(ownSecret{Purpose: r.Purpose, Cluster: s.Cluster.Name})
		}
	}
	if !s.Certificates.Complete() {
		p.RecheckIn(soon) // Secrets are not watched until they exist
	}
}

// isSecretCreation reports whether an action creates a certificate Secret. The condition CertificatesAvailable calls
// it.
func isSecretCreation(a reconciler.Action) bool {
	_, creates := a.(createSecret)
	return creates
}

// decideKubeconfig writes the kubeconfig if it is missing, has another endpoint or CA, or is past half of its validity.
// [decide] calls it after the infrastructure is provisioned.
func (s snapshot) decideKubeconfig(p *reconciler.Plan) {
	owner := s.secretsOwner()
	secret, ca := s.Secrets[secrets.Admin], s.Secrets[secrets.CA]
	if ca == nil || secret != nil && !owner.Manages(secret) {
		return
	}
	if why := s.Kubeconfig.ReissueReason(s.Cluster.Spec.ControlPlaneEndpoint, ca, s.Now); why != "" {
		p.Do(writeKubeconfig{Cluster: s.Cluster.Name, Why: why})
		return
	}
	if owner.NeedsOwner(secret) {
		p.Do(ownSecret{Purpose: secrets.Admin, Cluster: s.Cluster.Name})
	}
	p.RecheckIn(s.Kubeconfig.HalfLife().Sub(s.Now))
}

// actOnSecrets executes the actions on Secrets. act calls it.
func (c *controller) actOnSecrets(ctx context.Context, s snapshot, do reconciler.Action) error {
	key, owner := client.ObjectKeyFromObject(s.Cluster), s.secretsOwner()
	keys := secrets.KeyOptionsOf(s.ControlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration)
	switch a := do.(type) {
	case createSecret:
		data, err := secrets.Generate(a.Purpose, keys, s.Now)
		if err != nil {
			return err
		}
		return c.writer.Create(ctx, secrets.NewSecret(key, a.Purpose, owner, data))
	case ownSecret:
		return c.writer.Patch(ctx, s.Secrets[a.Purpose], owner.Adopt)
	}
	data, err := secrets.Issue(secrets.Access{Cluster: s.Cluster.Name, Endpoint: s.Cluster.Spec.ControlPlaneEndpoint}, s.Secrets[secrets.CA], keys, s.Now)
	if err != nil {
		return err
	}
	old := s.Secrets[secrets.Admin]
	if old == nil {
		return c.writer.Create(ctx, secrets.NewSecret(key, secrets.Admin, owner, data))
	}
	return c.writer.Patch(ctx, old, func(o client.Object) {
		secret := o.(*corev1.Secret)
		secret.Data, secret.Type = data, clusterv1.ClusterSecretType
		ownership.Label(secret, clusterv1.ClusterNameLabel, s.Cluster.Name)
		owner.Adopt(secret)
	})
}
