package secrets

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/authority"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/action"
)

// soon is when to read again what is not watched before it exists.
const soon = 2 * time.Second

// Input is what the Secrets follow from.
type Input struct {
	Now     time.Time
	Cluster *clusterv1.Cluster
	// Owner of the Secrets, and which are Required.
	Owner    authority.Owner
	Required []authority.Requirement
	// Found are the Secrets that exist, State what that means, and Kubeconfig what is in that one.
	Found      authority.Found
	State      authority.State
	Kubeconfig authority.Kubeconfig
}

// Decide reports whether all Secrets exist and can be used. New ones are created only before the first Machine: afterwards they would
// not be those that everything was signed with.
func (in Input) Decide(p *loop.Plan) bool {
	for _, purpose := range in.State.Create {
		p.Do(action.CreateSecret{Purpose: purpose, Cluster: in.Cluster.Name})
	}
	for _, problem := range in.State.Problems {
		p.WaitFor("CertificatesNotAvailable", "%s", problem.Text).For("Secret", problem.Secret).ForPerson()
	}
	for _, r := range in.Required {
		if secret := in.Found[r.Purpose]; secret != nil && in.Owner.Lost(secret) {
			p.Do(action.OwnSecret{Purpose: r.Purpose, Cluster: in.Cluster.Name})
		}
	}
	if !in.State.Complete() {
		p.RecheckIn(soon)
	}
	return in.State.Complete()
}

// DecideKubeconfig writes the kubeconfig where it is missing, of another endpoint or authority, or at half of its life.
func (in Input) DecideKubeconfig(p *loop.Plan) {
	secret, ca := in.Found[authority.Admin], in.Found[authority.CA]
	if ca == nil || secret != nil && !in.Owner.Manages(secret) {
		return
	}
	if why := in.Kubeconfig.Outdated(in.Cluster.Spec.ControlPlaneEndpoint, ca, in.Now); why != "" {
		p.Do(action.WriteKubeconfig{Cluster: in.Cluster.Name, Why: why})
		return
	}
	if in.Owner.Lost(secret) {
		p.Do(action.OwnSecret{Purpose: authority.Admin, Cluster: in.Cluster.Name})
	}
	p.RecheckIn(in.Kubeconfig.HalfLife().Sub(in.Now))
}

// Act carries out what Decide and DecideKubeconfig say, with keys of this kind.
func (in Input) Act(ctx context.Context, writer *kube.Writer, keys authority.Keys, do loop.Action) error {
	key := client.ObjectKeyFromObject(in.Cluster)
	switch a := do.(type) {
	case action.CreateSecret:
		data, err := authority.Generate(a.Purpose, keys, in.Now)
		if err != nil {
			return err
		}
		return writer.Create(ctx, authority.NewSecret(key, a.Purpose, in.Owner, data))
	case action.OwnSecret:
		return writer.Patch(ctx, in.Found[a.Purpose], in.Owner.Take)
	}
	data, err := authority.Issue(authority.Access{Cluster: in.Cluster.Name, Endpoint: in.Cluster.Spec.ControlPlaneEndpoint}, in.Found[authority.CA], keys, in.Now)
	if err != nil {
		return err
	}
	old := in.Found[authority.Admin]
	if old == nil {
		return writer.Create(ctx, authority.NewSecret(key, authority.Admin, in.Owner, data))
	}
	return writer.Patch(ctx, old, func(o client.Object) {
		secret := o.(*corev1.Secret)
		secret.Data, secret.Type = data, clusterv1.ClusterSecretType
		ownership.Label(secret, clusterv1.ClusterNameLabel, in.Cluster.Name)
		in.Owner.Take(secret)
	})
}
