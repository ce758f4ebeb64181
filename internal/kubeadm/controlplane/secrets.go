package controlplane

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// secretsSoon is the delay before reading objects that are not watched until they exist.
const secretsSoon = 2 * time.Second

// secretsInput is the input of decisions about the Secrets.
type secretsInput struct {
	Now     time.Time
	Cluster *clusterv1.Cluster
	// Owner is the owner of the Secrets. Required lists the required Secrets.
	Owner    secrets.Owner
	Required []secrets.Requirement
	// Found are the existing Secrets, State is their evaluation, and Kubeconfig is the content of the kubeconfig
	// Secret.
	Found      secrets.Secrets
	State      secrets.Evaluation
	Kubeconfig secrets.Kubeconfig
}

// Decide reports whether all Secrets exist and are valid. Missing ones are only created before the first Machine,
// because later the cluster depends on the original ones.
func (in secretsInput) Decide(p *reconciler.Plan) bool {
	for _, purpose := range in.State.Create {
		p.Do(createSecret{Purpose: purpose, Cluster: in.Cluster.Name})
	}
	for _, problem := range in.State.Problems {
		p.WaitFor("CertificatesNotAvailable", "%s", problem.Text).For("Secret", problem.Secret).UntilUserActs()
	}
	for _, r := range in.Required {
		if secret := in.Found[r.Purpose]; secret != nil && in.Owner.NeedsOwner(secret) {
			p.Do(ownSecret{Purpose: r.Purpose, Cluster: in.Cluster.Name})
		}
	}
	if !in.State.Complete() {
		p.RecheckIn(secretsSoon)
	}
	return in.State.Complete()
}

// DecideKubeconfig writes the kubeconfig if it is missing, has another endpoint or CA, or is past half of its
// validity.
func (in secretsInput) DecideKubeconfig(p *reconciler.Plan) {
	secret, ca := in.Found[secrets.Admin], in.Found[secrets.CA]
	if ca == nil || secret != nil && !in.Owner.Manages(secret) {
		return
	}
	if why := in.Kubeconfig.ReissueReason(in.Cluster.Spec.ControlPlaneEndpoint, ca, in.Now); why != "" {
		p.Do(writeKubeconfig{Cluster: in.Cluster.Name, Why: why})
		return
	}
	if in.Owner.NeedsOwner(secret) {
		p.Do(ownSecret{Purpose: secrets.Admin, Cluster: in.Cluster.Name})
	}
	p.RecheckIn(in.Kubeconfig.HalfLife().Sub(in.Now))
}

// Act executes the actions of Decide and DecideKubeconfig. New keys have the given configuration.
func (in secretsInput) Act(ctx context.Context, writer *kube.Writer, keys secrets.KeyOptions, do reconciler.Action) error {
	key := client.ObjectKeyFromObject(in.Cluster)
	switch a := do.(type) {
	case createSecret:
		data, err := secrets.Generate(a.Purpose, keys, in.Now)
		if err != nil {
			return err
		}
		return writer.Create(ctx, secrets.NewSecret(key, a.Purpose, in.Owner, data))
	case ownSecret:
		return writer.Patch(ctx, in.Found[a.Purpose], in.Owner.Adopt)
	}
	data, err := secrets.Issue(secrets.Access{Cluster: in.Cluster.Name, Endpoint: in.Cluster.Spec.ControlPlaneEndpoint}, in.Found[secrets.CA], keys, in.Now)
	if err != nil {
		return err
	}
	old := in.Found[secrets.Admin]
	if old == nil {
		return writer.Create(ctx, secrets.NewSecret(key, secrets.Admin, in.Owner, data))
	}
	return writer.Patch(ctx, old, func(o client.Object) {
		secret := o.(*corev1.Secret)
		secret.Data, secret.Type = data, clusterv1.ClusterSecretType
		ownership.Label(secret, clusterv1.ClusterNameLabel, in.Cluster.Name)
		in.Owner.Adopt(secret)
	})
}
